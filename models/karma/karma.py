"""Karma: fair shares over time by credits, which users earn by lending GPUs and pay for borrowing them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from fairopt.backends import Session
from fairopt.errors import require
from fairopt.models.baselines.fifo_quota import quotas
from fairopt.models.common.schedulers import check_whole
from fairopt.models.karma.credits import cut, quantum
from fairopt.models.ltgf.ltgf import FreeGpus
from fairopt.policy import Claim, Policy, Schedule, Trait
from fairopt.problem.numbers import exact
from fairopt.problem.queue import Queue
from fairopt.simulation import Consolidated, Placement, placed


@dataclass(frozen=True)
class Purses:
    """The credits of each tenant by name, after the last round."""

    credits: Mapping[str, int] = field(default_factory=dict)


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
    states = (Purses,)
    alpha: object = "1/2"
    credits: int = 999_999_999_999
    placement: Placement = field(default_factory=Consolidated)

    def __post_init__(self) -> None:
        place = "karma, alpha"
        require(0 <= exact(self.alpha, place) <= 1, self.alpha, place, "Give a part of the fair share, from 0 to 1")
        check_whole(self, 0, "credits")

    def decide(self, problem: Queue, state: Purses, solve: Session) -> Schedule:
        """Give GPUs to tenants by credits and run their jobs; see `Policy.decide`."""
        jobs = problem.jobs
        sizes, tenants, names = jobs.gpus.tolist(), jobs.tenant.tolist(), jobs.tenants
        demand = [0] * len(names)
        for row in problem.able:
            demand[tenants[row]] += sizes[row]
        fair = quotas(jobs.tenant_weight.tolist(), int(problem.capacity.sum()))
        slices = cut(fair, Fraction(exact(self.alpha, "karma, alpha")))
        before = [state.credits.get(name, self.credits) for name in names]
        got = quantum(demand, before, slices)
        requests = FreeGpus(problem)
        leased = _by_tenant(problem, problem.leased)
        for row in _in_order(problem, [own - held for own, held in zip(got.given, leased, strict=True)]):
            requests.find(row)
        chosen = {request.row for request in requests.requests}
        waiting = [row for row in problem.able if row not in chosen and row not in problem.leased]
        for row in sorted(waiting, key=lambda row: (-got.credits[tenants[row]], jobs.arrival[row], row)):
            requests.find(row)
        placements = placed(problem, requests.requests, self.placement)
        held = _by_tenant(problem, placements)
        # a tenant has paid for the slices that it was given; what its jobs hold is what it owes
        owed = [max(0, own - safe) for own, safe in zip(held, slices.guaranteed, strict=True)]
        paid = [max(0, own - safe) for own, safe in zip(got.given, slices.guaranteed, strict=True)]
        after = [max(0, purse + p - o) for purse, p, o in zip(got.credits, paid, owed, strict=True)]
        return Schedule(
            self.name,
            problem,
            placements,
            state=Purses(dict(zip(names, after, strict=True))),
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
