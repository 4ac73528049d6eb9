"""Kinds of misreports: what users may report instead of the truth, alone, together, or as several users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from fairopt.errors import BadInput, require, type_of
from fairopt.problem import Market
from fairopt.problem.throughput import capped_value
from fairopt.program import INFINITY, Array, Number

#: Those who misreport together, by their rows in the true market.
Liars: TypeAlias = tuple[int, ...]
#: Of each of them, the rows that are its own in the market that is reported.
Rows: TypeAlias = Mapping[int, tuple[int, ...]]


def _possible(truth: Array, report: Array) -> Any:
    return ((report > 0) | ((truth == 0) & (report == 0))).all(axis=-1)


@dataclass(frozen=True)
class MisreportKind:
    """A kind of misreport: so many ``users`` together, each in as many ``rows``, report something false.

    A misreport of it is a choice of users and factors on their true numbers; factors of 1 are the truth. ``about`` is
    the market's column that is false: "speedup" (a factor for each row and type), "weight" or "demand" (one factor).
    Who enters in several rows divides weight and demand between them, or has all of its weight in each where it is
    ``copied``. ``allows(truth, report)`` says which speedups (..., k) are of the kind, ``into(truth, report)`` moves
    others there; ``most`` is the largest factor.

    >>> told, rows = SPLIT.reported(Market.of([[1, 2], [1, 5]], [1, 1]), (0,), np.ones((2, 2)))
    >>> told.users, [str(weight) for weight in told.weight], rows
    (('u1', 'u2', "u1'"), ['1/2', '1', '1/2'], {0: (0, 2)})
    """

    name: str
    words: str
    about: str = "speedup"
    users: int = 1
    rows: int = 1
    copied: bool = False
    most: Number = INFINITY
    allows: Callable[[Array, Array], Any] = _possible
    into: Callable[[Array, Array], Array] = lambda truth, report: report

    @property
    def is_report(self) -> bool:
        """Whether it is one user's report of its speedups."""
        return self.about == "speedup" and self.users == self.rows == 1

    def liars(self, market: Market) -> list[Liars]:
        """Return who may misreport: one user, or several together; of demands, those who state one."""
        n = len(market.users)
        able = np.flatnonzero(market.limit < INFINITY).tolist() if self.about == "demand" else range(n)
        return list(combinations(able, self.users))

    def shape(self, market: Market) -> tuple[int, ...]:
        """Return the shape of the factors of one misreport: (k,), (rows, k), or () for a weight or demand."""
        count = self.users * self.rows
        return () if self.about != "speedup" else (len(market.types),) if count == 1 else (count, len(market.types))

    def reported(self, market: Market, liars: Liars, factors: Array) -> tuple[Market, Rows] | None:
        """Return the market that is reported, in the numbers of ``market``, and whose rows are whose.

        None where it is none of the kind. Rows beyond one come last, called like the first, with apostrophes.
        """
        rows: dict[int, tuple[int, ...]] = {user: (user,) for user in liars}
        if self.rows > 1:
            market, rows = self._entered(market, liars)
        if self.about != "speedup":
            if factors > self.most:
                return None
            (user,), column = liars, (market.weight if self.about == "weight" else market.limit).copy()
            column[user] = column[user] * factors[()]
            changed: dict[str, Any] = {self.about: column}
            return replace(market, **changed), rows
        for row, by in zip((row for own in rows.values() for row in own), np.atleast_2d(factors), strict=True):
            report = market.speedup[row] * by
            if not self.allows(market.speedup[row], report):
                return None
            market = market.misreport(row, report)
        return market, rows

    def _entered(self, market: Market, liars: Liars) -> tuple[Market, dict[int, tuple[int, ...]]]:
        """Return the market in which each of them has as many rows as the kind says, all true."""
        more, names = [user for user in liars for _ in range(self.rows - 1)], list(market.users)
        rows: dict[int, tuple[int, ...]] = {user: (user,) for user in liars}
        for user in more:
            rows[user] += (len(names),)
            name = f"{market.users[user]}'"
            while name in names:
                name += "'"
            names.append(name)
        many = market.select([*range(len(market.users)), *more])
        weight, demand = many.weight.copy(), None if many.demand is None else many.demand.copy()
        for own in map(list, rows.values()):
            if not self.copied:
                weight[own] = weight[own] / self.rows
            if demand is not None:
                demand[own] = demand[own] / self.rows
        return replace(many, weight=weight, demand=demand, users=tuple(names)), rows

    def asked_of(self, market: Market) -> bool:
        """Whether there are such misreports on ``market``."""
        return bool(self.liars(market))

    def weight_told(self, market: Market) -> int | None:
        """Return how often at most one user, in all of its rows, states its weight; None where bounds do not say.

        With demands they say it of reports only: else fair shares change.

        >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
        >>> [kind.weight_told(market) for kind in every_kind(market)]
        [1, 1, 1, None, 1, 2, 2]
        """
        if self.users > 1 or self.about == "demand" or (market.demand is not None and not self.is_report):
            return None
        return int(self.most) if self.about == "weight" else self.rows if self.copied else 1


