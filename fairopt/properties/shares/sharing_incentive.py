"""Sharing incentive: no user would be better off with its equal share of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from fairopt.numbers import counted
from fairopt.policy import Optima
from fairopt.problem import Market, worth
from fairopt.problem.ranges import in_use
from fairopt.program import Array, Number, more_text, number_text
from fairopt.properties.over_optima import Slack, linear
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.shares.cited import EQUATION_1, EQUATION_5, OEF_EXAMPLE
from fairopt.properties.verdict import Answer, Verdict
from fairopt.properties.within_bounds import LinearInSpeedups
from fairopt.report import Statement


class SharingIncentive(LinearInSpeedups):
    """Each user gets at least the throughput of its weight's part of every type.

    A failure shows a user, its throughput, and that of its own partition: its equal share.

    Source: OEF Sec. 2.3.1 (3); weights as in Gandiva_fair Sec. 2.1.

    >>> verdict = SharingIncentive().check(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), [[1, 0], [0, 1]], tolerance=0)
    >>> print(verdict.answer, verdict.margin)
    Answer.FAILS -1/2
    """

    name = "sharing_incentive"
    head = "at least an equal share"
    broken = "{who} gets less than an equal share"
    source = "OEF Sec. 2.3.1 (3)"
    definition = "E_l(x_l) >= E_l(pi_l / sum(pi) * m) for every user l"
    instances = (
        CitedInstance("OEF Eq. (1)", OEF_EXAMPLE, EQUATION_1, Answer.HOLDS),
        CitedInstance("OEF Eq. (5): u2 has nothing", OEF_EXAMPLE, EQUATION_5, Answer.FAILS),
    )

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        own, fair = market.utility(shares), market.fair_utility()
        worst = int(np.argmin((own - fair) / fair))
        shown = {"user": market.users[worst], "throughput": own[worst], "own_partition": fair[worst]}
        case = self.case(own[worst] - fair[worst], fair[worst], **shown)
        unit, effort = f"throughput of {case.user}", counted(len(own), "user")
        return self._by_tightest(case, tolerance, exact=market.exact, unit=unit, effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return what a user gets, and what its equal share is worth, in a sentence."""
        got, own = number_text(case.throughput), more_text(case.own_partition, case.throughput)
        return f"{case.user} gets {got}; its equal share is worth {own}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the user gets less than from its part, by weight, of every type."""
        i = market.users.index(case.user)
        part = market.weight[i] / sum(market.weight.tolist())
        return worth(market, i, shares[i]) < worth(market, i, market.capacity * part)

    def compared(self, market: Market, shares: Array) -> Iterator[tuple[int, Array | None, Array | None]]:
        """Yield each user with its shares and its part of every type, both as far as it uses them."""
        split = market.equal_split()
        return ((i, in_use(market, i, shares[i]), in_use(market, i, split[i])) for i in range(len(market.users)))

    def over(self, optima: Optima) -> Statement:
        """Decide over all optima; see `fairopt.properties.over_optima`."""
        users = range(len(optima.market.users))
        slacks = [Slack(optima.worth(i, i, 1 / optima.fair[i]), Fraction(1)) for i in users]
        return linear(self, optima, slacks, counted(len(users), "user"))
