"""The worked examples of hierarchical DRF: docs/design/hdrf.md and pkg/scheduler/plugins/drf/hdrf_test.go."""

from __future__ import annotations

from collections import Counter, deque

from fairopt.models.common.holdings import Holdings, QueuedGang
from fairopt.models.volcano.actions import allocate
from fairopt.models.volcano.hdrf import QueueTree
from fairopt.proofs.ledger.entries import Finding, Ruling

#: The queue of a pod group, its name, how many pods, and what each takes of (CPU, GPU or memory).
Group = tuple[int, str, int, dict[int, int]]
READ = "Read at ed72c7c8; computed with the rule of its drf plugin, and not run on a cluster."


def started(
    parent: list[int], weight: list[float], total: int, groups: list[Group], *, saturation: bool = True
) -> Counter[str]:
    """Return how many pods of each group start on ``total`` of both resources, one pod at a turn."""
    waits: dict[int, deque[QueuedGang]] = {}
    jobs: dict[int, dict[str, tuple[list[float], list[float]]]] = {}
    for queue, name, count, takes in groups:
        waits.setdefault(queue, deque()).extend([QueuedGang(0, name, queue, {0: takes})] * count)
        jobs.setdefault(queue, {})[name] = ([0.0, 0.0], [float(takes.get(c, 0) * count) for c in range(2)])
    nodes = len(parent)
    there = [total, total]
    room = Holdings([""] * nodes, ["", ""], parent, there[:], [[0, 0] for _ in parent], waits)
    tree = QueueTree(parent, weight, there, saturation=saturation)
    for queue, each in jobs.items():
        tree.add(queue, each)
    tree.settle()
    allocate(room, tree.turns(waits), runs=tree.runs)
    return Counter(room.started)


def _blocking(total: int, *, own: bool = True) -> tuple[list[int], list[float], int, list[Group]]:
    """Return the second example: n1, n2, n3 (n3,1 and n3,2) and n4; ``own``: n3,2 has a queue of its own."""
    groups: list[Group] = [
        (0, "n1", total, {0: 1}),
        (1, "n2", total, {0: 1}),
        (3, "n3,1", total, {0: 1}),
        (4 if own else 3, "n3,2", total, {1: 1}),
        (5, "n4", total, {1: 1}),
    ]
    return [-1, -1, -1, 2, 2, -1], [25.0, 25.0, 25.0, 50.0, 50.0, 25.0], total, groups


