"""Exact misreports: a gain found in floats becomes rational reports, on which the policy decides exactly."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.errors import BadInput, FairoptError
from fairopt.numbers import objects
from fairopt.policy import Allocation, Optima, Policy, decide, session
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.problem.numbers import LEAST, MOST
from fairopt.program import Array, Sense
from fairopt.properties.misreports.kinds import MisreportKind
from fairopt.properties.misreports.reports import BEGIN_FROM, Reports
from fairopt.properties.misreports.search import CLIMBERS, LEVEL, Found
from fairopt.properties.property import MechanismProperty, SlackCase

#: Relative widths of the intervals around a float report in which simple numbers are sought, widest first.
NEIGHBOURHOODS = (0.5, 0.25, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-6)
#: The ends of these intervals around 1, as whole numbers.
_ENDS = tuple(tuple(Fraction(1 + sign * width).as_integer_ratio() for sign in (-1, 1)) for width in NEIGHBOURHOODS)
#: Parts of the way from the truth to the float report; the best misreport often is just short of one that fails.
PARTS = (Fraction(1, 2), Fraction(3, 4), Fraction(9, 10), Fraction(1))
#: On markets of more shares than this only one report of each kind is decided exactly: it takes longer than the search.
EXACT_UP_TO = 250
#: On markets of more shares than this nobody asks whether a gain is one for every optimum: it takes too long.
EVERY_OPTIMUM_UP_TO = 1_000
#: On markets of more shares than this only the misreport that pays most is decided exactly, of all kinds.
EACH_KIND_UP_TO = 1_000
#: A simpler report is preferred over another whose gain is up to this many times as large.
WORTH = 2
#: How many of the most promising reports are decided exactly where none pays.
PROMISING = 3


class ExactReports:
    """A policy's exact decisions on an exact market: on ``truth``, and on misreports; None where there is none.

    What a misreport does is a case of the property that is ``asked``.
    """

    def __init__(
        self, asked: MechanismProperty, policy: Policy, problem: Market, truth: Allocation | None = None
    ) -> None:
        self.asked, self.policy, self.problem = asked, policy, problem
        self.truth = truth or exact_or_none(policy, problem)
        self._best: dict[int, Fraction | None] = {}
        self._worst: dict[tuple[int, tuple[Any, ...]], Fraction | None] = {}
        self._after: dict[tuple[int, tuple[Any, ...]], Allocation | None] = {}
        self._known: dict[tuple[int, tuple[Any, ...]], float] = {}

    @property
    def is_soon(self) -> bool:
        """Whether exact decisions on this market are so soon that each kind of misreport gets its own."""
        return self.problem.speedup.size <= EACH_KIND_UP_TO

    def knows(self, found: Found, kind: MisreportKind) -> bool:
        """Whether the rational report nearest to ``found`` was decided, for another kind."""
        near = candidates(self.problem, found, kind)
        return bool(near) and (found.user, tuple(near[-1])) in self._after

    def misreport(self, user: int, report: Array) -> SlackCase | None:
        """Return the result of a report (k,) of Fractions, whether the user gains or loses."""
        after = self._decided(user, report)
        if self.truth is None or after is None:
            return None
        return self.asked.told(self.problem, user, report, self.truth, after)

    def for_every_optimum(self, found: SlackCase) -> SlackCase:
        """Return the misreport with ``least_gain`` and ``every_optimum`` decided, where they can be."""
        user = self.problem.index(found.user)
        after = self._decided(user, found.report)
        if self.truth is None or after is None or self.problem.speedup.size > EVERY_OPTIMUM_UP_TO:
            return found
        if user not in self._best:
            self._best[user] = self._extreme(self.truth, user, Sense.MAXIMIZE)
        key = user, tuple(found.report)
        if key not in self._worst:
            self._worst[key] = self._extreme(after, user, Sense.MINIMIZE)
        best, worst = self._best[user], self._worst[key]
        if best is None or worst is None:
            return found
        return found.but(least_gain=worst - best, every_optimum=worst > best)

    def foresee(self, asked: Reports, found: Mapping[MisreportKind, Found], tolerance: float) -> None:
        """Decide in floats, all together, on the reports near those that gain most: `best` of each kind asks for it."""
        if self.problem.speedup.size <= EXACT_UP_TO:
            paid = [(kind, each) for kind, each in found.items() if each.share > tolerance]
            near = [(each.user, report) for kind, each in paid for report in candidates(self.problem, each, kind)]
            self._levels(asked, near)

    def best(
        self, asked: Reports, found: Found, others: list[Found], kind: MisreportKind, tolerance: float
    ) -> SlackCase | None:
        """Return the simplest that gains half as much as ``found``, if possible with every optimum; else the largest.

        ``found`` gains most in floats, as ``asked`` decides; ``others`` are the best of every user. What gains no more
        than ``tolerance``, of the equal share's throughput, gains nothing.
        """
        near = candidates(self.problem, found, kind)
        if self.problem.speedup.size > EXACT_UP_TO:
            near, others = near[-1:], []
        best = self._simplest(asked, found, near) if near and found.share > tolerance else None
        if best is not None:
            return best
        reports = [(found.user, each) for each in near]
        if found.share <= tolerance:  # nobody gains: simple reports of others may pay by themselves
            more = [each for each in others[:CLIMBERS] if each.user != found.user]
            reports += [(each.user, report) for each in more for report in candidates(self.problem, each, kind)]
        if not reports:
            return None
        levels = self._levels(asked, reports)
        promising = np.argsort(-np.nan_to_num(levels, nan=-np.inf).round(), kind="stable")[:PROMISING]
        return most_paid(*(self.misreport(*reports[place]) for place in promising))

    def _simplest(self, asked: Reports, found: Found, near: list[Array]) -> SlackCase | None:
        best: SlackCase | None = None
        levels = self._levels(asked, [(found.user, each) for each in near])
        for report, level in zip(near, levels, strict=True):
            if (level + 1) * WORTH < found.level and report is not near[-1]:
                continue
            decided = self.misreport(found.user, report)
            if decided is None:
                break
            if decided.gain > 0 and (best is None or decided.gain > WORTH * best.gain or not best.every_optimum):
                decided = self.for_every_optimum(decided)
                if best is None or decided.every_optimum or decided.gain > WORTH * best.gain:
                    best = decided
            if best is not None and best.every_optimum and best.gain * WORTH >= found.gain:
                break
        return best

    def _levels(self, asked: Reports, reports: list[tuple[int, Array]]) -> Array:
        """Return what reports of users gain in floats, as in `Found.level`, but for the rounding."""
        keys = [(user, tuple(report)) for user, report in reports]
        if new := list(dict.fromkeys(key for key in keys if key not in self._known)):
            users = np.array([user for user, _ in new])
            gains = asked.gains(users, np.array([report for _, report in new]).astype(float))
            self._known |= zip(new, (gains / asked.fair[users] / LEVEL).tolist(), strict=True)
        return np.array([self._known[key] for key in keys])

    def _decided(self, user: int, report: Array) -> Allocation | None:
        """Return the decision on a report; it is asked for again by other kinds, and for the extremes."""
        key = user, tuple(report)
        if key not in self._after:
            try:
                told = None if self.truth is None else self.problem.misreport(user, report)
            except BadInput:  # numbers that no market takes are reported by nobody
                told = None
            self._after[key] = None if told is None else exact_or_none(self.policy, told, self.truth)
        return self._after[key]

    def _extreme(self, decision: Allocation, user: int, sense: Sense) -> Fraction | None:
        """Return the user's largest or least true throughput over all optima that ``decision`` could have chosen."""
        try:
            optima = Optima.of(self.policy, decision)
            if optima is None:  # nothing was optimised, so that there is no choice
                return Fraction(self.problem.utility(decision.shares)[user])
            weight = np.full(self.problem.shape, Fraction(0), dtype=object)
            if self.problem.demand is not None:
                weight[user] = Fraction(1)
                if optima.extreme(weight) > self.problem.demand[user]:
                    return None  # GPUs beyond the demand are worth nothing, so throughput is not linear
            weight[user] = self.problem.speedup[user]
            return Fraction(optima.extreme(weight, sense))
        except FairoptError:
            return None  # undecided: `least_gain` stays None


