"""What the peers that go through CVXPY have in common: whole-array programs, compiling, and reading answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.peers.plain import Floats, Peer, SharedGpus
from fairopt.errors import NotSolved, OutOfTime


@dataclass(frozen=True, eq=False)
class Written:
    """A program of CVXPY, and its variable for the shares (n, k)."""

    problem: Any
    share: Any


def _sharing(market: SharedGpus) -> tuple[Any, list[Any]]:
    """Return the shares (n, k) and what they must keep, as expressions over whole arrays."""
    import cvxpy

    share = cvxpy.Variable(market.shape, nonneg=True)
    kept = [cvxpy.sum(share, axis=0) <= market.capacity]
    users, types = np.nonzero(market.speedup == 0)
    if len(users):
        kept.append(share[users, types] == 0)
    if len(market.limited):
        kept.append(cvxpy.sum(share, axis=1)[market.limited] <= market.limit[market.limited])
    return share, kept


def _own(market: SharedGpus, share: Any) -> Any:
    import cvxpy

    return cvxpy.sum(cvxpy.multiply(market.speedup, share), axis=1)


def max_min(market: SharedGpus) -> Written:
    """Return Gavel's program, Sec. 4.1, with `min` as CVXPY's own function, as Gavel's code has it."""
    import cvxpy

    share, kept = _sharing(market)
    ratio = cvxpy.sum(cvxpy.multiply(market.speedup / market.fair[:, None], share), axis=1)
    return Written(cvxpy.Problem(cvxpy.Maximize(cvxpy.min(ratio)), kept), share)


def oef_noncooperative(market: SharedGpus) -> Written:
    """Return OEF Eq. (9) with the level as a variable."""
    import cvxpy

    share, kept = _sharing(market)
    level, own = cvxpy.Variable(), _own(market, share)
    kept.append(own == market.weight * level)
    return Written(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(own)), kept), share)


def oef_cooperative(market: SharedGpus, *, own_variable: bool = False) -> Written:
    """Return OEF Eq. (10) as one inequality between matrices (n, n).

    With ``own_variable`` each user's own throughput is a variable, so that a row has k + 1 entries instead of 2 k.
    """
    import cvxpy

    share, kept = _sharing(market)
    own, n = _own(market, share), market.shape[0]
    if own_variable:
        throughput = cvxpy.Variable(n)
        kept.append(throughput == own)
        own = throughput
    per_weight = cvxpy.multiply(1 / market.weight[:, None], share)
    others = (market.speedup * market.weight[:, None]) @ per_weight.T
    kept.append(cvxpy.reshape(own, (n, 1), order="C") @ np.ones((1, n)) >= others)
    return Written(cvxpy.Problem(cvxpy.Maximize(cvxpy.sum(own)), kept), share)


def nash_welfare(market: SharedGpus) -> Written:
    """Return the program of Eisenberg and Gale."""
    import cvxpy

    share, kept = _sharing(market)
    ratio = cvxpy.sum(cvxpy.multiply(market.speedup / market.fair[:, None], share), axis=1)
    return Written(cvxpy.Problem(cvxpy.Maximize(market.weight @ cvxpy.log(ratio)), kept), share)


#: The linear programs, by task; and those with logarithms, for conic solvers.
LINEAR: Mapping[str, Callable[[SharedGpus], Written]] = {
    "max-min": max_min,
    "oef-noncooperative": oef_noncooperative,
    "oef-cooperative": oef_cooperative,
}
CONIC: Mapping[str, Callable[[SharedGpus], Written]] = {**LINEAR, "nash-welfare": nash_welfare}


@dataclass(frozen=True, eq=False)
class Compiled:
    """A program of CVXPY in the form of one solver, and the options that it will be run with."""

    written: Written
    data: Any
    chain: Any
    inverse: Any
    options: Mapping[str, Any]


class CvxpyPeer(Peer):
    """A solver through CVXPY: "build" is writing and compiling, "solve" the solver and reading its answer.

    ``programs`` are the tasks' programs, `options` the solver's options.
    """

    modules: ClassVar[Sequence[str]] = ("cvxpy",)
    solver: ClassVar[str]
    programs: ClassVar[Mapping[str, Callable[[SharedGpus], Written]]] = LINEAR

    def options(self, time_limit: float, threads: int) -> Mapping[str, Any]:
        """Return the solver's options in its own words; those that it does not have are left out."""
        return {}

    def timed_out(self, status: str, raw: Any) -> bool:
        """Return whether the solver stopped at its time limit: by CVXPY's word for it, and its own answer."""
        return False

    def build(self, task: str, prepared: SharedGpus, *, time_limit: float, threads: int) -> Compiled:
        """Write the program and compile it for the solver."""
        options = self.options(time_limit, threads)
        written = self.programs[task](prepared)
        data, chain, inverse = written.problem.get_problem_data(self.solver, solver_opts=dict(options))
        return Compiled(written, data, chain, inverse, options)

    def solve(self, built: Compiled) -> Floats:
        """Run the solver. Errors: `OutOfTime`; `NotSolved` with any status that has no answer."""
        raw = built.chain.solve_via_data(
            built.written.problem, built.data, warm_start=False, verbose=False, solver_opts=dict(built.options)
        )
        answer = built.chain.invert(raw, built.inverse)
        if self.timed_out(answer.status, raw):
            raise OutOfTime(f"{self.solver} stopped at its time limit")
        # an answer that the solver calls inaccurate counts too: the judge decides how good it is
        if answer.status not in ("optimal", "optimal_inaccurate"):
            raise NotSolved(f"{self.solver}, through CVXPY: {answer.status}")
        return np.asarray(answer.primal_vars[built.written.share.id], dtype=float)
