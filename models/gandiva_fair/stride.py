"""Gang-aware stride: the job with the least GPU-time for its tickets goes first; one that does not fit waits.

The jobs of a type share its GPUs, by their tickets there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import leases_end
from fairopt.models.gandiva_fair.servers import Home
from fairopt.models.gandiva_fair.tickets import effective_tickets, in_units, stride, tickets_per_gpu, turn
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.program import Array, Number
from fairopt.simulation import Consolidated, Placement, placed
from fairopt.simulation.placement import Requests

#: Chooses a type for a job, among those that it may run on now, given the GPUs that jobs on each type already want.
Assign = Callable[[Queue, int, Sequence[int], Array], int]


def least_crowded(queue: Queue, row: int, gpu_types: Sequence[int], wanted: Array) -> int:
    """Return the type on which a job would be fastest if all jobs there shared the time equally.

    Its speed is its throughput; where the jobs there, this one included, want more GPUs than there are, it is scaled
    down by that ratio. Ties go to the type that comes first.
    """
    gpus = int(queue.jobs.gpus[row])
    if all(wanted[gpu_type] + gpus <= queue.capacity[gpu_type] for gpu_type in gpu_types):
        return fastest(queue, row, gpu_types, wanted)

    def speed(gpu_type: int) -> Number:
        there, asked = int(queue.capacity[gpu_type]), int(wanted[gpu_type]) + gpus
        alone = exact(queue.jobs.throughput[row, gpu_type], "throughput")  # rounding would decide ties
        return alone if asked <= there else alone * Fraction(there, asked)

    return max(gpu_types, key=lambda gpu_type: (speed(gpu_type), -gpu_type))


def fastest(queue: Queue, row: int, gpu_types: Sequence[int], wanted: Array) -> int:
    """Return the type on which a job has the largest throughput; ties go to the type that comes first."""
    return max(gpu_types, key=lambda gpu_type: (queue.jobs.throughput[row, gpu_type], -gpu_type))


def assigned(queue: Queue, before: Array, assign: Assign) -> Array:
    """Return the type of each job that can run now (n,), -1 for the others.

    A job keeps its type ``before`` (n,) while it can run there; one with a lease keeps the type on which it runs. New
    jobs, and those that can no longer run on their type, are assigned in the order of rows.
    """
    gpu_types = before.copy()
    held = np.flatnonzero(queue.holds)
    gpu_types[held] = [queue.last_gpu_type(row) for row in held.tolist()]
    kept = (gpu_types >= 0) & queue.allowed[np.arange(len(queue)), gpu_types]
    kept[held] = True
    gpu_types[~kept] = -1
    wanted = queue.capacity * 0
    np.add.at(wanted, gpu_types[kept], queue.jobs.gpus[kept])
    for row in np.flatnonzero(queue.can & ~kept).tolist():
        gpu_types[row] = assign(queue, row, queue.open_to(row), wanted)
        wanted[gpu_types[row]] += queue.jobs.gpus[row]
    return gpu_types


def types_before(queue: Queue, before: Mapping[str, str]) -> Array:
    """Return the type of each job (n,) in ``before``, a state's, -1 where it has none."""
    number: dict[str | None, int] = {None: -1} | {name: at for at, name in enumerate(queue.cluster.types)}
    return np.fromiter(map(number.__getitem__, map(before.get, queue.jobs.names)), dtype=np.int64, count=len(queue))


def by_name(queue: Queue, gpu_types: Array) -> dict[str, str]:
    """Return the types of jobs (n,) as states have them, without those of -1."""
    types = queue.cluster.types
    return {name: types[at] for name, at in zip(queue.jobs.names, gpu_types.tolist(), strict=True) if at >= 0}


def tickets_by_type(queue: Queue, gpu_types: Array, *, by_weight: bool, readjust: bool) -> dict[int, dict[int, int]]:
    """Return, for each type that has jobs, the tickets of each of them, by row, in 1/`UNIT`: they share its GPUs.

    ``gpu_types`` is from `assigned`, the options are the policy's. Source: Gandiva_fair Eq. (1) and (3), taken over the
    jobs on a type.
    """
    out = {}
    for gpu_type, gpus in enumerate(queue.capacity.tolist()):
        rows = np.flatnonzero(gpu_types == gpu_type)
        if by_weight and len(rows):
            out[gpu_type] = {row: in_units(queue.jobs.weight[row]) for row in rows.tolist()}
        elif len(rows):
            out[gpu_type] = tickets_by_user(queue, rows, gpus, readjust=readjust)
    return out