def most_paid(*misreports: SlackCase | None) -> SlackCase | None:
    """Return the misreport that gains most, None where there is none."""
    return max((each for each in misreports if each is not None), key=lambda each: each.gain, default=None)


def exact_or_none(policy: Policy, market: Market, near: Allocation | None = None) -> Allocation | None:
    """Return the exact decision, None where the policy has none on this market.

    On a large market a backend begins at the basis of ``near``, the decision on a market that differs by little.
    """
    start = None if near is None else near.solution
    begins = start is not None and start.basis is not None and market.speedup.size > BEGIN_FROM
    try:
        at = session(policy, exact=True, entitled=is_entitled(market), start=start) if begins else None
        decision = decide(policy, market, exact=True, at=at)
    except FairoptError:
        return None  # the caller goes on with floats, and says so
    return decision if decision.exact else None


def candidates(market: Market, found: Found, kind: MisreportKind) -> list[Array]:
    """Return rational reports (k,) of the kind, near a float one or between it and the truth, never the truth.

    Each entry becomes the simplest fraction in a neighbourhood, or keeps its true value if that lies in it. The
    simplest reports come first, the one nearest to ``found`` last. Where ``found`` was reached by way of another that
    gains as much, reports near that one are among them.
    """
    truth = market.speedup[found.user]
    out: dict[tuple[Fraction, ...], Array] = {}
    nearest: Array | None = None
    ways = (found.report,) if found.first is None else (found.first, found.report)
    for way, part in itertools.product(ways, PARTS):
        near = [_simple(true, value, part) for true, value in zip(truth.tolist(), way.tolist(), strict=True)]
        for numbers in zip(*near, strict=True):
            report = objects(numbers)
            if (report != truth).any() and kind.allows(truth, report):
                out.setdefault(numbers, report)
                nearest = report if part == 1 else nearest
    plainest = sorted(out.values(), key=lambda report: sum(value.numerator + value.denominator for value in report))
    return plainest if nearest is None else [each for each in plainest if each is not nearest] + [nearest]


