"""Worked numbers of CapacityScheduler.md and NodeLabel.md, and the order of queues."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from fairopt.importing.yarn_config import effective
from fairopt.models.yarn.capacity import order
from fairopt.problem.files.schema import ObjectPart
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed

DOCUMENTS = "Read at 04cd33a0b7fcc3ee1d3f4dabc9e5d25eeba67142 of apache/hadoop; computed, and not run on a cluster."


def _least(capacities: dict[str, str], total: dict[str, Fraction]) -> dict[str, dict[str, Fraction]]:
    """Return what queues below the root have at least."""
    root = {"root": ObjectPart("root", {})}
    leaves = {f"root.{name}": ObjectPart(name, {"capacity": each}) for name, each in capacities.items()}
    return {path.removeprefix("root."): row for path, row in effective(root | leaves, "", total)[0].items()}


def weights() -> Finding:
    """Compute the capacities of weights 3, 2 and 5, and with another of 10."""
    whole = {"percent": Fraction(100)}
    three = [_least({"a": "3w", "b": "2w", "c": "5w"}, whole)[name]["percent"] for name in "abc"]
    four = [_least({"a": "3w", "b": "2w", "c": "5w", "d": "10w"}, whole)[name]["percent"] for name in "abcd"]
    agree = [*three, *four] == [Fraction(each) for each in (30, 20, 50, 15, 10, 25, 50)]
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"Weights 3w, 2w and 5w give {listed([f'{each}%' for each in three])}; with 10w more, "
        f"{listed([f'{each}%' for each in four])}. {DOCUMENTS}",
    )


def labels() -> Finding:
    """Compute what the three queues of the example have of h1 to h4."""
    total = {"vcores": Fraction(24 * 4)}
    capacities = {"engineering": "33", "marketing": "34", "sales": "33"}
    found = {name: float(_least(capacities, total)[name]["vcores"]) for name in capacities}
    exact = all(amount == 32 for amount in found.values())
    return Finding(
        Ruling.REPRODUCED if exact else Ruling.INCONSISTENT,
        "'root.engineering/marketing/sales.capacity=33, so each of them has guaranteed resource equals to "
        "1/3 of resource without "
        "partition. So each of them can use 1/3 resource of h1..h4, which is 24 * 4 * (1/3) = (32G mem, 32 "
        "v-cores).' The "
        "configuration printed above it has 33, 34 and 33 per cent, which are "
        f"{listed([f'{amount:g}' for amount in found.values()])} of the 96 v-cores; a third is 32. Half each "
        "of the GPU node, 12, "
        f"is right. {DOCUMENTS}",
    )


def priorities() -> Finding:
    """Hold the comparison of queues against its description, for all pairs on a grid."""
    parts = [Fraction(each, 4) for each in range(9)]
    pairs = list(product(product(parts, range(3)), repeat=2))

    def described(one: tuple[Fraction, int], other: tuple[Fraction, int]) -> bool:
        """Say who goes first by the four sentences of the description."""
        (part, tier), (part_, tier_) = one, other
        if tier == tier_:
            return part < part_
        if (part < 1) == (part_ < 1):
            return tier > tier_
        return part < 1

    wrong = [pair for pair in pairs if described(*pair) != (order(*pair[0]) < order(*pair[1]))]
    return Finding(
        Ruling.HOLDS_BOUNDED if not wrong else Ruling.REFUTED,
        f"All {len(pairs)} pairs of used parts 0 to 2 in steps of 1/4 and priorities 0 to 2 go as the four "
        "sentences on the class "
        "say, and as one key does: at or over the guarantee, then priority, then the part used; so the order "
        "is transitive, and "
        "priority never lets a queue over its guarantee go before one under it. The comment inside compare, "
        "'queue with higher "
        "used-capacity goes first', does not describe the line below it, which compares priorities. Read at "
        "0951726233270fe1f30a303305a2f6f354a93d14 of apache/hadoop, "
        "PriorityUtilizationQueueOrderingPolicy.java; not run on a cluster.",
    )
