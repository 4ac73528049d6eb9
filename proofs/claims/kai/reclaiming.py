"""Claims on whom KAI Scheduler takes GPUs from, held against its cycle as its code has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from fairopt.models.kai.kai import Kai
from fairopt.models.kai.pool import QueueClaim, divided
from fairopt.policy import Allocation, decide
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.proofs.claims.kai.dividing import READ
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling

#: A gang: its queue, how many GPUs, whether it runs, whether it may be stopped.
Row = tuple[str, int, bool, bool]


def played(
    gpus: int, quota: Mapping[str, int], gangs: Sequence[Row], *, saturation: Any = 1, **more: Any
) -> Allocation:
    """Return one cycle of a cluster of one pool; queues without gangs of their own are groups."""
    group = more.get("group", {})
    users = [name for name in quota if name not in group.values()]
    jobs = Gangs.of(
        [gang[0] for gang in gangs],
        [gang[1] for gang in gangs],
        users=users,
        types=["gpu"],
        on=["gpu" if gang[2] else None for gang in gangs],
        preemptible=[gang[3] for gang in gangs],
    )
    rows = {name: [amount] for name, amount in quota.items()}
    owed = Entitlements.of(users, ["gpu"], guarantee=rows, gangs=jobs, **more)
    market = Market.of([[1]] * len(users), [gpus], users=users, types=["gpu"], entitlements=owed)
    return decide(Kai(saturation=saturation), market, exact=True)


def _held(found: Allocation) -> list[int]:
    return [int(amount) for amount in found.shares[:, 0]]


def _flat() -> Iterator[tuple[Mapping[str, int], list[Row], int, Allocation]]:
    """Yield small clusters of two queues whose quotas fit, with gangs of one GPU, before and after a cycle."""
    for gpus, first, second, holds, others, asks in product(range(1, 5), *[range(4)] * 2, *[range(5)] * 3):
        if first + second <= gpus >= holds + others:
            quota = {"A": first, "B": second}
            gangs: list[Row] = [("A", 1, True, True)] * holds + [("B", 1, True, True)] * others
            gangs += [("B", 1, False, True)] * asks
            yield quota, gangs, holds, played(gpus, quota, gangs)


def always_allocated() -> Finding:
    """Quotas of more than there is, as in the source's own test."""
    one = divided(1, [QueueClaim(3, 2, weight=0)])
    two = divided(8, [QueueClaim(8, 8), QueueClaim(8, 8)])
    stays = _held(played(8, {"A": 8, "B": 8}, [("A", 8, True, True), ("B", 8, False, True)]))
    require(stays == [8, 0], "who came first has all")
    refuted = sum(two) > 8
    evidence = (
        "'Deserved quota for a queue will always be allocted to it' (Philosophy, 1). Nothing makes quotas fit into the "
        f"cluster: with a quota of 3 and a request of 2 a queue's fair share is {one[0]} of 1 GPU (the source's own "
        f"test, resource_division_test.go:66), and two queues with quotas of 8 have shares of {two[0]} and {two[1]} of "
        "8 GPUs. Neither can reclaim from the other, since neither holds more than its share: who came first has all. "
        "The webhook warns of children's quotas beyond their parent's, not of quotas beyond the nodes. Where quotas "
        f"fit, each queue's share is at least what it asks for within its quota. {READ}"
    )
    return Finding(Ruling.REFUTED if refuted else Ruling.QUALIFIED, evidence)


def protected() -> Finding:
    """Whether what is within a quota is never reclaimed."""
    total = 0
    for quota, gangs, holds, found in _flat():
        total += 1
        require(_held(found)[0] >= min(holds, quota["A"]), f"A keeps its quota: {quota}, {gangs}")
    whole = played(8, {"A": 4, "B": 4}, [("A", 8, True, True), ("B", 4, False, True)])
    tree = {"a": 4, "b1": 4, "b2": 4, "D1": 4, "D2": 4}
    rows: list[Row] = [("b1", 4, True, True), ("b2", 4, True, True), ("a", 4, False, True)]
    nested = played(8, tree, rows, group={"a": "D1", "b1": "D2", "b2": "D2"})
    lost = 4 - min(_held(nested)[1:])
    refuted = _held(whole)[0] < 4 and lost > 0
    evidence = (
        "'In-quota resources are always protected from reclamation', and 'a queue using only its guaranteed resources "
        "will never have workloads reclaimed, regardless of what other queues need'. So in all "
        f"{total} clusters of 1 to 4 GPUs, two queues whose quotas fit, and gangs of one GPU. Not with gangs: A (quota "
        f"4) holds one gang of 8, B (quota 4) asks for 4; the gang goes whole, and A holds {_held(whole)[0]}: the code "
        "looks at what a queue holds before each victim, not after. Not in a tree: departments D1 and D2 have quotas "
        "of 4; in D2 b1 and b2 have 4 each, more than their parent's, of which the webhook only warns, and hold 4 "
        f"each; a of D1 asks for its 4. D2 holds 8 of 4, and a queue of it that is exactly at its quota loses {lost}: "
        f"queues are compared on the level where their paths part (getLeveledQueues). {READ}"
    )
    return Finding(Ruling.REFUTED if refuted else Ruling.HOLDS_BOUNDED, evidence)


