"""OEF in rounds: ideal shares from a share policy, rounded to whole GPUs with memory, for whole gangs on hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.shares_of_queue import Asked, asked_by_tenants, ideal_shares, market_of
from fairopt.models.oef.cooperative import CooperativeOEF
from fairopt.models.oef.rounding import Whole, carried, whole_gpus
from fairopt.policy import Allocation, Claim, Policy, Schedule, Trait
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array, Number
from fairopt.simulation import Consolidated, Placement, Request, by_throughput, placed
from fairopt.simulation.placement import Requests, take

#: The tolerance for deviations in floats.
NOISE = 1e-9


#: Jobs that are to run, by row, in the order in which they were chosen: how many GPUs of each type each gets.
Gangs: TypeAlias = dict[int, dict[int, int]]
#: Numbers of each type (k,), by the name of a tenant.
ByTenant: TypeAlias = Mapping[str, tuple[Number, ...]]


@dataclass(frozen=True)
class OEFState:
    """The state of OEF: the last requests (``asked``), their ``ideal`` shares, and tenants' ``deviation`` by type.

    ``turns``: the jobs present, those that have starved longest first; jobs that ran in the last round come last.
    """

    asked: Asked | None = None
    ideal: ByTenant = field(default_factory=dict)
    deviation: ByTenant = field(default_factory=dict)
    turns: tuple[str, ...] = ()


@dataclass(frozen=True)
class OEFRounds(Policy):
    """Each round, tenants get whole GPUs, close to their ideal shares in the long run, and give them to their jobs.

    * ``shares``: the share policy, which must have no memory. It decides again when the types of jobs present, or the
      GPUs, have changed. Shares are exact if it decides exactly (`fairopt.backends.exact.solve.Exact`, or a method in
      Fractions).
    * ``common_units``: throughputs are relative to the slowest type, since OEF adds them up; False: as they are.
    * ``demand``: whether a tenant's ideal share is limited to the GPUs that its jobs can use. The source has no such
      limit. Without it, GPUs that a tenant cannot use are lost to it, and its deviation does not count them.
    * ``cross_type``: whether a job may have GPUs of several neighbouring types, as in Sec. 4.4. The minimum-demand rule
      then compares a tenant's smallest job with its GPUs of all types together. A tenant starves if the types of its
      ideal share together have too few GPUs for its smallest job. False: the rule compares it with the GPUs of each
      type, and a job asks for no type that is too small for it. Then no tenant that is due GPUs starves.
    * ``left_over``: whether GPUs that no tenant's share can use go to waiting jobs, those of the tenant most behind
      first. Deviations do not count such gifts. The source does not say; False leaves the GPUs idle.
    * ``placement``: how hosts are chosen for jobs on one type.

    ``costs``: GPUs given by share; those of them that jobs use; GPUs given as left-overs; jobs on several types; their
    workers; those of these that wait for a slower type; the largest deviation of a tenant that is behind on a type. A
    tenant that leaves loses its deviation. Jobs that hold a lease keep their GPUs, which count against their tenant.

    A tenant's jobs take turns: "a consistent round-robin scheduling strategy for jobs within each tenant [...]
    scheduling priority is assigned to jobs with the longest starvation time" (Sec. 6.1.3). A job starves from when it
    ran last, or from its arrival. Jobs with more workers come first where hosts are chosen only: "the placer grants
    placement priority to jobs with more workers" (Sec. 4.3).

    Source: OEF, Middleware 2024, Sec. 4.2.4, 4.3, 4.4, 6.1.3.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(OEFRounds(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of oef-rounds, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "oef-rounds"
    source = "OEF, Middleware 2024, Sec. 4.3"
    states = (OEFState, Asked)
    # not EXACT: on one trace in 75 a placement differed between floats and Fractions
    traits = frozenset({Trait.PROGRAM, Trait.WORK_CONSERVING, Trait.NAMELESS})
    claims = (
        # that a tenant is not passed over for ever; the source says no bound, as `no_starvation` does
        Claim("", "OEF Sec. 4.3", "the tenant's ideal shares are of usable types", words="starvation_freedom"),
    )
    shares: Policy = field(default_factory=CooperativeOEF)
    common_units: bool = True
    demand: bool = False
    cross_type: bool = True
    left_over: bool = True
    placement: Placement = field(default_factory=Consolidated)

    @property
    def has_program(self) -> bool:
        """Whether backends can solve the share policy."""
        return self.shares.has_program

    def decide(self, problem: Queue, state: OEFState, solve: Session) -> Schedule:
        """Share, round, choose gangs, place them; see `Policy.decide`."""
        ideal, asked, decision = self._ideal(problem, state, solve)
        nothing = (problem.number(0),) * len(problem.cluster.types)
        turns = in_turn(problem, state.turns)
        rows, can = _rows_by_tenant(problem, turns), problem.can.tolist()
        least = [self._least(problem, own) for own in rows.values()]
        # a tenant is owed nothing of a type on which none of its jobs could run now
        target = []
        for name, usable in zip(rows, least, strict=True):
            owed = zip(state.deviation.get(name, nothing), ideal.get(name, nothing), usable, strict=True)
            target.append(tuple(before + (due if gpus else 0) for before, due, gpus in owed))
        leased = problem.leased
        none = [0] * len(problem.cluster.types)
        held = [
            problem.held_by(leased[row] for row in own if row in leased).tolist() if leased else none
            for own in rows.values()
        ]
        slack, there = problem.arithmetic.tolerance(NOISE), problem.capacity.tolist()
        real = whole_gpus(target, there, least, together=self.cross_type, held=held, slack=slack)
        deviation = dict(zip(rows, carried(target, real), strict=True))
        ranked = by_throughput.ranked(problem, np.arange(len(problem))).tolist()
        gangs: Gangs = {}
        for own, got, kept in zip(rows.values(), real, held, strict=True):
            waiting = [row for row in own if can[row] and row not in leased]
            budget = [gpus - used for gpus, used in zip(got, kept, strict=True)]
            gangs |= gangs_of(problem, ranked, waiting, budget, cross_type=self.cross_type)
        gifts = self._gifts(problem, ranked, turns, gangs, deviation) if self.left_over else {}
        placements = hosts_of(problem, gangs | gifts, self.placement)
        after = sorted(turns, key=set(placements).__contains__)  # those that run go to the end, in order
        return Schedule(
            self.name,
            problem,
            placements,
            state=OEFState(asked, ideal, deviation, tuple(problem.jobs.names[row] for row in after)),
            costs=_costs(problem, real, gangs, gifts, deviation),
            program=decision.program if decision else None,
            solution=decision.solution if decision else None,
            evidence=decision,
        )

    def _ideal(self, queue: Queue, state: OEFState, solve: Session) -> tuple[ByTenant, Asked, Allocation | None]:
        asked = asked_by_tenants(queue, common_units=self.common_units, demand=self.demand, cross_type=self.cross_type)
        if asked == state.asked or not asked.tenant:
            return (state.ideal if asked.tenant else {}), asked, None
        market = market_of(asked, queue.cluster.types, common_units=self.common_units)
        ideal, decision = ideal_shares(self.shares, market, solve, queue.number)
        return ideal, asked, decision

    def _least(self, queue: Queue, rows: Sequence[int]) -> list[int]:
        """Return the GPUs (k,) of the smallest of a tenant's jobs that could run: over all types, or on each."""
        at = np.array(rows, dtype=np.int64)
        at = at[queue.can[at]]
        sizes = queue.jobs.gpus[at]
        there = [
            (sizes if self.cross_type else sizes[of_type], of_type.any())
            for of_type in (queue.suits if self.cross_type else queue.allowed)[at].T
        ]
        return [int(each.min()) if some else 0 for each, some in there]

    def _gifts(
        self,
        queue: Queue,
        ranked: Sequence[Sequence[int]],
        turns: Sequence[int],
        gangs: Gangs,
        deviation: ByTenant,
    ) -> Gangs:
        """Return jobs for the GPUs that no share uses, those of the tenant most behind first, in turn."""
        left = queue.capacity - queue.held_by(queue.leased.values())
        for gpus in gangs.values():
            for gpu_type, count in gpus.items():
                left[gpu_type] -= count
        chosen = gangs.keys() | queue.leased.keys()
        behind = [-sum(deviation.get(name, ())) for name in queue.jobs.tenants]
        tenant = queue.jobs.tenant.tolist()
        waiting = sorted((row for row in turns if row not in chosen), key=lambda row: behind[tenant[row]])
        return gangs_of(queue, ranked, waiting, left.tolist(), cross_type=False)


def in_turn(queue: Queue, before: Sequence[str]) -> list[int]:
    """Return all jobs, those that have starved longest first; ``before``: their order after the last round.

    Jobs that did not run in the last round keep their order, then come new ones, then those that ran, in their order.
    Source: OEF Sec. 6.1.3.
    """
    at = {name: row for row, name in enumerate(queue.jobs.names)}
    known = [at.pop(name) for name in before if name in at]
    ran = queue.running.tolist()
    return [*(row for row in known if not ran[row]), *at.values(), *(row for row in known if ran[row])]


def _rows_by_tenant(queue: Queue, turns: Sequence[int]) -> dict[str, list[int]]:
    """Return the jobs of each tenant that has any, in turn."""
    tenants, owner = queue.jobs.tenants, queue.jobs.tenant.tolist()
    rows: dict[str, list[int]] = {tenants[tenant]: [] for tenant in dict.fromkeys(owner)}
    for row in turns:
        rows[tenants[owner[row]]].append(row)
    return rows


def _costs(queue: Queue, real: Whole, gangs: Gangs, gifts: Gangs, deviation: ByTenant) -> dict[str, Number]:
    mixed = {row: gpus for row, gpus in gangs.items() if len(gpus) > 1}
    speeds = queue.jobs.throughput
    waits = 0
    for row, gpus in mixed.items():
        slowest = min(speeds[row, gpu_type] for gpu_type in gpus)
        waits += sum(count for gpu_type, count in gpus.items() if speeds[row, gpu_type] > slowest)
    used, given, apart = (sum(sum(gpus.values()) for gpus in each.values()) for each in (gangs, gifts, mixed))
    return {
        "given_by_share": sum(map(sum, real)),
        "used_by_share": used,
        "left_over_gpus": given,
        "cross_type_jobs": len(mixed),
        "cross_type_workers": apart,
        "workers_that_wait": waits,
        "most_behind": max((value for row in deviation.values() for value in row), default=0),
    }


def gangs_of(
    queue: Queue, ranked: Sequence[Sequence[int]], rows: Sequence[int], budget: Sequence[int], *, cross_type: bool
) -> Gangs:
    """Return the gangs, among ``rows`` in this order, that can run on a ``budget`` (k,) of GPUs.

    A job takes the fastest type that has room for all of it. If there is none and ``cross_type`` allows it, the job
    takes the smallest range of neighbouring types, the faster types first. Of several ranges it takes the one whose
    slowest type is fastest. A job that does not fit is passed over.

    ``ranked``: the types of each job of the queue, the fastest first, then -1.

    Source: OEF Sec. 4.4 (jobs across types).
    """
    left, most = list(budget), sum(budget)
    gangs: Gangs = {}
    for row, size in zip(rows, queue.jobs.gpus[list(rows)].tolist(), strict=True):
        if not most:
            break
        if most < size:
            continue
        gpu_type = next((each for each in ranked[row] if each >= 0 and left[each] >= size), None)
        gpus = {gpu_type: size} if gpu_type is not None else _across(queue, row, left) if cross_type else {}
        if gpus:
            gangs[row] = gpus
            most -= size
            for each, count in gpus.items():
                left[each] -= count
    return gangs


def _across(queue: Queue, row: int, left: Sequence[int]) -> dict[int, int]:
    size, speeds = int(queue.jobs.gpus[row]), queue.jobs.throughput[row].tolist()
    types = range(len(left))
    usable = [room if suits else 0 for room, suits in zip(left, queue.suits[row].tolist(), strict=True)]
    if sum(usable) < size:
        return {}
    runs = [(first, last) for first in types for last in types[first + 1 :] if sum(usable[first : last + 1]) >= size]
    if not runs:
        return {}

    def worth(run: tuple[int, int]) -> tuple[object, ...]:
        inside = [gpu_type for gpu_type in range(run[0], run[1] + 1) if usable[gpu_type]]
        return run[1] - run[0], -min(speeds[gpu_type] for gpu_type in inside), run[0]

    first, last = min(runs, key=worth)
    gpus: dict[int, int] = {}
    for gpu_type in sorted(range(first, last + 1), key=lambda gpu_type: (-speeds[gpu_type], gpu_type)):
        here = min(usable[gpu_type], size - sum(gpus.values()))
        if here:
            gpus[gpu_type] = here
    return gpus


def hosts_of(queue: Queue, gangs: Gangs, placement: Placement) -> Mapping[int, Spots]:
    """Return the hosts of each gang; jobs with a lease stay where they are.

    Gangs on several types stay if they can. Then ``placement`` places the gangs on one type. The other mixed gangs
    take, of each type, the hosts with most room. Any choice of hosts leaves room for the rest, because budgets keep
    within the types.
    """
    mixed = {row: gpus for row, gpus in gangs.items() if len(gpus) > 1}
    if not mixed:
        rows, on = list(gangs), [gpu_type for gpus in gangs.values() for gpu_type in gpus]
        return placed(queue, Requests(np.array(rows, dtype=np.int64), np.array(on, dtype=np.int64)), placement)
    answer: dict[int, Spots] = dict(queue.leased)
    free = queue.free(answer)
    moving = []
    for row, gpus in mixed.items():
        if _can_stay(queue, row, gpus, free):
            answer[row] = queue.last[row]
            take(free, answer[row])
        else:
            moving.append(row)
    requests = [Request(row, tuple(gpus)) for row, gpus in gangs.items() if row not in mixed]
    for row, spots in placement.place(queue, requests, free).items():
        answer[row] = spots
        take(free, spots)
    for row in moving:
        answer[row] = _roomiest(queue, row, mixed[row], free)
        take(free, answer[row])
    return answer


def _can_stay(queue: Queue, row: int, gpus: Mapping[int, int], free: Array) -> bool:
    last = queue.last[row]
    same = all(held == gpus.get(gpu_type, 0) for gpu_type, held in enumerate(queue.held_by([last])))
    return bool(queue.running[row]) and same and all(free[host] >= count for host, count in last)


def _roomiest(queue: Queue, row: int, gpus: Mapping[int, int], free: Array) -> Spots:
    before = {host for host, _ in queue.last[row]}
    spots = []
    for gpu_type, wanted in gpus.items():
        missing = wanted
        for host in sorted(queue.cluster.of_type(gpu_type), key=lambda host: (-free[host], host not in before, host)):
            here = min(missing, int(free[host]))
            if here:
                spots.append((host, here))
                missing -= here
    return tuple(sorted(spots))
