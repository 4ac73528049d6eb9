"""Pyomo with HiGHS, written as one writes Pyomo: sets, and a rule for each kind of constraint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.peers.highs_direct import forget_threads
from fairopt.benchmarks.peers.plain import Floats, Peer, SharedGpus
from fairopt.errors import NotSolved, OutOfTime


def _sharing(market: SharedGpus) -> Any:
    """Return a model with the shares, within capacities and limits, and each user's own throughput."""
    import pyomo.environ as pyo

    n, k = market.shape
    most, speedup = market.most.tolist(), market.speedup.tolist()
    model = pyo.ConcreteModel()
    model.users, model.types = pyo.RangeSet(0, n - 1), pyo.RangeSet(0, k - 1)
    model.share = pyo.Var(model.users, model.types, bounds=lambda _, i, j: (0, most[i][j]))

    def capacity(m: Any, j: int) -> Any:
        return sum(m.share[i, j] for i in m.users) <= float(market.capacity[j])

    model.capacity = pyo.Constraint(model.types, rule=capacity)

    def limit(m: Any, i: int) -> Any:
        return sum(m.share[i, j] for j in m.types) <= float(market.limit[i])

    model.limit = pyo.Constraint(market.limited.tolist(), rule=limit)

    def own(m: Any, i: int) -> Any:
        return sum(speedup[i][j] * m.share[i, j] for j in m.types)

    model.own = pyo.Expression(model.users, rule=own)

    return model


def max_min(market: SharedGpus) -> Any:
    """Return Gavel's program, Sec. 4.1."""
    import pyomo.environ as pyo

    model, fair = _sharing(market), market.fair.tolist()
    model.least = pyo.Var()

    def ratio(m: Any, i: int) -> Any:
        return m.own[i] / fair[i] >= m.least

    model.ratio = pyo.Constraint(model.users, rule=ratio)

    model.objective = pyo.Objective(expr=model.least, sense=pyo.maximize)
    return model


def oef_noncooperative(market: SharedGpus) -> Any:
    """Return OEF Eq. (9) with the level as a variable."""
    import pyomo.environ as pyo

    model, weight = _sharing(market), market.weight.tolist()
    model.level = pyo.Var()

    def equal(m: Any, i: int) -> Any:
        return m.own[i] == weight[i] * m.level

    model.equal = pyo.Constraint(model.users, rule=equal)

    model.objective = pyo.Objective(expr=sum(model.own[i] for i in model.users), sense=pyo.maximize)
    return model


def oef_cooperative(market: SharedGpus) -> Any:
    """Return OEF Eq. (10)."""
    import pyomo.environ as pyo

    model, weight, speedup = _sharing(market), market.weight.tolist(), market.speedup.tolist()

    def envy_free(m: Any, i: int, other: int) -> Any:
        if i == other:
            return pyo.Constraint.Skip
        claim = weight[i] / weight[other]
        return m.own[i] >= sum(claim * speedup[i][j] * m.share[other, j] for j in m.types)

    model.envy_free = pyo.Constraint(model.users, model.users, rule=envy_free)

    model.objective = pyo.Objective(expr=sum(model.own[i] for i in model.users), sense=pyo.maximize)
    return model


MODELS: Mapping[str, Callable[[SharedGpus], Any]] = {
    "max-min": max_min,
    "oef-noncooperative": oef_noncooperative,
    "oef-cooperative": oef_cooperative,
}


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A model, and the solver that holds it."""

    model: Any
    solver: Any
    shape: tuple[int, int]


@dataclass(frozen=True)
class PyomoHighs(Peer):
    """Pyomo's persistent interface to HiGHS (APPSI); the model is handed over in "build".

    Its search for changes between then and the solve is switched off: nothing changes.
    """

    name = "pyomo-highs"
    tasks = tuple(MODELS)
    libraries: ClassVar[Sequence[str]] = ("pyomo", "highspy")
    modules: ClassVar[Sequence[str]] = ("pyomo.environ", "pyomo.contrib.appsi.solvers.highs", "highspy")
    install = "fairopt[solvers]"

    def build(self, task: str, prepared: SharedGpus, *, time_limit: float, threads: int) -> _Loaded:
        """Write the model and hand it to HiGHS."""
        from pyomo.contrib.appsi.solvers.highs import Highs

        forget_threads()
        model = MODELS[task](prepared)
        solver = Highs()
        solver.config.time_limit = time_limit
        solver.config.load_solution = False
        solver.highs_options = {"threads": threads, "output_flag": False}
        for look in solver.update_config:
            if look != "treat_fixed_vars_as_params":  # the other options each switch on a search
                setattr(solver.update_config, look, False)
        solver.set_instance(model)
        return _Loaded(model, solver, prepared.shape)

    def solve(self, built: _Loaded) -> Floats:
        """Run HiGHS and fetch the shares."""
        from pyomo.contrib.appsi.base import TerminationCondition

        results = built.solver.solve(built.model)
        if results.termination_condition == TerminationCondition.maxTimeLimit:
            raise OutOfTime("HiGHS, through Pyomo, stopped at its time limit")
        if results.termination_condition != TerminationCondition.optimal:
            raise NotSolved(f"HiGHS, through Pyomo: {results.termination_condition}")
        share = built.model.share
        values = results.solution_loader.get_primals(list(share.values()))
        return np.array([values[share[index]] for index in share]).reshape(built.shape)
