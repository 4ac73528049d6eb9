"""ASTRAEA's Algorithms 1 and 2 line by line, from the record of a run alone: what the policy is held against.

Slow on purpose: nothing is kept from round to round, every integral is summed again from the first arrival on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from fairopt.models.ltgf.ltgf import LongTermGpuTimeFairness
from fairopt.problem.cluster import Cluster
from fairopt.problem.queue import Queue
from fairopt.problem.trace import Trace
from fairopt.program import Number
from fairopt.proofs.ledger.checking import found
from fairopt.simulation import Mechanics, Round, begin, next_queue, run


@dataclass(frozen=True)
class Degrees:
    """GPU time held and due up to an instant, and the rate at which it is due then, of tenants and jobs by name."""

    held: Mapping[str, Number]
    due: Mapping[str, Number]
    rate: Mapping[str, Number]

    def order(self, name: str, more: Number = 0) -> tuple[Any, ...]:
        """Return a sort key: rho with ``more`` GPU time added. 0/0 counts as 0; x/0 comes last, by x over the rate."""
        held = self.held[name] + more
        if self.due[name]:
            return (0, held / self.due[name])
        return (0, Fraction(0)) if not held else (1, held / self.rate[name])


def degrees(trace: Trace, cluster: Cluster, past: Sequence[Round], queue: Queue, cap: bool) -> tuple[Degrees, Degrees]:
    """Return what tenants and jobs held and were due from the first arrival to now.

    Source: Eq. (1)-(16), summed over all intervals between events; a job that was completed counts until the end of
    that round.
    """
    jobs, now, whole = trace.jobs, queue.now, int(cluster.gpus.sum())
    strange = {queue.jobs.names[row] for row in queue.unschedulable} | {
        name for each in past for name in each.unschedulable
    }
    rows = [row for row, name in enumerate(jobs.names) if jobs.arrival[row] <= now and name not in strange]
    gone = {ran.job: record.end for record in past for ran in record.ran if ran.completed}
    held: dict[str, Number] = {jobs.names[row]: Fraction(0) for row in rows}
    for record in past:
        for ran in record.ran:
            held[ran.job] += ran.gpus * ((record.end if ran.completed else ran.end) - ran.begin)
    of_tenants = {
        name: sum((held[jobs.names[row]] for row in rows if jobs.tenant[row] == tenant), Fraction(0))
        for tenant, name in enumerate(jobs.tenants)
    }
    due_jobs: dict[str, Number] = dict.fromkeys(held, Fraction(0))
    due_tenants: dict[str, Number] = dict.fromkeys(jobs.tenants, Fraction(0))

    def rates(time: Number) -> tuple[dict[str, Number], dict[str, Number]]:
        active = [row for row in rows if jobs.arrival[row] <= time < gone.get(jobs.names[row], now + 1)]
        to_tenants: dict[str, Number] = {}
        to_jobs: dict[str, Number] = dict.fromkeys(held, Fraction(0))
        for tenant, name in enumerate(jobs.tenants):
            mine = [row for row in active if jobs.tenant[row] == tenant]
            own = whole * jobs.tenant_weight[tenant] / sum(jobs.tenant_weight)  # Eq. (6)
            asked = sum(int(jobs.gpus[row]) for row in mine)  # Eq. (7)
            to_tenants[name] = min(Fraction(asked), own) if cap else own  # Eq. (8) or (16)
            for row in mine:  # Eq. (13), (14)
                part = to_tenants[name] * jobs.weight[row] / sum(jobs.weight[other] for other in mine)
                to_jobs[jobs.names[row]] = min(Fraction(int(jobs.gpus[row])), part)
        return to_tenants, to_jobs

    cuts = {now, *(jobs.arrival[row] for row in rows), *(end for end in gone.values() if end < now)}
    cuts |= {jobs.arrival[0]}
    for since, until in pairwise(sorted(cuts)):
        to_tenants, to_jobs = rates(since)
        for name, rate in to_tenants.items():
            due_tenants[name] += rate * (until - since)
        for name, rate in to_jobs.items():
            due_jobs[name] += rate * (until - since)
    to_tenants, to_jobs = rates(now)
    return Degrees(of_tenants, due_tenants, to_tenants), Degrees(held, due_jobs, to_jobs)


def allocate_job(queue: Queue, tenants: Degrees, jobs: Degrees, term: Number) -> list[str]:
    """Return whom a round selects, in that order, on a cluster of one type whose GPUs need not be close.

    Source: Algorithms 1 and 2; the line numbers are those of Algorithm 1.
    """
    free = int(queue.free(queue.leased).sum())  # M
    considered = list(queue.jobs.tenants)  # T
    pending = {
        name: [
            queue.jobs.names[row]
            for row in range(len(queue))
            if queue.jobs.tenants[queue.jobs.tenant[row]] == name
            and row not in queue.leased
            # a job larger than all working hosts together is passed over
            and queue.allowed[row].any()
        ]
        for name in considered
    }
    asks = {name: int(gpus) for name, gpus in zip(queue.jobs.names, queue.jobs.gpus, strict=True)}
    more: dict[str, Number] = dict.fromkeys(considered, Fraction(0))
    selected = []
    while any(asks[job] <= free for each in considered for job in pending[each]):  # line 4, for tenants still in T
        least = min(considered, key=lambda name: tenants.order(name, more[name]))  # line 5
        if not pending[least]:
            considered.remove(least)
            continue
        job = min(pending[least], key=jobs.order)  # lines 6-7, Algorithm 2
        if asks[job] <= free:  # line 10
            free -= asks[job]  # line 12
            pending[least].remove(job)  # line 13
            more[least] += asks[job] * term  # line 14
            selected.append(job)
        else:
            considered.remove(least)  # line 17
    return selected


def replay(
    policy: LongTermGpuTimeFairness,
    trace: Trace,
    cluster: Cluster,
    length: int,
    mechanics: Mechanics | None = None,
) -> Iterator[tuple[Round, list[str], list[str]]]:
    """Run the policy; yield each round, whom it gave a lease, and whom Algorithm 1 selects after the same past."""
    past: list[Round] = []
    snapshot, exact = begin(cluster), cluster.as_(Fraction)
    for record in run(policy, trace, cluster, length=length, mechanics=mechanics):
        _, queue = found(next_queue(snapshot, trace, exact, Fraction(length)), "the queue of a round on record")
        kept = {queue.jobs.names[row] for row in queue.leased}
        tenants, jobs = degrees(trace, cluster, past, queue, not policy.adjusted)
        term = Fraction(length) if policy.lease is None else Fraction(str(policy.lease))
        wanted = allocate_job(queue, tenants, jobs, term)
        yield record, [ran.job for ran in record.ran if ran.job not in kept], wanted
        past.append(record)
        snapshot = record.after
