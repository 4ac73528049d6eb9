"""Gavel in rounds: an objective gives time fractions, and priorities turn them into rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from fairopt.backends import Method, Session
from fairopt.errors import require
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.objectives import MaxMinShare, Objective, Shared
from fairopt.numbers import arithmetic
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.program import Number, cast
from fairopt.simulation import Consolidated, Placement, Request, placed

#: Smaller time fractions, in floats, count as rounding errors.
NOISE = 1e-7


#: A number of each type (k,), by the name of a job.
ByType: TypeAlias = Mapping[str, tuple[Number, ...]]


@dataclass(frozen=True)
class GavelState:
    """The claims of jobs by name, in the order of the jobs, and the ``capacity`` that they were made for.

    By type, a job has ``fraction`` X_mj of the time, and received ``rounds`` of those that it has ``seen``. ``owed``:
    rounds that it was promised by earlier fractions, minus those that it received. ``prices`` (k,): those of the last
    answer, if the next one starts from them. The fractions hold ``since`` a moment.
    """

    fraction: ByType = field(default_factory=dict)
    rounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    owed: ByType = field(default_factory=dict)
    seen: Mapping[str, int] = field(default_factory=dict)
    capacity: tuple[int, ...] = ()
    value: Number = 0
    bound: Number = 0
    prices: tuple[float, ...] = ()
    since: Number = 0

    def settled(self, name: str) -> tuple[Number, ...]:
        """Return the rounds owed to a job when its present fractions end."""
        by_type = zip(self.owed[name], self.fraction[name], self.rounds[name], strict=True)
        return tuple(owed + part * self.seen[name] - got for owed, part, got in by_type)


@dataclass(frozen=True)
class GavelRounds(Policy):
    """Time fractions X_mj for each job and type, and rounds that approach them.

    In each round the pairs of job and type are taken by falling priority: X_mj over the fraction of rounds that the job
    has received on the type. Gangs are placed whole, a job runs on one type only, and a job that does not fit is
    skipped. A job that has received no round on a type comes before all that have (ties: by X). Ties go to the job that
    is owed more, then to the larger X, then to the job that arrived first, then to its faster type.

    * ``objective``: what X optimises (`fairopt.models.gavel.objectives`, `fairopt.models.gavel.fairness`). X is
      computed again when a job that could run has come or gone, or the GPUs have changed.
    * ``reset``: whether the counts of rounds start again then, as in the source's own scheduler; rounds owed are kept
      for ties. False: rounds are counted from each job's arrival.
    * ``interval``: X is not computed again before so much of the trace's time has passed, and who comes in between does
      not run until then, even on idle GPUs; time counts from the first time after 0 (the source's scheduler: 1000 s).
    * ``head_start``: the rounds that each job is taken to have received, on each type, when counts of rounds begin (the
      source's scheduler: 1/2); 0: none, so that jobs without a round come first.
    * ``backfill``: whether GPUs still free go to pairs with X_mj = 0, those that are owed more first, as in the
      source's scheduler; False leaves them idle.
    * ``by_tenant``: a tenant's weight is divided among its jobs that could run, so that what a tenant gets does not
      grow with their number; else jobs have their own weights, and tenants have none.
    * ``placement``: how hosts are chosen.

    The sizes of state and the cost of moving are ignored (FFT Sec. 2.3). Jobs with a lease go on, and these rounds
    count.

    Source: Gavel, OSDI 2020, Sec. 3.1, 4.3 (an entity's weight is divided among its jobs), 5; FFT Sec. 2.3, 2.4, 6.1.4.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(GavelRounds(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of gavel-rounds, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "gavel-rounds"
    source = "Gavel, OSDI 2020, Sec. 5"
    states = (GavelState,)
    claims = (Claim("", "Gavel Sec. 5", "no job comes or goes", words="approaches_time_fractions"),)
    traits = frozenset({Trait.PROGRAM, Trait.ONE_TYPE, Trait.WORK_CONSERVING, Trait.NAMELESS})
    objective: Objective = field(default_factory=MaxMinShare)
    reset: bool = True
    interval: object = 0
    head_start: object = 0
    backfill: bool = True
    by_tenant: bool = False
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        for name in ("interval", "head_start"):
            value = exact(getattr(self, name), f"gavel-rounds, {name}")
            require(value >= 0, value, f"gavel-rounds, {name}", "Give a number, not negative")

    @property
    def _interval(self) -> Fraction:
        return exact(self.interval, "gavel-rounds, interval")

    @property
    def _ahead(self) -> Fraction:
        return exact(self.head_start, "gavel-rounds, head_start")

    @property
    def methods(self) -> tuple[Method, ...]:  # type: ignore[override]
        """The objective's own method, where it has one."""
        return () if self.objective.method is None else (self.objective.method,)

    def decide(self, problem: Queue, state: GavelState, solve: Session) -> Schedule:
        """Renew the claims if they are out of date, then serve them by priority; see `Policy.decide`."""
        current, answer = self._claims(problem, state, solve)
        program, solution = answer or (None, None)
        programs = solution.effort["programs"] if solution else 0
        placements = placed(problem, self._wants(problem, current), self.placement)
        rounds = dict(current.rounds)
        for row, spots in placements.items():
            name, on = problem.jobs.names[row], problem.gpu_types(spots)
            if name in rounds:
                rounds[name] = tuple(got + (gpu_type in on) for gpu_type, got in enumerate(rounds[name]))
        seen = {name: before + 1 for name, before in current.seen.items()}
        return Schedule(
            self.name,
            problem,
            placements,
            state=replace(current, rounds=rounds, seen=seen),
            costs={"objective": current.value, "bound": current.bound, "programs": programs},
            program=program,
            solution=solution,
        )

    def _claims(self, queue: Queue, state: GavelState, solve: Session) -> tuple[GavelState, Shared | None]:
        names = tuple(queue.jobs.names[row] for row in queue.able)
        capacity = tuple(queue.capacity.tolist())
        if (names, capacity) == (tuple(state.fraction), state.capacity):
            return state, None
        if state.capacity == capacity and state.since and queue.now - state.since < queue.number(self._interval):
            return state, None
        jobs = JobMarket.of(queue, by_tenant=self.by_tenant)
        if jobs is None:
            return GavelState(capacity=capacity, since=queue.now), None
        number = solve.number if solve.method is None else float
        start = (jobs.market.types, (np.array(state.prices), float(state.value))) if state.prices else None
        program, answer = self.objective.shares(jobs.as_(number), solve, start)
        sizes, shares = queue.jobs.gpus[list(jobs.rows)], np.asarray(answer.values["share"])
        if not arithmetic(number).exact:
            shares = np.where(shares > NOISE * sizes[:, None], shares, 0.0)
        fractions = cast(shares, queue.number) / sizes[:, None]
        nothing = (0,) * len(capacity)
        known = {name for name in names if name in state.fraction}
        kept = set() if self.reset else known
        value, bound = (queue.number(each or 0) for each in (answer.objective, answer.bound))
        made = GavelState(
            fraction=dict(zip(names, map(tuple, fractions.tolist()), strict=True)),
            rounds={name: state.rounds[name] if name in kept else nothing for name in names},
            owed={
                name: state.owed[name] if name in kept else state.settled(name) if name in known else nothing
                for name in names
            },
            seen={name: state.seen[name] if name in kept else 0 for name in names},
            capacity=capacity,
            since=queue.now,
            value=value,
            bound=bound,
            prices=() if answer.warm_start is None else tuple(answer.warm_start[1][0].tolist()),
        )
        return made, (program, answer)

    def _wants(self, queue: Queue, state: GavelState) -> list[Request]:
        """Return who runs on which type, by priority."""
        speeds, left, sizes = queue.jobs.throughput.tolist(), queue.room.tolist(), queue.jobs.gpus.tolist()
        allowed, leased = queue.allowed.tolist(), queue.leased
        ahead = queue.number(self._ahead) if self._ahead else 0
        pairs = []
        for row, name in enumerate(queue.jobs.names):
            if name not in state.fraction or row in leased:
                continue
            seen = state.seen[name]
            by_type = zip(state.fraction[name], state.rounds[name], state.owed[name], allowed[row], strict=True)
            for gpu_type, (part, got, owed, able) in enumerate(by_type):
                if able and (part > 0 or self.backfill):
                    begun = got + ahead
                    first = part > 0 and not begun
                    priority = part * (seen or 1) / begun if begun else part
                    pairs.append((not first, -priority, -owed, -part, row, -speeds[row][gpu_type], gpu_type))
        requests: dict[int, Request] = {}
        for *_, row, _, gpu_type in sorted(pairs):
            size = sizes[row]
            if row not in requests and left[gpu_type] >= size:
                left[gpu_type] -= size
                requests[row] = Request(row, (gpu_type,))
        return list(requests.values())