@lru_cache(maxsize=1024)
def _exactly(weights: tuple[Number, ...]) -> tuple[tuple[Fraction, ...], Fraction]:
    """Return weights of users in fractions, and their sum; in most rounds the users are those of the round before."""
    own = tuple(exact(each, "tenant_weight") for each in weights)
    return own, sum(own, Fraction(0))


def tickets_by_user(queue: Queue, rows: Array, gpus: int, *, readjust: bool) -> dict[int, int]:
    """Return the tickets of the jobs in ``rows``, which share ``gpus``: their user's, in proportion to their GPUs.

    Source: Gandiva_fair Eq. (1) and (3).
    """
    jobs = queue.jobs
    users, sizes = jobs.tenant[rows], jobs.gpus[rows]
    wanted = np.bincount(users, weights=sizes).tolist()
    demand = {user: int(wanted[user]) for user in dict.fromkeys(users.tolist())}
    weights = tuple(jobs.tenant_weight[list(demand)].tolist())
    own, whole = _exactly(weights)
    if readjust and sum(demand.values()) <= gpus and all(weights):
        # all demands are met, so that effective tickets are in proportion to them: the same for each GPU
        each = dict.fromkeys(demand, in_units(whole / sum(demand.values())))
    else:
        tickets = dict(zip(demand, own, strict=True))
        per_gpu = tickets_per_gpu(effective_tickets(tickets, demand, gpus) if readjust else tickets, demand)
        each = {user: in_units(one) for user, one in per_gpu.items()}
    return {
        row: each[user] * size for row, user, size in zip(rows.tolist(), users.tolist(), sizes.tolist(), strict=True)
    }


def gang_aware(passes: Sequence[Number], sizes: Sequence[int], gpus: int) -> list[int]:
    """Return the jobs that run in one quantum on ``gpus``, as indices of ``passes`` and ``sizes``, in order.

    Jobs are taken by rising pass; ties keep the given order. A job that does not fit into the GPUs left is skipped.

    Source: Gandiva_fair Algorithm 1.

    >>> gang_aware([0, 0, 0, 0], [1, 4, 2, 2], 4)
    [0, 2]
    """
    chosen: list[int] = []
    order = sorted(range(len(passes)), key=passes.__getitem__)
    if sum(sizes) <= gpus:
        return order
    for job in order:
        if sizes[job] <= gpus:
            chosen.append(job)
            gpus -= sizes[job]
        if not gpus:
            break
    return chosen


def entered(passes: Sequence[int | None]) -> list[int]:
    """Return all passes; a new job, which has None, enters at the least of the others, or at 0.

    Source: Gandiva_fair Sec. 3.1.

    >>> entered([5, None, 3])
    [5, 3, 3]
    """
    known = [each for each in passes if each is not None]
    if len(known) == len(passes):
        return known
    least = min(known, default=0)
    return [least if each is None else each for each in passes]


@dataclass(frozen=True)
class Strides:
    """The state of stride scheduling, by names: the ``passes`` of jobs with tickets, in 1/`UNIT`, and where jobs are.

    In a lottery there are no passes, and ``waiting`` has the winners that have not run yet, in order.

    ``gpu_types``: the type of each job, where jobs lie on any host of it. ``homes``: in split stride, the servers of
    each; a small job's pass counts on its server, a large one's in the central scheduler. ``servers``: the pass of each
    server's aggregate job there. These passes are less one ticket per GPU for each round.

    Passes are those after round ``since``. If all jobs have run in every round from then on, each has risen in each of
    them by what ``strides`` says: one state for many rounds. Else it is empty.
    """

    passes: Mapping[str, int] = field(default_factory=dict)
    gpu_types: Mapping[str, str] = field(default_factory=dict)
    homes: Mapping[str, Home] = field(default_factory=dict)
    servers: Mapping[str, int] = field(default_factory=dict)
    since: int = 0
    strides: Mapping[str, int] = field(default_factory=dict)
    waiting: tuple[str, ...] = ()

    def before(self, index: int) -> Strides:
        """Return the state when round ``index`` begins."""
        more = index - self.since - 1
        if not more or not self.strides:
            return self
        passes = {name: self.passes[name] + more * each for name, each in self.strides.items()}
        return replace(self, passes=passes, strides={})