def reached(truth: Market, rows: Rows, shares: Array) -> dict[int, Number]:
    """Return each liar's throughput by the true market, from ``shares`` (rows of the reported one, k); ``rows`` add up.

    >>> reached(Market.of([[1, 3], [1, 2]], capacity=[1, 1]), {0: (0, 2)}, np.array([[1, 0], [0, 0], [0, 1]]))
    {0: Fraction(4, 1)}
    """
    liars = list(rows)
    bundles = np.array([shares[list(own)].sum(axis=0) for own in rows.values()])
    demand = None if truth.demand is None else truth.demand[liars]
    return dict(zip(liars, capped_value(truth.speedup[liars], bundles, demand).tolist(), strict=True))


#: No entry is smaller than the truth. Source: OEF Sec. 2.3.1 (1).
LARGER = MisreportKind(
    "larger",
    "one user reports other speedups, none below the truth",
    allows=lambda truth, report: (report >= truth).all(axis=-1),
    into=np.maximum,
)
#: No entry is larger than the truth. Source: OEF Theorem 5.4 asks for larger ones only; slowing a job down is
#: Gandiva_fair's example in Sec. 3.4.
SMALLER = MisreportKind(
    "smaller",
    "one user reports other speedups, none above the truth",
    allows=lambda truth, report: (report <= truth).all(axis=-1),
    into=np.minimum,
)
#: Every entry where the user can run is positive.
ANYTHING = MisreportKind("any", "one user reports other speedups")
#: All kinds of one user's report, the narrow ones first.
REPORTS = (LARGER, SMALLER, ANYTHING)
TOGETHER = MisreportKind(
    "together", "two users report other speedups, and neither loses; the factor is the smaller of the two", users=2
)
SPLIT = MisreportKind(
    "split", "one user enters as two, each with a half of its weight, and reports other speedups", rows=2
)
COPIES = MisreportKind(
    "copies", "one user enters as two, each with all of its weight, and reports other speedups", rows=2, copied=True
)
WEIGHT = MisreportKind("weight", "one user claims another weight, at most twice its own", about="weight", most=2)
DEMAND = MisreportKind("demand", "one user claims another demand", about="demand")
EVERY_KIND = (*REPORTS, TOGETHER, SPLIT, COPIES, WEIGHT, DEMAND)


def every_kind(market: Market) -> list[MisreportKind]:
    """Return the kinds of misreports that there are on ``market``.

    Errors: `BadInput` for a market with entitlements, or with speedups that are not known, about which nobody can lie.

    >>> [kind.name for kind in every_kind(Market.of([[1, 2], [1, 5]], [1, 1]))]
    ['larger', 'smaller', 'any', 'together', 'split', 'copies', 'weight']
    """
    require(isinstance(market, Market), type_of(market), "market", "Give a Market")
    if market.entitlements is not None:
        remedy = "Leave the entitlements out: `Market.plain()`"
        raise BadInput("the search does not cover lies about entitlements", place="the market", remedy=remedy)
    if not market.known.all():
        user = market.users[int(np.flatnonzero(~market.known)[0])]
        raise BadInput("its speedups are not known exactly", place=f"user {user!r}", remedy="State its true speedups")
    return [kind for kind in EVERY_KIND if kind.asked_of(market)]


def kind_of(given: str | MisreportKind, market: Market, place: str = "kind") -> MisreportKind:
    """Return a kind of misreport that is given by name or as itself; ``place`` is what messages call its place.

    Errors: `BadInput` for a name of which there is none on this market, and what is no kind; those of `every_kind`.

    >>> kind_of("copies", Market.of([[1, 2], [1, 5]], [1, 1])).copied
    True
    """
    if isinstance(given, MisreportKind):
        return given
    known = {kind.name: kind for kind in every_kind(market)}
    if isinstance(given, str) and given in known:
        return known[given]
    got = "nobody states a demand" if given == DEMAND.name else f"got {given!r}"
    raise BadInput(got, place=place, remedy=f"Here: {', '.join(known)}")
