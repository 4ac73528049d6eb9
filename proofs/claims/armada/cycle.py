"""A cycle of Armada on one node or several, as its documents describe it: evict, then gang by gang by cost.

The model has one priority class, which may be preempted, jobs instead of gangs, and no limits on rates or queues.

Source: armadaproject/armada, 207cc9e0: docs/scheduling_and_preempting_jobs.md (order, eviction, node selection);
internal/scheduler/scheduling/preempting_queue_scheduler.go, ``Schedule`` (who is evicted);
internal/scheduler/scheduling/queue_scheduler.go, ``Schedule`` (who does not fit is passed over), ``updatePQItem`` and
``Less`` (cost with the next gang, ties by name).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product

from fairopt.models.armada.fair_shares import fair_shares

#: Amounts of each resource (m,).
Amounts = tuple[int, ...]


@dataclass(frozen=True)
class Job:
    """A job of a queue that takes ``needs`` (m,); ``node`` is where it runs, None while it waits."""

    queue: int
    needs: Amounts
    node: int | None = None


@dataclass(frozen=True)
class State:
    """The jobs of all queues, in the order of submission, on ``nodes`` (h, m); queues have ``weight`` (n,)."""

    jobs: tuple[Job, ...]
    nodes: tuple[Amounts, ...]
    weight: tuple[int, ...]

    @property
    def total(self) -> Amounts:
        """What all nodes have together."""
        return tuple(map(sum, zip(*self.nodes, strict=True)))

    def cost(self, jobs: Sequence[Job]) -> Fraction:
        """Return the dominant share of some jobs together."""
        used = [sum(job.needs[j] for job in jobs) for j in range(len(self.total))]
        return max(Fraction(need, there) for need, there in zip(used, self.total, strict=True))

    def of(self, queue: int, *, running: bool) -> list[Job]:
        """Return the jobs of a queue that run, or all."""
        return [job for job in self.jobs if job.queue == queue and (job.node is not None or not running)]

    def counts(self) -> tuple[int, ...]:
        """Return how many jobs of each queue run."""
        return tuple(len(self.of(queue, running=True)) for queue in range(len(self.weight)))


def evictable(state: State, queue: int, protected: Fraction, *, documented: bool = False) -> bool:
    """Whether the running jobs of a queue stand in the queue again.

    By the code that is where it holds more than ``protected`` times its fair share, by weight or with what others do
    not demand, whichever is more; ``documented`` evicts everybody.
    """
    demand = [state.cost(state.of(each, running=False)) for each in range(len(state.weight))]
    by_weight, capped, _ = fair_shares(state.weight, demand)
    fair = max(capped[queue], by_weight[queue])
    return documented or state.cost(state.of(queue, running=True)) > protected * fair


def cycle(state: State, protected: Fraction = Fraction(1), *, documented: bool = False) -> State:
    """Return the state after one cycle.

    Jobs that were evicted come before those that wait, and go back to their own node or nowhere. Others go to the node
    with room that has the least left. A job that fits nowhere waits, and its queue goes on with the next.
    """
    n, jobs = len(state.weight), list(state.jobs)
    out = {queue for queue in range(n) if evictable(state, queue, protected, documented=documented)}
    candidates = [
        [at for at, job in enumerate(jobs) if job.queue == queue and job.node is not None and queue in out]
        + [at for at, job in enumerate(jobs) if job.queue == queue and job.node is None]
        for queue in range(n)
    ]
    before = [job.node for job in jobs]
    for each in candidates:
        for at in each:
            jobs[at] = replace(jobs[at], node=None)
    while any(candidates):
        now = replace(state, jobs=tuple(jobs))

        def key(queue: int, now: State = now) -> tuple[Fraction, int]:
            return now.cost([*now.of(queue, running=True), jobs[candidates[queue][0]]]) / now.weight[queue], queue

        at = candidates[min((queue for queue in range(n) if candidates[queue]), key=key)].pop(0)
        room = _room(now)
        own = before[at]
        places = range(len(room)) if own is None else [own]
        fits = [
            node for node in places if all(has >= need for has, need in zip(room[node], jobs[at].needs, strict=True))
        ]
        if fits:
            jobs[at] = replace(jobs[at], node=min(fits, key=lambda node: (sum(room[node]), node)))
    return replace(state, jobs=tuple(jobs))


def _room(state: State) -> list[list[int]]:
    room = [list(node) for node in state.nodes]
    for job in state.jobs:
        if job.node is not None:
            for j, need in enumerate(job.needs):
                room[job.node][j] -= need
    return room


def waiting(needs: Sequence[Sequence[Amounts]], nodes: Sequence[Amounts], weight: Sequence[int] = ()) -> State:
    """Return a state in which nothing runs: ``needs`` are the jobs of each queue, in order."""
    jobs = tuple(Job(queue, job) for queue, own in enumerate(needs) for job in own)
    return State(jobs, tuple(nodes), tuple(weight) or (1,) * len(needs))


def preempted(before: State, after: State) -> list[int]:
    """Return the jobs, by place, that ran before and do not after."""
    pairs = zip(before.jobs, after.jobs, strict=True)
    return [at for at, (old, new) in enumerate(pairs) if old.node is not None and new.node is None]


def small(capacity: int, resources: int, queues: int, jobs: int) -> Iterator[State]:
    """Yield states in which nothing runs, on one node: each queue has ``jobs`` jobs, all alike."""
    sizes = [each for each in product(range(capacity + 1), repeat=resources) if any(each)]
    for needs in product(sizes, repeat=queues):
        yield waiting([[each] * jobs for each in needs], [(capacity,) * resources])
