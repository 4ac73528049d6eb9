"""What KAI Scheduler knows of one node pool: its queues with their quotas, fair shares and holdings, and its gangs.

One resource is divided among sibling queues: quotas first, then the rest by priority and weight. All amounts are in the
unit in which KAI counts: GPUs, thousandths of a core, bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import add, gt, sub, truediv
from typing import Any, NamedTuple

import numpy as np

from fairopt.models.common.holdings import QueuedGang, ratio
from fairopt.models.kai.devices import Devices, Spot
from fairopt.numbers import whole_as_int
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.program import INFINITY, Array, Number


class QueueClaim(NamedTuple):
    """What one queue brings to the division among its siblings.

    ``deserved``: its quota, infinity for -1. ``request``: what it holds and asks for. ``limit``: the most that it may
    hold, infinity for -1. ``weight``, ``tier``: its over-quota weight and its priority. ``usage``: its past usage as a
    share of the cluster. ``created``: the smaller, the earlier it was made.
    """

    deserved: Number
    request: Number
    limit: Number = INFINITY
    weight: Number = 1
    tier: int = 0
    usage: Number = 0
    created: int = 0

    @property
    def requestable(self) -> Number:
        """What of its request its limit allows."""
        return min(self.limit, self.request)


def divided(total: Number, claims: Sequence[QueueClaim], k: Number = 0) -> list[Number]:
    """Return the fair shares of siblings in ``total``; what they leave of it, if anything, nobody gets.

    Source: resource_division.go at d5bc503a, setResourceShare.

    >>> divided(100, [QueueClaim(10, 100, weight=3), QueueClaim(10, 100, weight=1)])  # the simulator's README
    [70, 30]
    """
    shares = within_quota(total, claims)
    left = total - sum(shares)
    return over_quota(left, shares, claims, k) if left > 0 else shares


def within_quota(total: Number, claims: Sequence[QueueClaim]) -> list[Number]:
    """Return what each queue gets of its quota, whether or not the quotas fit into ``total``.

    Source: resource_division.go, setDeservedResource.
    """
    return [min(total if claim.deserved == INFINITY else claim.deserved, claim.requestable) for claim in claims]


def over_quota(amount: Number, given: Sequence[Number], claims: Sequence[QueueClaim], k: Number = 0) -> list[Number]:
    """Return the shares after ``amount`` more was divided: by priority, then by weight and past usage.

    Each priority takes what it can in whole units before the next one is looked at. Then units that the rounding left
    over go, one to each queue, to the largest remainders. Source: resource_division.go, divideOverQuotaResource.
    """
    shares = list(given)
    remainders: list[dict[int, Number]] = []
    tiers = sorted({claim.tier for claim in claims}, reverse=True)
    for tier in tiers:
        amount, remainder = _by_weight(amount, shares, claims, [q for q, c in enumerate(claims) if c.tier == tier], k)
        remainders.append(remainder)
    for remainder in remainders:  # divideRemainingResource, remainingRequestedOrderFn
        for q in sorted(remainder, key=lambda q: (-remainder[q], claims[q].created, q)):
            if amount <= 0:
                break
            unit = min(1, amount)
            shares[q] += unit
            amount -= unit
    return shares


def _by_weight(
    amount: Number, shares: list[Number], claims: Sequence[QueueClaim], tier: Sequence[int], k: Number
) -> tuple[Number, dict[int, Number]]:
    """Divide among queues of one priority, in rounds; return what is left, and what rounding took from whom.

    A round divides what there is at its beginning. Source: resource_division.go, divideUpToFairShare, calcShareWeights,
    getResourceToGiveInCurrentRound.
    """
    remainder: dict[int, Number] = {}
    while True:
        wanting = [q for q in tier if claims[q].requestable > shares[q] and claims[q].weight > 0]
        parts = share_weights([claims[q] for q in wanting], k)
        whole, pot, again = sum(parts), amount, False
        if not whole:
            break
        for q, part in zip(wanting, parts, strict=True):
            if amount == 0:
                break
            fair, wanted = ratio(pot * part, whole), claims[q].requestable - shares[q]
            if wanted <= fair:
                give = wanted
                remainder.pop(q, None)
            else:
                give = fair // 1
                if fair > give:
                    remainder[q] = fair - give
            shares[q] += give
            amount -= give
            again = again or bool(give and wanted < fair)
        if not again or amount == 0:
            break
    return amount, remainder


def share_weights(claims: Sequence[QueueClaim], k: Number) -> list[Number]:
    """Return the part that each queue has in a round: max(0, w + k (w - usage)), w its weight as a part of all.

    Without past usage that is by weight alone. Source: resource_division.go, calcShareWeights.
    """
    if not k or not any(claim.usage for claim in claims):
        return [claim.weight for claim in claims]
    whole = sum(claim.weight for claim in claims)
    weights = [ratio(claim.weight, whole) for claim in claims]
    return [max(0, w + k * (w - claim.usage)) for w, claim in zip(weights, claims, strict=True)]


#: How many units of KAI's are in one of ours; it counts thousandths of a core, and rounds to whole units.
UNITS = {"cpu": 1000}
#: A queue that may hold nothing counts so much more per unit that it holds. Source: queue_resource_share.go.
NO_SHARE = 1000
#: Sort keys of one queue that are kept.
MOST_KEYS = 1000
Amounts = tuple[Number, ...]
#: What is free; of some nodes, what each holds, and which part of that is not preemptible.
Held = tuple[list[Number], list[tuple[int, Amounts, Amounts]]]


class NodePool:
    """The queues of one node pool; amounts are by node and then by resource (GPUs first).

    ``waiting`` and ``running``: the gangs that may run here, and those that do; what one ``takes`` is by resource.
    ``allocated`` and ``fixed`` (the part that is not preemptible) change as jobs start and stop; all else stands, but
    for the ``devices`` that pods are on; without them the pool's GPUs count as one.
    Source: proportion.go at d5bc503a, createQueueResourceAttrs, updateQueuesCurrentResourceUsage, setFairShare.
    """

    def __init__(
        self,
        market: Market,
        owed: Entitlements,
        gangs: Gangs,
        gpu_type: int,
        k: Number,
        devices: Devices | None = None,
    ) -> None:
        own = [j for j, good in enumerate(owed.goods) if good.flavor == owed.types[gpu_type]]
        self.type, self.devices = gpu_type, devices
        self.resources = ("GPU", *(owed.goods[j].resource for j in own))
        self.units = [1, *(UNITS.get(each, 1) for each in self.resources[1:])]
        columns = [gpu_type, *(len(owed.types) + j for j in own)]
        there = (market.capacity[gpu_type], *(owed.stock[j] for j in own))

        def scaled(table: Array) -> list[Amounts]:
            rows = zip(table.T.tolist(), self.units, strict=True)
            own = ([whole_as_int(whole_as_int(each) * unit) for each in row] for row, unit in rows)
            return list(zip(*own, strict=True))

        self.names, self.tiers, self.parent = owed.nodes, owed.tier.tolist(), owed.parent.tolist()
        self.children, self.tops = owed.children, owed.tops
        self.paths = [list(owed.path(node)) for node in range(len(owed.nodes))]
        self.deserved, self.limit = scaled(owed.guarantee[:, columns]), scaled(owed.cap[:, columns])
        #: by node: it and those above it that have a limit
        capped = [any(most != INFINITY for most in row) for row in self.limit]
        self._limited = [[node for node in path if capped[node]] for path in self.paths]
        self.allocated, self.fixed = (scaled(owed.total(each[:, columns])) for each in (owed.held, owed.fixed))
        self.total = [whole_as_int(each * unit) for each, unit in zip(there, self.units, strict=True)]
        self.free = [each - sum(self.allocated[q][r] for q in self.tops) for r, each in enumerate(self.total)]
        here = np.flatnonzero((gangs.pending & gangs.allowed[:, gpu_type]) | (gangs.on == gpu_type))
        jobs = self._jobs(gangs.select(here), here.tolist())
        self.waiting, self.running = [job for job in jobs if job.on < 0], [job for job in jobs if job.on >= 0]
        weights = [whole_as_int(each) for each in owed.borrow_weight.tolist()]
        shares = [
            self._fair_shares(r, weights, owed.usage.tolist() if r == 0 else None, k)
            for r in range(len(self.resources))
        ]
        self.shares: list[Amounts] = list(zip(*shares, strict=True))
        self._places: dict[int, _Place] = {}

    def _jobs(self, gangs: Gangs, numbers: Sequence[int]) -> list[QueuedGang]:
        """Return gangs, which have these ``numbers``, in KAI's order within a queue."""
        rows = [gangs.gpus.tolist()]
        for resource in self.resources[1:]:
            there = resource in gangs.resources
            rows.append(gangs.other[:, gangs.resources.index(resource)].tolist() if there else [0] * len(gangs))
        kinds = gangs.kinds.tolist()
        alike: dict[int, Amounts] = {
            kind: tuple(whole_as_int(row[i] * unit) for row, unit in zip(rows, self.units, strict=True))
            for kind, i in {kind: i for i, kind in enumerate(kinds)}.items()
        }
        users, tiers, kept, on = (each.tolist() for each in (gangs.user, gangs.tier, gangs.preemptible, gangs.on))
        return [
            QueuedGang(numbers[i], gangs.names[i], users[i], alike[kinds[i]], tiers[i], kept[i], place, on[i])
            for place, i in enumerate(gangs.order().tolist())
        ]

    def _fair_shares(self, r: int, weights: list[Number], usage: list[Number] | None, k: Number) -> list[Number]:
        """Divide the pool among the top queues, and each one's share among those below it."""
        request, asked = [row[r] for row in self.allocated], dict[int, Number]()
        for job in self.waiting:
            asked[job.queue] = asked.get(job.queue, 0) + job.takes[r]
        for queue, amount in asked.items():
            for node in self.paths[queue]:
                request[node] += amount
        shares: list[Number] = [0] * len(request)
        level = [(self.total[r], self.tops)]
        while level:
            amount, queues = level.pop()
            claims = [
                QueueClaim(d[q][r], request[q], most[q][r], weights[q], self.tiers[q], usage[q] if usage else 0, q)
                for d, most in [(self.deserved, self.limit)]
                for q in queues
            ]
            for q, share in zip(queues, divided(amount, claims, k), strict=True):
                shares[q] = share
                if self.children[q]:
                    level.append((share, self.children[q]))
        return shares

    # -- starting and stopping -------------------------------------------------------------------------------------
    def start(self, job: QueuedGang, at: list[Spot] | None = None) -> None:
        """Give a job what it takes, on the GPUs that it had ``at`` where that is said."""
        self._change(job, 1)
        if self.devices is not None:
            self.devices.start(job.number, at)

    def stop(self, job: QueuedGang) -> list[Spot] | None:
        """Take back what a job has; return on which GPUs it was, as far as that is known."""
        self._change(job, -1)
        if self.devices is None:
            return None
        at = self.devices.at[job.number]
        self.devices.stop(job.number)
        return at

    def held(self, nodes: Iterable[int]) -> Held:
        """Return what is free and what nodes hold, so that one can go back to it."""
        return self.free, [(node, self.allocated[node], self.fixed[node]) for node in nodes]

    def go_back(self, then: Held) -> None:
        """Let what is free and what nodes hold be as they were; pods stay on their `devices`."""
        self.free, nodes = then
        for node, held, fixed in nodes:
            self.allocated[node], self.fixed[node] = held, fixed

    def _change(self, job: QueuedGang, sign: int) -> None:
        change, back = (add, sub) if sign > 0 else (sub, add)
        self.free = list(map(back, self.free, job.takes))
        for table in (self.allocated,) if job.preemptible else (self.allocated, self.fixed):
            for node in self.paths[job.queue]:
                table[node] = tuple(map(change, table[node], job.takes))

    def over_limit(self, job: QueuedGang) -> str:
        """Return in words which queue's limit the job would break; "" for none. Source: max_allowed_check.go."""
        return self._over(job, self._limited[job.queue], self.limit, self.allocated, "limit", "holds")

    def over_quota(self, job: QueuedGang) -> str:
        """Return in words which quota a job that is not preemptible would break. Source: quota_check.go."""
        if job.preemptible:
            return ""
        return self._over(job, self.paths[job.queue], self.deserved, self.fixed, "quota", "holds for good")

    def _over(
        self, job: QueuedGang, nodes: list[int], most: list[Amounts], held: list[Amounts], what: str, how: str
    ) -> str:
        for node in nodes:
            if not any(map(gt, map(add, held[node], job.takes), most[node])):
                continue
            for r, amount in enumerate(job.takes):
                if amount and most[node][r] < held[node][r] + amount:
                    found = f"it takes {self.said(r, amount)}, and the {what} of {self.names[node]!r} is"
                    return f"{found} {self.said(r, most[node][r])}, of which it {how} {self.said(r, held[node][r])}"
        return ""

    def fits(self, job: QueuedGang) -> bool:
        """Whether a job can start as things are."""
        if any(map(gt, job.takes, self.free)):  # mostly not
            for amount, free in zip(job.takes, self.free, strict=True):
                if amount > free and amount:
                    return False
        for node in self._limited[job.queue]:
            for amount, held, most in zip(job.takes, self.allocated[node], self.limit[node], strict=True):
                if amount and most < held + amount:
                    return False
        return (job.preemptible or not self.over_quota(job)) and (self.devices is None or self.devices.fits(job.number))

    def blocked(self, job: QueuedGang) -> str:
        """Return in words why a job cannot start as things are; "" where it can."""
        if why := self.over_limit(job) or self.over_quota(job):
            return why
        for r, amount in enumerate(job.takes):
            if amount and amount > self.free[r]:
                return f"it takes {self.said(r, amount)} (free: {self.said(r, max(0, self.free[r]))})"
        if self.devices is not None and not self.devices.fits(job.number):
            return "its pods do not find their GPUs on the nodes as they are"
        return ""

    def said(self, r: int, amount: Number) -> str:
        """Return an amount in words, in the market's unit."""
        unit = self.units[r]
        found = amount if unit == 1 else amount / unit if isinstance(amount, float) else Fraction(amount) / unit
        return f"{found} {self.resources[r]}{'s' if not r and found != 1 else ''}"

    # -- comparing queues ------------------------------------------------------------------------------------------
    def allocatable(self, r: int, node: int) -> Number:
        """Return what a queue may hold without others having a claim on it. Source: resource_share.go."""
        if self.deserved[node][r] == INFINITY:
            return self.limit[node][r]
        return min(self.limit[node][r], max(self.deserved[node][r], self.shares[node][r]))

    def order(self, node: int, takes: Amounts = (), gives: Amounts = ()) -> tuple[Any, ...]:
        """Return the sort key of a queue whose next job takes, or if stopped gives back, so much; the smaller is first.

        Queues that hold no more than their fair share of something come first, then those whose job is within
        their quota, then by priority, then those that may hold what they would hold, then by dominant share with the
        job and without it, then those that may hold less, then the eldest. Shares are compared in floats, as there.
        Source: queue_order.go, GetQueueOrderResult.
        """
        own, held = self._places.get(node) or self.place(node), self.allocated[node]
        found = own.keys.get((held, takes, gives))
        if found is None:
            with_job = tuple(map(add, held, takes)) if takes else held
            then = tuple(map(sub, held, gives)) if gives else with_job
            if len(own.keys) > MOST_KEYS:
                own.keys.clear()
            found = own.keys[held, takes, gives] = (
                all(map(gt, held, self.shares[node])),
                any(map(gt, with_job, self.deserved[node])),
                -self.tiers[node],
                any(with_job[r] > 0 for r in own.nothing),
                own.dominant(then),
                own.dominant(held),
                own,
            )
        return found

    def place(self, node: int) -> _Place:
        """Return what decides of a queue's place beside what it holds."""
        found = self._places.get(node)
        if found is None:
            found = self._places[node] = _Place(self, node)
        return found

    def over_may(self, node: int) -> bool:
        """Whether a queue holds more of something than it may."""
        return any(map(gt, self.allocated[node], self.place(node).may))


