"""Karma: fair shares over time by credits, which users earn by lending GPUs and pay for borrowing them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from fairopt.backends import Session
from fairopt.models.baselines.fifo_quota import quotas
from fairopt.models.common.schedulers import Room, Tally, staying_first
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import exact, within
from fairopt.problem.queue import Queue
from fairopt.simulation import Consolidated, Placement, placed


class Slices(NamedTuple):
    """How a cluster is cut: ``guaranteed`` slices of each user, ``shared`` ones, ``free`` credits of each a quantum."""

    guaranteed: tuple[int, ...]
    shared: int
    free: tuple[int, ...]


class Quantum(NamedTuple):
    """What a quantum gives to each user: ``given`` slices, and ``credits`` after it."""

    given: tuple[int, ...]
    credits: tuple[int, ...]


def cut(fair: Sequence[int], alpha: Fraction) -> Slices:
    """Cut a cluster by fair shares (n,): each user keeps ``alpha`` of its own, rounded down, and the rest is shared.

    A user's free credits are its part of the shared slices, so that no slice and no credit is lost.

    Source: Karma, OSDI 2023 (guaranteed share, shared slices); the rounding and unequal shares are ours.

    >>> cut([2, 2, 2], Fraction(1, 2))
    Slices(guaranteed=(1, 1, 1), shared=3, free=(1, 1, 1))
    """
    guaranteed = tuple(int(alpha * own) for own in fair)
    return Slices(guaranteed, sum(fair) - sum(guaranteed), tuple(f - g for f, g in zip(fair, guaranteed, strict=True)))


def cut_as_published(total: int, users: int, public: Fraction) -> Slices:
    """Cut ``total`` slices as the published library does: ``public`` is the part that is shared, which it calls alpha.

    It rounds down three times: the shared slices, each user's share of the others, and the free credits. Slices and
    credits that do not divide are lost.

    Source: resource-disaggregation/karma, algorithm/src/karma_allocator.cpp, constructor and ``allocate``, 510cdd94.

    >>> cut_as_published(7, 3, Fraction(1, 2))
    Slices(guaranteed=(1, 1, 1), shared=3, free=(1, 1, 1))
    """
    shared = int(public * total)
    return Slices(((total - shared) // users,) * users, shared, (shared // users,) * users)


def quantum(demand: Sequence[int], credits: Sequence[int], slices: Slices) -> Quantum:
    """Return what users (n,) get in one quantum.

    Each gets its demand up to its guaranteed slices. Those who want more borrow slice by slice, the one with the most
    credits first, for a credit a slice. Slices come from those who want less than is guaranteed, the one with the
    fewest credits first, who earns the credit; shared slices, which pay nobody, come last. Ties go to whoever has the
    least left to borrow or lend, then to the first.

    Source: Karma, OSDI 2023 (Algorithm 1); the same, faster, and the ties: karma_allocator.cpp,
    ``borrow_from_poorest_fast`` and ``give_to_richest_fast``, 510cdd94.

    >>> quantum([2, 2, 5], [8, 3, 6], cut([2, 2, 2], Fraction(1, 2)))
    Quantum(given=(2, 1, 3), credits=(8, 4, 5))
    """
    rows = list(zip(demand, slices.guaranteed, strict=True))
    purse = [own + free for own, free in zip(credits, slices.free, strict=True)]
    given = [min(wanted, own) for wanted, own in rows]
    lends = [(purse[i], own - wanted, i) for i, (wanted, own) in enumerate(rows) if wanted < own]
    wants = [(-purse[i], min(wanted - own, purse[i]), i) for i, (wanted, own) in enumerate(rows) if wanted > own]
    wants = [each for each in wants if each[1] > 0]
    supply = sum(left for _, left, _ in lends) + slices.shared
    borrowed = min(supply, sum(left for _, left, _ in wants))
    for i in _in_turn(wants, borrowed):
        given[i] += 1
        purse[i] -= 1
    for i in _in_turn(lends, borrowed):
        purse[i] += 1
    return Quantum(tuple(given), tuple(purse))


def _in_turn(heap: list[tuple[int, int, int]], count: int) -> list[int]:
    """Return whose turn it is, at most ``count`` times; a turn raises the key, and one less is left."""
    heapify(heap)
    turns: list[int] = []
    while heap and len(turns) < count:
        key, left, i = heap[0]
        turns.append(i)
        if left == 1:
            heappop(heap)
        else:
            heapreplace(heap, (key + 1, left - 1, i))
    return turns


def played(demands: Sequence[Sequence[int]], slices: Slices, credits: int) -> list[Quantum]:
    """Return the quanta of users who begin with ``credits`` each and want ``demands`` (quanta, n).

    >>> [each.given for each in played([[4, 1, 1], [0, 3, 0], [2, 2, 5]], cut([2, 2, 2], Fraction(1, 2)), 100)]
    [(4, 1, 1), (0, 3, 0), (1, 1, 4)]
    """
    out: list[Quantum] = []
    for wanted in demands:
        before = out[-1].credits if out else (credits,) * len(wanted)
        out.append(quantum(wanted, before, slices))
    return out


@dataclass(frozen=True)
class Karma(Policy):
    """Each round tenants get their GPUs by credits, and run their jobs on them in the order of arrival.

    * ``alpha``: the part of its fair share that a tenant can have at any time; the rest of all fair shares is shared.
    * ``credits``: what each tenant begins with. So many that nobody runs out, or GPUs that somebody wants stay idle.
    * ``placement``: where the jobs go.

    A slice is a GPU of any type; a tenant's demand are the GPUs of its jobs present. All tenants of the trace take part
    in every round, present or not, with fair shares by weight in whole GPUs (largest remainder). A credit is a GPU for
    a round.

    Gangs are ours. A tenant's jobs run in the order of arrival until one does not fit into its GPUs. GPUs that are then
    idle go to jobs that fit on them, those of the tenants with most credits first. A tenant pays for what its jobs
    hold, so that a tenant whose gang is larger than what it got keeps its credits, and is first in a later round. A
    gang larger than its tenant's guaranteed GPUs and all shared ones waits until others leave enough idle.

    Source: Karma, OSDI 2023; resource-disaggregation/karma, algorithm/, 510cdd94 (whose ``alpha`` is 1 - alpha).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(Karma(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of karma, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "karma"
    source = "Karma, OSDI 2023"
    traits = frozenset({Trait.SAME_IN_FLOATS, Trait.ONE_TYPE, Trait.NAMELESS})
    claims = (
        Claim("", "Karma, OSDI 2023, abstract", words="Pareto efficiency, in every quantum"),
        Claim("", "Karma, OSDI 2023, abstract", words="online strategy-proofness"),
        Claim("", "Karma, OSDI 2023, abstract", words="optimal fairness without knowledge of later demands"),
    )
    #: The credits of each tenant after the last round.
    states = (Tally[int],)
    alpha: object = within("1/2", least=0, most=1)
    credits: int = within(999_999_999_999, least=0)
    placement: Placement = field(default_factory=Consolidated)

    def decide(self, problem: Queue, state: Tally[int], solve: Session) -> Schedule:
        """Give GPUs to tenants by credits and run their jobs; see `Policy.decide`."""
        jobs = problem.jobs
        sizes, tenants, names = jobs.gpus.tolist(), jobs.tenant.tolist(), jobs.tenants
        demand = [0] * len(names)
        for row in problem.able:
            demand[tenants[row]] += sizes[row]
        fair = quotas(jobs.tenant_weight.tolist(), int(problem.capacity.sum()))
        slices = cut(fair, Fraction(exact(self.alpha, "karma, alpha")))
        before = [int(state.of.get(name, self.credits)) for name in names]
        got = quantum(demand, before, slices)
        room = Room(problem, staying_first)
        leased = _by_tenant(problem, problem.leased)
        for row in _in_order(problem, [own - held for own, held in zip(got.given, leased, strict=True)]):
            room.start(row)
        chosen = {request.row for request in room.requests}
        waiting = [row for row in problem.able if row not in chosen and row not in problem.leased]
        for row in sorted(waiting, key=lambda row: (-got.credits[tenants[row]], jobs.arrival[row], row)):
            room.start(row)
        placements = placed(problem, room.requests, self.placement)
        held = _by_tenant(problem, placements)
        # a tenant has paid for the slices that it was given; what its jobs hold is what it owes
        owed = [max(0, own - safe) for own, safe in zip(held, slices.guaranteed, strict=True)]
        paid = [max(0, own - safe) for own, safe in zip(got.given, slices.guaranteed, strict=True)]
        after = [max(0, purse + p - o) for purse, p, o in zip(got.credits, paid, owed, strict=True)]
        return Schedule(
            self.name,
            problem,
            placements,
            state=Tally(dict(zip(names, after, strict=True))),
            notes={
                row: f"{names[tenants[row]]!r} was given {got.given[tenants[row]]} GPUs, its jobs hold "
                f"{held[tenants[row]]}, and this one takes {sizes[row]}"
                for row in waiting
                if row not in placements
            },
        )


def _by_tenant(queue: Queue, rows: Iterable[int]) -> list[int]:
    """Return the GPUs of the jobs of ``rows`` by tenant."""
    total = [0] * len(queue.jobs.tenants)
    for row in rows:
        total[int(queue.jobs.tenant[row])] += int(queue.jobs.gpus[row])
    return total


def _in_order(queue: Queue, budget: list[int]) -> Iterator[int]:
    """Yield each tenant's jobs in the order of arrival, until one is larger than what is left of its GPUs."""
    jobs, of = queue.jobs, dict[int, deque[int]]()
    for row in sorted(queue.able, key=lambda row: (jobs.arrival[row], row)):
        if row not in queue.leased:
            of.setdefault(int(jobs.tenant[row]), deque()).append(row)
    for tenant, rows in sorted(of.items()):
        while rows and jobs.gpus[rows[0]] <= budget[tenant]:
            row = rows.popleft()
            budget[tenant] -= int(jobs.gpus[row])
            yield row
