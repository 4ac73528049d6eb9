"""A `Market`: who wants which GPUs how much, how many there are, and who is entitled to what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fairopt.errors import BadInput
from fairopt.numbers import FLOATS, RATIONALS, Arithmetic, arithmetic, counted, kind_of_numbers
from fairopt.problem import checks
from fairopt.problem.checks import Frozen, amounts, checked_names, limits
from fairopt.problem.entitlements import Entitlements
from fairopt.problem.labels import aligned, in_place, shares_given, with_names
from fairopt.problem.throughput import capped_value
from fairopt.program import INFINITY, Array, Number, cast
from fairopt.report import Grid, Tabular, few

if TYPE_CHECKING:
    from pandas import DataFrame, Series

#: Numbers in order, or by label; shares (n, k) as an array, as lists, or as a table with labels.
Amounts: TypeAlias = "Iterable[object] | Mapping[str, object] | Series[Any]"
Shares: TypeAlias = "Array | Sequence[Sequence[object]] | DataFrame"
#: Floats whose relative difference is at most this are compared as the fractions that they are.
NEAR = 1e-9
_ARRAYS = ("speedup", "capacity", "weight", "demand", "least", "most")


@dataclass(frozen=True, eq=False, repr=False)
class Market(Frozen, Tabular):
    """The problem of sharing GPUs of several types among users at one instant; validated and frozen.

    Shapes, for n users and k types; make one with `Market.of` or a reader, never directly:

    * ``speedup`` (n, k): throughput of user i on one GPU of type j, in units of the user's own choice;
      0 means that the user cannot run there.
    * ``capacity`` (k,): GPUs of each type. ``weight`` (n,): entitlement, positive.
    * ``demand`` (n,) or None: the most GPUs that a user can use at once, infinity for no limit.
    * ``users``, ``types``: names. ``owner``: for each row the name of the user that it belongs to; a user with several
      job types has a row for each, called "user/job" (a virtual user).
    * ``least``, ``most`` (n, k) or None: the ends between which speedups lie that are not known exactly; a least of 0
      allows any positive number, a most of infinity has no upper end.
    * ``entitlements``: guarantees, caps, groups, priorities, and what users hold and ask for; None where nobody says.

    Numbers are Fractions; ``as_(float)`` gives the same market for a float solver. Errors: `BadInput` of the functions
    that make one.

    Source: OEF Sec. 2.3 (w = speedup, m = capacity), Sec. 4.2.3 (pi = weight), Sec. 4.2.4 (virtual users).

    >>> market = Market.of([[1, 2], [1, "5/2"]], capacity=[1, 1], users=["A", "B"], types=["K80", "V100"])
    >>> print(market.utility(market.equal_split()))
    [Fraction(3, 2) Fraction(7, 4)]
    """

    speedup: Array
    capacity: Array
    weight: Array
    users: tuple[str, ...]
    types: tuple[str, ...]
    demand: Array | None = None
    owner: tuple[str, ...] = ()
    least: Array | None = None
    most: Array | None = None
    entitlements: Entitlements | None = None

    # -- making one ----------------------------------------------------------------------------------------------
    @classmethod
    def of(
        cls,
        speedup: Iterable[Iterable[object]] | DataFrame,
        capacity: Amounts,
        *,
        weight: Amounts | None = None,
        demand: Amounts | None = None,
        users: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        owner: Sequence[str] | None = None,
        places: Sequence[str] | None = None,
        least: Iterable[Iterable[object]] | None = None,
        most: Iterable[Iterable[object]] | None = None,
        entitlements: Entitlements | None = None,
    ) -> Market:
        """Validate and return a market; ints, Fractions, decimal strings and floats (as printed) are kept exact.

        Shapes: ``speedup`` (n, k), ``capacity`` (k,), the others (n,); an entry of ``demand`` may be None or infinity
        (no limit). A pandas table of speedups names its users and types. Where these are named, the others may be a
        Series or a dictionary, aligned by label. ``places`` is what messages call each row; readers of files give the
        file's own words. ``least`` and ``most`` (n, k), both or neither, are the ends of what a speedup may be; None in
        ``most`` is infinity. Errors: `BadInput` that names the row, the column, the value and what to do.

        >>> Market.of([[1, 2], [1, 5]], {"V100": 1, "K80": 4}, types=["K80", "V100"]).capacity.tolist()
        [Fraction(4, 1), Fraction(1, 1)]
        """
        table, users, types = with_names(speedup, users, types)
        rows = checks.listed_rows(table)
        given = aligned(capacity, types, "capacity", "type")
        type_names = checked_names(types, len(given), "type", "T")
        checks.check_size(len(rows), len(given))
        user_names = checked_names(users, len(rows), "user", "u")
        owner = checks.listed_owners(owner, len(rows))
        own = tuple(f"user {number} ({name!r})" for number, name in enumerate(user_names, start=1))
        called = own if places is None or len(places) != len(rows) else tuple(places)
        market = cls(
            speedup=checks.speedup_table(rows, called, type_names),
            capacity=amounts(given, [f"type {name!r}" for name in type_names], "capacity", "type"),
            weight=amounts(
                [1] * len(rows) if weight is None else aligned(weight, users, "weight", "user"),
                called,
                "weight",
                "user",
            ),
            users=user_names,
            types=type_names,
            demand=None
            if demand is None
            else limits(aligned(demand, users, "demand", "user"), called, "demand", "user", above=False),
            owner=user_names if owner is None else tuple(owner),
            least=None if least is None else checks.speedup_table(checks.listed_rows(least), called, type_names),
            most=None if most is None else checks.speedup_ends(most, called, type_names),
            entitlements=entitlements,
        )
        checks.check_ends(market.least, market.speedup, market.most, called)
        checks.check_entitled(market.entitlements, user_names, type_names)
        checks.check_market(market.capacity, market.weight, market.limit, called)
        checks.check_rows(market.speedup, market.capacity, called)
        return market

    @classmethod
    def of_arrays(
        cls,
        speedup: ArrayLike | DataFrame,
        capacity: ArrayLike | Mapping[str, object],
        *,
        weight: ArrayLike | Mapping[str, object] | None = None,
        demand: ArrayLike | Mapping[str, object] | None = None,
        users: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
    ) -> Market:
        """Validate and return a market in floats, for large arrays, which are copied; shapes, names and errors as `of`.

        A number is the binary number that it is: ``as_(Fraction)`` gives exactly that, not the decimal as printed.
        """
        unnamed, users, types = with_names(speedup, users, types)
        table = checks.float_table(unnamed, "speedup", 2)
        given = checks.float_table(in_place(capacity, types, "capacity", "type"), "capacity", 1)
        user_names = checked_names(users, len(table), "user", "u")
        weight = np.ones(len(table)) if weight is None else in_place(weight, users, "weight", "user")
        weights = checks.float_table(weight, "weight", 1)
        most = checks.demands(in_place(demand, users, "demand", "user"))
        checks.check_arrays(table, given, weights, most, lambda i: f"user {i + 1} ({user_names[i]!r})")
        type_names = checked_names(types, len(given), "type", "T")
        return cls(table, given, weights, user_names, type_names, most, user_names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Market):
            return NotImplemented
        names = (self.users, self.types, self.owner) == (other.users, other.types, other.owner)
        names = names and self.entitlements == other.entitlements
        mine, theirs = ([a.speedup, a.capacity, a.weight, a.limit, *a.ends] for a in (self, other))
        return names and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        n, k = self.shape
        total = float(self.capacity.sum())
        gpus = f"{total:g} GPU{'s' * (total != 1)}"
        return f"<Market: {counted(n, 'user')}, {counted(k, 'type')} ({few(self.types)}), {gpus}>"

    def _table(self) -> Grid:
        return Grid("user", self.users, dict(zip(self.types, self.speedup.T.tolist(), strict=True)))

    def _shown(self) -> Grid:
        by_type = zip(self.types, self.capacity, self.speedup.T, strict=True)
        columns = {name: [gpus, *speedups] for name, gpus, speedups in by_type}
        more = {"weight": self.weight} | ({} if self.demand is None else {"demand": self.demand})
        shown = Grid("user", ("capacity", *self.users), columns)
        return shown.beside({name: [None, *each] for name, each in more.items()})

    # -- asking --------------------------------------------------------------------------------------------------
    @property
    def shape(self) -> tuple[int, int]:
        """(users, types), counting a row for each job type of a user."""
        return len(self.users), len(self.types)

    @property
    def arithmetic(self) -> Arithmetic:
        """That of its numbers: floats or rationals."""
        return arithmetic(self.speedup)

    @property
    def exact(self) -> bool:
        """Whether the numbers are Fractions."""
        return self.arithmetic.exact

    @property
    def limit(self) -> Array:
        """The demands (n,), infinity where there is none."""
        return np.full(len(self.users), INFINITY) if self.demand is None else self.demand

    @property
    def ends(self) -> tuple[Array, Array]:
        """The least and the most that each speedup (n, k) may be; both the speedup where it is known."""
        least, most = self.least, self.most
        return self.speedup if least is None else least, self.speedup if most is None else most

    @property
    def known(self) -> Array:
        """Whether all speedups of a user are known exactly (n,)."""
        least, most = self.ends
        return np.asarray((least == most).all(axis=1))

    def equal_split(self) -> Array:
        """Return each user's weight's share of every type (n, k). Source: OEF Sec. 2.3.1 (3); Gandiva_fair Sec. 2.1."""
        return np.asarray(np.multiply.outer(self.weight / self.weight.sum(), self.capacity))

    def shares(self, given: Shares) -> Array:
        """Return shares (n, k) that somebody gives: floats and objects as they are, all else in the market's numbers.

        Errors: `BadInput` for another shape, for labels that are none of the market's, and for what is no number.
        """
        if isinstance(given, np.ndarray):
            if given.shape != self.shape:
                wrong = f"got shape {given.shape} for a market of shape {self.shape}"
                raise BadInput(wrong, place="allocation", remedy="Give a row for each user and a column for each type")
            if (kind := kind_of_numbers(given)) is not None:  # what holds a float is not exact
                return given if arithmetic(given) is kind else checks.float_table(given, "allocation", 2)
        return self.arithmetic.cast(shares_given(given, self.users, self.types))

    def utility(self, shares: Shares) -> Array:
        """Return each user's throughput (n,) on its row of ``shares`` (n, k), with GPUs beyond its demand unused."""
        return capped_value(self.speedup, self.shares(shares), self.demand)

    def values(self, shares: Shares) -> Array:
        """Return (n, n): what user i would get out of user l's row, scaled to its own weight (w_i / w_l)."""
        per_weight = self.shares(shares) / self.weight[:, None]
        if self.demand is None:
            return np.asarray((self.speedup @ per_weight.T) * self.weight[:, None])
        scaled = per_weight[None, :, :] * self.weight[:, None, None]
        return capped_value(self.speedup[:, None, :], scaled, self.demand[:, None])

    def largest_multiple(self, shares: Shares) -> Number:
        """Return the largest factor by which ``shares`` (n, k) keep within the capacities and demands."""
        shares = self.shares(shares)
        used, there = (*shares.sum(axis=0), *shares.sum(axis=1)), (*self.capacity, *self.limit)
        most: Number = min(limit / use for use, limit in zip(used, there, strict=True) if use > 0)
        return most

    def fair_utility(self) -> Array:
        """Return each user's throughput (n,) on its own partition of the cluster; positive by validation."""
        return self.utility(self.equal_split())

    def type_order(self) -> tuple[int, ...]:
        """Return the types from slowest to fastest: by the weighted mean of each user's relative speed on them.

        Relative means divided by what the user would get from the whole cluster, so that units do not matter. Where
        all users agree on an order this is that order; ties keep the order of the market, and rounding decides none.
        """
        whole = (self.speedup * self.capacity).sum(axis=1)
        mean = (self.speedup * (self.weight / whole)[:, None]).sum(axis=0)
        order = tuple(sorted(range(len(self.types)), key=lambda j: (mean[j], j)))
        near = (mean[b] - mean[a] <= NEAR * mean[b] for a, b in pairwise(order))
        return order if self.exact or not any(near) else self.as_(Fraction).type_order()

    # -- changing ------------------------------------------------------------------------------------------------
    @cached_property
    def _in_floats(self) -> Market:
        return self._in(FLOATS)

    def _in(self, number: Arithmetic) -> Market:
        given = ((name, getattr(self, name)) for name in _ARRAYS)
        columns: dict[str, Any] = {name: cast(each, number) for name, each in given if each is not None}
        owed = None if self.entitlements is None else self.entitlements.as_(number)
        return replace(self, **columns, entitlements=owed)

    def plain(self) -> Market:
        """Return the market without entitlements and with the speedups as they stand."""
        return replace(self, least=None, most=None, entitlements=None)

    def as_(self, number: type | Arithmetic) -> Market:
        """Return the same market in ``float`` or in ``Fraction`` (a float becomes the fraction that it is)."""
        if self.arithmetic is arithmetic(number):
            return self
        return self._in(RATIONALS) if arithmetic(number).exact else self._in_floats

    def misreport(self, user: str | int | np.integer[Any], row: Amounts | Array) -> Market:
        """Return the market in which one user reports other speedups (k,), in order or by type; errors as `of`."""
        i = self.index(user)
        place = f"user {i + 1} ({self.users[i]!r}), misreport"
        row = row if isinstance(row, np.ndarray) else aligned(row, self.types, place, "type")
        told = checks.reported_row(row, len(self.types), place, in_fractions=self.exact)
        speedup = self.speedup.copy()
        speedup[i] = told
        checks.check_rows(told[None, :], self.capacity, [f"user {i + 1} ({self.users[i]!r})"])
        ends: dict[str, Any] = {
            name: np.array(own) for name in ("least", "most") if (own := getattr(self, name)) is not None
        }
        for own in ends.values():
            own[i] = told
        return replace(self, speedup=speedup, **ends)

    def index(self, user: str | int | np.integer[Any]) -> int:
        """Return the row of a user given by name or row; `BadInput` where there is none."""
        if isinstance(user, int | np.integer) and 0 <= user < len(self.users):
            return int(user)
        if user in self.users:
            return self.users.index(str(user))
        raise BadInput(f"there is no user {user!r}", remedy=f"The users are {', '.join(self.users[:20])}")

    def normalised(self, reference: str | None = None) -> Market:
        """Return the market with every user's unit set to its throughput on one GPU of ``reference``.

        By default that is the slowest type by `type_order`; for users who cannot run there, their slowest one.
        Source: OEF Sec. 2.3 (w_l^1 = 1 for all tenants).
        """
        order = list(self.type_order())
        if reference is not None:
            if reference not in self.types:
                raise BadInput(f"there is no type {reference!r}", remedy=f"The types are {', '.join(self.types)}")
            order.insert(0, self.types.index(reference))
        by_speed = self.speedup[:, order]
        first = np.argmax(by_speed > 0, axis=1)
        unit = by_speed[np.arange(len(first)), first]
        return self._each_speedup(lambda speedup: speedup / unit[:, None])

    def rescaled(self, factor: Mapping[str, Any]) -> Market:
        """Return the market with the speedups of the named users multiplied: the same users in other units."""
        times = self.weight / self.weight
        for user, by in factor.items():
            times[self.index(user)] *= by
        return self._each_speedup(lambda speedup: speedup * times[:, None])

    def _each_speedup(self, changed: Callable[[Array], Array]) -> Market:
        columns = {name: getattr(self, name) for name in ("speedup", "least", "most")}
        new: dict[str, Any] = {name: changed(own) for name, own in columns.items() if own is not None}
        return replace(self, **new)

    def select(self, users: Sequence[int]) -> Market:
        """Return the market of the given rows, in the given order; the capacity stays."""
        rows = list(users)
        by_user = {name: getattr(self, name) for name in ("speedup", "weight", "demand", "least", "most")}
        columns: dict[str, Any] = {name: each[rows] for name, each in by_user.items() if each is not None}
        chosen = replace(
            self,
            **columns,
            users=tuple(self.users[i] for i in rows),
            owner=tuple(self.owner[i] for i in rows),
            entitlements=None if self.entitlements is None else self.entitlements.select(rows),
        )
        if "_in_floats" in vars(self):  # to divide all numbers again takes longer
            vars(chosen)["_in_floats"] = self._in_floats.select(rows)
        return chosen

    def without(self, user: str | int | np.integer[Any]) -> Market:
        """Return the market that is left when one user goes."""
        gone = self.index(user)
        return self.select([i for i in range(len(self.users)) if i != gone])

    def select_types(self, types: Sequence[int]) -> Market:
        """Return the market of the given columns, in the given order. Errors: `BadInput` for one with entitlements."""
        columns = list(types)
        if self.entitlements is not None:
            raise BadInput("they are of all types", place="entitlements", remedy="Take Market.plain() first")
        return replace(
            self,
            speedup=self.speedup[:, columns],
            capacity=self.capacity[columns],
            types=tuple(self.types[j] for j in columns),
            least=None if self.least is None else self.least[:, columns],
            most=None if self.most is None else self.most[:, columns],
        )

    def replicated(self) -> Market:
        """Return the market in which a user of whole weight w (else `BadInput`) is w users. Source: OEF Sec. 4.2.3."""
        copies = []
        for user, weight in zip(self.users, self.weight, strict=True):
            if weight != int(weight):
                remedy = "Replication needs integer weights; use the weighted formulation"
                raise BadInput(f"got {weight}", place=f"user {user!r}, weight", remedy=remedy)
            copies.append(int(weight))
        rows = np.repeat(np.arange(len(copies)), copies)
        many = self.select([int(i) for i in rows])
        number = np.concatenate([np.arange(1, count + 1) for count in copies])
        return replace(
            many,
            users=tuple(
                f"{name}#{c}" if copies[i] > 1 else name for name, c, i in zip(many.users, number, rows, strict=True)
            ),
            weight=many.weight / many.weight,
            demand=None if many.demand is None else many.demand / many.weight,
        )
