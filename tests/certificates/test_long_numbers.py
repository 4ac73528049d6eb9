"""What fairopt writes it can read, however many digits exact numbers have: limits are for input from outside."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

from fairopt import allocate
from fairopt.certificates import BOUND, EQUILIBRIUM, PROPERTY, Certificate
from fairopt.errors import BadInput
from fairopt.models import PartialAllocation
from fairopt.numbers import in_full
from fairopt.problem import Market, exact, read_allocation
from fairopt.problem.numbers import MOST_DIGITS
from fairopt.program import Formulation
from fairopt.proofs.verify import verify

#: More than Python converts at once, and more than an input file may have.
LONG = Fraction(10**9000 + 1, 3**9000)


def written(value: object) -> str:
    """Return a number as a certificate of floats or fractions holds it; this one has no place to be right."""
    prices = np.array([value, 3], dtype=object)
    market = Market.of([[1, 1]], [1, 1])
    return str(json.loads(json.dumps(Certificate(EQUILIBRIUM, market, prices[None, :], prices).to_json()))["prices"][0])


@pytest.mark.parametrize(
    "value",
    [Fraction(1, 10**33), Fraction(10**40), LONG, -LONG, 10**5000, -(10**5000), Fraction(0)],
    ids=lambda value: f"{value.numerator.bit_length()} bits",
)
def test_a_certificate_writes_its_own_numbers_whatever_their_size(value: Fraction) -> None:
    assert written(value) == in_full(value)
    assert written(3) == "3"
    assert written(1e-33) == f"1/{10**33}"


def many_digits(users: int) -> Market:
    random = Random(1)
    rows = [[1, *(Fraction(random.randint(10**9, 9 * 10**9), 10**9) for _ in range(2))] for _ in range(users)]
    return Market.of(rows, capacity=[users, users // 2 + 1, users // 3 + 1])


def test_exact_shares_of_many_digits_are_written_read_and_verified(
    tmp_path: Path,
) -> None:
    market = many_digits(24)
    decision = allocate(PartialAllocation(), market)
    assert max(len(in_full(share)) for share in decision.shares.ravel()) > 2 * MOST_DIGITS
    certificate = json.loads(json.dumps(PartialAllocation().certify(decision).to_json()))
    assert "partial-allocation may leave" in verify(certificate)
    path = tmp_path / "allocation.json"
    path.write_text(json.dumps({"allocation": [[in_full(share) for share in row] for row in decision.shares]}))
    assert (read_allocation(path, market) == decision.shares).all()
    path.write_text(json.dumps({"allocation": [["9" * 20_001] * 3] * 24}))
    with pytest.raises(BadInput, match=r"user 1 .* 20001 digits"):
        read_allocation(path, market)


def test_a_market_and_a_program_of_long_numbers_are_certified() -> None:
    speedup = np.array([[Fraction(1), LONG], [Fraction(1), Fraction(2)]], dtype=object)
    long = replace(Market.of([[1, 2], [1, 3]], [1, 1]), speedup=speedup)
    shares = np.full((2, 2), Fraction(1, 2), dtype=object)
    told = json.loads(json.dumps(Certificate(PROPERTY, long, shares, "feasibility", "HOLDS").to_json()))
    assert verify(told).startswith("feasibility holds")
    p = Formulation("long")
    x = p.variable("x", (1,), lower=0, upper=LONG)
    p.maximize(x.sum())
    p.constrain("row", x[0] <= LONG)
    program = p.program().as_(Fraction)
    bound = Certificate(BOUND, program, np.array([LONG], dtype=object), LONG, LONG, Fraction(0), [["row", 0, 1]])
    assert "(9001 digits)" in verify(json.loads(json.dumps(bound.to_json())))


def test_input_from_outside_keeps_its_limits() -> None:
    for value in ("9" * 401, 10**450, Fraction(1, 10**33)):
        with pytest.raises(BadInput):
            exact(value, "here")
