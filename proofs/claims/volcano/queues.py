"""What the design documents of the capacity plugin say of lending, reclaiming, and the order of queues."""

from __future__ import annotations

from functools import cmp_to_key
from itertools import permutations

from fairopt.models.volcano.capacity import VolcanoCapacity, quotas
from fairopt.policy import Allocation, decide
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.program import INFINITY
from fairopt.proofs.ledger.entries import Finding, Ruling

READ = "Read at ed72c7c8; computed with the rule of its capacity plugin, and not run on a cluster."


def story_3() -> Finding:
    """Compute what Queue1 may have while Queue2 is idle."""
    total, owed, kept = [100, 100], [[20, 50], [80, 50]], [[10, 10], [10, 10]]
    most = quotas(total, [-1, -1], [0, 1], owed, kept, [[INFINITY] * 2] * 2)[1][0]
    verdict = Ruling.INCONSISTENT if most < total else Ruling.REPRODUCED
    return Finding(
        verdict,
        "'Queue1 can use cluster's total resources when Queue2 is idle', Story 3; and 'This part of "
        "resources are reserved "
        "and not lent to other queue even though there is no job in queue', of Guarantee, in the same "
        "document. With the "
        "story's numbers (A100 and V100: guarantees 10 and 10 for both queues; deserved 20 and 50 for "
        "Queue1, 80 and 50 for "
        f"Queue2; a cluster of what is deserved, 100 and 100) the code lets Queue1 have {most[0]} and "
        f"{most[1]}: the reserve "
        f"is kept. By the first sentence it would be {total[0]} and {total[1]}. {READ}",
    )


def _reclaimed(deserved: int) -> Allocation:
    users, types = ["queue1", "queue2"], ["A100"]
    gangs = Gangs.of(
        ["queue1"] * 60 + ["queue2"] * 80, [1] * 140, users=users, types=types, on=["A100"] * 60 + [None] * 80
    )
    owed = Entitlements.of(
        users, types, guarantee={"queue1": [deserved], "queue2": [80]}, reserve={"queue1": [20]}, cap={"queue1": [60]},
        gangs=gangs,
    )  # fmt: skip
    market = Market.of([[1], [1]], [100], users=users, types=types, entitlements=owed)
    return decide(VolcanoCapacity(reclaim=True), market)


def story_4() -> Finding:
    """Play Story 4 with a Queue1 that deserves its guarantee, and with one that deserves more."""
    kept = {deserved: int(_reclaimed(deserved).shares[0, 0]) for deserved in (20, 40)}
    same = kept == {20: 20, 40: 40}
    return Finding(
        Ruling.QUALIFIED if same else Ruling.REFUTED,
        "'Queue2 can reclaim from Queue1 when job is submitted but exclude Queue1's guarantee resources "
        "A100=20, and can "
        "only reclaim A100=40 from Queue1.' The text does not say what Queue1 deserves. On 100 A100, of "
        "which Queue1 uses its "
        f"capability of 60 in jobs of one GPU, and with 80 that Queue2 asks for and deserves: {60 - kept[20]} "
        "are reclaimed "
        f"where Queue1 deserves 20 as well, and {60 - kept[40]} where it deserves 40, since victims are taken "
        "only while it "
        f"holds more than it deserves. {READ}",
    )


def parents() -> Finding:
    """Play a session of two groups that deserve the same, with one queue each."""
    users, types = ["a1", "b1"], ["A100"]
    gangs = Gangs.of(["a1"] * 8 + ["b1"] * 8, [1] * 16, users=users, types=types)
    quota = {"a1": [4], "b1": [4], "a": [4], "b": [4]}

    def held(group: dict[str, str]) -> list[int]:
        owed = Entitlements.of(
            users, types, group=group, guarantee={k: quota[k] for k in (*users, *group.values())}, gangs=gangs
        )
        market = Market.of([[1], [1]], [8], users=users, types=types, entitlements=owed)
        return [int(each) for each in decide(VolcanoCapacity(), market).shares[:, 0]]

    tree, flat = held({"a1": "a", "b1": "b"}), held({})
    return Finding(
        Ruling.INCONSISTENT if tree != flat else Ruling.REPRODUCED,
        "'updateParentQueue: Update the resource status of parent queues whenever the updateShare function "
        "is executed', "
        "hierarchical-queue-on-capacity-plugin.md. In capacity.go the handler AllocateFunc adds "
        "to what the "
        "ancestors have allocated, and calls updateShare for the queue alone, so that shares of ancestors "
        "stand as they were "
        "when the session was opened; queues of different parents are compared by these. Two groups that "
        "deserve 4 of 8 GPUs "
        f"each, with one queue each that has 8 jobs of one GPU: one session gives {tree[0]} and {tree[1]}; "
        "without the groups "
        f"it gives {flat[0]} and {flat[1]}. The next session has the right shares, and finds no GPU free. {READ}",
    )


def order() -> Finding:
    """Look for three leaf queues that the order of queues puts in a circle."""
    # the group of a queue, the share of its group, its own share, and when it was made
    queues = {"a1": ("a", 0.5, 0.1, 3), "a2": ("a", 0.5, 0.9, 1), "b1": ("b", 0.5, 0.5, 2)}

    def before(one: str, other: str) -> bool:
        """Say who goes first: capacity.go, AddQueueOrderFn, and in a tie session_plugins.go, QueueOrderFn."""
        (group, over, own, made), (group_, over_, own_, made_) = queues[one], queues[other]
        left, right = (own, own_) if group == group_ else (over, over_)
        return made < made_ if left == right else left < right

    def compared(one: str, other: str) -> int:
        return -1 if before(one, other) else 1

    circle = [
        each
        for each in permutations(queues)
        if before(each[0], each[1]) and before(each[1], each[2]) and before(each[2], each[0])
    ]
    orders = {tuple(sorted(each, key=cmp_to_key(compared))) for each in permutations(queues)}
    return Finding(
        Ruling.QUALIFIED if circle else Ruling.REPRODUCED,
        "'For two leaf queues, the ordering will be determined by considering their parent queues layer by "
        "layer, starting "
        "from the root queue.' For two it is. Where groups tie, the plugin says 0 and the session goes by "
        "time of creation, "
        "without looking at the layers below, and then three queues can stand in a circle: "
        f"{' before '.join((*circle[0], circle[0][0]))}, "
        "with groups a and b of equal share, a1 and a2 of shares 0.1 and 0.9 in a, and b1 made after a2 and "
        "before a1. Sorted by that "
        f"comparison, the six orders of listing give {len(orders)} results. {READ}",
    )
