"""Volcano's plugin "proportion": what queues deserve is computed from their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.errors import NotCapable
from fairopt.models.common.holdings import Amounts, Holdings, QueuedGang, entitlements_of, light
from fairopt.models.volcano.actions import Left, Reclaiming, session, share, within
from fairopt.policy import Claim, Computed, DecisionReason, Trait
from fairopt.problem import Entitled, Market
from fairopt.program import Array, objects

#: Less than this of a resource is none: 0.1 of a thousandth. Source: api/resource_info.go, minResource and IsEmpty.
NONE = Fraction(1, 10_000)


def deserved(
    total: Sequence[Any],
    weight: Sequence[Any],
    request: Sequence[Sequence[Any]],
    guarantee: Sequence[Sequence[Any]],
    capability: Sequence[Sequence[Any]],
    absent: Sequence[Any] | None = None,
) -> list[list[Any]]:
    """Return what each queue (n, W) deserves.

    In rounds: what is left is split by weight among the queues that are not met. Each has at most its request and its
    capability, which is at most the total without the others' guarantees, and at least its guarantee. A queue is met
    when it deserves all that it requests, or a round gave it nothing. What a queue cannot take goes to the next round.

    ``total`` (W,), ``weight`` (n,), ``absent`` (W,): guarantees of queues without jobs; the others (n, W), infinity for
    no capability.
    Source: volcano at ed72c7c8, pkg/scheduler/plugins/proportion/proportion.go, OnSessionOpen.

    >>> deserved([12], [1, 1, 2], [[2], [9], [9]], [[0]] * 3, [[float("inf")]] * 3)
    [[2], [Fraction(10, 3)], [Fraction(20, 3)]]
    """
    n, width = len(weight), len(total)
    guaranteed = [sum(row[c] for row in guarantee) + (absent[c] if absent else 0) for c in range(width)]
    most = [
        [min(max(total[c] - guaranteed[c], 0) + guarantee[q][c], capability[q][c]) for c in range(width)]
        for q in range(n)
    ]
    out: list[list[Any]] = [[0] * width for _ in range(n)]
    left, open_ = list(total), list(range(n))
    asked = [[c for c in range(width) if request[q][c] or guarantee[q][c]] for q in range(n)]
    weights = [Fraction(each) if isinstance(each, int) else each for each in weight]
    while (whole := sum((weights[q] for q in open_), 0)) > 0:
        given = [0] * width
        still = []
        for q in open_:
            part, met, grew = weights[q] / whole, True, False
            for c in asked[q]:
                before, wanted = out[q][c], request[q][c]
                after = before
                if left[c] and before < (limit := min(most[q][c], wanted)):
                    after = min(before + left[c] * part, limit)
                after = max(min(after, wanted), guarantee[q][c])
                met = met and wanted <= after
                if after != before:
                    out[q][c] = after
                    given[c] += after - before
                    grew = True
            if not met and grew:
                still.append(q)
        rest = [max(left[c] - given[c], 0) for c in range(width)]
        if all(each < NONE or each == before for each, before in zip(rest, left, strict=True)):
            break  # what nobody can take stays, and of the rest less is left than counts
        left, open_ = rest, still
    return out


@dataclass(frozen=True)
class VolcanoProportion(Computed):
    """Queues start jobs up to what they deserve by weight, the one with the smallest part of it first.

    A queue's ``borrow_weight`` is its weight, ``reserve`` its ``guarantee.resource``, ``cap`` its ``capability``. What
    queues deserve is computed, so that a guarantee beyond the reserve (``deserved``) is refused. ``preempt`` and
    ``reclaim`` play these actions too, which Volcano's default configuration leaves out; None is what the market's
    `settings` say of them.

    Source: volcano-sh/volcano at ed72c7c8, pkg/scheduler/plugins/proportion/proportion.go; pkg/scheduler/util.go
    (DefaultSchedulerConf).

    >>> from fairopt import allocate
    >>> from fairopt.problem import Entitlements, Gangs
    >>> gangs = Gangs.of(["A", "B"], [4, 6], users=["A", "B"], types=["H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], gangs=gangs)
    >>> market = Market.of([[1], [1]], [8], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> print(*allocate(VolcanoProportion(), market, exact=True).shares[:, 0])
    4 0
    """

    reclaim: bool | None = None
    preempt: bool | None = None

    name = "volcano-proportion"
    source = "Volcano, pkg/scheduler/plugins/proportion"
    traits = frozenset({Trait.ENTITLED, Trait.EXACT})
    supports = frozenset({Entitled.GUARANTEES, Entitled.CAPS, Entitled.TIERS})
    claims = (
        Claim(
            "",
            "docs/design/capacity-scheduling.md, Motivation",
            words="provides capacity scheduling and fair scheduling between multiple queues by weight",
        ),
    )

    def compute(self, problem: Market, state: Any) -> tuple[Array, DecisionReason]:
        """Return the GPUs (n, k) that each queue holds after a session, and why."""
        owed = entitlements_of(problem)
        n = len(owed.users)
        for user, column in np.argwhere(owed.guarantee[:n] > owed.reserve[:n])[:1]:
            more = f"{owed.users[user]!r} is guaranteed more of {owed.columns[column]!r} than its reserve"
            why = f"{self.name} computes itself what queues deserve, from weights"
            raise NotCapable(f"{more}, and {why}; volcano-capacity takes guarantees as they are")
        room = Holdings.at_first(problem)
        parts, tier = _deserved(room, problem), owed.tier.tolist()
        shares = {owed.users[q]: share(room.held[q], parts[q]) for q in range(n)}

        def key(queue: int) -> tuple[Any, ...]:
            return -tier[queue], share(room.held[queue], parts[queue]), queue

        def refused(queue: int, takes: Amounts) -> str:
            return within(room, queue, parts[queue], takes, "deserves")

        def overused(queue: int) -> str:
            over = all(due <= has for due, has in zip(parts[queue], room.held[queue], strict=True))
            return f"{room.names[queue]!r} holds all that it deserves" if over else ""

        def reclaiming() -> Reclaiming:
            return _ByProportion(room, parts, lambda *of: not overused(of[0]) and not refused(*of), key)

        session(room, owed, key, refused, overused, reclaiming, preempt=self.preempt, reclaim=self.reclaim)
        owes = objects([part for row in parts for part in row[: len(owed.types)]]).reshape(n, -1)
        return room.decided(problem, "allocated / deserved", shares, owed=owes)


class _ByProportion(Reclaiming):
    """What the plugin says of reclaiming, by what queues deserve. Source: AddReclaimableFn."""

    def __init__(
        self,
        room: Holdings,
        deserved: list[list[Any]],
        able: Callable[[int, Amounts], bool],
        key: Callable[[int], tuple[Any, ...]],
    ) -> None:
        self.able = able
        super().__init__(room, deserved, key)

    def may(self, queue: int, takes: Amounts) -> bool:
        """Say whether the queue stays within what it deserves."""
        return self.able(queue, takes)

    def yields(self, queue: int, takes: Amounts, job: QueuedGang, left: Left) -> bool:
        """Say whether the job's queue would still hold more than it deserves of something."""
        return self.over(job.queue, left)


def _deserved(room: Holdings, market: Market) -> list[list[Any]]:
    """Return what each queue (n, W) deserves; one without jobs takes no part, and deserves nothing."""
    owed, total = entitlements_of(market), light([*market.capacity.tolist(), *entitlements_of(market).stock.tolist()])
    n, width = len(owed.users), len(total)
    request = [list(room.held[q]) for q in range(n)]
    for queue, jobs in room.waiting.items():
        for job in jobs:
            for column, amount in next(iter(job.takes.values())).items():
                request[queue][column] += amount
    active = [q for q in range(n) if any(request[q])]
    there = set(active)
    absent = [sum(kept) for kept in zip(*(owed.reserve[q] for q in range(n) if q not in there), strict=True)]
    rows = deserved(
        total,
        light(owed.borrow_weight[active].tolist()),
        [request[q] for q in active],
        [light(row) for row in owed.reserve[active].tolist()],
        [light(row) for row in owed.cap[active].tolist()],
        absent or None,
    )
    found = dict(zip(active, rows, strict=True))
    return [light(found.get(q, [0] * width)) for q in range(n)]
