"""The rows on what truthful rules can guarantee: intervals by number of users and types, and by what else is asked."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

import numpy as np

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.models import PartialAllocation
from fairopt.problem import Market
from fairopt.proofs.findings.truthful.chains import SMALL_TOTAL, UNFAIR
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.findings.truthful.efficient_rules import fewest
from fairopt.proofs.findings.truthful.levels import (
    ALL,
    COMPLETE,
    NOTHING,
    THREE_BY_THREE,
    THREE_BY_TWO,
    TWO_BY_THREE,
    TWO_BY_TWO,
    Size,
    best,
    interval,
)
from fairopt.proofs.findings.truthful.profiles import Profiles
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import counterexample
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import both, listed


def proportional_two_by_two() -> Finding:
    """Two users, two types: the part of proportional fairness that everybody is sure of."""
    said = _intervals(TWO_BY_TWO, Design.proportionally_fair)
    return Finding(Ruling.QUALIFIED, f"{said} {_kept(2)}\n{_how(TWO_BY_TWO)}")


def proportional_three_by_two() -> Finding:
    """Three users, two types."""
    said = _intervals(THREE_BY_TWO, Design.proportionally_fair)
    return Finding(Ruling.QUALIFIED, f"{said} {_kept(3)}\n{_how(THREE_BY_TWO)}")


def total_two_by_two() -> Finding:
    """Two users, two types: the part of the largest total."""
    return Finding(
        Ruling.QUALIFIED,
        f"{_intervals(TWO_BY_TWO, Design.large_total)} Guo and Conitzer (AAMAS 2010) bound rules that give out all "
        f"GPUs by 0.841, and have one of 0.828.\n{_how(TWO_BY_TWO)}",
    )


def total_three_by_two() -> Finding:
    """Three users, two types."""
    alone = Design(Profiles.of([[[1, 0], [0, 1], ["1/2", "1/2"]]]))
    alone.sharing_incentive()
    alone.large_total()
    program = alone.program()
    require(Exact().solve(program).objective == Fraction(5, 6), "sharing incentive leaves 5/6 of one market")
    return Finding(
        Ruling.QUALIFIED,
        f"{_intervals(THREE_BY_TWO, Design.large_total)} With speedups (1, 0), (0, 1) and (1/2, 1/2) sharing incentive "
        f"leaves 5/6 whatever the rule, so that strategy-proofness costs nothing beside it.\n{_how(THREE_BY_TWO)}",
    )


def three_types() -> Finding:
    """Three types: bounds from above only."""
    said = []
    for words, size in (("two users", TWO_BY_THREE), ("three users", THREE_BY_THREE)):
        fair, total = (best(size.users, size.above, NOTHING, how)[0] for how in _GOALS)
        said.append(f"{words}: {_up(fair)} of proportional fairness, {_up(total)} of the largest total")
    return Finding(
        Ruling.PROVED,
        f"No truthful rule guarantees more, at {len(TWO_BY_THREE.above)} and {len(THREE_BY_THREE.above)} reports a "
        f"user: {'; '.join(said)}. The duals are accepted by proofs/verify.py.",
    )


def waste() -> Finding:
    """Whether leaving GPUs idle helps."""
    said = []
    for words, maximise in (("proportional fairness", _GOALS[0]), ("the largest total", _GOALS[1])):
        reached, _ = interval(TWO_BY_TWO, NOTHING, maximise)
        complete, _ = best(2, TWO_BY_TWO.above, COMPLETE, maximise)
        require(reached is not None and reached > complete, f"a rule that wastes GPUs guarantees more of {words}")
        assert reached is not None
        said.append(
            f"at most {_up(complete)} of {words} if all GPUs are given out, and {_down(reached)} with idle ones"
        )
    return Finding(Ruling.QUALIFIED, f"Two users, two types: {'; '.join(said)}.\n{_how(TWO_BY_TWO)}")


def few_markets() -> Finding:
    """The fewest markets at which truthful rules fall short."""
    for chain, name, maximise in (
        (UNFAIR, "own-truthful-proportional-2x2", Design.proportionally_fair),
        (SMALL_TOTAL, "own-truthful-total-2x2", Design.large_total),
    ):
        short = _falls_short(maximise)
        require(len(fewest(chain, short).told) == len(chain.told), "no market is superfluous")
        require(counterexample(name).number("bound") == _level(chain, maximise), f"{name} is stored")
    return Finding(
        Ruling.PROVED,
        "Two markets and one liar keep truthful rules from proportional fairness: speedups (1, 0) and (1/2, 1/2), or "
        "(1, 0) and (3/4, 1/4), leave 12/13 (own-truthful-proportional-2x2). Three keep them from the largest total: "
        "(3/4, 1/4) twice, and (3/4, 1/4) beside (1, 0) in both orders, leave 14/15 (own-truthful-total-2x2). "
        "Without any one of these markets all of it is possible.",
    )


def own_units() -> Finding:
    """The total where each user reports in units of its own."""
    said = []
    for users, larger in ((2, 10), (2, 1000), (3, 10), (3, 1000)):
        reports = np.array([[[1, 1]], [[larger, larger]]], dtype=object)
        level, _ = best(users, reports, NOTHING, Design.large_total)
        require(level <= Fraction(1, users) + Fraction(users - 1, larger), f"at most 1/{users} and a little")
        said.append(both(level))
    return Finding(
        Ruling.QUALIFIED,
        "Equal split has 1/n of the largest total. Let every user say v, or M times v. What a user gets is worth as "
        "much to it, in units of all GPUs, whichever of the two it says, else the other would pay; if it alone says "
        "M v, that is at least t - (n - 1)/M; where all say v these add up to no more than 1, so that t <= 1/n + (n "
        f"- 1)/M for every M (proof in words, checked on 4 linear programs: {listed(said)} for n = 2, 2, 3, 3 and M = "
        "10, 1000, 10, 1000).",
    )


_GOALS = (Design.proportionally_fair, Design.large_total)


def _falls_short(maximise: Callable[[Design], None]) -> Callable[[Profiles], bool]:
    return lambda profiles: _level(profiles, maximise) < 1


def _level(profiles: Profiles, maximise: Callable[[Design], None]) -> Fraction:
    design = Design(profiles, symmetric=False)
    design.strategy_proof()
    maximise(design)
    program = design.program()
    return Fraction(program.value(Exact().solve(program).require_optimal().point))


def _intervals(size: Size, maximise: Callable[[Design], None]) -> str:
    said = []
    for asked in ALL:
        below, above = interval(size, asked, maximise)
        assert below is not None
        ends = f"exactly {above}" if below == above else f"{_down(below)} to {_up(above)}"
        said.append(f"{asked[0]} {ends}")
    what = "proportional fairness" if maximise is Design.proportionally_fair else "the largest total"
    return f"Strategy-proofness and {what}: {'; '.join(said)}."


def _how(size: Size) -> str:
    assert size.below is not None
    corners = (len(size.below) * size.below.shape[1]) ** size.users
    return (
        "Bounds from above are exact optima at single reports, with certificates that are accepted: they hold for "
        "every rule. From below there is a rule that is the same on ranges of reports, found by an exact linear "
        "program, then checked by its definition against all lies. That it keeps its promise between the corners of "
        "the ranges is a proof in words (proofs/findings/truthful/design.py), "
        f"checked on {corners} markets at the corners."
    )


def _kept(users: int) -> str:
    """What partial allocation guarantees: what it keeps for equal users."""
    market = Market.of([[1, 1]] * users, [1, 1])
    kept = allocate(PartialAllocation(), market).evidence.kept[0]
    return f"Partial allocation guarantees {kept} (users with equal speedups), equal split 1/{users}."


def _down(value: Fraction) -> str:
    return f"{floor(value * 10**4) / 10**4:.4f}"


def _up(value: Fraction) -> str:
    return f"{ceil(value * 10**4) / 10**4:.4f}"
