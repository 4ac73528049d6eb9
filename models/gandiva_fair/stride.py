"""Gang-aware stride: the job with the least GPU-time for its tickets goes first; one that does not fit waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fairopt.backends import Session
from fairopt.models.common.schedulers import leases_end
from fairopt.models.gandiva_fair.pools import Assign, assigned, by_name, least_crowded, pools, types_before
from fairopt.models.gandiva_fair.tickets import stride
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.simulation import Consolidated, Placement, placed
from fairopt.simulation.placement import Requests


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
    """Each job's ``passes``, in 1/`UNIT`, and the type that it is assigned to (``gpu_types``), by job name.

    Passes are those after round ``since``. If all jobs have run in every round from then on, each pass has risen by its
    job's ``strides`` in each of them: one state for many rounds. Else ``strides`` is empty.
    """

    passes: Mapping[str, int] = field(default_factory=dict)
    gpu_types: Mapping[str, str] = field(default_factory=dict)
    since: int = 0
    strides: Mapping[str, int] = field(default_factory=dict)

    def before(self, index: int) -> Mapping[str, int]:
        """Return the passes when round ``index`` begins."""
        more = index - self.since - 1
        if not more:
            return self.passes
        return {name: self.passes[name] + more * each for name, each in self.strides.items()} or self.passes


@dataclass(frozen=True)
class GangAwareStride(Policy):
    """Each round is a quantum: `gang_aware` on all GPUs of a type; each job that runs adds its stride to its pass.

    A job's stride is its GPUs over its tickets, so that passes count GPU-time received per ticket. Its tickets are its
    user's, divided in proportion to GPUs (Eq. (3)). Jobs with equal passes keep the queue's order: by arrival, then as
    in the trace. With six jobs of two 1-GPU, two 2-GPU and two 4-GPU users on 4 GPUs this gives exactly Table 2's
    stride row after six quanta.

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
        known: list[int | None] = list(map(state.before(problem.index).get, names))
        for row in np.flatnonzero(was != gpu_types).tolist():
            known[row] = None  # a job that comes from another type is new here
        passes: dict[int, int] = {}
        rises: dict[tuple[int, int], int] = {}  # few jobs differ in both
        strides: dict[int, int] = {}
        chosen: list[int] = []
        for pool in pools(problem, gpu_types, by_weight=self.by_weight, readjust=self.readjust):
            passes |= zip(pool.tickets, entered([known[row] for row in pool.tickets]), strict=True)
            rows = pool.rows
            running = gang_aware([passes[row] for row in rows], [sizes[row] for row in rows], pool.free)
            chosen += [rows[at] for at in running]
            each = [sizes[row] if self.by_size else 1 for row in pool.tickets]
            of = list(zip(each, pool.tickets.values(), strict=True))
            rises |= {some: stride(*some) for some in {*of} - rises.keys()}
            strides |= zip(pool.tickets, map(rises.__getitem__, of), strict=True)
        asked = np.array(chosen, dtype=np.int64)
        placements = placed(problem, Requests(asked, gpu_types[asked]), self.placement)
        for row in placements:  # a chosen job without hosts has not run, and keeps its pass
            passes[row] += strides[row]
        risen = dict(zip(map(names.__getitem__, passes), passes.values(), strict=True))
        if len(placements) < len(types) or type(self.placement) is not Consolidated:
            return Schedule(self.name, problem, placements, state=Strides(risen, types))
        all_strides = dict(zip(map(names.__getitem__, strides), strides.values(), strict=True))
        same = all_strides == state.strides and types == state.gpu_types
        after = state if same else Strides(risen, types, problem.index, all_strides)
        return Schedule(self.name, problem, placements, state=after, stands=leases_end(problem))
