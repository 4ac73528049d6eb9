"""Shrinks counterexamples until they can be checked by hand: fewest users, then types, then smallest numbers.

`shrink_market` shrinks any market on which something fails; `shrink` one on which a misreport pays.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
from time import monotonic
from typing import Any, Generic, TypeVar

import numpy as np

from fairopt.errors import BadInput
from fairopt.policy import Policy
from fairopt.policy.policy import require_policy
from fairopt.problem import Market
from fairopt.program import INFINITY, Array
from fairopt.properties.misreports.exact_reports import ExactReports, simplest
from fairopt.properties.misreports.kinds import REPORTS, MisreportKind
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.strategy_proofness import StrategyProofness
from fairopt.properties.property import Effort, SlackCase
from fairopt.properties.verdict import TOLERANCE
from fairopt.report import ResultForm, Statement

#: Up to this many users or types every subset is tried; with more, first one is left out at a time.
SUBSETS_UP_TO = 6
#: Relative widths of the intervals around a number in which a simpler one is sought, widest first.
WIDTHS = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 10), Fraction(1, 50))
#: Integers that are tried in place of each number.
INTEGERS = range(1, 7)
#: Factors on a true speedup to report: the simplest numbers on both sides of 1.
SIMPLE = tuple(Fraction(text) for text in ("1", "2", "3", "4", "5", "6", "1/2", "3/2", "1/3", "2/3", "5/2"))
#: The most reports that pay in floats to decide exactly before a market is given up.
DECIDED = 4
#: Reports tried on a market whose numbers are not simple yet.
WIDE = Effort(evaluations=120)

Witness = TypeVar("Witness")


def burden(values: Iterable[Any]) -> tuple[int, int]:
    """Return how hard numbers are to handle: the count of non-integers, the sum of all numerators and denominators."""
    numbers = [Fraction(value) for value in values]
    return sum(v.denominator > 1 for v in numbers), sum(v.numerator + v.denominator - 1 for v in numbers)


#: The ``market``, the ``witness``, and the ``size`` of both, by which such are compared: (users, types, whether there
#: are demands, count of non-integers, sum of numerators and denominators).
SHRUNK = ResultForm("A market on which something fails.", sentence=lambda it: f"{it.market!r}, {it.witness}")


def shrink_market(market: Market, fails: Callable[[Market], bool], effort: Effort | None = None) -> Market:
    """Return the smallest market found on which ``fails`` is still true; ``market`` must be exact.

    ``fails`` is called at most ``effort.evaluations`` times (1,000 by default). Zeros stay and none is added. Errors:
    `BadInput` where ``market`` itself does not fail.

    >>> market = Market.of([[1, 3], [2, 5], [2, "7/3"]], capacity=[4, 9])
    >>> small = shrink_market(market, lambda each: len(each.users) > 1 and each.speedup.max() >= 2)
    >>> small.speedup.tolist(), small.capacity.tolist()
    ([[Fraction(1, 1)], [Fraction(2, 1)]], [Fraction(1, 1)])
    """
    best = last(shrinks(market, lambda each: True if fails(each) else None, effort))
    if best is None:
        raise BadInput("`fails` is false on it", place="shrink_market", remedy="Give a market on which it is true")
    small: Market = best.market
    return small


def shrinks(
    market: Market,
    attempt: Callable[[Market], Witness | None],
    effort: Effort | None = None,
    *,
    numbers: Callable[[Witness], Iterable[Any]] = lambda witness: (),
) -> Iterator[Statement]:
    """Yield smaller and smaller markets for which ``attempt`` returns a witness; none where it has none for ``market``.

    ``numbers`` of a witness are also made small. The same effort yields the same markets, unless time runs out.

    Errors: `BadInput` for a market in floats.

    >>> market = Market.of([[1, 2], [1, 5], [2, 3]], capacity=[1, 1])
    >>> [each.market.shape for each in shrinks(market, lambda smaller: "two" if len(smaller.users) > 1 else None)][-1]
    (2, 1)
    """
    if not market.exact:
        raise BadInput("the market is in floats", place="shrinks", remedy="Give market.as_(Fraction)")
    yield from _Shrinker(attempt, numbers, effort or Effort(evaluations=1000)).run(market)


def last(steps: Iterator[Statement]) -> Statement | None:
    """Return the last step of `shrinks`, None where there is none."""
    return next(iter(deque(steps, maxlen=1)), None)


class _Shrinker(Generic[Witness]):
    """Takes a step to the first smaller market that still fails, until there is none."""

    def __init__(
        self, attempt: Callable[[Market], Witness | None], numbers: Callable[[Witness], Iterable[Any]], effort: Effort
    ) -> None:
        self._attempt, self._numbers = attempt, numbers
        self._left = effort.evaluations
        self._ends = effort.ends()
        self._known: dict[Any, Statement | None] = {}
        self._best: Statement | None = None

    def run(self, market: Market) -> Iterator[Statement]:
        self._best = self._tried(market)
        if self._best is None:
            return
        yield self._best
        for stage in (_fewer_users, _fewer_types, _plainer, _simpler):
            while any(map(self._better, itertools.takewhile(self._goes_on, stage(self._best.market)))):
                yield self._best
        for integers in _all_integers(self._best.market):
            if not self._goes_on() or _size(integers) >= self._best.size:
                return
            if self._better(integers):
                yield self._best

    def _goes_on(self, _: object = None) -> bool:
        return self._left > 0 and monotonic() <= self._ends

    def _better(self, market: Market) -> bool:
        """Whether a market has a witness and is smaller than the best; it is the best then."""
        assert self._best is not None
        # the market alone is a lower bound on its size with a witness
        if _size(market) > self._best.size:
            return False
        found = self._tried(market)
        if found is None or found.size >= self._best.size:
            return False
        self._best = found
        return True

    def _tried(self, market: Market) -> Statement | None:
        key = (market.users, market.types, tuple(_entries(market)), market.demand is None)
        if key not in self._known:
            self._left -= 1
            witness = self._attempt(market)
            size = () if witness is None else _size(market, self._numbers(witness))
            self._known[key] = None if witness is None else SHRUNK.of(market=market, witness=witness, size=size)
        return self._known[key]


def _size(market: Market, more: Iterable[Any] = ()) -> tuple[int, ...]:
    return (*market.shape, int(market.demand is not None), *burden([*_entries(market), *more]))


def _entries(market: Market) -> list[Fraction]:
    """Return every number of a market; zeros and infinite demands are free."""
    demands = [] if market.demand is None else [d for d in market.demand.tolist() if d < INFINITY]
    return [v for v in [*market.speedup.ravel(), *market.capacity, *market.weight, *demands] if v]


def _fewer_users(market: Market) -> Iterator[Market]:
    """Yield the market with fewer users: the smallest subsets first, or with one user less where there are many."""
    return map(market.select, _subsets(len(market.users)))


def _fewer_types(market: Market) -> Iterator[Market]:
    """Yield the market with fewer types, such that every user can still run somewhere."""
    for kept in _subsets(len(market.types)):
        if ((market.speedup[:, kept] * market.capacity[kept]).sum(axis=1) > 0).all():
            yield market.select_types(kept)


def _subsets(size: int) -> Iterator[list[int]]:
    for count in range(1 if size <= SUBSETS_UP_TO else size - 1, size):
        yield from map(list, itertools.combinations(range(size), count))


def _plainer(market: Market) -> Iterator[Market]:
    """Yield markets in which whole columns of numbers are plain."""
    one = np.full(len(market.users), Fraction(1), dtype=object)
    if market.demand is not None:
        yield replace(market, demand=None)
    if (market.weight != 1).any():
        yield replace(market, weight=one)
    capacity = market.capacity
    if (capacity[capacity > 0] != 1).any():
        yield replace(market, capacity=np.where(capacity > 0, one[0], capacity))


def _simpler(market: Market) -> Iterator[Market]:
    """Yield markets in simpler numbers: all of them rounded, in whole numbers, then one number at a time, then two."""
    for width in WIDTHS:
        yield _changed(market, [_rounded(value, width) for value in _values(market)])
    for row in range(len(market.users)):
        common = math.lcm(*(value.denominator for value in market.speedup[row]))
        speedup = market.speedup.copy()
        for factor in {Fraction(common), Fraction(common, math.gcd(*(int(v * common) for v in speedup[row])))}:
            speedup[row] = market.speedup[row] * factor
            yield replace(market, speedup=speedup.copy())
    values = _values(market)
    for place, value in enumerate(values):
        for simple in _simples(value):
            yield _changed(market, [*values[:place], simple, *values[place + 1 :]])
    for one, other in itertools.combinations(range(len(values)), 2):
        if values[one] > 1 and values[other] > 1:
            both = list(values)
            both[one], both[other] = (Fraction(max(1, math.ceil(values[at]) - 1)) for at in (one, other))
            yield _changed(market, both)


def _simples(value: Fraction) -> Iterator[Fraction]:
    simples = dict.fromkeys([*map(Fraction, INTEGERS), *(_rounded(value, width) for width in WIDTHS)])
    return (simple for simple in simples if burden([simple]) < burden([value]))


def _rounded(value: Fraction, width: Fraction) -> Fraction:
    return simplest(value * (1 - width), value * (1 + width)) if value else value


def _values(market: Market) -> list[Fraction]:
    """Return the numbers that may be changed one by one: speedups, capacities, weights, zeros among them."""
    return [*market.speedup.ravel(), *market.capacity, *market.weight]


def _changed(market: Market, values: list[Fraction]) -> Market:
    """Return the market with new numbers, in the order of `_values`; zeros stay."""
    old = np.array(_values(market), dtype=object)
    new = np.where(old == 0, old, np.array(values, dtype=object))
    n, k = market.shape
    speedup, capacity, weight = np.split(new, [n * k, n * k + k])
    return replace(market, speedup=speedup.reshape(n, k), capacity=capacity, weight=weight)


def _all_integers(market: Market) -> Iterator[Market]:
    """Yield every market of this shape in positive integers (zeros stay), weights 1 and no demands, least sum first.

    Of markets that differ in the order of equal users only one is yielded.
    """
    if market.demand is not None or (market.weight != 1).any():
        return
    n, k = market.shape
    free = np.flatnonzero(np.array(_values(market)[: n * k + k]) != 0)
    for total in itertools.count(len(free)):
        for parts in _compositions(total, len(free)):
            numbers: Array = np.full(n * k + k, Fraction(0), dtype=object)
            numbers[free] = list(map(Fraction, parts))
            rows = [tuple(row) for row in numbers[: n * k].reshape(n, k).tolist()]
            if rows == sorted(rows) or len(free) < n * k + k:
                yield _changed(market, [*numbers, *market.weight])


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to write ``total`` as a sum of so many positive integers, in order."""
    for bars in itertools.combinations(range(1, total), parts - 1):
        ends = (0, *bars, total)
        yield tuple(high - low for low, high in itertools.pairwise(ends))


