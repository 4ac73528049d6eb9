"""Families of markets on which a lie pays most, by number of users n and spread R of each user's speedups.

User 1 is the liar, the other n - 1 are alike. Each family has the ratio by a formula, worked out by hand, which exact
decisions must give again, and what it tends to as the report tends to the one that is named.

Upper bounds, with their proofs: `fairopt.proofs.findings.liars.bounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairopt.evidence import certify_misreport
from fairopt.models import CooperativeOEF, MaxMin, NashWelfare, NonCooperativeOEF, SecondPriceTrading
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.proofs.ledger.checking import found, proved, require
from fairopt.properties import SlackCase, StrategyProofness
from fairopt.properties.misreports.exact_reports import ExactReports

Row = Sequence[Fraction]
#: How far reports are from those at which the others' choices would tie.
NEAR = Fraction(1, 1000)


@dataclass(frozen=True)
class Family:
    """Markets (n, R), the liar's report, and the ratio of its true throughputs; all take n and R.

    ``ratio`` is that of the report shown, ``limit`` what it tends to as the report goes on to where choices tie.
    """

    policy: Policy
    rows: Callable[[int, Fraction], tuple[Row, Row]]
    capacity: Callable[[int, Fraction], Row]
    report: Callable[[int, Fraction], Row]
    ratio: Callable[[int, Fraction], Fraction]
    limit: Callable[[int, Fraction], Fraction]

    def market(self, n: int, spread: int) -> Market:
        """Return the market: the liar first."""
        liar, other = self.rows(n, Fraction(spread))
        return Market.of([liar, *[other] * (n - 1)], self.capacity(n, Fraction(spread)))

    def checked(self, n: int, spread: int) -> Fraction:
        """Return the ratio that two exact decisions give, certified by the verifier, which is that of the formula.

        Errors: `NoLongerFollows` where it is another, or where other optima would give less.
        """
        witness = self.lie(n, spread)
        require(witness.every_optimum, f"{self.policy.name}: the gain for every optimum")
        proved(certify_misreport(self.policy, self.market(n, spread), witness))
        ratio = Fraction(witness.utility / witness.truthful_utility)
        require(ratio == self.ratio(n, Fraction(spread)), f"{self.policy.name}, n = {n}, R = {spread}: the formula")
        return ratio

    def lie(self, n: int, spread: int) -> SlackCase:
        """Return the liar's report by exact decisions, and whether it pays whatever optima are chosen."""
        market, report = self.market(n, spread), self.report(n, Fraction(spread))
        exactly = ExactReports(StrategyProofness(), self.policy, market)
        told = Market.of([report], market.capacity).speedup[0]
        return exactly.for_every_optimum(found(exactly.misreport(0, told), "exact decisions"))


def _part(n: int, spread: Fraction) -> Fraction:
    """Return the part of the cluster that type 1 is to the liar, where type 2 is worth enough to the others."""
    return spread**2 / (spread**2 + n - 1)


def _cooperative_under(n: int, spread: Fraction) -> Fraction:
    """Return the ratio where the liar reports (1/R + NEAR, 1): it is compensated in the type that it likes."""
    told = 1 / spread + NEAR
    held = (told + (n - 1) / spread) / (n * told)
    return n * _part(n, spread) * held