def _simple(true: Fraction, value: float, part: Fraction) -> list[Fraction]:
    """Return the simplest number in each neighbourhood of that part of the way to a value, the true one if it is in."""
    if value == float(true):
        return [true] * len(NEIGHBOURHOODS)
    told = min(max(true + part * (Fraction(value) - true), LEAST), MOST)
    out, (top, bottom) = [], told.as_integer_ratio()
    for (less, of), (more, of_more) in _ENDS:
        low, high = (top * less, bottom * of), (top * more, bottom * of_more)
        kept = low[0] * true.denominator <= true.numerator * low[1]  # fewer changes are simpler
        kept = kept and true.numerator * high[1] <= high[0] * true.denominator
        out.append(true if kept else Fraction(*_simplest(*low, *high)))
    return out


def simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of least denominator, and among those of least numerator, in [low, high], 0 <= low <= high.

    Source: the Stern-Brocot tree; Graham, Knuth and Patashnik, Concrete Mathematics, Sec. 4.5.
    """
    if not 0 <= low <= high:
        raise BadInput(f"got {low} and {high}", place="simplest fraction", remedy="Give 0 <= low <= high")
    return Fraction(*_simplest(*low.as_integer_ratio(), *high.as_integer_ratio()))


def _simplest(top: int, bottom: int, high_top: int, high_bottom: int) -> tuple[int, int]:
    """Return the same for top / bottom and the high one, in whole numbers, since thousands are asked for."""
    below, rest = divmod(top, bottom)
    whole = below + (rest > 0)
    if whole * high_bottom <= high_top:
        return whole, 1
    over, under = _simplest(high_bottom, high_top - below * high_bottom, bottom, rest)
    return below * over + under, over