def shrink(
    policy: Policy,
    market: Market,
    misreport: SlackCase,
    *,
    kind: MisreportKind | None = None,
    effort: Effort | None = None,
) -> Statement:
    """Return the smallest market found on which a misreport of the same kind pays, and that one; gains are exact.

    Smallest means fewest users, then fewest types, then the smallest numbers, those of the report included. ``kind`` is
    by default the narrowest one of ``misreport``. If ``misreport`` gains with every optimum, so does the result. At
    most ``effort.evaluations`` markets are tried, 1,000 by default. Errors: `BadInput` where ``misreport`` does not pay
    in exact decisions.

    >>> from fairopt.models import MaxEfficiency
    >>> from fairopt.properties import Effort, StrategyProofness
    >>> market = Market.of([[1, 2], [1, 5], [2, 3]], capacity=[1, 1])
    >>> found = StrategyProofness().search(MaxEfficiency(), market, effort=Effort(evaluations=60)).witness
    >>> shrink(MaxEfficiency(), market, found, effort=Effort(evaluations=60)).market.shape
    (2, 1)
    """
    best = last(shrinking_misreports(policy, market, misreport, kind=kind, effort=effort))
    if best is None:
        problem = f"{misreport} pays nothing in exact decisions"
        raise BadInput(problem, place="shrink", remedy="Give an exact witness of a search")
    return best


