"""A market whose speedups are variables, and what it means that an allocation is optimal there.

Optimality of a linear program is written as the conditions of Karush, Kuhn and Tucker, which are exact for linear
programs: feasible, feasible for the dual, and of each inequality either it or its multiplier is zero.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, product
from operator import mul
from random import Random

import z3

from fairopt.problem import Market
from fairopt.proofs.bounded.solver import Disjunction, Term

#: Linear expressions: the coefficient of each variable.
Linear = Mapping[str, Term]
ONE, ZERO = z3.RealVal(1), z3.RealVal(0)


class SymbolicMarket:
    """``n`` users and ``k`` types, one GPU of each, all weights 1.

    The speedup of user u on type j is ``unit[u] * ratio[u][j]``. Where a user runs on the first type its ratio there is
    1, so that ``unit`` is its throughput there; ``normalised`` fixes all units at 1. ``stopped`` holds the places
    (u, j) where a user cannot run; everywhere else speedups are positive.

    One GPU of each type is no restriction where the assumptions on speedups survive multiplying a column: m_j GPUs of
    speedup s_lj are one of m_j s_lj, with x_lj / m_j for x_lj, for every policy and property in this folder. Nor does
    fixing ``unit[0]`` at 1 restrict: all speedups times the same number make the same decisions.
    """

    def __init__(
        self,
        n: int,
        k: int,
        *,
        normalised: bool = False,
        stopped: frozenset[tuple[int, int]] = frozenset(),
        tag: str = "",
    ) -> None:
        self.n, self.k, self.stopped = n, k, stopped
        self.constraints: list[z3.BoolRef] = []
        self.unit = [ONE if normalised or u == 0 else z3.Real(f"unit{tag}_{u}") for u in range(n)]
        self.ratio = [[z3.Real(f"s{tag}_{u}{j}") for j in range(k)] for u in range(n)]
        for u, j in product(range(n), range(k)):
            if (u, j) in stopped:
                self.ratio[u][j] = ZERO
            elif all((u, earlier) in stopped for earlier in range(j)):
                self.ratio[u][j] = ONE  # the first type that the user can run on sets its unit
            else:
                self.constraints.append(self.ratio[u][j] > 0)
        self.constraints += [unit > 0 for unit in self.unit if not z3.is_rational_value(unit)]

    def misreport(self, kind: str, *, normalised: bool) -> SymbolicMarket:
        """Return the market in which user 0 reports other speedups: "larger" or "smaller" in every entry, or "any"."""
        lie = SymbolicMarket(self.n, self.k, normalised=normalised, tag="_lie")
        lie.ratio[1:], lie.unit[1:] = self.ratio[1:], self.unit[1:]
        lie.unit[0] = ONE if normalised else z3.Real("unit_lie_0")
        lie.constraints = [term > 0 for term in (*lie.ratio[0], lie.unit[0]) if not z3.is_rational_value(term)]
        for j in range(self.k):
            told, true = lie.speedup(0, j), self.speedup(0, j)
            lie.constraints += {"larger": [told >= true], "smaller": [told <= true], "any": []}[kind]
        return lie

    def guess(self, dice: Random, largest: int, words: Collection[str] = ()) -> dict[Term, Term]:
        """Return small numbers for the variables: simple fractions for units and from each type to the next.

        ``words`` are the assumptions that are met by construction: "rising", "ordered", "tied".
        """
        quotients = sorted({Fraction(p, q) for q in (1, 2, 3, 4) for p in range(1, largest + 1)})
        steps = [value for value in quotients if value > 1 or "rising" not in words]
        factors = [[dice.choice(steps) for _ in range(self.n)] for _ in range(1, self.k)]
        if {"ordered", "tied"} & set(words):
            factors = [sorted(column) for column in factors]
        found = {}
        for u, unit in enumerate(self.unit):
            found[unit] = dice.choice(quotients)
            row = list(accumulate((column[u] for column in factors), mul, initial=Fraction(1)))
            first = min(j for j in range(self.k) if (u, j) not in self.stopped)
            for ratio, value in zip(self.ratio[u], row, strict=True):
                found[ratio] = value / row[first]
        return {term: z3.RealVal(str(value)) for term, value in found.items() if not z3.is_rational_value(term)}

    def valued(self, market: Market) -> dict[Term, Term]:
        """Return the values of the variables on a market in which everybody runs everywhere."""
        speedup = market.speedup / market.speedup[0, 0]
        found = dict(zip(self.unit, speedup[:, 0], strict=True))
        for ratio, row in zip(self.ratio, speedup, strict=True):
            found |= dict(zip(ratio, row / row[0], strict=True))
        return {term: z3.RealVal(str(value)) for term, value in found.items() if not z3.is_rational_value(term)}

    def speedup(self, u: int, j: int) -> Term:
        """Return the throughput of user u on a GPU of type j."""
        return self.unit[u] * self.ratio[u][j]

    def places(self) -> Iterator[tuple[int, int]]:
        """Yield (u, j) where user u can run on type j."""
        return ((u, j) for u, j in product(range(self.n), range(self.k)) if (u, j) not in self.stopped)

    def ordered_by_ratios(self, *, strictly: bool) -> list[z3.BoolRef]:
        """Return that s_(l,j+1) / s_lj rises with the user l for every j: later users gain more from each next type."""
        s = self.ratio
        found = []
        for u, j in product(range(self.n - 1), range(self.k - 1)):
            low, high = s[u][j + 1] * s[u + 1][j], s[u][j] * s[u + 1][j + 1]
            found.append(low < high if strictly else low <= high)
        return found

    def rising(self, *, strictly: bool = False) -> list[z3.BoolRef]:
        """Return that every user's speedups rise with the type (with one GPU of each type, this is a restriction)."""
        s = self.ratio
        pairs = [(s[u][j], s[u][j + 1]) for u, j in product(range(self.n), range(self.k - 1))]
        return [slow < fast if strictly else slow <= fast for slow, fast in pairs]

    def values(self, model: z3.ModelRef) -> list[list[Fraction]]:
        """Return the speedups (n, k) in a model; an algebraic number is replaced by a rational very near."""
        return [[fraction(model, self.speedup(u, j)) for j in range(self.k)] for u in range(self.n)]


