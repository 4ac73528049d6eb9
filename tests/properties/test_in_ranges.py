"""What follows for all true speedups in a range, step by step: from searches and claims that are made up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest

from fairopt.problem import Market
from fairopt.problem.ranges import with_error
from fairopt.program import INFINITY
from fairopt.properties import Answer, Verdict
from fairopt.properties.misreports.strategy_proofness import _corners, alike_in_range, in_range

NAME, KINDS = "strategy_proofness", ("larger", "smaller", "any")
WIDE = with_error(Market.of([[1, 2], [1, 4]], [1, 1]), "50%")
EVEN = WIDE.equal_split()


@dataclass(frozen=True)
class Lie:
    """A lie of the first user: what it holds more by it."""

    more: tuple[Any, ...]
    user: str = "u1"

    @property
    def truthful_allocation(self) -> Any:
        return EVEN

    @property
    def allocation(self) -> Any:
        return EVEN + np.array([self.more, [-x for x in self.more]], dtype=object)

    def __str__(self) -> str:
        return f"a lie brings {self.more[0]} of the first type"


ALWAYS, SOMETIMES = Lie((F(1, 10), F(0))), Lie((F(2, 5), F(-1, 5)))


@dataclass(frozen=True)
class Claimed:
    """A claim that is known for some kinds of reports."""

    property: str
    kinds: tuple[str, ...] = KINDS
    source: str = "a proof"

    def known(self, market: Market, kind: str = "any") -> bool:
        return kind in self.kinds


@dataclass(frozen=True)
class Rule:
    """A rule that makes claims."""

    claims: tuple[Claimed, ...] = ()
    name: str = "rule"


FAIR = Rule((Claimed("envy_freeness"), Claimed("sharing_incentive"), Claimed("work_conservation")))


def found(**lies: Lie) -> Verdict:
    """Return the verdict of a search in which some kinds of lies paid."""
    by = {kind: told(lies.get(kind)) for kind in KINDS}
    return replace(by["any"], by_misreport=by)


def told(lie: Lie | None) -> Verdict:
    answer = Answer.NOT_REFUTED if lie is None else Answer.FAILS
    return Verdict(NAME, answer, F(-9), "throughput of u1", True, "30 lies", lie)


def answered(verdict: Verdict) -> dict[str, Answer]:
    return {kind: each.answer for kind, each in verdict.by_misreport.items()}


def asked(rule: Rule, market: Market, *searches: Verdict) -> tuple[Verdict, list[Market]]:
    """Return the verdict, and the markets that were searched, each with the next answer, the last one repeated."""
    seen: list[Market] = []

    def search(there: Market) -> Verdict:
        seen.append(there)
        return searches[min(len(seen), len(searches)) - 1]

    return in_range(rule, market, search, NAME), seen  # type: ignore[arg-type]


def test_a_lie_that_pays_at_the_lowest_speedups_pays_at_all() -> None:
    verdict, seen = asked(Rule(), WIDE, found(any=ALWAYS))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, F(-1, 20))  # a tenth of the first type, at half a speedup
    assert verdict.effort == "30 lies, at the speedups that are stated; lies that pay, for all true ones in the range"
    assert answered(verdict) == {"larger": Answer.UNDECIDED, "smaller": Answer.UNDECIDED, "any": Answer.FAILS}
    assert [each.known.all() for each in seen] == [True]
    assert verdict.by_misreport["larger"].reason == (
        "at the speedups that are stated, no misreport was found that pays; at others in the range this was not decided"
    )
    unsure, _ = asked(Rule(), WIDE, found(any=SOMETIMES))
    assert unsure.answer is Answer.UNDECIDED
    assert "at the speedups that are stated, a lie brings 2/5 of the first type; at others" in unsure.reason
    dear, _ = asked(Rule(), WIDE, found(any=Lie((F(2, 5), F(-3, 20)))))  # 1/5 and -9/20 where it pays least
    assert dear.answer is Answer.UNDECIDED
    level = Lie((F(1, 10), F(0)))
    least = WIDE.ends[0].copy()
    least[0, 0] = F(0)
    assert asked(Rule(), replace(WIDE, least=least), found(any=level))[0].answer is Answer.UNDECIDED


def test_use_that_depends_on_speedups_decides_nothing() -> None:
    wide = with_error(Market.of([["1", "11/10"], [1, 4]], [1, 1], demand=[1, None]), "50%")
    less = Lie((F(-1, 10), F(0)))
    for demand in (F(3, 4), F(19, 20), F(1)):  # which depends on them with the lie, without it, or both
        limited = replace(wide, demand=np.array([demand, INFINITY], dtype=object))
        for lie in (ALWAYS, less):
            assert asked(Rule(), limited, found(any=lie))[0].answer is Answer.UNDECIDED


def test_another_kind_of_lie_may_pay_at_all_speedups() -> None:
    """What gains most at the speedups that are stated loses at others; a smaller report never does."""
    verdict, _ = asked(Rule(), WIDE, found(any=SOMETIMES, smaller=ALWAYS))
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, F(-1, 20))
    assert answered(verdict) == {"larger": Answer.UNDECIDED, "smaller": Answer.FAILS, "any": Answer.FAILS}
    both, _ = asked(Rule(), WIDE, found(any=Lie((F(1, 5), F(0))), smaller=ALWAYS))
    assert both.margin == F(-1, 10)


def test_kinds_may_come_in_any_order() -> None:
    lies = found(any=SOMETIMES)
    turned = replace(lies, by_misreport=dict(reversed(lies.by_misreport.items())))
    assert "a lie brings 2/5" in asked(Rule(), WIDE, turned)[0].reason


def test_what_is_proved_of_a_kind_of_report_holds() -> None:
    verdict, seen = asked(Rule((Claimed("zeal"), Claimed(NAME, ("larger",)))), WIDE, found(any=SOMETIMES))
    assert answered(verdict) == {"larger": Answer.HOLDS, "smaller": Answer.UNDECIDED, "any": Answer.UNDECIDED}
    assert verdict.by_misreport["larger"].effort == (
        "all speedups in the range: rule is proved to be truthful for such reports (a proof)"
    )
    assert len(seen) == 1
    every, seen = asked(Rule((Claimed(NAME),)), WIDE, found(any=ALWAYS))
    assert every.answer is Answer.HOLDS
    assert answered(every) == dict.fromkeys(KINDS, Answer.HOLDS)
    assert seen == []


def test_it_depends_where_all_may_speed_up_alike_and_have_fair_shares() -> None:
    verdict, seen = asked(FAIR, WIDE, found(any=SOMETIMES))
    assert (verdict.answer, len(seen)) == (Answer.DEPENDS, 1)
    assert verdict.boundary.shown["stated"]
    assert str(verdict.boundary).startswith("at the speedups that are stated, ")
    assert verdict.boundary.ends["fails"].speedup.tolist() == WIDE.speedup.tolist()
    assert verdict.effort == "30 lies, at the speedups that are stated; where all speed up alike, by proof"
    assert (verdict.witness, verdict.evidence) == (None, SOMETIMES)
    assert answered(verdict) == {"larger": Answer.UNDECIDED, "smaller": Answer.UNDECIDED, "any": Answer.DEPENDS}
    tripled = with_error(Market.of([[1, 2], [3, 8]], [1, 1]), "50%")  # the speedups of the first are told
    assert [speed for _, speed in asked(FAIR, tripled, found(any=SOMETIMES))[0].boundary.shown["alike"]] == [
        F(3, 2),
        F(3, 2),
    ]
    near = with_error(Market.of([[1, 2], [1, 4]], [1, 1]), "1%")
    assert asked(FAIR, near, found(any=SOMETIMES))[0].answer is Answer.UNDECIDED
    limited = replace(WIDE, demand=np.array([F(9), INFINITY], dtype=object))
    assert asked(FAIR, limited, found(any=SOMETIMES))[0].answer is Answer.UNDECIDED
    assert asked(Rule(FAIR.claims[:1]), WIDE, found(any=SOMETIMES))[0].answer is Answer.UNDECIDED


def test_it_may_depend_on_a_corner() -> None:
    own = Rule((*FAIR.claims, Claimed(NAME, ("larger",))))
    corner = found(any=SOMETIMES, larger=SOMETIMES)
    verdict, seen = asked(own, WIDE, found(), found(), corner)
    assert (verdict.answer, len(seen)) == (Answer.DEPENDS, 3)
    assert not verdict.boundary.shown["stated"]
    assert str(verdict.boundary).startswith("at others in the range, ")
    assert verdict.boundary.ends["fails"] is seen[2]
    assert verdict.effort == "30 lies, at a corner of the range; where all speed up alike, by proof"
    assert answered(verdict) == {"larger": Answer.HOLDS, "smaller": Answer.UNDECIDED, "any": Answer.DEPENDS}
    assert not verdict.by_misreport["any"].boundary.shown["stated"]
    first, seen = asked(own, WIDE, found(), corner)
    assert (first.answer, len(seen)) == (Answer.DEPENDS, 2)
    nowhere, seen = asked(own, WIDE, found())
    assert (nowhere.answer, len(seen)) == (Answer.UNDECIDED, 3)
    assert asked(Rule(), WIDE, found(), corner)[0].answer is Answer.UNDECIDED


def test_corners_are_where_neighbours_differ_most() -> None:
    speedup = [[1, 2, 3], [6, 4, 2], ["1/2", 0, 1]]
    market = Market.of(speedup, [1, 1, 1])
    most = market.speedup * 2
    most[1, 0] = INFINITY
    ranged = replace(market, least=market.speedup / 2, most=most)
    low, high = market.speedup / 2, np.where(most < INFINITY, most, market.speedup)
    fast = np.array([[False, False, True], [True, False, False], [False, False, True]])
    even = np.array([[True], [False], [True]])
    wanted = [np.where(fast == first, high, low).tolist() for first in (even, ~even)]
    assert [each.speedup.tolist() for each in _corners(ranged)] == wanted
    assert all(each.known.all() for each in _corners(ranged))
    of_two = [[[F(1, 2), 3], [F(3, 2), 2]], [[F(3, 2), 1], [F(1, 2), 6]]]
    assert [each.speedup.tolist() for each in _corners(WIDE)] == of_two
    # the first corner puts the first user's slow types at their least, the second one at their most
    stops = low.copy()
    stops[0, 0] = F(0)
    assert [each.speedup.tolist() for each in _corners(replace(ranged, least=stops))] == wanted[1:]
    starts = high.copy()
    starts[2, 1] = F(1)  # stated not to run, and may: where the third user's slow types are at their most, it does
    assert [each.speedup.tolist() for each in _corners(replace(ranged, most=starts))] == wanted[:1]


def _bounded(least: list[list[Any]], most: list[list[Any]]) -> Market:
    """Return a market whose speedups are known within these ends, stated at the least."""
    return Market.of([[x or 0 for x in row] for row in least], [1] * len(least[0]), least=least, most=most)


@pytest.mark.parametrize(
    ("market", "ratio"),
    [
        (lambda: _bounded([[1, 1], [2, 2]], [[1, 1], [2, 2]]), 1),  # by a factor of 1
        (lambda: _bounded([[1, 2], [1, 1]], [[1, 2], [1, None]]), 2),  # one end is open
        (lambda: _bounded([[1, 2, 0], [1, 1, 0]], [[1, 2, 0], [1, 3, 0]]), 2),  # nobody runs on the third
        (lambda: _bounded([[1, 2], [1, 1]], [[1, 2], [1, "3/2"]]), None),
        (lambda: _bounded([[1, 2], [1, 1]], [[1, 2], [None, None]]), None),  # nothing is known but the least
        (lambda: _bounded([[1, 0], [1, 0]], [[1, 0], [1, 2]]), None),  # one of two may run on the second
        (lambda: _bounded([[1, 0], [1, 1]], [[1, 1], [1, 1]]), None),
    ],
)
def test_a_market_on_which_all_speed_up_alike(market: Callable[[], Market], ratio: Any) -> None:
    ranged = market()
    found = alike_in_range(ranged)
    assert (found is None) == (ratio is None)
    if found is not None:
        low, high = ranged.ends
        assert ((low <= found.speedup) & (found.speedup <= high)).all()
        assert (found.speedup[:, 1] == ratio * found.speedup[:, 0]).all()