def shrinking_misreports(
    policy: Policy,
    market: Market,
    misreport: SlackCase,
    *,
    kind: MisreportKind | None = None,
    effort: Effort | None = None,
) -> Iterator[Statement]:
    """Yield the smaller and smaller markets that `shrink` finds, each with a misreport that pays.

    Errors: those of `shrink`.

    >>> from fairopt.models import MaxEfficiency
    >>> from fairopt.properties import Effort, StrategyProofness
    >>> market = Market.of([[1, 2], [1, 5], [2, 3]], capacity=[1, 1])
    >>> found = StrategyProofness().search(MaxEfficiency(), market, effort=Effort(evaluations=60)).witness
    >>> smaller = shrinking_misreports(MaxEfficiency(), market, found, effort=Effort(evaluations=60))
    >>> next(smaller).market.shape
    (3, 2)
    """
    require_policy(policy)
    truth = market.speedup[market.index(misreport.user)]
    told = np.array([Fraction(value) for value in misreport.report.tolist()], dtype=object)
    if kind is None:
        kind = next(each for each in REPORTS if each.allows(truth, told))
    misreports = _Misreports(policy, kind, every_optimum=misreport.every_optimum)
    given = misreports.decided(ExactReports(StrategyProofness(), policy, market), market.index(misreport.user), told)

    def attempt(each: Market) -> SlackCase | None:
        return given if each is market else misreports.on(each)

    yield from shrinks(market, attempt, effort, numbers=lambda witness: witness.report)