#: Cooperative OEF, larger reports: the liar likes type 1 by R, the others type 2, in units R + 1 times as large. So
#: they leave the liar its fair share only. It reports to be twice as fast on both, and has all of type 1, which the
#: others do not envy, since they have type 2.
COOPERATIVE_OVER = Family(
    CooperativeOEF(),
    rows=lambda n, R: ((R, Fraction(1)), (R + 1, R * (R + 1))),
    capacity=lambda n, R: (Fraction(1), (n - 1) / R),
    report=lambda n, R: (2 * R, Fraction(2)),
    ratio=lambda n, R: n * _part(n, R),
    limit=lambda n, R: n * _part(n, R),
)
#: The same markets, smaller reports: who seems to like type 2 too must be given more of type 1 not to envy.
COOPERATIVE_UNDER = Family(
    CooperativeOEF(),
    rows=COOPERATIVE_OVER.rows,
    capacity=COOPERATIVE_OVER.capacity,
    report=lambda n, R: (1 / R + NEAR, Fraction(1)),
    ratio=_cooperative_under,
    limit=lambda n, R: n * _part(n, R),
)
#: The same in common units, with speedup 1 on the slowest type: others like type 2 a little more than the liar does,
#: and type 3 by R. There is little of type 1.
COOPERATIVE_NORMALISED = Family(
    CooperativeOEF(),
    rows=lambda n, R: ((Fraction(1), Fraction(2), Fraction(1)), (Fraction(1), 2 + NEAR, R)),
    capacity=lambda n, R: (NEAR, Fraction(1), (n - 1) * (2 + 2 * NEAR) / R),
    report=lambda n, R: (Fraction(1), 2 + 2 * NEAR, Fraction(1)),
    ratio=lambda n, R: n * (2 + NEAR) / (2 + NEAR + (n - 1) * (2 + 2 * NEAR) / R),
    limit=lambda n, R: n / (1 + (n - 1) / R),
)
#: Non-cooperative OEF: the liar alone likes type 2. By hiding that it seems slow, and is given more of it.
NONCOOPERATIVE = Family(
    NonCooperativeOEF(),
    rows=lambda n, R: ((Fraction(1), R), (Fraction(1), Fraction(1))),
    capacity=lambda n, R: (Fraction(n - 1), Fraction(1)),
    report=lambda n, R: (Fraction(1), 1 + NEAR),
    ratio=lambda n, R: (R * (n - 1) + 1) / ((1 + NEAR) * (n - 1) + 1),
    limit=lambda n, R: (R * (n - 1) + 1) / n,
)
#: Nash welfare: nobody else buys type 2, so that its price falls with the liar's report, who then buys type 1 as well.
NASH = Family(
    NashWelfare(),
    rows=lambda n, R: ((Fraction(1), R), (R, Fraction(1))),
    capacity=lambda n, R: (Fraction(1), 1 / (R * (n - 1))),
    report=lambda n, R: (R * (1 - NEAR), Fraction(1)),
    ratio=lambda n, R: 2 - Fraction(1, n) - Fraction(n - 1, n) / ((1 - NEAR) * R**2),
    limit=lambda n, R: 2 - Fraction(1, n) - Fraction(n - 1, n) / R**2,
)


def _max_min(n: int, spread: Fraction, told: Fraction) -> Fraction:
    """Return the ratio where the liar, who likes type 1 by R as the others do type 2, reports (told, R)."""
    fair = n * _part(n, spread)  # of type 1, to the liar, over its fair share
    # z of type 1 goes to the others: those have 1 + z / (n - 1), the liar keeps 1 - z
    truth = (fair + Fraction(1, n - 1)) / (1 + Fraction(1, n - 1)) / fair
    seems = n * told / (told + n - 1)
    kept = (1 + Fraction(1, n - 1)) / (seems + Fraction(1, n - 1))
    return kept * truth * fair


#: Max-min: the liar reports what the others do, almost, and is spared giving them a part of what it has more.
MAX_MIN = Family(
    MaxMin(),
    rows=lambda n, R: ((R, Fraction(1)), (Fraction(1), R)),
    capacity=lambda n, R: (Fraction(1), (n - 1) / R),
    report=lambda n, R: (1 + NEAR, R),
    ratio=lambda n, R: _max_min(n, R, 1 + NEAR),
    limit=lambda n, R: (n - 1) * _part(n, R) + Fraction(1, n),
)


def _trading(n: int, spread: Fraction) -> Fraction:
    """Return the ratio where the liar reports (2 - NEAR, 1): type 1 counts as the fast one then, and it sells it."""
    part = Fraction(n - 1, 2 * n)  # of type 1, which everybody has at first
    truth = Fraction(1, n) + 2 * part / (spread + Fraction(1, 2))
    price = Fraction(2) if n > 2 else 2 - NEAR / 2  # the second bid, or the middle where nobody else bids
    last = 2 - NEAR / 2  # the last of the others to buy has no bidder against it
    first = Fraction(1, n) * (n - 2) / price if n > 2 else Fraction(0)
    sold = Fraction(1, n) * (n - 2) + (part - first) * last if n > 2 else part * last
    return (Fraction(1, n) + sold) / truth


#: Trading: told the truth, type 2 is the faster one, and the liar, alone in liking it, pays the middle of two ratios
#: that are far apart. By its report it makes type 1 the faster one, which it sells for more than half of type 2.
TRADING = Family(
    SecondPriceTrading(),
    rows=lambda n, R: ((Fraction(1), R), (Fraction(2), Fraction(1))),
    capacity=lambda n, R: (Fraction(n - 1, 2), Fraction(1)),
    report=lambda n, R: (2 - NEAR, Fraction(1)),
    ratio=_trading,
    limit=lambda n, R: 1 / (Fraction(1, n) + Fraction(n - 1, n) / (R + Fraction(1, 2))),
)
