"""Adjacent types: each user's GPUs are of neighbouring types, so that no job waits for a much slower worker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

import numpy as np

from fairopt.certificates import Certificate
from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.policy import Optima
from fairopt.policy.optima import extended
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Number
from fairopt.properties.over_optima import by_support
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict
from fairopt.report import Statement

THREE_TYPES = Market.of([[1, 1, 2], [1, 2, 3]], capacity=[1, 1, 1])


class AdjacentTypes(AllocationProperty):
    """Each user's types follow one another, in the order of the market's types (slowest first) or in ``order``.

    Types without GPUs are left out. The margin is minus the GPUs that the user holds on the poorer side of the gap. A
    failure shows the user, the types on both sides and the one that is skipped between them, and the order.

    Source: OEF Sec. 4.4, Theorem 5.2.

    >>> print(AdjacentTypes().check(Market.of([[1, 2, 3]], capacity=[1, 1, 1]), [[1, 0, 1]], tolerance=0).answer)
    Answer.FAILS
    """

    name = "adjacent_types"
    head = "adjacent types only"
    broken = "{who} has types that are not adjacent"
    source = "OEF Theorem 5.2"
    definition = "if x_la > 0 and x_lc > 0 for types a < c, then x_lb > 0 for every type b between them"
    needs_speedups = False
    instances = (
        CitedInstance(
            "each user's types follow one another", THREE_TYPES, [[1, "1/2", 0], [0, "1/2", 1]], Answer.HOLDS
        ),
        CitedInstance(
            "the optimum of OEF Eq. (9) on this market, against OEF Theorem 5.2",
            THREE_TYPES,
            [[1, 0, "4/5"], [0, 1, "1/5"]],
            Answer.FAILS,
        ),
    )

    def __init__(self, order: Sequence[str] | None = None) -> None:
        self.order = None if order is None else tuple(order)

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        columns = [market.types.index(name) for name in self.order or market.types]
        return super()._certificate(market.plain().select_types(columns), shares[:, columns], verdict)

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        columns = self._columns(market)
        names = tuple(market.types[j] for j in columns)
        worst = self.case(0 * shares[0, 0], 1)
        for i, user in enumerate(market.users):
            row = shares[i, columns]
            held = np.flatnonzero(row > tolerance * market.capacity[columns])
            for left, right in pairwise(held):
                smaller_side = min(row[: left + 1].sum(), row[right:].sum())
                if right > left + 1 and (not worst.parts or smaller_side > -worst.slack):
                    slower, skipped, faster = names[left], names[left + 1], names[right]
                    shown = {"user": user, "slower": slower, "skipped": skipped, "faster": faster, "order": names}
                    worst = self.case(-smaller_side, 1, **shown)
        answer, witness = (Answer.FAILS, worst) if worst.parts else (Answer.HOLDS, None)
        exact = market.exact and not ((shares > 0) & (shares <= tolerance * market.capacity)).any()
        effort = f"{counted(len(market.users), 'user')} over {' < '.join(names)}"
        return Verdict(self.name, answer, worst.slack, "GPUs", exact, effort, witness)

    def says(self, case: SlackCase) -> str:
        """Return the gap in a sentence."""
        return f"{case.user} holds {case.slower} and {case.faster}, but no {case.skipped}, which lies between them"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the user holds both outer types, in this order, and nothing of the type between them."""
        row = dict(zip(market.types, shares[market.users.index(case.user)], strict=True))
        places = [case.order.index(name) for name in (case.slower, case.skipped, case.faster)]
        return places == sorted(places) and min(row[case.slower], row[case.faster]) > 0 >= row[case.skipped]

    def _columns(self, market: Market) -> list[int]:
        names = market.types if self.order is None else self.order
        if sorted(names) != sorted(market.types):
            remedy = f"Name each of {', '.join(market.types)} once"
            raise BadInput(f"got {', '.join(names)}", place="order", remedy=remedy)
        return [j for j in map(market.types.index, names) if market.capacity[j] > 0]

    def over(self, optima: Optima) -> Statement:
        """Decide over all optima; see `fairopt.properties.over_optima`."""
        columns = self._columns(optima.market)
        users = range(len(optima.market.users))
        gaps = [(i, *types) for i in users for types in combinations(columns, 3)]
        lacking = next((shares for gap in gaps if (shares := _with_gap(optima, *gap)) is not None), None)

        def ways_out(positive: set[int]) -> list[set[int]] | None:
            for i, a, b, c in gaps:
                place = columns.index(b)
                if {optima.column(i, a), optima.column(i, c)} <= positive and optima.column(i, b) not in positive:
                    sides = (columns[:place], columns[place + 1 :])
                    return [{optima.column(i, j) for j in side} for side in sides]
            return None

        places = {optima.column(i, j) for i in users for j in columns}
        return by_support(self, optima, lacking, f"{len(gaps)} gaps", optima.choices, places, ways_out)


def _with_gap(optima: Optima, user: int, left: int, skipped: int, right: int) -> Array | None:
    """Return an optimum in which the user holds the outer types and not the one between; None if there is none."""
    t = len(optima.choices.cost)
    low, high = optima.column(user, left), optima.column(user, right)
    part = optima.without([optima.column(user, skipped)], optima.choices)
    rows = [({low: 1, t: -1}, 0, INFINITY), ({high: 1, t: -1}, 0, INFINITY)]
    found = optima.most({t: 1}, extended(part, [(0, INFINITY)], rows))
    return optima.allocation(found[1]) if found is not None and found[0] > 0 else None
