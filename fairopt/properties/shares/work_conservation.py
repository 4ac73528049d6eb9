"""Work conservation: no GPU idles while somebody could use it."""

from __future__ import annotations

import numpy as np

from fairopt.numbers import counted
from fairopt.problem import Market, usable
from fairopt.problem.ranges import in_use
from fairopt.program import INFINITY, Array, Number, number_text
from fairopt.properties.property import AllocationProperty, CitedInstance, SlackCase
from fairopt.properties.shares.cited import EQUATION_2, OEF_EXAMPLE
from fairopt.properties.shares.feasibility import sizes
from fairopt.properties.verdict import Answer, Verdict


class WorkConservation(AllocationProperty):
    """No GPU idles while a user that runs on it is below its demand.

    GPUs held by a user that cannot use them are idle too. A failure shows a type, its idle GPUs, a user that could use
    them, and how many of them its demand leaves.

    Source: Gandiva_fair Sec. 3.3; weaker than Pareto efficiency (OEF footnote 2).

    >>> verdict = WorkConservation().check(Market.of([[1, 2]], capacity=[1, 1]), [[1, "1/2"]], tolerance=0)
    >>> print(verdict.answer, verdict.margin)
    Answer.FAILS -1/2
    """

    name = "work_conservation"
    head = "no useful GPU idle"
    broken = "GPUs idle that {who} could use"
    source = "Gandiva_fair Sec. 3.3"
    definition = "no type has idle GPUs while a user with positive speedup there uses fewer GPUs than it demands"
    instances = (
        CitedInstance("OEF Eq. (2)", OEF_EXAMPLE, EQUATION_2, Answer.HOLDS),
        CitedInstance(
            "OEF Eq. (2) with half of a GPU taken away", OEF_EXAMPLE, [[1, 0], [0, "1/2"], [0, 0]], Answer.FAILS
        ),
    )

    def _within_bounds(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        if all(in_use(market, i, shares[i]) is not None for i in np.flatnonzero(~market.known).tolist()):
            return self._check(market, shares, tolerance)
        return super()._within_bounds(market, shares, tolerance)

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        used = usable(market.speedup, shares, market.demand)
        idle = market.capacity - used.sum(axis=0)
        room = market.limit - used.sum(axis=1)
        limited = market.limit < INFINITY
        # the tolerance is relative to the type's capacity, or to the user's demand
        relative = np.where(market.speedup > 0, idle / sizes(market), 0)
        relative[limited] = np.minimum(relative[limited], (room[limited] / market.limit[limited])[:, None])
        i, j = divmod(int(np.argmax(relative)), len(idle))
        wasted = min(idle[j], room[i])
        waste = relative[i, j] > 0
        slack, size = (-wasted, wasted / relative[i, j]) if waste else (0 * idle[j], 1)
        shown = {"type": market.types[j], "idle": idle[j], "user": market.users[i], "could_use": wasted}
        case, unit, effort = (
            self.case(slack, size, **shown),
            f"GPUs of {market.types[j]}",
            counted(len(idle), "type"),
        )
        return self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return what idles, and who could use it, in a sentence."""
        what = "them" if case.could_use >= case.idle else f"{number_text(case.could_use)} of them"
        return f"{number_text(case.idle)} GPUs of {case.type} idle; {case.user} could use {what}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether GPUs of the type are idle, and the user runs on them and uses fewer GPUs than it demands."""
        i, j = market.users.index(case.user), market.types.index(case.type)
        used = usable(market.speedup, shares, market.demand)
        idle, room = market.capacity[j] - sum(used[:, j].tolist()), market.limit[i] - sum(used[i].tolist())
        return bool(min(idle, room, market.speedup[i, j]) > 0)