class _Misreports:
    """Looks for the simplest misreport that pays on a market, in exact decisions."""

    def __init__(self, policy: Policy, kind: MisreportKind, *, every_optimum: bool) -> None:
        self.policy, self.kind, self.every_optimum = policy, kind, every_optimum

    def on(self, market: Market) -> SlackCase | None:
        """Return the misreport in the simplest numbers that pays; None where none was found."""
        if len(market.users) == 1:
            return None  # nobody to gain from
        small = max(value.numerator + value.denominator for value in market.speedup.ravel()) <= 2 * len(SIMPLE)
        return self._simple(market) if small else self._searched(market)

    def decided(self, exactly: ExactReports, user: int, report: Array) -> SlackCase | None:
        """Return a report's exact result; None where it does not pay, with every optimum if that is required."""
        found = exactly.misreport(user, report)
        if found is None or not found.gain > 0:
            return None
        found = exactly.for_every_optimum(found)
        return found if found.every_optimum or not self.every_optimum else None

    def _searched(self, market: Market) -> SlackCase | None:
        verdict = StrategyProofness().search(self.policy, market, effort=WIDE).by_misreport[self.kind.name]
        witness: SlackCase | None = verdict.witness if verdict.exact else None
        return witness if witness and (witness.every_optimum or not self.every_optimum) else None

    def _simple(self, market: Market) -> SlackCase | None:
        asked = Reports(self.policy, market)
        truths = enumerate(market.speedup)
        reports = [(user, told) for user, truth in truths for told in self._reports(truth, every=asked.screened)]
        reports.sort(key=lambda pair: burden(pair[1]))
        users = np.array([user for user, _ in reports])
        gains = asked.gains(users, np.array([report for _, report in reports]).astype(float))
        pays = np.flatnonzero(gains > TOLERANCE * asked.fair[users])
        if not len(pays):
            return None
        exactly = ExactReports(StrategyProofness(), self.policy, market)
        decided = (self.decided(exactly, *reports[place]) for place in pays[:DECIDED])
        return next(filter(None, decided), None)

    def _reports(self, truth: Array, *, every: bool) -> Iterator[Array]:
        """Yield the reports of a user in simple numbers: of ``every`` entry, else of one entry at a time."""
        runs = np.flatnonzero(truth > 0)
        choices = [sorted({*SIMPLE, value}) for value in truth[runs]]
        one_changed = (
            (*truth[runs[:place]], value, *truth[runs[place + 1 :]])
            for place in range(len(runs))
            for value in choices[place]
        )
        for entries in itertools.product(*choices) if every and len(runs) <= 2 else one_changed:
            report = truth.copy()
            report[runs] = entries
            if (report != truth).any() and self.kind.allows(truth, report):
                yield report
