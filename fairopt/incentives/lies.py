"""Kinds of lies: what users may tell a policy instead of the truth, alone, together, or as several users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import ClassVar, TypeAlias

import numpy as np

from fairopt.errors import BadInput, require, type_of
from fairopt.problem import Market
from fairopt.problem.throughput import capped_value
from fairopt.program import INFINITY, Array, Number
from fairopt.properties.misreports.search import ANYTHING, LARGER, SMALLER, Misreports

Liars = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Lie:
    """What a policy is told instead of the truth.

    ``told`` is the market that it decides. ``rows`` says of each liar (a row of the true market) which rows of ``told``
    are its own; their bundles are added up.

    >>> Lie(Market.of([[1, 3], [1, 2]], capacity=[1, 1]), {0: (0,)}).rows
    {0: (0,)}
    """

    told: Market
    rows: Mapping[int, tuple[int, ...]]

    def reached(self, truth: Market, shares: Array) -> dict[int, Number]:
        """Return each liar's throughput by the true market, from ``shares`` of the told one (rows of ``told``, k)."""
        liars = list(self.rows)
        bundles = np.array([shares[list(rows)].sum(axis=0) for rows in self.rows.values()])
        demand = None if truth.demand is None else truth.demand[liars]
        return dict(zip(liars, capped_value(truth.speedup[liars], bundles, demand).tolist(), strict=True))


class LieKind(ABC):
    """A kind of lie. A lie of it is a choice of liars and a row of factors on true numbers; factors of 1 are the truth.

    >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
    >>> [kind.name for kind in every_kind(market)]
    ['larger', 'smaller', 'any', 'together', 'split', 'copies', 'weight']
    """

    name: ClassVar[str]
    words: ClassVar[str]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}>"

    def liars(self, market: Market) -> list[Liars]:
        """Return who may lie: one user, or several who lie together."""
        return [(user,) for user in range(len(market.users))]

    @abstractmethod
    def shape(self, market: Market) -> tuple[int, ...]:
        """Return the shape of the factors of one lie."""

    @abstractmethod
    def told(self, market: Market, liars: Liars, factors: Array) -> Lie | None:
        """Return the lie, in the numbers of ``market``; None where it is none of this kind."""

    def asked_of(self, market: Market) -> bool:
        """Whether there are such lies on ``market``."""
        return True

    def weight_told(self, market: Market) -> int | None:
        """Return how often at most one liar, in all of its rows, states its weight; None where bounds do not say.

        >>> market = Market.of([[1, 2], [1, 5]], capacity=[1, 1])
        >>> [kind.weight_told(market) for kind in every_kind(market)]
        [1, 1, 1, None, 1, 2, 2]
        """
        return None