class _Place:
    """What a queue may hold, and its places in the order.

    ``parts`` is what its holdings are compared with; ``nothing``: of what it may hold nothing. ``keys``: the sort keys
    by what it holds, and what the next job takes and gives back: while sets of victims are tried it comes to hold the
    same again and again.
    Who may hold less of everything is the smaller, else the elder: the last resort of the order.
    """

    def __init__(self, pool: NodePool, node: int) -> None:
        rows, self.node = range(len(pool.resources)), node
        self.may: Amounts = tuple(pool.allocatable(r, node) for r in rows)
        most = (pool.total[r] if may == INFINITY else may for r, may in enumerate(self.may))
        self.parts: Amounts = tuple(each or Fraction(1, NO_SHARE) for each in most)
        self.nothing = [r for r in rows if self.may[r] == 0]
        self.keys: dict[tuple[Amounts, Amounts, Amounts], tuple[Any, ...]] = {}

    def dominant(self, held: Amounts) -> float:
        """Return the largest part that is held of what may be held. Source: GetDominantResourceShare."""
        return max(map(float, map(truediv, held, self.parts)))

    def __lt__(self, other: _Place) -> bool:
        less, more = (
            all(a <= b for a, b in zip(mine, theirs, strict=True)) and mine != theirs
            for mine, theirs in ((self.may, other.may), (other.may, self.may))
        )
        return less or (not more and self.node < other.node)
