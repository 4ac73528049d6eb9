"""KAI Scheduler's division of one resource among sibling queues: quotas first, then the rest by priority and weight.

All amounts are in the unit in which KAI counts: GPUs, thousandths of a core, bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairopt.models.common.holdings import ratio
from fairopt.program import INFINITY, Number


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