def least_saturated() -> Finding:
    """Whether the queue of the lowest ratio still has the lowest one after it reclaimed."""
    found = played(8, {"A": 4, "B": 4}, [("A", 8, True, True), ("B", 4, False, True)])
    owed = [Fraction(each) for each in found.evidence.owed[:, 0]]
    before, after = [8 / owed[0], 0 / owed[1]], [held / share for held, share in zip(_held(found), owed, strict=True)]
    evidence = (
        "'a queue that had the lowest Saturation ratio in its level before reclamation will still have the lowest "
        "ratio afterwards'. A and B have quotas and fair shares of 4 of 8 GPUs; A holds a gang of 8, B asks for 4. "
        f"Ratios of A and B before: {before[0]} and {before[1]}; after: {after[0]} and {after[1]}. The code compares "
        f"ratios only where the reclaiming queue would be above 1 (isFairShareSaturationLowerPerResource). {READ}"
    )
    return Finding(Ruling.REFUTED if before[1] < before[0] and after[1] > after[0] else Ruling.REPRODUCED, evidence)


def surplus() -> Finding:
    """Whether what is not preemptible stays within quotas."""
    total = 0
    for gpus, first, second, one, two in product(range(1, 6), *[range(4)] * 2, *[range(1, 4)] * 2):
        gangs = [(name, size, False, False) for name in "AB" for size in (one, two)]
        held = _held(played(gpus, {"A": first, "B": second}, gangs))
        total += 1
        require(held[0] <= first and held[1] <= second, f"{gpus} GPUs, quotas {first} and {second}")
    evidence = (
        "'Non-preemptible workloads (priority >= 100) can only use in-quota resources - they will never consume "
        f"surplus capacity'. So in all {total} clusters of 1 to 5 GPUs, two queues with quotas of 0 to 3 and two gangs "
        "each of 1 to 3 GPUs that are not preemptible: what starts stays within each quota (quota_check.go looks at "
        f"every level of the tree). A quota of -1 is no bound, and quotas may be more than there is. {READ}"
    )
    return Finding(Ruling.HOLDS_BOUNDED, evidence.replace(" - they", " \u2014 they"))


def multiplier() -> Finding:
    """What the setting of the documents would change, if its name were read."""
    quota = {"x": 4, "y": 2, "two": 1, "three": 0, "D1": 2}
    gangs: list[Row] = [("y", 2, True, True), ("two", 1, True, True), ("two", 1, True, True), ("two", 1, True, True)]
    gangs += [("two", 1, True, True), ("three", 2, True, True), ("three", 4, False, True), ("x", 1, False, True)]
    weights = dict.fromkeys(("x", "y", "two", "D1"), 0) | {"three": 1}
    held = [
        _held(played(8, quota, gangs, saturation=times, group={"x": "D1", "y": "D1"}, borrow_weight=weights))[0]
        for times in (1, 2)
    ]
    evidence = (
        "'Adjust reclaim aggressiveness using `reclaimerUtilizationMultiplier`'. The code reads another name, "
        "`relcaimerSaturationMultiplier` (proportion.go:68), and arguments of other names are ignored, so that the "
        "setting as documented leaves 1.0. That matters: 8 GPUs; x and y in D1 (quota 2, weight 0), y holds 2 and x, "
        "with a quota of 4 of its own, asks for 1; another queue holds 4 of a share of 1. With 1.0 x reclaims and "
        f"holds {held[0]}, with 2.0 it holds {held[1]}. {READ}"
    )
    return Finding(Ruling.INCONSISTENT if held == [1, 0] else Ruling.QUALIFIED, evidence)
