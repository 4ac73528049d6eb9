"""Cap kept: nobody holds more than it may."""

from __future__ import annotations

from fairopt.problem import Entitled, Market
from fairopt.program import INFINITY, Array, Number, number_text
from fairopt.properties.entitlements.cited import NOW, TEAMS
from fairopt.properties.entitlements.held_and_owed import HeldAndOwed
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict


class CapKept(AllocationProperty):
    """No user and no group holds more of a type or good than its cap.

    A failure shows who holds too much, of which type or good, how much, and its cap.

    Source: Kueue's borrowingLimit (nominalQuota and it are the cap), KAI's limit, Volcano's capability.

    >>> print(CapKept().check(TEAMS, [[0, 2], [0, 5], [0, 3]]).witness)
    take 1 H100 from team-b, which holds 5 and may hold 4
    """

    name = "cap_kept"
    head = "caps kept"
    broken = "{who} has more than its cap"
    source = "Kueue's borrowingLimit, KAI's limit, Volcano's capability"
    definition = "no user and no group holds more of a type than its cap"
    needs = frozenset({Entitled.CAPS})
    needs_speedups = False
    instances = (
        CitedInstance("made by hand: batch holds all that it may", TEAMS, NOW, Answer.HOLDS),
        CitedInstance("made by hand: team-b holds one H100 too many", TEAMS, ((0, 2), (0, 5), (0, 3)), Answer.FAILS),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stands = HeldAndOwed.of(market, shares)
        owed, slack = stands.entitlements, stands.cap - stands.held
        at = node, column = stands.tightest(slack)
        shown = {"node": owed.nodes[node], "type": owed.columns[column], "held": stands.held[at], "cap": stands.cap[at]}
        case, effort = self.case(slack[at], stands.size[column], **shown), f"{int((stands.cap < INFINITY).sum())} caps"
        return self._by_tightest(case, tolerance, exact=market.exact, unit=stands.unit(column), effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return what to take from whom, in a sentence."""
        over, held, cap = map(number_text, (case.held - case.cap, case.held, case.cap))
        return f"take {over} {case.type} from {case.node}, which holds {held} and may hold {cap}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the user, or all members of the group together, hold more than the cap."""
        stands = HeldAndOwed.of(market, shares)
        at = stands.place(case.node, case.type)
        return bool(stands.held[at] > stands.cap[at])