def fraction(model: z3.ModelRef, term: Term) -> Fraction:
    """Return the value of a term in a model, or a rational within 1e-20 of it where it is irrational."""
    value = model.eval(term, model_completion=True)
    if z3.is_algebraic_value(value):
        value = value.approx(20)
    return Fraction(value.numerator_as_long(), value.denominator_as_long())


@dataclass
class SymbolicOptimum:
    """An allocation and the constraints that say that it is optimal; ``cases`` are the complementary pairs."""

    share: list[list[Term]]
    constraints: list[z3.BoolRef]
    cases: list[Disjunction]
    strict: list[z3.BoolRef]
    reduced: dict[tuple[int, int], Term]

    def positive(self, *places: tuple[int, int]) -> list[z3.BoolRef]:
        """Return that the shares at these places are positive, and what follows: that their reduced costs are zero."""
        return [fact for u, j in places for fact in (self.share[u][j] > 0, self.reduced[u, j] == 0)]


@dataclass
class LinearProgram:
    """Maximise a linear function of named variables subject to rows; coefficients are terms in the speedups."""

    tag: str = ""
    cost: dict[str, Term] = field(default_factory=dict)
    nonnegative: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)
    at_most: list[tuple[Linear, Term]] = field(default_factory=list)
    equal: list[tuple[Linear, Term]] = field(default_factory=list)

    def term(self, name: str) -> Term:
        """Return the Z3 variable of that name in this program."""
        return z3.Real(name + self.tag)

    def optimal(self) -> tuple[list[z3.BoolRef], list[Disjunction], list[z3.BoolRef]]:
        """Return the conditions for an optimum, its complementary pairs, and that of each pair one side is not zero."""
        _, duals = self._multipliers()
        constraints = [self._value(row) == side for row, side in self.equal]
        pairs = []
        for dual, (row, side) in zip(duals, self.at_most, strict=True):
            pairs.append((side - self._value(row), dual))
        for name in self.nonnegative:
            pairs.append((self.term(name), self.reduced(name)))
        for name in self.free:
            constraints.append(self.reduced(name) == 0)
        cases, strict = [], []
        for one, other in pairs:
            constraints += [one >= 0, other >= 0]
            cases.append(Disjunction(((one == 0,), (other == 0,))))
            strict.append(one + other > 0)
        return constraints, cases, strict

    def reduced(self, name: str) -> Term:
        """Return what a unit of the variable costs in multipliers beyond what it brings."""
        prices, duals = self._multipliers()
        parts = [price * row[name] for price, (row, _) in zip(prices, self.equal, strict=True) if name in row]
        parts += [dual * row[name] for dual, (row, _) in zip(duals, self.at_most, strict=True) if name in row]
        return z3.Sum([*parts, ZERO]) - self.cost.get(name, ZERO)

    def _multipliers(self) -> tuple[list[Term], list[Term]]:
        prices = [z3.Real(f"price{self.tag}_{i}") for i in range(len(self.equal))]
        return prices, [z3.Real(f"dual{self.tag}_{i}") for i in range(len(self.at_most))]

    def _value(self, row: Linear) -> Term:
        return z3.Sum([coefficient * self.term(name) for name, coefficient in row.items()])
