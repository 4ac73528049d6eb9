"""Which smaller markets are tried, in which order: against all that the definition names, on small markets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairopt.errors import BadInput
from fairopt.models import MaxEfficiency
from fairopt.policy import Computed, Formulated
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Formulation
from fairopt.properties import Effort, SlackCase, StrategyProofness
from fairopt.properties.misreports.exact_reports import ExactReports, simplest
from fairopt.properties.misreports.kinds import LARGER, REPORTS, SMALLER, MisreportKind
from fairopt.properties.misreports.shrinking import (
    SIMPLE,
    _Misreports,
    burden,
    last,
    shrink,
    shrink_market,
    shrinking_misreports,
    shrinks,
)

F = Fraction
Key = tuple[Any, ...]


def key(market: Market) -> Key:
    demand = None if market.demand is None else tuple(market.demand)
    return tuple(map(tuple, market.speedup)), tuple(market.capacity), tuple(market.weight), demand


def size(market: Market) -> tuple[int, ...]:
    demands = [] if market.demand is None else [each for each in market.demand if each != math.inf]
    numbers = [each for each in [*market.speedup.ravel(), *market.capacity, *market.weight, *demands] if each]
    parts = (
        sum(each.denominator != 1 for each in numbers),
        sum(each.numerator + each.denominator - 1 for each in numbers),
    )
    return (*market.shape, int(market.demand is not None), *parts)


def tried(market: Market) -> list[Key]:
    """Return all markets that are tried in place of one, where none of them fails."""
    asked: list[Key] = []

    def attempt(each: Market) -> str | None:
        asked.append(key(each))
        return "fails" if each is market else None

    steps = list(shrinks(market, attempt, Effort(evaluations=100_000)))
    assert [(each.market, each.witness, each.size) for each in steps] == [(market, "fails", size(market))]
    assert asked[0] == key(market)
    return asked[1:]


def subsets(count: int) -> Iterator[list[int]]:
    for held in range(1, count):
        yield from map(list, itertools.combinations(range(count), held))


def simpler(market: Market) -> Iterator[Market]:
    """Yield all markets in simpler numbers: rounded, rows in whole numbers, one number for another, two less by one."""
    (n, k), widths = market.shape, (F(1, 2), F(1, 4), F(1, 10), F(1, 50))
    values = [*market.speedup.ravel(), *market.capacity, *market.weight]

    def of(numbers: list[Fraction]) -> Market:
        kept = np.array([new if old else old for old, new in zip(values, numbers, strict=True)], dtype=object)
        parts = kept[: n * k].reshape(n, k), kept[n * k : n * k + k], kept[n * k + k :]
        return replace(market, speedup=parts[0], capacity=parts[1], weight=parts[2])

    for width in widths:
        yield of([simplest(v * (1 - width), v * (1 + width)) for v in values])
    for i, row in enumerate(market.speedup):
        common = math.lcm(*(v.denominator for v in row))
        for factor in (F(common), F(common, math.gcd(*(int(v * common) for v in row)))):
            yield replace(
                market, speedup=np.array([r * (factor if i == at else 1) for at, r in enumerate(market.speedup)])
            )
    for place, v in enumerate(values):
        for other in [*map(F, range(1, 7)), *(simplest(v * (1 - width), v * (1 + width)) for width in widths)]:
            if burden([other]) < burden([v]):
                yield of([*values[:place], other, *values[place + 1 :]])
    for pair in itertools.combinations(range(len(values)), 2):
        if all(values[at] > 1 for at in pair):
            yield of([F(math.ceil(v) - 1) if at in pair else v for at, v in enumerate(values)])


def integers(market: Market) -> Iterator[Market]:
    """Yield all smaller markets of this shape in positive integers, where zeros stay."""
    if market.demand is not None or any(weight != 1 for weight in market.weight):
        return
    n, k = market.shape
    old = [*market.speedup.ravel(), *market.capacity]
    most = size(market)[-1] - n - sum(map(bool, old)) + 1
    found = []
    for numbers in itertools.product(*(range(1, most + 1) if v else [0] for v in old)):
        table = np.array([F(v) for v in numbers], dtype=object)
        each = replace(market, speedup=table[: n * k].reshape(n, k), capacity=table[n * k :])
        ordered = [tuple(row) for row in each.speedup] == sorted(tuple(row) for row in each.speedup)
        if size(each) < size(market) and (ordered or not all(old)):
            found.append(each)
    yield from sorted(found, key=lambda each: size(each)[-1])


def in_question(market: Market) -> Iterator[Market]:
    yield from (market.select(kept) for kept in subsets(len(market.users)))
    for kept in subsets(len(market.types)):
        if all(any(s * c > 0 for s, c in zip(row[kept], market.capacity[kept], strict=True)) for row in market.speedup):
            yield market.select_types(kept)
    if market.demand is not None:
        yield replace(market, demand=None)
    yield replace(market, weight=market.weight * 0 + F(1))
    yield replace(market, capacity=np.array([F(1) if each else each for each in market.capacity], dtype=object))
    yield from simpler(market)


@pytest.mark.parametrize(
    "market",
    [
        Market.of([[1, "5/2"], ["3/2", 0]], capacity=[1, 1], weight=[1, 2]),
        Market.of([["3/2", "9/2"]], capacity=[2, "1/3"], weight=[3]),
        Market.of([[2, 4], [7, 1]], capacity=["4/3", 5], weight=[1, "1/2"]),
        Market.of([[1, 0, 3], [1, "30/7", 9]], capacity=[3, 0, 2], demand=["7/2", None]),
        Market.of([["1.27", "2.81"], [31, 1]], capacity=[2, "7/5"], demand=[None, 2]),
        Market.of([[2], [1]], capacity=[2]),
        Market.of([[2], [1]], capacity=[3]),
        Market.of([[1, 0], [2, 2]], capacity=[1, 1]),
        Market.of([[1], [2]], capacity=["1/2"], weight=[1, 2]),
        Market.of([[1, 2]], capacity=[2, 1]),
    ],
    ids=lambda market: str(market.speedup.tolist()).replace("Fraction", ""),
)
def test_what_is_tried_is_all_that_is_smaller(market: Market) -> None:
    asked = tried(market)
    assert len(set(asked)) == len(asked)
    steps = list(dict.fromkeys(key(each) for each in in_question(market) if size(each) <= size(market)))
    steps = [each for each in steps if each != key(market)]
    assert asked[: len(steps)] == steps
    rest, whole = asked[len(steps) :], [each for each in integers(market) if key(each) not in steps]
    assert len(rest) == len(whole)
    assert set(rest) == {key(each) for each in whole}
    assert [sum(map(sum, each[0])) + sum(each[1]) for each in rest] == sorted(
        sum(map(sum, each[0])) + sum(each[1]) for each in rest
    )


def test_of_many_users_one_is_left_out_at_a_time() -> None:
    for count, right in ((6, {1, 2, 3, 4, 5}), (7, {6})):
        market = Market.of([[1]] * count, capacity=[1])
        assert {len(each[0]) for each in tried(market)} == right
        wide = Market.of([[1] * count], capacity=[1] * count)
        assert {len(each[1]) for each in tried(wide)} == right


def test_how_hard_numbers_are() -> None:
    assert burden([F(1, 2), 3, 1]) == (1, 6)
    assert burden([F(7, 3), "5/2"]) == (2, 15)
    assert burden([]) == (0, 0)


def test_a_market_shrinks_step_by_step_and_numbers_of_the_witness_count() -> None:
    market = Market.of([[5, 3], [4, 2], [1, 1]], capacity=[2, 2], weight=[1, 2, 1])

    def attempt(each: Market) -> Fraction | None:
        return F(10) - each.speedup.sum() if len(each.users) > 1 else None

    steps = list(shrinks(market, attempt, numbers=lambda witness: [abs(witness)]))
    sizes = [each.size for each in steps]
    assert sizes == sorted(set(sizes), reverse=True)
    end = steps[-1]
    assert end.size == (2, 1, 0, 0, 3 + sum(end.market.speedup.ravel()) + abs(end.witness))
    assert end.size[-1] == 13
    assert end.market.capacity.tolist() == [1]
    assert shrink_market(market, lambda each: each.speedup.sum() >= 3).speedup.tolist() == [[3]]
    assert last(iter([])) is None
    assert last(iter(steps)) is end


def test_effort_is_kept_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    market, count = Market.of([[5, 3], [4, 2], [1, 1]], capacity=[2, 2]), [0]

    def attempt(each: Market) -> str | None:
        count[0] += 1
        return "fails" if each is market else None

    for most in (1, 2, 5, 9):
        count[0] = 0
        list(shrinks(market, attempt, Effort(evaluations=most)))
        assert count[0] == most
    for module in ("property", "misreports.shrinking"):
        monkeypatch.setattr(f"fairopt.properties.{module}.monotonic", lambda: float(count[0]))
    for seconds, right in ((3, 3), (6.5, 6)):
        count[0] = 0
        list(shrinks(market, attempt, Effort(seconds=seconds)))
        assert count[0] == right + 1
    count[0] = 0
    list(shrinks(market, attempt))
    assert count[0] <= 1000


# -- misreports --------------------------------------------------------------------------------------------------
class Loudest(Computed):
    """All goes to who reports the most on the first type; `sign` -1: the least."""

    name, source, sign = "loudest", "these tests", 1

    def compute(self, problem: Market, state: Any) -> tuple[Array, Any]:
        shares = np.zeros(problem.shape, dtype=problem.speedup.dtype) + 0 * problem.speedup[0, 0]
        shares[int(np.argmax(self.sign * problem.speedup[:, 0]))] = problem.capacity
        return shares, None


class Quietest(Loudest):
    """All goes to who reports the least."""

    name, sign = "quietest", -1


HARD = Market.of([["1.27", "2.81"], ["30.3", "2.9"], ["40.7", 1]], capacity=[7, "2.5"])


def lie_of(user: str, truth: Array, report: Array, own: Any, reached: Any, shares: Array) -> SlackCase:
    """Return a lie by hand: what is had by the truth, by the report, and shares that stand for both decisions."""
    both = {"truthful_allocation": shares, "allocation": shares, "every_optimum": False, "least_gain": None}
    told = {"truth": truth, "report": report, "truthful_utility": own, "utility": reached, "gain": reached - own}
    return StrategyProofness().case(own - reached, own, user=user, **told, **both)


def lie(policy: Any, market: Market, kind: MisreportKind) -> SlackCase:
    found: SlackCase = (
        StrategyProofness().search(policy, market, effort=Effort(evaluations=90)).by_misreport[kind.name].witness
    )
    return found


@pytest.mark.parametrize(("policy", "kind"), [(Loudest(), LARGER), (Quietest(), SMALLER)], ids=["larger", "smaller"])
def test_the_smallest_lie_is_found(policy: Any, kind: MisreportKind) -> None:
    """1 and 1, and who is second reports 2; or 2 and 1, and who is first reports 1."""
    small = shrink(policy, HARD, lie(policy, HARD, kind))
    assert small.size == (2, 1, 0, 0, 7)
    assert kind.allows(small.witness.truth, small.witness.report)
    assert small.witness.gain == small.witness.truth[0]
    assert sorted(small.market.speedup.ravel()) == ([1, 1] if kind is LARGER else [1, 2])


def test_numbers_that_are_not_simple_are_searched() -> None:
    """Of the steps the first that is taken leaves two users out of three, in the numbers that they have."""
    found = lie(Loudest(), HARD, LARGER)
    steps = list(shrinking_misreports(Loudest(), HARD, found, effort=Effort(evaluations=12)))
    assert [each.market.shape for each in steps[:3]] == [(3, 2), (2, 2), (2, 1)]
    assert all(LARGER.allows(each.witness.truth, each.witness.report) for each in steps)
    assert steps[0].witness.report.dtype == object


@pytest.mark.parametrize(("every", "right"), [(True, 9), (False, 7)])
def test_a_gain_with_every_optimum_stays_one(every: bool, right: int) -> None:
    """Two users alike: who says more has the GPU for sure, but may have had it before."""
    market = Market.of([[1], [2]], capacity=[1])
    exactly = ExactReports(StrategyProofness(), MaxEfficiency(), market)
    found = exactly.misreport(0, np.array([F(3)], dtype=object))
    assert found is not None
    given = exactly.for_every_optimum(found).but(every_optimum=every)
    small = shrink(MaxEfficiency(), market, given, effort=Effort(evaluations=30))
    assert small.size == (2, 1, 0, 0, right)
    assert small.witness.every_optimum is every


def test_a_report_in_floats_is_the_fraction_that_it_is_and_kinds_can_be_given() -> None:
    market = Market.of([[1], [2]], capacity=[1])
    told = lie_of("u1", market.speedup[0], np.array([2.5]), F(0), F(1), market.speedup)
    assert shrink(Loudest(), market, told).witness.report.tolist() == [2]
    with pytest.raises(BadInput, match="pays nothing in exact decisions"):
        shrink(Quietest(), market, told)
    down = lie_of("u2", market.speedup[1], np.array([F(1, 2)]), F(0), F(2), market.speedup)
    small = shrink(Quietest(), market, down, kind=SMALLER)
    assert small.witness.report[0] < small.witness.truth[0]


class Pair(Formulated):
    """The first type goes to whose slower type is fastest, the second to nobody; of one type all say the same."""

    name, source = "pair", "these tests"

    def formulate(self, problem: Market, state: Any) -> Any:
        p = Formulation(self.name)
        most = np.tile([INFINITY, *[0.0] * (len(problem.types) - 1)], (len(problem.users), 1))
        share = p.variable("share", problem.shape, lower=0, upper=most, labels=(problem.users, problem.types))
        p.constrain("capacity", share.sum(axis=0) <= problem.capacity)
        slower = [row.min() if len(row) > 1 else row[0] * 0 + 1 for row in problem.speedup]
        p.maximize(sum(share[i, 0] * each for i, each in enumerate(slower)))
        return p.program()


def test_a_lie_in_both_entries_is_found_where_all_pairs_are_tried() -> None:
    market = Market.of([[1, 1], [3, 2]], capacity=[1, 1])
    exactly = ExactReports(StrategyProofness(), Pair(), market)
    found = exactly.misreport(0, np.array([F(5), F(5)], dtype=object))
    assert found is not None
    found = exactly.for_every_optimum(found)
    assert found.every_optimum
    small = shrink(Pair(), market, found, effort=Effort(evaluations=25))
    assert small.market.speedup.tolist() == [[1, 1], [2, 2]]
    assert small.witness.report.tolist() == [3, 3]


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.name)
@pytest.mark.parametrize(("exact", "sure"), [(False, True), (True, False), (True, True)])
def test_what_a_search_finds_is_exact_of_the_kind_and_as_sure_as_asked(
    kind: MisreportKind, exact: bool, sure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {each.name: SimpleNamespace(exact=exact, witness=SimpleNamespace(every_optimum=sure)) for each in REPORTS}
    searched = SimpleNamespace(by_misreport=found)
    monkeypatch.setattr(StrategyProofness, "search", lambda *given, **options: searched)
    for asked in (False, True):
        witness = _Misreports(Loudest(), kind, every_optimum=asked)._searched(HARD)
        assert witness is (found[kind.name].witness if exact and (sure or not asked) else None)
    found[kind.name].witness = None
    assert _Misreports(Loudest(), kind, every_optimum=False)._searched(HARD) is None


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.name)
def test_reports_in_simple_numbers_are_all_of_the_kind_and_none_is_the_truth(kind: MisreportKind) -> None:
    """With three types one entry is changed at a time; an entry of 0 stays."""
    for row, every in (([2, 3], True), ([2, 3], False), ([2, 3, 7], True), ([2, 0, 3], True)):
        truth = np.array([F(v) for v in row], dtype=object)
        runs = [j for j, v in enumerate(row) if v]
        wanted = set()
        for entries in itertools.product(*(sorted({*SIMPLE, truth[j]}) for j in runs)):
            told = truth.copy()
            told[runs] = entries
            changed = (told != truth).sum()
            if (0 < changed <= (2 if every and len(runs) <= 2 else 1)) and kind.allows(truth, told):
                wanted.add(tuple(told))
        reports = [
            tuple(each) for each in _Misreports(Loudest(), kind, every_optimum=False)._reports(truth, every=every)
        ]
        assert sorted(reports) == sorted(wanted)


def test_what_cannot_be_shrunk_is_named() -> None:
    with pytest.raises(BadInput, match="`fails` is false on it"):
        shrink_market(HARD, lambda each: False)
    with pytest.raises(BadInput, match="the market is in floats"):
        list(shrinks(HARD.as_(float), lambda each: True))
    with pytest.raises(BadInput, match="got the class MaxEfficiency"):
        shrink(MaxEfficiency, HARD, None)  # type: ignore[arg-type]
