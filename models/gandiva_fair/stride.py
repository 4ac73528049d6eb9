"""Gang-aware stride: the job that had the least GPU-time for its tickets goes first, and who does not fit waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairopt.backends import Session
from fairopt.models.gandiva_fair.pools import Assign, assigned, least_crowded, pools
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.simulation import Consolidated, Placement, Want, placed


def gang_aware(passes: Sequence[Number], sizes: Sequence[int], gpus: int) -> list[int]:
    """Return who runs in one quantum on ``gpus``, as places in ``passes`` and ``sizes``, in the order of selection.

    Jobs are taken by rising pass; ties keep the order given. Who does not fit into what is left is passed over.

    Source: Gandiva_fair Algorithm 1.

    >>> gang_aware([0, 0, 0, 0], [1, 4, 2, 2], 4)
    [0, 2]
    """
    chosen = []
    for job in sorted(range(len(passes)), key=lambda job: passes[job]):
        if sizes[job] <= gpus:
            chosen.append(job)
            gpus -= sizes[job]
        if not gpus:
            break
    return chosen


def entered(names: Sequence[str], passes: Mapping[str, Number], zero: Number) -> dict[str, Number]:
    """Return the passes of all ``names``: who is new enters at the least of those that are known, ``zero`` for none.

    Source: Gandiva_fair Sec. 3.1.
    """
    least = min((passes[name] for name in names if name in passes), default=zero)
    return {name: passes.get(name, least) for name in names}


@dataclass(frozen=True)
class Strides:
    """Each job's ``passes`` and the type that it is assigned to (``kinds``), by job name."""

    passes: Mapping[str, Number] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class GangAwareStride(Policy):
    """Each round is a quantum: `gang_aware` on all GPUs of a type; whoever runs has its pass raised by its stride.

    A job's stride is its GPUs over its tickets, so that passes count GPU-time received per ticket, and its tickets
    are its user's in proportion to its GPUs (Eq. (3)). Jobs whose passes are equal keep the queue's order, that is, of
    arrival and then of the trace. With six jobs of two 1-GPU, two 2-GPU and two 4-GPU users on 4 GPUs this is Table
    2's stride row after six quanta, exactly.

    What the paper leaves open, and what is taken:

    * "A job's stride is inversely proportional to its tickets" alone (``by_size`` False) would give all jobs of Table 2
      the same time, since by Eq. (3) they have the same tickets; Sec. 3.3's example of a 1-GPU and a 4-GPU job that
      alternate is of that kind all the same.
    * Tickets are effective (Sec. 3.2): of a user that wants little, the others get the rest. ``readjust`` False takes
      them as they are. ``by_weight`` takes each job's own weight as its tickets, whoever owns it.
    * When a user's jobs come or go, its strides change and passes stay as they are.
    * With several types each is a pool of its own. A job is assigned to one when it arrives (``assign``), and Eq. (1)
      is taken over its user's jobs there. Who can run there no longer, hosts being down, goes to another and enters
      like a new job: at the least pass.
    * Jobs may lie on several hosts and move between rounds, which is why the paper splits the scheduler.

    Source: Gandiva_fair Sec. 3.1, Algorithm 1.
    """

    problem = Queue
    name = "stride"
    source = "Gandiva_fair, EuroSys 2020, Algorithm 1"
    # not EXACT: jobs of one user come to the same pass again and again, which floats part by its last digit
    traits = frozenset({Trait.ONE_TYPE, Trait.NAMELESS})
    claims = (Claim("", "Sec. 3.1", words="service delay of at most one quantum"),)
    states = (Strides,)
    readjust: bool = True
    by_weight: bool = False
    by_size: bool = True
    assign: Assign = least_crowded
    placement: Placement = field(default_factory=Consolidated)

    def start(self, problem: Queue) -> Strides:
        """Return the state in which nobody has run."""
        return Strides()

    def decide(self, problem: Queue, state: Strides, solve: Session) -> Schedule:
        """Run Algorithm 1 on each type; see `Policy.decide`."""
        jobs, types = problem.jobs, problem.cluster.types
        kinds = assigned(problem, state.kinds, self.assign)
        passes: dict[str, Number] = {}
        strides: dict[int, Number] = {}
        wants: list[Want] = []
        for pool in pools(problem, kinds, by_weight=self.by_weight, readjust=self.readjust):
            names = [jobs.names[row] for row in pool.tickets]
            # who comes from another type is new here
            known = {name: state.passes[name] for name in names if state.kinds.get(name) == types[pool.kind]}
            own = entered(names, known, problem.now * 0)
            rows = pool.rows
            chosen = gang_aware(
                [own[jobs.names[row]] for row in rows], [int(jobs.gpus[row]) for row in rows], pool.free
            )
            running = [rows[at] for at in chosen]
            for row in (*pool.leased, *running):
                size = int(jobs.gpus[row]) if self.by_size else 1
                strides[row] = size / pool.tickets[row]
            wants += [Want(row, (pool.kind,)) for row in running]
            passes |= own
        placements = placed(problem, wants, self.placement)
        for row in placements:  # who was chosen and found no hosts has not run, and keeps its pass
            passes[jobs.names[row]] += strides[row]
        after = Strides(passes, {jobs.names[row]: types[kind] for row, kind in kinds.items()})
        return Schedule(self.name, problem, placements, state=after)
