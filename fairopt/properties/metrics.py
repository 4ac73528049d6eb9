"""Numbers that describe an allocation, without judging it."""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.backends.exact import optimum_of
from fairopt.deadline import left
from fairopt.numbers import arithmetic, counted
from fairopt.problem import Market, usable
from fairopt.problem.market import Shares
from fairopt.program import INFINITY, Array, Formulation, Number, short_text
from fairopt.properties.long_fractions import are_long
from fairopt.report import Grid, Key, ResultForm, Tabular


@dataclass(frozen=True, eq=False, repr=False)
class Metrics(Tabular):
    """The metrics of an allocation of ``market``.

    ``efficiency`` (n,) is each user's throughput in its own units and ``total_efficiency`` their sum (meaningful where
    the units are common: `Market.normalised`). ``ratio_to_equal_split`` (n,) is over that on the equal share, and
    ``jain_index`` that of these ratios: 1 where all are equal, 1/n where one user has everything. ``utilisation`` (k,)
    is the part of each type's GPUs in use (None where there are none). ``price_of_fairness`` is the lost part of the
    largest possible total efficiency.

    Source: Jain, Chiu and Hawe, A Quantitative Measure of Fairness, 1984; Bertsimas, Farias and Trichakis, The Price
    of Fairness, 2011; OEF Sec. 6.1.4.

    >>> from fairopt.datasets import oef_example
    >>> metrics(oef_example(), oef_example().equal_split())
    <Metrics on 3 users: total_efficiency 4, price_of_fairness 0.2, jain_index 1>
    """

    market: Market
    total_efficiency: Number
    efficiency: Array
    ratio_to_equal_split: Array
    jain_index: Number
    utilisation: tuple[Number | None, ...]
    price_of_fairness: Number

    form = ResultForm(
        "Numbers of an allocation.",
        Key("total_efficiency", Number, "The sum of the users' throughputs."),
        Key("efficiency", dict[str, Number], "Throughput of each user.", lambda found: found.by_user("efficiency")),
        Key(
            "ratio_to_equal_split",
            dict[str, Number | None],
            "Throughput over that of an equal split, of each user.",
            lambda found: found.by_user("ratio_to_equal_split"),
        ),
        Key("jain_index", Number, "Jain's index of these ratios."),
        Key(
            "utilisation",
            dict[str, Number | None],
            "Part of the GPUs in use, of each type; null where there are none.",
            lambda found: dict(zip(found.market.types, found.utilisation, strict=True)),
        ),
        Key("price_of_fairness", Number, "The part of the greatest total efficiency that is lost."),
    )

    def by_user(self, name: str) -> dict[str, Number]:
        """Return a number of each user, by the user's name; ``name`` is that of an array of these numbers."""
        return dict(zip(self.market.users, getattr(self, name).tolist(), strict=True))

    def __repr__(self) -> str:
        names = ("total_efficiency", "price_of_fairness", "jain_index")
        said = ", ".join(f"{name} {short_text(getattr(self, name))}" for name in names)
        return f"<Metrics on {counted(len(self.market.users), 'user')}: {said}>"

    def _table(self) -> Grid:
        columns = {name: getattr(self, name).tolist() for name in ("efficiency", "ratio_to_equal_split")}
        return Grid("user", self.market.users, columns)


def metrics(market: Market, shares: Shares) -> Metrics:
    """Return the metrics of ``shares`` (n, k): Fractions where market and shares are exact, else floats.

    They are floats, too, where shares have thousands of digits, since their sums would have millions.
    ``shares`` may be an array, lists, or a pandas table with labels. Errors: `BadInput` for shares of another market.
    Source: that of `Metrics`.

    >>> metrics(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), [[1, "1/4"], [0, "3/4"]])
    <Metrics on 2 users: total_efficiency 5.25, price_of_fairness 0.125, jain_index 81/82>
    """
    shares = market.shares(shares)
    exact = market.exact and arithmetic(shares).exact and not are_long(shares)
    market = market if exact else market.as_(float)
    shares = shares if exact else shares.astype(float)
    own = market.utility(shares)
    left()  # each of these sums may take seconds where fractions have thousands of digits
    total = own.sum()
    ratio = own / market.fair_utility()
    squares = (ratio * ratio).sum()
    left()
    used = usable(market.speedup, shares, market.demand).sum(axis=0)
    return Metrics(
        market,
        total_efficiency=total,
        efficiency=own,
        ratio_to_equal_split=ratio,
        jain_index=ratio.sum() ** 2 / (len(ratio) * squares) if squares else 0 * squares + 1,
        utilisation=tuple(u / m if m else None for u, m in zip(used, market.capacity, strict=True)),
        price_of_fairness=1 - total / largest_efficiency(market),
    )


def largest_efficiency(market: Market) -> Number:
    """Return the largest total throughput of any allocation, OEF Eq. (4); a program is solved only if demands bind.

    >>> largest_efficiency(Market.of([[1, 2], [1, 5]], [1, 1]))
    Fraction(6, 1)
    """
    if market.demand is None:
        largest: Number = (market.capacity * market.speedup.max(axis=0)).sum()
        return largest
    p = Formulation("largest efficiency")
    share = p.variable("share", market.shape, lower=0)
    p.maximize((market.speedup * share).sum(), source="OEF Eq. (4)")
    p.constrain("capacity", share.sum(axis=0) <= market.capacity)
    p.constrain("demand", (share.sum(axis=1) <= market.demand).where(market.demand < INFINITY))
    objective = optimum_of(p.program()).objective
    assert objective is not None
    return objective if market.exact else float(objective)
