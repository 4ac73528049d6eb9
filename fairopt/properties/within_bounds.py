"""Properties for all speedups within bounds: they hold for all, fail for all, or depend, with the boundary.

What a property of this module compares is linear in each user's own speedups as long as the GPUs in use do not depend
on these. So over a box of speedups the least and the most are at its ends, exactly, and where a user's answer changes a
small linear program finds speedups at which all holds.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.certificates import PROPERTY, Certificate
from fairopt.deadline import left
from fairopt.errors import NotCapable
from fairopt.numbers import arithmetic
from fairopt.problem import Market
from fairopt.problem.market import NEAR
from fairopt.problem.ranges import error_of, nothing_known, shrunk, unknown_speedups
from fairopt.program import INFINITY, Array, Formulation, Number, fractions, number_text, objects
from fairopt.properties.property import AllocationProperty
from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class Boundary:
    """How far around the speedups that are stated a property holds for all, and what changes its answer there.

    ``part``: of the ranges; None where it fails at the speedups that are stated. ``error``: that part as a relative
    error, where all speedups have the same. ``ends``: a market at which it holds, for all its speedups, and one at
    which it fails, for the certificates on both sides; by these names. ``words`` say all of it, ``shown`` are its parts
    by name: a user and its speedups at which the answer changes, trades that make all better off beyond, or a misreport
    that pays.

    >>> from fractions import Fraction
    >>> from fairopt.problem.ranges import with_error
    >>> market = with_error(Market.of([[1, 2]], capacity=[1, 1]), "10%")
    >>> print(Boundary.of(market, Fraction(1, 2), {}, "it changes where u1 runs at 1 on T1 and 2 on T2"))
    it holds up to an error of 5%; it changes where u1 runs at 1 on T1 and 2 on T2
    """

    words: str
    part: Number | None = None
    error: Number | None = None
    ends: Mapping[str, Market] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, market: Market, part: Number | None, ends: Mapping[str, Market], what: str = "", **shown: Any
    ) -> Boundary:
        """Return the boundary, given how far around the stated speedups of ``market`` it holds and ``what`` changes."""
        whole = error_of(market)
        error = None if whole is None or part is None else part * whole
        return cls("; ".join(filter(None, (_reach(part, error), what))), part, error, ends, shown)

    def summary(self) -> Mapping[str, Any]:
        """Return what is shown: all but the words and the markets."""
        return {"part": self.part, "error": self.error, **self.shown}

    def __str__(self) -> str:
        return self.words


def _reach(part: Number | None, error: Number | None) -> str:
    """Return in words up to where it holds.

    >>> _reach(2 / 3, None)
    'it holds within 66.66% of the ranges'
    """
    if part is None:
        return "it fails at the speedups that are stated, and holds at others"
    if (part if error is None else error) <= NEAR:
        return "any error may break it"
    up_to = f"within {percent(part)} of the ranges" if error is None else f"up to an error of {percent(error)}"
    return f"it holds {up_to}"


def percent(part: Number) -> str:
    """Return a part in per cent, of four digits, rounded down: what holds up to it holds up to what is printed.

    >>> percent(2 / 3)
    '66.66%'
    """
    shown = float(part * 100) if part > NEAR else 0.0
    return f"{Context(prec=4, rounding=ROUND_FLOOR).create_decimal_from_float(shown).normalize():f}%"


def range_of(market: Market) -> str:
    """Return how far the speedups of a market may be from those that it states; "" where they are known."""
    if market.known.all():
        return ""
    error = error_of(market)
    return "within the bounds of the market" if error is None else f"within an error of {percent(error)}"


class LinearInSpeedups(AllocationProperty):
    """A property that compares, for each user, the worth of what it uses with that of what it would use.

    >>> from fairopt.properties import SharingIncentive
    >>> market = Market.of([[1, 2], [1, 3]], [1, 1], least=[[1, 1], [1, 3]], most=[[1, 4], [1, 3]])
    >>> verdict = SharingIncentive().check(market, [[1, "1/4"], [0, "3/4"]])
    >>> print(verdict.answer.value, "|", verdict.boundary)
    DEPENDS | any error may break it; it changes where u1 runs at 1 on T1 and 2 on T2
    """

    needs_speedups = True

    @abstractmethod
    def compared(self, market: Market, shares: Array) -> Iterable[tuple[int, Array | None, Array | None]]:
        """Yield a user, what it uses (k,), and what must not be worth more to it; None where speedups decide of that.

        For every user, and every other with which it is compared.
        """

    def _within_bounds(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        stated = self._check(market, shares, tolerance)
        if stated.answer is Answer.UNDECIDED:
            return stated
        told, given = market.as_(Fraction), fractions(shares)
        allowed = Fraction(tolerance) * told.equal_split()
        effort = f"all speedups within the bounds, {stated.effort}"
        # of each user the rows that are negative somewhere: others say nothing of where the answer changes
        rows, unsure = dict[int, list[Array]](), set[int]()
        margins = dict[int, Number]()
        for user, uses, would in self.compared(told, given):
            left()
            if uses is None or would is None:
                unsure.add(user)
                continue
            row, ends = uses - would, (told.ends[0][user], told.ends[1][user])
            worst = lowest(row, *ends)
            margins[user] = min(margins.get(user, INFINITY), worst)
            if worst < 0:
                rows.setdefault(user, []).append(row)
        holding = told.speedup.copy()
        changes = list[_Change]()
        exact = market.exact and arithmetic(shares).exact
        for user, each in rows.items():
            left()
            ends, slacks = (told.ends[0][user], told.ends[1][user]), np.array(each)
            if tolerance and all(lowest(row, *ends) >= 0 for row in slacks + allowed[user]):
                continue
            found = self._found(slacks, told.speedup[user], *ends)
            if found is None and tolerance:  # it may still be within the tolerance
                slacks, exact = slacks + allowed[user], False
                found = self._found(slacks, told.speedup[user], *ends)
            if found is None:  # it fails for all, as it does at the speedups that are stated
                return replace(stated, effort=effort)
            holding[user] = found
            changes.append(changes_at(user, slacks, found, *ends))
        if unsure:
            names = ", ".join(market.users[user] for user in sorted(unsure)[:5])
            return Verdict.undecided(self.name, f"which GPUs {names} would use depends on the speedups", effort=effort)
        if not margins:  # there is nobody to compare with
            return stated
        margin, tightest = min((least, user) for user, least in margins.items())
        verdict = replace(stated, effort=effort, witness=None, margin=None, answer=Answer.HOLDS)
        if not changes:
            unit = f"throughput of {market.users[tightest]}"
            return replace(verdict, margin=margin, unit=unit, exact=exact and margin >= 0)
        nothing = nothing_known(market)
        bounded = [each for each in changes if not nothing[each.user]]
        if not bounded:
            return Verdict.undecided(self.name, unknown_speedups(market), effort=effort)
        asked = self._boundary(told, holding, changes, bounded)
        if margin > -INFINITY:
            verdict = replace(verdict, margin=margin, unit=f"throughput of {market.users[tightest]}, at worst")
        return replace(verdict, answer=Answer.DEPENDS, boundary=asked, exact=exact)

    def _found(self, rows: Array, stated: Array, least: Array, most: Array) -> Array | None:
        """Return speedups (k,) at which no row is below 0, those that are stated if that is so; None for none."""
        if (rows @ stated >= 0).all():
            return stated
        never = any(lowest(-row, least, most) > 0 for row in rows)
        return None if never else holds_at(rows, least, most)

    def _boundary(self, told: Market, holding: Array, changes: list[_Change], bounded: list[_Change]) -> Boundary:
        """Return where the answer changes first: of those who change, at whom the least part of the way is left."""
        first = min(bounded, key=lambda each: each.part)
        known = replace(told, least=None, most=None)
        user, row = told.users[first.user], tuple(zip(told.types, first.point.tolist(), strict=True))
        at = " and ".join(f"{number_text(speed)} on {name}" for name, speed in row)
        what = f"it changes where {user} runs at {at}"
        speedup = holding.copy()
        speedup[first.user] = first.failing
        fails = replace(known, speedup=speedup)
        if (holding != told.speedup).any():  # it fails at the speedups that are stated
            ends = {"holds": replace(known, speedup=holding), "fails": known}
            return Boundary.of(told, None, ends, what, user=user, speedups=row)
        part = min(Fraction(0) if each.endless else each.part for each in changes)
        ends = {"holds": shrunk(told, part) if part else known, "fails": fails}
        return Boundary.of(told, part, ends, what, user=user, speedups=row)

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        if market.known.all():
            return super()._certificate(market, shares, verdict)
        if verdict.answer is Answer.FAILS and not any(
            self._never(market, *each) for each in self.compared(market, shares)
        ):
            raise NotCapable("no comparison fails for all speedups alone; several together have no certificate")
        holds = None if verdict.boundary is None else verdict.boundary.ends["holds"].speedup
        return Certificate(PROPERTY, market, shares, self.name, verdict.answer.value, holds)

    def _never(self, market: Market, user: int, uses: Array | None, would: Array | None) -> bool:
        if uses is None or would is None:
            return False
        least, most = market.ends[0][user], market.ends[1][user]
        best = -lowest(would - uses, least, most)
        opened = bool(((least == 0) & (most > 0) & (uses < would)).any())
        return bool(best < 0 or (best == 0 and opened))


def lowest(row: Array, least: Array, most: Array) -> Number:
    """Return the least of ``row`` (k,) times speedups between ``least`` and ``most`` (k,); minus infinity for no end.

    >>> print(lowest(np.array([1, -1]), np.array([1, 1]), np.array([2, 3])))
    -2
    """
    terms = [each * (low if each > 0 else high) for each, low, high in zip(row, least, most, strict=True) if each]
    return -INFINITY if -INFINITY in terms else sum(terms)


def holds_at(rows: Array, least: Array, most: Array) -> Array | None:
    """Return speedups (k,) between ``least`` and ``most`` at which no row (m, k) is below 0; None where there are none.

    A speedup whose least is 0 is positive.
    """
    opened = (least == 0) & (most > 0)
    p = Formulation("speedups at which it holds")
    speed = p.variable("speedup", (len(least),), lower=least, upper=most)
    inside = p.variable("inside", (1,), lower=0, upper=1)
    p.maximize(inside.sum())
    p.constrain("holds", objects(Fraction(0) for _ in rows) <= rows @ speed)
    p.constrain("positive", (speed - inside >= 0).where(opened))
    program = p.program()
    solution = Exact().solve(program)
    if solution.status is not Status.OPTIMAL or solution.point[-1] == 0:
        return None
    found: Array = program.variable("speedup", solution.point)
    return found


@dataclass(frozen=True)
class _Change:
    """Of a user: a ``part`` of the way to speedups (k,) that are ``failing`` is the last ``point`` that holds."""

    user: int
    part: Number
    point: Array
    failing: Array
    endless: bool


def changes_at(user: int, rows: Array, holding: Array, least: Array, most: Array) -> _Change:
    """Return the last speedups (k,) at which no row (m, k) is below 0, on the way that is the first to fail.

    The ways lead from those ``holding`` to the worst for each row.
    """
    ways = [_way(user, row, holding, least, most) for row in rows if lowest(row, least, most) < 0]
    return min(ways, key=lambda each: each.part)


def _way(user: int, row: Array, holding: Array, least: Array, most: Array) -> _Change:
    failing = holding.copy()
    for j in sorted(np.flatnonzero(row != 0).tolist(), key=lambda j: most[j] == INFINITY):
        if row[j] > 0 or most[j] < INFINITY:
            failing[j] = least[j] if row[j] > 0 else most[j]
        elif (now := (row * failing).sum()) >= 0:
            failing[j] += (now + 1) / -row[j]
    before, after = (row * holding).sum(), (row * failing).sum()
    part = before / (before - after)
    point = np.asarray(holding + part * (failing - holding))
    if ((failing == 0) & (most > 0)).any():  # any positive speedup is possible, but not 0
        failing = np.asarray((point + failing) / 2)
    endless = bool(((row < 0) & (most == INFINITY)).any())
    return _Change(user, part, point, failing, endless)
