"""Gavel in rounds: an objective gives time fractions, and priorities turn them into rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from fairopt.backends import Method, Session
from fairopt.models.common.schedulers import ordered
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.objectives import MaxMinShare, Objective, Shared
from fairopt.numbers import arithmetic
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import exact, within
from fairopt.problem.queue import Placements, Queue
from fairopt.program import INFINITY, Array, Number, cast
from fairopt.simulation import Consolidated, Placement, placed
from fairopt.simulation.placement import Requests

#: Smaller time fractions, in floats, count as rounding errors.
NOISE = 1e-7


#: The columns of a state.
COLUMNS = ("fraction", "rounds", "owed", "seen")
#: A number of each job, by type (k, n).
ByType: TypeAlias = tuple[tuple[Number, ...], ...]


@dataclass(frozen=True)
class GavelState:
    """The claims of ``jobs``, by name, in columns, and the ``capacity`` that they were made for.

    By type (k, n), a job has ``fraction`` X_mj of the time, and received ``rounds`` of those that it has ``seen`` (n,).
    ``owed``: rounds that it was promised by earlier fractions, minus those that it received. ``prices`` (k,): those of
    the last answer, if the next one starts from them. The fractions hold ``since`` a moment.

    ``always`` (n,): the types on which all jobs run in every round from ``index`` on, where no other decision can come
    as long as nothing happens: one state for many rounds. ``rounds`` and ``seen`` are those before that round.
    """

    jobs: tuple[str, ...] = ()
    fraction: ByType = ()
    rounds: tuple[tuple[int, ...], ...] = ()
    owed: ByType = ()
    seen: tuple[int, ...] = ()
    capacity: tuple[int, ...] = ()
    value: Number = 0
    bound: Number = 0
    prices: tuple[float, ...] = ()
    since: Number = 0
    always: tuple[int, ...] = ()
    index: int = 0

    @cached_property
    def columns(self) -> dict[str, Array]:
        """The columns ``fraction``, ``rounds``, ``owed`` (k, n) and ``seen`` (n,) by name, to compute with."""
        return {name: np.array(getattr(self, name)) for name in COLUMNS}

    def changed(self, columns: dict[str, Array], **others: Any) -> GavelState:
        """Return the state with other ``columns``, and what else is given."""
        for name, column in columns.items():
            others[name] = tuple(column.tolist() if column.ndim == 1 else map(tuple, column.tolist()))
        made = replace(self, **others)
        vars(made)["columns"] = columns if len(columns) == len(COLUMNS) else self.columns | columns
        return made

    def before(self, index: int) -> GavelState:
        """Return the state when round ``index`` begins."""
        if not self.always:
            return self
        more, rounds = index - self.index, self.columns["rounds"].copy()
        rounds[list(self.always), np.arange(len(self.always))] += more
        return self.changed({"rounds": rounds, "seen": self.columns["seen"] + more}, always=())


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
    interval: object = within(0, least=0)
    head_start: object = within(0, least=0)
    backfill: bool = True
    by_tenant: bool = False
    placement: Placement = field(default_factory=Consolidated)

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
        known = state.before(problem.index)
        current, answer = self._claims(problem, known, solve)
        program, solution = answer or (None, None)
        programs = solution.effort["programs"] if solution else 0
        place = places(problem, current.jobs)
        requests = self._wants(problem, current, place)
        placements = placed(problem, requests, self.placement)
        on = np.full(len(problem), -1)
        on[requests.rows] = requests.gpu_types
        stands = not programs and self._stands(problem, current, place, on, placements)
        if stands:
            always = tuple(on[np.argsort(place)].tolist())
            same = current is known and always == state.always
            after = state if same else replace(current, always=always, index=problem.index)
        else:
            after = self._served(problem, current, place, on, placements)
        return Schedule(
            self.name,
            problem,
            placements,
            state=after,
            costs={"objective": current.value, "bound": current.bound, "programs": programs},
            program=program,
            solution=solution,
            stands=INFINITY if stands else None,
        )

    def _stands(self, queue: Queue, state: GavelState, place: Array, on: Array, placements: Placements) -> bool:
        """Whether the same is decided while nothing happens: all jobs run, each on the only type that it has a part of.

        Their pairs come before all of which no part is due, and find room together.
        """
        if not len(placements) == len(queue) == len(state.jobs) or type(self.placement) is not Consolidated:
            return False
        if not len(queue) or (place < 0).any() or queue.holds.any():
            return False
        part = state.columns["fraction"][:, place] > 0
        return bool((part.sum(axis=0) == 1).all() and part[on, np.arange(len(queue))].all())

    def _served(self, queue: Queue, state: GavelState, place: Array, on: Array, placements: Placements) -> GavelState:
        """Return the state after the round: all have seen one more, and those that run have received it."""
        rounds = state.columns["rounds"].copy()
        if len(state.jobs):
            rows = np.fromiter(placements, dtype=np.int64, count=len(placements))
            for row in rows[queue.holds[rows] & (place[rows] >= 0)].tolist():
                rounds[list(queue.gpu_types(placements[row])), place[row]] += 1
            rows = rows[~queue.holds[rows]]
            rounds[on[rows], place[rows]] += 1
        return state.changed({"rounds": rounds, "seen": state.columns["seen"] + 1})

    def _claims(self, queue: Queue, state: GavelState, solve: Session) -> tuple[GavelState, Shared | None]:
        names, able = queue.jobs.names, np.array(queue.able, dtype=np.int64)
        names = names if len(able) == len(names) else tuple(names[row] for row in queue.able)
        capacity = tuple(queue.capacity.tolist())
        if (names, capacity) == (state.jobs, state.capacity):
            return state, None
        if state.capacity == capacity and state.since and queue.now - state.since < queue.number(self._interval):
            return state, None
        jobs = JobMarket.of(queue, by_tenant=self.by_tenant)
        if jobs is None:
            return GavelState(capacity=capacity, since=queue.now), None
        number = solve.number if solve.method is None else float
        start = (jobs.market.types, (np.array(state.prices), float(state.value))) if state.prices else None
        program, answer = self.objective.shares(jobs.as_(number), solve, start)
        sizes, shares = queue.jobs.gpus[able], np.asarray(answer.values["share"])
        if not arithmetic(number).exact:
            shares = np.where(shares > NOISE * sizes[:, None], shares, 0.0)
        fractions = cast(shares, queue.number) / sizes[:, None]
        value, bound = (queue.number(each or 0) for each in (answer.objective, answer.bound))
        before = places(queue, state.jobs)[able]
        known = before >= 0
        before = before[known]
        got, seen = np.zeros((len(capacity), len(names)), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
        owed = cast(got, queue.number)
        if len(before):
            told, had, lasted = (state.columns[name][..., before] for name in ("owed", "rounds", "seen"))
            if self.reset:
                told = told + state.columns["fraction"][:, before] * lasted - had
            else:
                got[:, known], seen[known] = had, lasted
            owed[:, known] = told
        made = GavelState().changed(
            {"fraction": fractions.T, "rounds": got, "owed": owed, "seen": seen},
            jobs=names,
            capacity=capacity,
            since=queue.now,
            value=value,
            bound=bound,
            prices=() if answer.warm_start is None else tuple(answer.warm_start[1][0].tolist()),
        )
        return made, (program, answer)

    def _wants(self, queue: Queue, state: GavelState, place: Array) -> Requests:
        """Return who runs on which type, by priority; ``place`` (n,) is that of each job in the state."""
        rows = np.flatnonzero((place >= 0) & ~queue.holds)
        if not len(rows):
            return Requests(rows, rows)
        ahead = queue.number(self._ahead) if self._ahead else 0
        # pairs of job and type, by job, the faster type first
        types = np.argsort(-queue.jobs.throughput[rows], axis=1, kind="stable")
        able = np.take_along_axis(queue.allowed[rows], types, axis=1)
        rows, types = np.repeat(rows, types.shape[1]).reshape(types.shape)[able], types[able]
        pair = types, place[rows]
        part, owed = (state.columns[name][pair] for name in ("fraction", "owed"))
        begun, seen = state.columns["rounds"][pair] + ahead, state.columns["seen"][pair[1]]
        kept = np.ones(len(rows), dtype=bool) if self.backfill else part > 0
        some = begun != 0
        priority = part.copy()
        priority[some] = part[some] * np.maximum(seen, 1)[some] / begun[some]
        order = ordered(np.flatnonzero(kept), some | ~(part > 0), -priority, -owed, -part)
        rows, types = rows[order], types[order]
        first = np.full(len(queue), -1)
        first[rows[::-1]] = np.arange(len(rows))[::-1]  # of the pairs of each job: what is set last stays
        first = np.sort(first[first >= 0])
        asked = np.bincount(types[first], weights=queue.jobs.gpus[rows[first]], minlength=len(queue.room))
        if (asked <= queue.room).all():  # each job runs on the type that comes first for it
            return Requests(rows[first], types[first])
        left, sizes = queue.room.tolist(), queue.jobs.gpus.tolist()
        requests: dict[int, int] = {}
        for row, gpu_type in zip(rows.tolist(), types.tolist(), strict=True):
            if row not in requests and left[gpu_type] >= sizes[row]:
                left[gpu_type] -= sizes[row]
                requests[row] = gpu_type
                if not any(left):
                    break
        return Requests(*(np.array(list(each), dtype=np.int64) for each in (requests, requests.values())))


def places(queue: Queue, names: Sequence[str]) -> Array:
    """Return the place (n,) of each job of a queue among ``names``, -1 for none."""
    if names == queue.jobs.names:
        return np.arange(len(names))
    number = {name: at for at, name in enumerate(names)}
    return np.fromiter((number.get(name, -1) for name in queue.jobs.names), dtype=np.int64, count=len(queue))