@dataclass(frozen=True)
class SpeedupReport(LieKind):
    """One user reports other speedups, of the kind ``misreports``.

    >>> lie = SpeedupReport().told(Market.of([[1, 2], [1, 5]], [1, 1]), (1,), np.array([1, 2]))
    >>> lie.told.speedup.tolist()[1]
    [Fraction(1, 1), Fraction(10, 1)]
    """

    misreports: Misreports = ANYTHING
    words: str = field(default="one user reports other speedups", compare=False)  # type: ignore[misc]

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of the misreports."""
        return self.misreports.name

    def shape(self, market: Market) -> tuple[int, ...]:
        """Return (k,)."""
        return (len(market.types),)

    def told(self, market: Market, liars: Liars, factors: Array) -> Lie | None:
        """Return the market with the report; None where it is not of the kind."""
        (user,) = liars
        truth = market.speedup[user]
        if not self.misreports.allows(truth, truth * factors):
            return None
        return Lie(market.misreport(user, truth * factors), {user: (user,)})

    def weight_told(self, market: Market) -> int:
        """Return 1."""
        return 1


class TwoReports(LieKind):
    """Two users report other speedups, and neither may lose.

    >>> TwoReports().liars(Market.of([[1, 2], [1, 5], [1, 3]], [1, 1]))
    [(0, 1), (0, 2), (1, 2)]
    """

    name = "together"
    words = "two users report other speedups, and neither loses; the factor is the smaller of the two"

    def liars(self, market: Market) -> list[Liars]:
        """Return all pairs of users."""
        return list(combinations(range(len(market.users)), 2))

    def shape(self, market: Market) -> tuple[int, ...]:
        """Return (2, k)."""
        return (2, len(market.types))

    def told(self, market: Market, liars: Liars, factors: Array) -> Lie:
        """Return the market with both reports."""
        for user, row in zip(liars, factors, strict=True):
            market = market.misreport(user, market.speedup[user] * row)
        return Lie(market, {user: (user,) for user in liars})

    def asked_of(self, market: Market) -> bool:
        """Whether there are two users."""
        return len(market.users) > 1


@dataclass(frozen=True)
class Sybils(LieKind):
    """A user enters as two, with reports of their own. ``whole``: each has all of the user's weight, else a half.

    Each says that it can use a half of the user's demand, where there is one.

    >>> lie = Sybils().told(Market.of([[1, 2], [1, 5]], [1, 1]), (0,), np.ones((2, 2)))
    >>> lie.told.users, [str(weight) for weight in lie.told.weight]
    (('u1', 'u2', "u1'"), ['1/2', '1', '1/2'])
    """

    whole: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        """Whether the weight is split or copied."""
        return "copies" if self.whole else "split"

    @property
    def words(self) -> str:  # type: ignore[override]
        """What a user does."""
        each = "each with all of its weight" if self.whole else "each with a half of its weight"
        return f"one user enters as two, {each}, and reports other speedups"

    def shape(self, market: Market) -> tuple[int, ...]:
        """Return (2, k)."""
        return (2, len(market.types))

    def told(self, market: Market, liars: Liars, factors: Array) -> Lie:
        """Return the market with one user more, the last one; it is called like the first, with an apostrophe."""
        (user,), n = liars, len(market.users)
        many, two = market.select([*range(n), user]), [user, n]
        speedup, weight = many.speedup.copy(), many.weight.copy()
        speedup[two] = speedup[two] * factors
        if not self.whole:
            weight[two] = weight[two] / 2
        demand = many.demand
        if demand is not None:
            demand = demand.copy()
            demand[two] = demand[two] / 2
        name = f"{market.users[user]}'"
        while name in market.users:
            name += "'"
        told = replace(many, speedup=speedup, weight=weight, demand=demand, users=(*market.users, name))
        return Lie(told, {user: (user, n)})

    def weight_told(self, market: Market) -> int | None:
        """Return 2 where each has all of the weight, else 1; None with demands, by which fair shares change."""
        return None if market.demand is not None else 2 if self.whole else 1


class WeightClaim(LieKind):
    """A user claims another weight, at most twice its own.

    >>> lie = WeightClaim().told(Market.of([[1, 2], [1, 5]], [1, 1]), (0,), np.array(2))
    >>> [int(weight) for weight in lie.told.weight]
    [2, 1]
    """

    name = "weight"
    words = "one user claims another weight, at most twice its own"
    #: By how many times at most.
    most: ClassVar[int] = 2

    def shape(self, market: Market) -> tuple[int, ...]:
        """Return ()."""
        return ()

    def told(self, market: Market, liars: Liars, factors: Array) -> Lie | None:
        """Return the market with the claimed weight; None above twice the true one."""
        if factors > self.most:
            return None
        (user,), weight = liars, market.weight.copy()
        weight[user] = weight[user] * factors[()]
        return Lie(replace(market, weight=weight), {user: (user,)})

    def weight_told(self, market: Market) -> int | None:
        """Return the most that is claimed; None with demands, by which fair shares change."""
        return None if market.demand is not None else self.most


class DemandClaim(LieKind):
    """A user claims another demand.

    >>> DemandClaim().liars(Market.of([[1, 2], [1, 5]], [1, 1], demand=[None, 3]))
    [(1,)]
    """

    name = "demand"
    words = "one user claims another demand"

    def liars(self, market: Market) -> list[Liars]:
        """Return the users that state one."""
        return [(int(user),) for user in np.flatnonzero(market.limit < INFINITY)]

    def shape(self, market: Market) -> tuple[int, ...]:
        """Return ()."""
        return ()

    def told(self, market: Market, liars: Liars, factors: Array) -> Lie:
        """Return the market with the claimed demand."""
        (user,), demand = liars, market.limit.copy()
        demand[user] = demand[user] * factors[()]
        return Lie(replace(market, demand=demand), {user: (user,)})

    def asked_of(self, market: Market) -> bool:
        """Whether anybody states a demand."""
        return bool(self.liars(market))


#: How a kind of lie may be given: by its name, as a class, or as itself.
AnyLieKind: TypeAlias = str | type[LieKind] | LieKind

_EVERY: tuple[LieKind, ...] = (
    SpeedupReport(LARGER, "one user reports other speedups, none below the truth"),
    SpeedupReport(SMALLER, "one user reports other speedups, none above the truth"),
    SpeedupReport(ANYTHING),
    TwoReports(),
    Sybils(),
    Sybils(whole=True),
    WeightClaim(),
    DemandClaim(),
)


def every_kind(market: Market) -> list[LieKind]:
    """Return the kinds of lies that there are on ``market``.

    Errors: `BadInput` for a market with entitlements, or with speedups that are not known, about which nobody can lie.

    >>> [kind.name for kind in every_kind(Market.of([[1, 2], [1, 5]], [1, 1]))]
    ['larger', 'smaller', 'any', 'together', 'split', 'copies', 'weight']
    """
    require(isinstance(market, Market), type_of(market), "market", "Give a Market")
    if market.entitlements is not None:
        remedy = "Leave the entitlements out: `Market.plain()`"
        raise BadInput("lies about entitlements are not looked for", place="the market", remedy=remedy)
    if not market.known.all():
        user = market.users[int(np.flatnonzero(~market.known)[0])]
        raise BadInput("its speedups are not known exactly", place=f"user {user!r}", remedy="State its true speedups")
    return [kind for kind in _EVERY if kind.asked_of(market)]


def kind_of(given: AnyLieKind, market: Market, place: str = "kind") -> LieKind:
    """Return a kind of lie that is given by name, as a class, or as itself; ``place`` is what messages call its place.

    Errors: `BadInput` for a name of which there is none on this market, and what is no kind; those of `every_kind`.

    >>> kind_of("copies", Market.of([[1, 2], [1, 5]], [1, 1]))
    Sybils(whole=True)
    """
    made = given() if isinstance(given, type) and issubclass(given, LieKind) else given
    if isinstance(made, LieKind):
        return made
    known = {kind.name: kind for kind in every_kind(market)}
    if isinstance(given, str) and given in known:
        return known[given]
    got = "nobody states a demand" if given == DemandClaim.name else f"got {given!r}"
    raise BadInput(got, place=place, remedy=f"Here: {', '.join(known)}")
