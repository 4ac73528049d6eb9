"""What a decision is, and how one is made: ask, guess small numbers, split, and have fairopt confirm what is found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import lcm
from random import Random
from time import monotonic

import z3

from fairopt.problem import Market
from fairopt.proofs.bounded.solver import Asker, Limits, Question, Term
from fairopt.proofs.bounded.symbolic import SymbolicMarket, fraction

HOLDS, REFUTED, UNKNOWN = "holds", "refuted", "unknown"


@dataclass(frozen=True)
class Refutation:
    """What refutes a claim, confirmed in exact arithmetic: a market and, in words, what happens on it."""

    market: Market
    evidence: str


@dataclass(frozen=True)
class BoundedDecision:
    """A claim, the size (users x types) and the answer; ``open`` parts are those that Z3 gave up on."""

    claim: str
    size: str
    answer: str
    counterexample: Market | None = None
    evidence: str = ""
    seconds: float = 0.0
    queries: int = 0
    open: int = 0


@dataclass(frozen=True)
class Negation:
    """The negation of a claim: ``questions`` of which any solution, on ``markets``, is a counterexample.

    ``markets``: the true market, then that with a misreport where there is one. ``confirm`` gets them in numbers and
    returns what they refute, by fairopt's exact arithmetic, or None; ``suspect`` says in floats, soon, whether that is
    worth the time. ``domain`` are the assumptions on the speedups alone, and
    ``words`` name those of them that guesses should keep by construction. ``known`` are markets that somebody has found
    already: the first guesses, where there is one market and no misreport.
    """

    markets: tuple[SymbolicMarket, ...]
    domain: tuple[z3.BoolRef, ...]
    questions: tuple[Question, ...]
    confirm: Callable[..., Refutation | None]
    suspect: Callable[..., bool]
    words: tuple[str, ...] = ()
    known: tuple[Market, ...] = ()


#: How many guesses are made with numerators and denominators up to each of these.
GUESSES = {2: 60, 3: 300, 5: 600, 9: 2000}


def decide(claim: str, search: Negation, limits: Limits) -> BoundedDecision:
    """Return whether the claim holds for all markets of the size.

    First each question is asked whole. Where that does not decide, small speedups are guessed; last, what is open is
    split. Where a solution is found, guesses are tried too, for the sake of the reader, before the solution's own
    numbers. What fairopt does not confirm refutes nothing: the claim is then unknown.
    """
    n, k = search.markets[0].n, search.markets[0].k
    asker = Asker(limits)
    size = f"{n}x{k}"

    def finish(answer: str, found: Refutation | None = None, still_open: int = 0) -> BoundedDecision:
        market, evidence = (found.market, found.evidence) if found else (None, "")
        return BoundedDecision(
            claim, size, answer, market, evidence, round(asker.seconds, 2), asker.queries, still_open
        )

    hard, solved = [], []
    for question in search.questions:
        reply = asker.once(question)
        if reply.model is not None:
            solved.append(reply.model)
            break
        if reply.open:
            hard.append(question)
    if solved or hard:
        found = _by_guessing(search, min(limits.guess, limits.total / 3))
        if found is None and solved:
            found = _confirmed(search, lambda term: fraction(solved[0], term))
        if found is not None:
            return finish(REFUTED, found)
        if solved:
            return finish(UNKNOWN, still_open=1)
    still_open = 0
    for question in hard:
        reply = asker.ask(question)
        if reply.model is not None:
            found = _confirmed(search, partial(fraction, reply.model))
            return finish(REFUTED if found else UNKNOWN, found, 0 if found else 1)
        still_open += reply.open
    return finish(UNKNOWN if still_open else HOLDS, still_open=still_open)


def decide_all(claim: str, searches: Iterable[Negation], limits: Limits) -> BoundedDecision:
    """Return whether a claim holds that falls into parts, each a search of its own; limits are those of each part."""
    parts = []
    for search in searches:
        parts.append(decide(claim, search, limits))
        if parts[-1].answer == REFUTED:
            break
    worst = min(parts, key=lambda part: (REFUTED, UNKNOWN, HOLDS).index(part.answer))
    return replace(
        worst,
        seconds=round(sum(part.seconds for part in parts), 2),
        queries=sum(part.queries for part in parts),
        open=sum(part.open for part in parts),
    )


def _confirmed(search: Negation, value: Callable[[Term], Fraction]) -> Refutation | None:
    return search.confirm(*_tables(search, value))


def _tables(search: Negation, value: Callable[[Term], Fraction]) -> list[Market]:
    """Return the markets with the value of each variable, in whole speedups unless all are 1 on the first type."""
    tables = [
        [[value(unit) * value(ratio) for ratio in row] for unit, row in zip(market.unit, market.ratio, strict=True)]
        for market in search.markets
    ]
    entries = [entry for table in tables for row in table for entry in row]
    kept = all(row[0] == 1 for table in tables for row in table)
    factor = 1 if kept else lcm(*(entry.denominator for entry in entries))
    capacity = [1] * len(tables[0][0])
    return [Market.of([[factor * entry for entry in row] for row in table], capacity) for table in tables]


def _by_guessing(search: Negation, seconds: float) -> Refutation | None:
    """Return a confirmed counterexample in small numbers, if a guess meets one in this time."""
    ends = monotonic() + seconds
    domain = z3.And(*search.domain, *(c for market in search.markets for c in market.constraints))
    for guess in _guesses(search):
        if monotonic() > ends:
            return None
        if not z3.is_true(z3.simplify(z3.substitute(domain, *guess.items()))):
            continue
        tables = _tables(search, partial(_guessed, guess))
        if search.suspect(*tables) and (found := search.confirm(*tables)) is not None:
            return found
    return None


def _guesses(search: Negation) -> Iterator[dict[Term, Term]]:
    """Yield values of the variables: those of the known markets, then random ones, small numbers first."""
    for numbers in search.known:
        (market,) = search.markets
        yield market.valued(numbers)
    dice = Random(0)
    for largest, count in GUESSES.items():
        for _ in range(count):
            guess: dict[Term, Term] = {}
            for market in reversed(search.markets):  # what a misreport shares with the truth is guessed for the truth
                guess |= market.guess(dice, largest, search.words)
            yield guess


def _guessed(guess: dict[Term, Term], term: Term) -> Fraction:
    return _number(guess.get(term, term))


def _number(term: Term) -> Fraction:
    assert z3.is_rational_value(term)
    return Fraction(term.numerator_as_long(), term.denominator_as_long())