def naive() -> Finding:
    """Play the blocking example with and without saturated nodes."""
    total = 3000
    without, with_ = started(*_blocking(total), saturation=False), started(*_blocking(total))
    said = (without["n3,2"], without["n4"]) == (2 * total // 3 - 1, total // 3 + 1)
    said = said and (with_["n3,2"], with_["n4"]) == (total // 2, total // 2)
    return Finding(
        Ruling.REPRODUCED if said else Ruling.REFUTED,
        "'Thus, in the final allocation n3,2 gets 2/3 of GPUs, while n4 gets only 1/3 of the GPUs.' With "
        f"{total} CPUs and "
        f"GPUs, taken one at a time: n3,2 {without['n3,2']} and n4 {without['n4']} where no node is ever saturated, "
        f"which is 2/3 and 1/3 but for the one GPU that tips it; n3,2 {with_['n3,2']} and n4 {with_['n4']} as "
        "the plugin has "
        f"it, and n1, n2 and n3,1 {with_['n1']} CPUs each in both. {READ}",
    )


def rescaling() -> Finding:
    """Compute the share of n2 in the first example."""
    tree = QueueTree([-1, -1, 1, 1], [50.0, 50.0, 50.0, 50.0], [10.0, 10.0])
    tree.add(0, {"n1": ([0.0, 5.0], [0.0, 10.0])})
    tree.add(2, {"n2,1": ([10.0, 0.0], [20.0, 0.0])})
    tree.add(3, {"n2,2": ([0.0, 5.0], [0.0, 10.0])})
    tree.settle()
    blocked = tree.share[1]
    tree = QueueTree([-1, -1, 1, 1], [50.0, 50.0, 50.0, 50.0], [10.0, 10.0], saturation=False)
    tree.add(0, {"n1": ([0.0, 5.0], [0.0, 10.0])})
    tree.add(2, {"n2,1": ([10.0, 0.0], [20.0, 0.0])})
    tree.add(3, {"n2,2": ([0.0, 5.0], [0.0, 10.0])})
    tree.settle()
    scaled, amounts = tree.share[1], tree.held[1].tolist()
    verdict = Ruling.REPRODUCED if scaled == 0.5 and blocked == 0.5 else Ruling.QUALIFIED
    return Finding(
        verdict,
        "'the n2,1 group will be scaled to (10,0) * (0.5/1) = (5,0), it is then summed to the parent, thus "
        "the parent n2 group "
        "will have a share of 50%'. With 10 CPUs and 10 GPUs, n2,1 on all CPUs and n2,2 on 5 GPUs: n2 has "
        f"{amounts} and a "
        f"share of {scaled:.0%} by rescaling alone, which is what the sentence speaks of. The plugin does not "
        "rescale n2,1 "
        "there: all CPUs are used up and it asks for more, so that it is saturated, and n2 has a share of "
        f"{blocked:.0%}. "
        f"{READ}",
    )


def saturated() -> Finding:
    """Let n1 and n2,2 ask for GPUs while n2,1 has all CPUs and asks for more: by the code, and by the document."""

    def gpus(total: list[float]) -> Counter[str]:
        jobs = {0: "n1", 3: "n2,2"}
        waits = {queue: deque([QueuedGang(0, name, queue, {0: {1: 1}})] * 10) for queue, name in jobs.items()}
        held = [[0, 0] for _ in range(4)]
        room = Holdings([""] * 4, ["", ""], [-1, -1, 1, 1], [0, 10], held, waits)
        tree = QueueTree([-1, -1, 1, 1], [50.0, 50.0, 50.0, 50.0], total)
        tree.add(2, {"n2,1": ([10.0, 0.0], [20.0, 0.0])})
        for queue, name in jobs.items():
            tree.add(queue, {name: ([0.0, 0.0], [0.0, 10.0])})
        tree.settle()
        allocate(room, tree.turns(waits), runs=tree.runs)
        return Counter(room.started)

    code, document = gpus([10.0, 10.0]), gpus([0.0, 10.0])  # a resource of which there is none has no part in a share
    return Finding(
        Ruling.REPRODUCED if code == document else Ruling.INCONSISTENT,
        "'HDRF ignores saturated resources when computing the dominant share of any internal node', and step "
        "3, 'calculate the "
        "dominant resource share of the node among the demanding resources'. In drf.go, "
        "updateHierarchicalShare takes the share of "
        "an internal node over all resources; demandingResources decides saturation only. 10 CPUs and 10 "
        "GPUs; n2,1 has all CPUs "
        "and asks for more, and n1 and n2,2 ask for 10 GPUs each: by the code n2 has a share of 100%, and n1 gets "
        f"{code['n1']} and n2,2 {code['n2,2']}, which is the starvation of the document's first example; "
        "without the CPUs in the "
        f"share, {document['n1']} and {document['n2,2']}. {READ}",
    )


def tests() -> Finding:
    """Compute the expected numbers of hdrf_test.go."""
    mixed: list[Group] = [(0, "pg1", 10, {0: 1, 1: 1}), (2, "pg21", 10, {0: 1}), (3, "pg22", 10, {1: 1})]
    first = started([-1, -1, 1, 1], [50.0, 50.0, 50.0, 50.0], 10, mixed)
    own, shared = started(*_blocking(30)), started(*_blocking(30, own=False))
    wanted = {"n1": 10, "n2": 10, "n3,1": 10, "n3,2": 15, "n4": 15}
    agree = first == {"pg1": 5, "pg21": 5, "pg22": 5} and own == wanted and shared == wanted
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"All 8 numbers come out: 5 pods each in 'rescaling test'; {', '.join(map(str, wanted.values()))} in "
        "'blocking nodes "
        "test', where pg32 is in the queue of pg31 ('root-pg3-pg31', and 'root-pg3-pg32' stays empty) and in "
        "a queue of its "
        "own as the document draws it. The test itself cannot fail, as we read it: it calls t.Fatalf if "
        "'equality.Semantic.DeepEqual(test.expected, job.Allocated)', where the one is the whole table (a map) and the "
        "other one job's resources, which are never equal; and it would fail if they were. We have not run it. " + READ,
    )
