"""Corrupted answers of solvers, at the boundary of each backend: what fairopt returns is right all the same.

HiGHS, and the exact backend, are made to lie, or to break off, in the middle of what fairopt asks them: in a decision,
in its verdicts, in the search for a better answer. The judge is the definition (`plainly`, `plain_verdicts`), decided
without fairopt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import log, sqrt
from random import Random
from typing import Any

import numpy as np
from plain_market import Given, of, part, table, utilities
from plain_verdicts import DEFINITIONS
from plainly import compared_with, off
from trials import Ending, Fault, Kind

from fairopt import allocate, discovery, verify
from fairopt.backends import Highs, highs
from fairopt.backends.solution import Solution, Status
from fairopt.errors import FairoptError
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.program import Formulation, Program
from fairopt.properties.verdict import Answer
from fairopt.testing.samples import sample_markets

Spoil = Callable[[Solution, Program, Random], Any]
#: How far a returned objective may be from the exact one, relative to its size. A backend's own tolerance is 1e-7.
CLOSE = 2e-4
NAMES = ("max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min", "water-filling", "nash-welfare")


# -- ways to spoil an answer -----------------------------------------------------------------------------------------
def _array(name: str, change: Callable[[Any, Random], Any]) -> Spoil:
    def spoil(solution: Solution, program: Program, draw: Random) -> Solution:
        values = getattr(solution, name)
        return solution if values is None or not len(values) else replace(solution, **{name: change(values, draw)})

    return spoil


def _entry(to: Callable[[Any, Random], Any]) -> Callable[[Any, Random], Any]:
    def change(values: Any, draw: Random) -> Any:
        out = values.copy()
        place = draw.randrange(len(out))
        out[place] = to(out[place], draw)
        return out

    return change


def _shuffled(values: Any, draw: Random) -> Any:
    order = list(range(len(values)))
    draw.shuffle(order)
    return values[order]


CHANGES: dict[str, Callable[[Any, Random], Any]] = {
    "scaled": lambda v, draw: v * draw.choice([0.5, 0.99, 1.01, 2.0, -1.0, 1e9, 0.0]),
    "one entry moved": _entry(lambda x, draw: x + draw.choice([-1.0, -0.1, 0.1, 1.0, 1e6])),
    "one entry NaN": _entry(lambda x, draw: x * float("nan")),
    "one entry infinite": _entry(lambda x, draw: draw.choice([1, -1]) * float("inf")),
    "exchanged": _shuffled,
    "too short": lambda v, draw: v[:-1],
    "too long": lambda v, draw: np.append(v, v[:1]),
    "a table": lambda v, draw: v.reshape(-1, 1),
    "a list": lambda v, draw: v.tolist(),
    "nothing": lambda v, draw: None,
    "noise": lambda v, draw: v + np.array([draw.gauss(0, 0.1) for _ in v]),
}


def _broken(error: type[Exception]) -> Spoil:
    def spoil(solution: Solution, program: Program, draw: Random) -> Any:
        raise error("made to break off")

    return spoil


def _say(status: Any) -> Spoil:
    return lambda solution, program, draw: replace(solution, status=status)


#: What an error must not say of these programs, though the solver does: all of them have points.
FALSEHOOD = ": no point satisfies all constraints"

SPOILS: dict[str, Spoil] = {
    **{f"{name} {how}": _array(name, to) for name in ("x", "dual", "reduced_cost") for how, to in CHANGES.items()},
    **{f"says {status.value}": _say(status) for status in Status},
    "says optimal without a point": lambda s, p, d: replace(s, status=Status.OPTIMAL, x=None, objective=None),
    "says something": _say("fine"),
    "infeasible, with a proof that is none": lambda s, p, d: replace(
        s, status=Status.INFEASIBLE, x=None, farkas=np.ones(len(p.rows)), conflict=("capacity",)
    ),
    "unbounded, with a ray that is none": lambda s, p, d: replace(
        s, status=Status.UNBOUNDED, ray=np.ones(len(p.cost))
    ),
    "objective NaN": lambda s, p, d: replace(s, objective=float("nan")),
    "objective twice": lambda s, p, d: replace(s, objective=None if s.objective is None else 2 * s.objective),
    "objective gone": lambda s, p, d: replace(s, objective=None),
    "bounds that are none": lambda s, p, d: replace(s, lower=1e9, upper=1e9, bound=1e9),
    "basis gone": lambda s, p, d: replace(s, basis=None),
    "basis of zeros": lambda s, p, d: s if s.basis is None else replace(s, basis=replace(
        s.basis, columns=np.zeros_like(s.basis.columns), rows=np.zeros_like(s.basis.rows))),
    "no Solution": lambda s, p, d: d.choice([None, 1.0, "optimal", {}, s.x]),
    **{error.__name__: _broken(error) for error in (RuntimeError, KeyError, MemoryError, OSError, ZeroDivisionError)},
}  # fmt: skip


# -- putting it in the way -------------------------------------------------------------------------------------------
@contextmanager
def lying(how: str, draw: Random, stale: list[Solution]) -> Iterator[list[int]]:
    """Let HiGHS lie from a random call on, once or always; yield how often it did."""
    first, once, calls, lies = draw.choice([0, 0, 1, 2, 5]), draw.random() < 0.5, [0], [0]
    honest = highs.run

    def spoiled(solution: Solution, program: Program) -> Any:
        calls[0] += 1
        if calls[0] <= first or (once and lies[0]):
            return solution
        lies[0] += 1
        return stale[0] if how == "stale" else SPOILS[how](solution, program, draw)

    def run(instance: Any, program: Program, *given: Any, **named: Any) -> Any:
        return spoiled(honest(instance, program, *given, **named), program)

    highs.run = run  # type: ignore[assignment]
    try:
        yield lies
    finally:
        highs.run = honest


@cache
def policies() -> dict[str, Policy]:
    """Return the policies that are asked."""
    return {name: discovery.load(discovery.POLICIES, name)() for name in NAMES}


@cache
def problems() -> list[Market]:
    """Return the markets of these trials."""
    return list(sample_markets(60, seed=41, users=(2, 4), types=(2, 3), demands=True))


@cache
def bare(number: int) -> Given:
    """Return the numbers of a market."""
    return of(problems()[number])


@cache
def truth(number: int, name: str) -> float:
    """Return the value of the exact decision, before anybody lies; it is held against the definition."""
    market = problems()[number]
    found = allocate(policies()[name], market, exact=True)
    if (wrong := off(name, bare(number), found)) > max(Fraction(1, 10**9), 2 * Fraction(found.error)):
        _wrong(f"{name}, market {number}, exactly and without lies: off by {float(wrong):.3g}")
    return worth(name, number, found.shares)


def worth(name: str, number: int, shares: Any) -> float:
    """Return what a policy maximises, at some shares: the sum, the least, or the product of throughputs."""
    market = bare(number)
    own = utilities(market, table(shares))
    if name in ("max-min", "water-filling"):
        return float(min(u / compared_with(market, i) for i, u in enumerate(own)))
    if name == "nash-welfare":
        pairs = zip(market.weight, own, strict=True)
        return sum(float(w) * log(max(float(u), 1e-300)) for w, u in pairs)
    return float(sum(own))


def off_by(name: str, number: int, found: Any) -> float:
    """Return by how much a decision is off, over what is allowed: 1 is the most.

    How far a product is from the largest goes with the square of how far utilities are.
    """
    wrong = float(off(name, bare(number), found))
    return wrong / (sqrt(4 * CLOSE) if name == "nash-welfare" else CLOSE)


@cache
def fair_answers(number: int) -> dict[str, Any]:
    """Return the verdicts on the equal split, by definition."""
    market = bare(number)
    shares = [part(market, i) for i in market.users]
    return {name: Answer.HOLDS if holds(market, shares) else Answer.FAILS for name, holds in DEFINITIONS.items()}


def verdicts(market: Market) -> dict[str, Any]:
    """Return the verdicts on the equal split, in floats."""
    return dict(verify(market.as_(float), market.as_(float).equal_split()))


def decide(how: str, draw: Random) -> Ending:
    """Decide while HiGHS lies: the decision is the best one, or an error says that it is not known."""
    number, name = draw.randrange(len(problems())), draw.choice(NAMES)
    market, right = problems()[number], truth(number, name)
    chosen = draw.choice([Highs(), None]) if policies()[name].has_program and name != "nash-welfare" else None
    stale = [Highs().solve(policies()["max-min"].formulate(problems()[number - 1].as_(float), None))]
    with lying(how, draw, stale) as lies:
        try:
            found = allocate(policies()[name], market.as_(float) if draw.random() < 0.5 else market, chosen)
        except FairoptError as error:
            told_as_fact = FALSEHOOD in str(error)
            return Ending.REFUSED if lies[0] and not told_as_fact else _wrong(f"{name}, market {number}: {error}")
    if (wrong := off_by(name, number, found)) > 1:
        _wrong(f"{name}, market {number}, {how}: {wrong:.3g} times what is allowed from {right}")
    return Ending.RIGHT


def judge(how: str, draw: Random) -> Ending:
    """Ask for verdicts while HiGHS lies: each is as before, or not known."""
    number = draw.randrange(len(problems()))
    market, before = problems()[number], fair_answers(number)
    with lying(how, draw, [Solution(Status.OPTIMAL, "stale", "highs", x=np.zeros(2), objective=0.0)]) as lies:
        try:
            now = verdicts(market)
        except FairoptError as error:
            return Ending.REFUSED if lies[0] else _wrong(f"market {number}: {error}")
    for name, each in now.items():
        if each.answer is not before[name] and each.answer.value not in ("UNDECIDED", "NOT_APPLICABLE"):
            _wrong(f"{name} of the equal split, market {number}, {how}: {each.answer} where {before[name]} is right")
    return Ending.RIGHT


def pack(how: str, draw: Random) -> Ending:
    """Fill a knapsack while HiGHS lies: what it answers goes in, whole; integers have no proof that no more does."""
    size = np.array([draw.randint(1, 9) for _ in range(5)], dtype=float)
    p = Formulation("knapsack")
    take = p.variable("take", (5,), lower=0, upper=1, integer=True)
    p.maximize((size * take).sum())
    p.constrain("room", (size * take).sum() <= size.sum() // 2)
    with lying(how, draw, [Highs().solve(p.program())]) as lies:
        try:
            x = Highs().optimum(p.program()).point
        except FairoptError as error:
            return Ending.REFUSED if lies[0] else _wrong(f"a knapsack of {size}: {error}")
    if (
        abs(x - x.round()).max() > CLOSE
        or x.min() < -CLOSE
        or x.max() > 1 + CLOSE
        or size @ x > size.sum() // 2 + CLOSE
    ):
        _wrong(f"a knapsack of {size}, {how}: {x}")
    return Ending.RIGHT


def _wrong(says: str) -> Any:
    raise Fault(Ending.WRONG, says)


def attempt(draw: Random) -> Ending:
    """Spoil an answer in some way, in a decision or in verdicts."""
    how = draw.choice([*SPOILS, "stale"])
    return draw.choice([*[decide] * 7, judge, judge, pack])(how, draw)


KINDS = [Kind("b", "spoiled answers of HiGHS", attempt, 10, 8)]