@dataclass(frozen=True)
class GangAwareStride(Policy):
    """Each round is a quantum: `gang_aware` on all GPUs of a type; each job that runs adds its stride to its pass.

    A job's stride is its GPUs over its tickets, so that passes count GPU-time received per ticket. Its tickets are its
    user's, divided in proportion to GPUs (Eq. (3)). Jobs with equal passes keep the queue's order: by arrival, then as
    in the trace. With six jobs of two 1-GPU, two 2-GPU and two 4-GPU users on 4 GPUs this gives exactly Table 2's
    stride row after six quanta. Passes are equal that differ by rounding alone (`turn`).

    Choices where the paper leaves something open:

    * "A job's stride is inversely proportional to its tickets" alone (``by_size`` False) would give all jobs of Table 2
      the same time, since by Eq. (3) they have the same tickets. Yet Sec. 3.3's example, in which a 1-GPU and a 4-GPU
      job alternate, is of that kind.
    * Tickets are effective (Sec. 3.2): the others get the tickets that a user with little demand does not use.
      ``readjust`` False turns this off. ``by_weight`` uses each job's own weight as its tickets, instead of its user's.
    * When a user's jobs come or go, its strides change, but not its passes.
    * With several types each is a pool of its own. A job is assigned to one when it arrives (``assign``), and Eq. (1)
      is taken over its user's jobs there. A job that can no longer run there, because hosts are down, goes to another
      pool and enters like a new job: at the least pass.
    * Jobs may lie on several hosts and move between rounds, which is why the paper splits the scheduler.

    Source: Gandiva_fair Sec. 3.1, Algorithm 1.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(GangAwareStride(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of stride, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "stride"
    source = "Gandiva_fair, EuroSys 2020, Algorithm 1"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    claims = (Claim("", "Sec. 3.1", words="service delay of at most one quantum"),)
    states = (Strides,)
    readjust: bool = True
    by_weight: bool = False
    by_size: bool = True
    assign: Assign = least_crowded
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Strides, solve: Session) -> Schedule:
        """Run Algorithm 1 on each type; see `Policy.decide`."""
        names, sizes = problem.jobs.names, problem.jobs.gpus.tolist()
        was = types_before(problem, state.gpu_types)
        gpu_types = assigned(problem, was, self.assign)
        types = by_name(problem, gpu_types)
        known: list[int | None] = list(map(state.before(problem.index).passes.get, names))
        for row in np.flatnonzero(was != gpu_types).tolist():
            known[row] = None  # a job that comes from another type is new here
        passes: dict[int, int] = {}
        rises: dict[tuple[int, int], int] = {}  # few jobs differ in both
        strides: dict[int, int] = {}
        chosen: list[int] = []
        free, held = problem.room.tolist(), problem.leased
        shared = tickets_by_type(problem, gpu_types, by_weight=self.by_weight, readjust=self.readjust)
        for gpu_type, tickets in shared.items():
            passes |= zip(tickets, entered([known[row] for row in tickets]), strict=True)
            rows = [row for row in tickets if row not in held]
            running = gang_aware([turn(passes[row]) for row in rows], [sizes[row] for row in rows], free[gpu_type])
            chosen += [rows[at] for at in running]
            each = [sizes[row] if self.by_size else 1 for row in tickets]
            of = list(zip(each, tickets.values(), strict=True))
            rises |= {some: stride(*some) for some in {*of} - rises.keys()}
            strides |= zip(tickets, map(rises.__getitem__, of), strict=True)
        asked = np.array(chosen, dtype=np.int64)
        placements = placed(problem, Requests(asked, gpu_types[asked]), self.placement)
        for row in placements:  # a chosen job without hosts has not run, and keeps its pass
            passes[row] += strides[row]
        risen = dict(zip(map(names.__getitem__, passes), passes.values(), strict=True))
        if len(placements) < len(types) or type(self.placement) is not Consolidated:
            return Schedule(self.name, problem, placements, state=Strides(risen, types))
        all_strides = dict(zip(map(names.__getitem__, strides), strides.values(), strict=True))
        same = all_strides == state.strides and types == state.gpu_types
        after = state if same else Strides(risen, types, since=problem.index, strides=all_strides)
        return Schedule(self.name, problem, placements, state=after, stands=leases_end(problem))
