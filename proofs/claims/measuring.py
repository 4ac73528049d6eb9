"""What the computations behind the ledger have in common: exact decisions, all their optima, and printed digits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.certificates import Bound
from fairopt.certificates.decisions import on_shares
from fairopt.evidence import extreme, throughput_of
from fairopt.policy import Allocation, Formulated, Policy, allocate
from fairopt.problem import Market
from fairopt.program import Array, Number, Sense
from fairopt.proofs.claims.checking import found, proved
from fairopt.properties import Answer, Property, Verdict


# -- printed digits ----------------------------------------------------------------------------------------------
def prints_as(value: Number, text: str) -> bool:
    """Whether ``value`` rounded to as many decimals as ``text`` has is what ``text`` says; halves go either way.

    >>> prints_as(Fraction(53, 45), "1.18"), prints_as(Fraction(7, 5), "1.41")
    (True, False)
    """
    _, _, decimals = text.partition(".")
    return abs(Fraction(value) - Fraction(text)) <= Fraction(1, 2 * 10 ** len(decimals))


def all_print_as(values: Iterable[Any], texts: str) -> bool:
    """Whether numbers, row by row, print as the numbers in ``texts``, which is written like "1 .09; 0 .47"."""
    wanted = texts.replace(";", " ").split()
    given = np.array(list(values), dtype=object).ravel().tolist()
    return len(given) == len(wanted) and all(map(prints_as, given, wanted))


def printed_table(texts: str) -> Array:
    """Return the numbers in ``texts``, "1 .09; 0 .47", as Fractions in rows."""
    return np.array([[Fraction(entry) for entry in row.split()] for row in texts.split(";")], dtype=object)


def misprints(values: Iterable[Fraction], texts: str) -> str:
    """Return which of the printed numbers are not those of ``values``, as "1.41 for 7/5 (1.4000)"."""
    wanted = texts.split()
    return listed(
        f"{text} for {both(value)}" for value, text in zip(values, wanted, strict=True) if not prints_as(value, text)
    )


# -- words -------------------------------------------------------------------------------------------------------
def both(value: Number) -> str:
    """Return a number as a fraction and, unless it is an integer, as a decimal: "53/45 (1.1778)"."""
    return str(value) if Fraction(value).denominator == 1 else f"{value} ({float(value):.4f})"


def percent(value: Any, digits: int = 2) -> str:
    """Return a ratio as percent."""
    return f"{100 * float(value):.{digits}f}%"


def rows_text(shares: Array) -> str:
    """Return shares as "(1, 4/45), (0, 7/15)"."""
    return ", ".join("(" + ", ".join(str(value) for value in row) + ")" for row in shares)


def listed(parts: Iterable[str]) -> str:
    """Return "a, b and c"."""
    all_ = list(parts)
    return " and ".join([", ".join(all_[:-1]), all_[-1]]) if len(all_) > 1 else "".join(all_)


# -- exact decisions and all their optima ------------------------------------------------------------------------
def decide(policy: Policy, market: Market) -> Allocation:
    """Return the exact decision; its certificate has been accepted by ``proofs/verify.py``, else `NoLongerFollows`."""
    decision = allocate(policy, market, exact=True)
    proved(policy.certify(decision))
    return decision


def extent(policy: Policy, decision: Allocation, weights: Array) -> tuple[Fraction, Fraction]:
    """Return the least and the largest sum of ``weights`` (n, k) times shares over all optima of an exact decision.

    Both ends are certified, and accepted by ``proofs/verify.py``. A policy that optimises nothing has one decision.
    """
    if policy.choices(decision) is None:
        value = Fraction((weights * decision.shares).sum())
        return value, value
    written = isinstance(policy, Formulated) and not policy.rebuilt
    ends = extreme_as_written if written else extreme
    proofs = [ends(policy, decision, weights, sense) for sense in (Sense.MINIMIZE, Sense.MAXIMIZE)]
    for proof in proofs:
        proved(proof)
    return proofs[0].value, proofs[1].value


def extreme_as_written(policy: Policy, decision: Allocation, weights: Array, sense: Sense) -> Bound:
    """Return how far the sum of ``weights`` times shares goes over all optima of a policy that the verifier knows not.

    The certificate holds the program as it was written, so that what it means is for its reader to see.
    """
    program = on_shares(found(policy.choices(decision), f"the optima of {policy.name}"), weights, sense)
    return Bound.of_optimum(program, Exact().solve(program).require_optimal())


def extents(policy: Policy, decision: Allocation) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield the least and the largest of every share, user by user and type by type, over all optima."""
    n, k = decision.market.shape
    for place in range(n * k):
        weights = np.full((n, k), Fraction(0), dtype=object)
        weights.ravel()[place] = Fraction(1)
        yield extent(policy, decision, weights)


def only_optimum(policy: Policy, decision: Allocation) -> bool:
    """Whether no other allocation is optimal: every share has the same value in all optima."""
    return all(low == high for low, high in extents(policy, decision))


def gains_of_lie(policy: Policy, market: Market, user: int, report: Sequence[Any]) -> tuple[Fraction, Fraction]:
    """Return what a report gains a user, by its true speedups: the least and the largest, whatever optima are chosen.

    The market has no demands that bind below what a user may hold.
    """
    true = throughput_of(market, user)
    before = extent(policy, decide(policy, market), true)
    after = extent(policy, decide(policy, market.misreport(user, report)), true)
    return after[0] - before[1], after[1] - before[0]


def with_demand(market: Market, most: object) -> Market:
    """Return the market in which nobody can use more than ``most`` GPUs at once, as Gavel's time fractions have it."""
    return replace(market, demand=np.full(len(market.users), Fraction(str(most)), dtype=object))


def checked(asked: Property, market: Market, shares: Array) -> Verdict:
    """Return the exact verdict on exact shares; its certificate has been accepted by ``proofs/verify.py``."""
    verdict = asked.check(market, shares)
    proved(asked.certify(market, shares, verdict))
    return verdict


def holds(asked: Property, market: Market, shares: Array) -> bool:
    """Whether shares have a property, exactly and certified."""
    return checked(asked, market, shares).answer is Answer.HOLDS
