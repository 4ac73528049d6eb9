"""A row of the comparison is about one decision: its utilities, its witnesses and its certificates agree.

    .venv/bin/python tests/test_one_decision.py 400 [POLICY...]      # counts the rows that speak of two decisions

Utilities are compared and not shares, which may be another of several optima with the same utilities. Two exact numbers
are equal, or they are of two decisions; where one of them is in floats, they are equal within `TOLERANCE`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fairopt import discovery
from fairopt.compare import Row, compare
from fairopt.evidence import evidence
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.properties import Answer, Effort
from fairopt.testing.samples import sample_markets

#: How far floats may be off, relative to the utility: what solvers are asked for, times ten.
TOLERANCE = 1e-6
#: Enough misreports to find one that pays where many do; the search is not what is tested.
EFFORT = Effort(evaluations=9)
#: Markets in a normal run, for each policy and number type.
COUNT = 2
#: Where cooperative OEF was shown with 25/6 for u1, and beside it a lie that brings u1 25/6 instead of 4.
TWO_OPTIMA = Market.of([[3, 3], [3, 2], [3, 3]], capacity=[3, 1])


def markets(count: int, seed: int) -> Iterator[Market]:
    """Yield small markets, most of them with ties, some with weights, demands and types that a user cannot use."""
    yield TWO_OPTIMA
    yield from sample_markets(
        count - 1, seed=seed, users=(2, 4 if count > COUNT else 3), types=(2, 3), most=4, demands=True
    )


def rows(market: Market, policies: list[Policy], *, exact: bool, effort: Effort = EFFORT) -> Iterator[Row]:
    """Yield the rows of the comparison in one of the number types, with every property."""
    yield from compare(market, policies, discovery.properties(Market), effort=effort, exact=exact)


def other_decisions(row: Row) -> Iterator[str]:
    """Yield what in a row is about another decision than the row itself."""
    if row.outcome is None:
        return
    market, own = row.outcome.market, row.outcome.utilities
    if row.metrics is not None and not _same(own, row.metrics.efficiency):
        yield f"metrics say {_text(row.metrics.efficiency)}, the decision {_text(own)}"
    for kind, verdict in _searches(row):
        witness = verdict.witness
        user = market.index(witness.user)
        if not _same(witness.truthful_utility, own[user]):
            yield f"{kind}: {witness}, and the row says {_text(own[[user]])}"
        if not _same(_utility(market, witness.truthful_allocation), own):
            told = _utility(market, witness.truthful_allocation)
            yield f"{kind}: with the truth the witness says {_text(told)}, and the row {_text(own)}"
        if not _same(_utility(market, witness.allocation)[user], witness.utility):
            yield f"{kind}: {witness}, which is not the utility of its allocation"
    for piece in evidence(row, discovery.properties(Market)):
        shares = _certified(piece.certificate)
        if shares is not None and not _same(_utility(market, shares), own):
            yield f"the certificate of {piece.name} is about {_text(_utility(market, shares))}, the row {_text(own)}"


def other_lies(row: Row, *, exact: bool) -> Iterator[str]:
    """Yield the witnesses whose lie the comparison itself would decide otherwise, asked about the market of the lie."""
    if row.outcome is None:
        return
    market = row.outcome.market
    for kind, verdict in _searches(row):
        witness = verdict.witness
        user = market.index(witness.user)
        (misreported,) = compare(market.misreport(user, witness.report), [row.policy], [], exact=exact)
        if misreported.outcome is None:
            yield f"{kind}: {witness}, and the comparison decides nothing on the misreport: {misreported.error}"
        elif not _same(_utility(market, misreported.outcome.shares)[user], witness.utility):
            told = _text(_utility(market, misreported.outcome.shares)[[user]])
            yield f"{kind}: {witness}, but the comparison decides on the misreport that it gets {told}"


def _searches(row: Row) -> Iterator[tuple[str, Any]]:
    """Yield what a search for misreports found, by the kind of misreport."""
    for name, verdict in row.verdicts.items():
        for kind, each in verdict.by_misreport.items():
            if each.answer is Answer.FAILS:
                yield f"{name} ({kind})", each


def _certified(certificate: Any) -> Any:
    """Return the shares of the decision that a certificate is about; of a lie, those of the truth."""
    for inner in ("truth", "of"):  # a lie's truth; of an extreme over all optima, the decision that they belong to
        certificate = getattr(certificate, inner, certificate)
    return getattr(certificate, "allocation", None)


def _utility(market: Market, shares: Any) -> Any:
    shares = np.asarray(shares)
    return market.as_(Fraction if shares.dtype == object else float).utility(shares)


def _same(one: Any, other: Any) -> bool:
    pairs = zip(np.atleast_1d(one).tolist(), np.atleast_1d(other).tolist(), strict=True)
    return all(
        a == b
        if isinstance(a, Fraction) and isinstance(b, Fraction)
        else abs(a - b) <= TOLERANCE * max(1, abs(a), abs(b))
        for a, b in pairs
    )


def _text(numbers: Any) -> str:
    return ", ".join(str(each) for each in np.atleast_1d(numbers).tolist())


POLICIES = [each.name for each in discovery.policies(Market)]


def found(
    count: int, seed: int, policies: list[str], *, exact: bool
) -> Iterator[tuple[str, Market, list[str], list[str]]]:
    """Yield policy, market, what is about another decision, and which lies are, for each row where there is any."""
    made = [discovery.policy(name) for name in policies]
    for market in markets(count, seed):
        for row in rows(market, made, exact=exact):
            others, lies = list(other_decisions(row)), list(other_lies(row, exact=exact))
            if others or lies:
                yield row.policy.name, market, others, lies


def check(count: int, seed: int, policy: str, *, exact: bool) -> None:
    """Fail where a row is about two decisions, or a witness about another decision on the lie than would be made."""
    wrong = list(found(count, seed, [policy], exact=exact))
    assert [(market, others) for _, market, others, _ in wrong if others] == []
    assert [(market, lies) for _, market, _, lies in wrong if lies] == []


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "floats"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_is_about_one_decision(policy: str, exact: bool) -> None:
    check(COUNT, 0, policy, exact=exact)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "floats"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_row_is_about_one_decision_on_many_markets(policy: str, exact: bool) -> None:
    check(2_000, 1, policy, exact=exact)


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "floats"])
def test_the_row_with_two_optima_and_its_witness_are_of_one_decision(exact: bool) -> None:
    (row,) = rows(TWO_OPTIMA, [discovery.policy("oef-cooperative")], exact=exact, effort=Effort())
    assert list(other_decisions(row)) == []
    assert list(other_lies(row, exact=exact)) == []


def main() -> None:
    """Print how many rows are about two decisions."""
    count, policies = int(sys.argv[1]), sys.argv[2:] or POLICIES
    for exact in (True, False):
        wrong = list(found(count, 1, policies, exact=exact))
        others = Counter(name for name, _, of_row, _ in wrong if of_row)
        lies = Counter(name for name, _, _, of_lies in wrong if of_lies)
        print(f"{'exact' if exact else 'floats'}, of {count * len(policies)} rows:", flush=True)
        print(f"  {others.total()} about two decisions {dict(others)}")
        print(f"  {lies.total()} with a lie that is decided otherwise {dict(lies)}", flush=True)


if __name__ == "__main__":
    main()
