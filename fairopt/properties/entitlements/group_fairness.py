"""Group fairness: at every level of the tree, what siblings borrow is max-min by their weights, up to one GPU."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from fairopt.numbers import counted
from fairopt.problem import Entitled, Entitlements, Market
from fairopt.program import Array, Number, number_text
from fairopt.properties.entitlements.cited import TEAMS
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict

#: How many GPUs one moves at a time; what siblings borrow is fair up to so many.
STEP = 1


class GroupFairness(AllocationProperty):
    """Among siblings of one tier, no GPU can move from one that borrows more, for its weight, to one that wants it.

    Borrowed is what a user or group holds of a type beyond its guarantee b, and w its borrow weight. It fails for
    siblings c and d where c could use one more, one of d's can be taken back, and (b_d - 1) / w_d > b_c / w_c. So what
    siblings borrow of every type is max-min fair by weight up to one GPU, in every group and at the top. A weight of 0
    has no claim. Moving a GPU between siblings changes nothing above them. The margin is in GPUs of the borrower. A
    failure shows the borrower, the sibling that wants one more GPU, the type, and what both borrow, and their weights.

    Source: Kueue's fair sharing, KAI's over-quota weights; the definition is ours.

    >>> print(GroupFairness().check(TEAMS, [[0, 8], [4, 2], [0, 0]]).answer.value)
    HOLDS
    """

    name = "group_fairness"
    head = "loans by weight"
    broken = "{who} borrows more than its part by weight"
    source = "Kueue's fairSharing.weight, KAI's overQuotaWeight; ours"
    definition = (
        "for siblings c, d of a tier where c wants a GPU of d: (b_d - 1) / w_d <= b_c / w_c, b beyond guarantee"
    )
    needs = frozenset[Entitled]()
    needs_speedups = False
    instances = (
        CitedInstance("made by hand: ml has its guarantee", TEAMS, ((0, 8), (4, 2), (0, 0)), Answer.HOLDS),
        CitedInstance("made by hand: batch borrows 8, ml nothing", TEAMS, ((0, 2), (4, 0), (0, 8)), Answer.FAILS),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        owed, borrowed = stands.entitlements, _borrowed(stands)
        worst = self.case(0 * stands.free[0], stands.size[0])
        families = siblings(owed)
        for family in families:
            nodes = np.array(family)
            weight = owed.borrow_weight[nodes]
            for j in range(len(market.types)):
                wants = (stands.more[nodes, j] >= STEP) & (weight > 0)
                if not wants.any():
                    continue
                level = borrowed[nodes, j][wants] / weight[wants]
                low = nodes[wants][int(np.argmin(level))]
                over = borrowed[nodes, j] - STEP - weight * level.min()
                over = np.where(stands.movable[nodes, j] >= STEP, over, 0)
                high = int(np.argmax(over))
                if over[high] / stands.size[j] > -worst.slack / worst.size:
                    pair = [nodes[high], low]
                    shown = {"borrower": owed.nodes[pair[0]], "sibling": owed.nodes[low], "type": market.types[j]}
                    both = {"borrowed": tuple(borrowed[pair, j]), "weights": tuple(owed.borrow_weight[pair])}
                    worst = self.case(-over[high], stands.size[j], **shown, **both)
        effort = f"{counted(len(families), 'group')} of siblings of one tier, {counted(len(market.types), 'type')}"
        unit = f"GPUs of {worst.type}" if worst.parts else "GPUs"
        return self._by_tightest(worst, tolerance, exact=market.exact, unit=unit, effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return which GPU to move, and who borrows what, in a sentence."""
        loans = zip(case.borrowed, case.weights, strict=True)
        high, low = (f"which borrows {number_text(loan)} at weight {number_text(weight)}" for loan, weight in loans)
        return f"move 1 {case.type} from {case.borrower}, {high}, to {case.sibling}, {low} and wants more"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the sibling wants a GPU, and borrows less for its weight than the borrower would with one less."""
        stands = HeldAndOwed.of(market, shares)
        owed, j = stands.entitlements, market.types.index(case.type)
        high, low = owed.node(case.borrower), owed.node(case.sibling)
        alike = owed.parent[high] == owed.parent[low] and owed.tier[high] == owed.tier[low]
        moves = stands.movable[high, j] >= STEP <= stands.more[low, j]
        weight, (borrowed, other) = owed.borrow_weight, _borrowed(stands)[[high, low], j]
        return bool(alike and moves and weight[low] * (borrowed - STEP) > weight[high] * other)


def _borrowed(stands: HeldAndOwed) -> Array:
    """Return what each holds beyond its guarantee (N, c)."""
    return np.asarray(np.maximum(stands.held - stands.guarantee, 0))


def siblings(owed: Entitlements) -> list[list[int]]:
    """Return the nodes that are in one group, or at the top, and of one tier; those alone left out."""
    families = defaultdict(list)
    for node, key in enumerate(zip(owed.parent.tolist(), owed.tier.tolist(), strict=True)):
        families[key].append(node)
    return [family for family in families.values() if len(family) > 1]
