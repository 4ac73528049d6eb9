"""How good a truthful rule can be: exact bounds from above at a grid of reports, from below by a rule for all reports.

A bound from above is the exact optimum at single reports; its duals are accepted by ``proofs/verify.py``. One from
below is the exact optimum over ranges that cover all reports of two types; the rule is then checked by itself, in
Fractions and with no linear program (`worst_level`): at all profiles, against all lies, at all corners, with
equilibrium prices in closed form.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.certificates import bound_of_optimum
from fairopt.program import Array
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.findings.truthful.profiles import Profiles, grid, ranges
from fairopt.proofs.ledger.checking import proved, require

#: What is asked besides strategy-proofness: in words, and how.
Asked = tuple[str, tuple[Callable[[Design], None], ...]]
NOTHING: Asked = ("alone", ())
FAIR: Asked = ("with sharing incentive", (Design.sharing_incentive,))
ENVY_FREE: Asked = ("with envy-freeness", (Design.envy_free,))
BOTH: Asked = ("with both", (Design.sharing_incentive, Design.envy_free))
COMPLETE: Asked = ("giving out all GPUs", (Design.nothing_left_over,))
EQUAL: Asked = ("with equal throughput", (Design.equal_throughput,))
ALL = (NOTHING, FAIR, ENVY_FREE, BOTH, COMPLETE, EQUAL)
#: A float of HiGHS may be off by this.
OFF = 1e-7


@dataclass(frozen=True)
class Size:
    """So many users, and reports at which to bound a rule from above (single ones) and from below (ranges, if any)."""

    users: int
    above: Array
    below: Array | None = None


def even(parts: int) -> Array:
    """Return ranges of two types' reports, all of the same length."""
    return ranges([Fraction(i, parts) for i in range(parts + 1)])


TWO_BY_TWO = Size(2, grid(2, 32, positive=False), even(32))
THREE_BY_TWO = Size(3, grid(2, 16, positive=False), even(16))
TWO_BY_THREE = Size(2, grid(3, 8, positive=False))
THREE_BY_THREE = Size(3, grid(3, 3, positive=False))


def best(users: int, cells: Array, asked: Asked, maximise: Callable[[Design], None]) -> tuple[Fraction, Array]:
    """Return the largest level of truthful rules, and one that reaches it, (P, n, k); twice computed, and certified."""
    design = Design(Profiles.every(cells, users))
    for ask in (Design.strategy_proof, *asked[1], maximise):
        ask(design)
    program = design.program()
    solution = Exact().solve(program).require_optimal()
    level = Fraction(program.value(solution.point))
    proved(bound_of_optimum(program, solution))
    floats = Highs().solve(program.as_(float)).require_optimal().objective
    require(floats is not None and abs(float(floats) - level) < OFF, f"HiGHS finds the level {float(level)}, too")
    return level, design.rule(solution.point)


def interval(size: Size, asked: Asked, maximise: Callable[[Design], None]) -> tuple[Fraction | None, Fraction]:
    """Return what a truthful rule guarantees, if one was sought, and what none exceeds."""
    above, _ = best(size.users, size.above, asked, maximise)
    if size.below is None:
        return None, above
    below, rule = best(size.users, size.below, asked, maximise)
    profiles = Profiles.every(size.below, size.users)
    require(worst_level(profiles, rule, maximise is Design.proportionally_fair) >= below, f"the rule reaches {below}")
    return below, above


def worst_level(profiles: Profiles, rule: Array, fair: bool) -> Fraction:
    """Return the least level of a truthful rule over all reports of two types, by its definition.

    ``rule`` (P, n, 2). The level is the part of the throughput of everybody at the largest Nash welfare where ``fair``,
    else of the largest total. Errors: `NoLongerFollows` where a GPU is given twice, or a lie pays.
    """
    at = {tuple(told): x for told, x in zip(profiles.told.tolist(), rule, strict=True)}
    levels: list[Fraction] = []
    for told, x in at.items():
        require((x >= 0).all() and (x.sum(axis=0) <= 1).all(), f"shares at {told} are feasible")
        for i, cell in enumerate(told):
            lies = [at[(*told[:i], other, *told[i + 1 :])][i] for other in range(len(profiles.cells))]
            for corner in profiles.cells[cell]:
                require(max(corner @ lie for lie in lies) == corner @ x[i], f"no lie of user {i} pays at {told}")
        for speedup in map(np.array, product(*profiles.cells[list(told)])):
            own = (speedup * x).sum(axis=1)
            if fair:
                levels += [mine / fairly for mine, fairly in zip(own, two_type_equilibrium(speedup), strict=True)]
            else:
                levels.append(own.sum() / speedup.max(axis=0).sum())
    return min(levels)


def two_type_equilibrium(speedup: Array) -> list[Fraction]:
    """Return the throughputs (n,) at equal incomes with one GPU of each of two types, in closed form.

    Of prices q and n - q: as many users as can pay for all of the first type prefer it, in order of their ratios.

    >>> print(*two_type_equilibrium(np.array([[Fraction(1), Fraction(2)], [Fraction(1), Fraction(5)]])))
    3/2 15/4
    """
    n = len(speedup)
    # at which price q of the first type, of n in all, each user does not mind which it buys
    even_at = sorted((n * first / (first + second) for first, second in speedup), reverse=True)
    # with j users buying the first type only, the price is j, or that at which the next one buys both
    price = next(
        (max(Fraction(j), even_at[j]) for j in range(n) if even_at[j] <= j + 1 and (j == 0 or even_at[j - 1] >= j)),
        Fraction(n),
    )
    sides = [(first, price, second, n - price) for first, second in speedup]
    return [max(v / p for v, p in ((a, q), (b, r)) if p) for a, q, b, r in sides]
