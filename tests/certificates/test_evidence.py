"""What any backend's answer is exactly worth: bounds with their gap, proofs of infeasibility, what stays unproved."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import replace
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends import Highs, Session
from fairopt.backends.exact import Exact
from fairopt.backends.solution import Solution, Status
from fairopt.certificates import (
    BOUND,
    ENVY,
    MARKET_BOUND,
    OPTIMALITY,
    PROPERTY,
    UNREACHABLE,
    Certificate,
    bare_duals,
    bound_of_optimum,
    row_duals,
)
from fairopt.datasets import oef_example
from fairopt.errors import NotCapable
from fairopt.evidence import certify_bound, certify_misreport, certify_search, certify_solution
from fairopt.models import CooperativeOEF, MaxEfficiency, NonCooperativeOEF
from fairopt.policy import Allocation, Policy
from fairopt.problem import Market
from fairopt.program import Formulation, Program
from fairopt.proofs.verify import verify
from fairopt.properties import Effort, StrategyProofness
from fairopt.testing.samples import sample_markets


def accepted(certificate: Certificate) -> str:
    return verify(json.loads(json.dumps(certificate.to_json())))


def knapsack(seed: int, *, integer: bool = True, items: int = 8) -> Program:
    random = np.random.default_rng(seed)
    worth, size = random.integers(1, 30, items), random.integers(1, 20, items)
    p = Formulation("knapsack")
    take = p.variable("take", (items,), lower=0, upper=1, integer=integer)
    p.maximize((worth * take).sum())
    p.constrain("room", (size * take).sum() <= int(size.sum() // 2))
    return p.program()


def best_by_enumeration(program: Program) -> F:
    exact = program.as_(F)
    best = F(0)
    for number in range(2 ** len(exact.cost)):
        x = np.array([F(number >> j & 1) for j in range(len(exact.cost))], dtype=object)
        if not exact.violations(x):
            best = max(best, F(exact.value(x)))
    return best


@pytest.mark.parametrize("seed", range(6))
def test_an_integer_program_gets_a_point_and_a_bound(seed: int) -> None:
    program = knapsack(seed)
    solution = Highs().solve(program)
    certificate = certify_solution(program, solution)
    assert certificate.kind is BOUND
    assert certificate.value == best_by_enumeration(program)
    assert certificate.gap >= 0
    assert "feasible point" in accepted(certificate)
    assert ("optimal" in accepted(certificate)) == (certificate.gap == 0)


def test_an_exact_optimum_of_a_minimisation_has_no_gap() -> None:
    p = Formulation("cover")
    x = p.variable("x", (3,), lower=0)
    p.minimize(3 * x[0] + 2 * x[1] + 4 * x[2])
    p.constrain("first", x[0] + x[1] >= 2)
    p.constrain("second", x[1] + 3 * x[2] >= 3)
    p.constrain("third", x[0] - x[2] <= 1)
    program = p.program()
    certificate = certify_solution(program, Exact().solve(program))
    assert certificate.kind is BOUND
    assert certificate.gap == 0
    assert ": optimal [program " in accepted(certificate)


def test_infeasibility_is_proved() -> None:
    p = Formulation("too much")
    x = p.variable("x", (2,), lower=0, upper=1)
    p.maximize(x.sum())
    p.constrain("most", x[0] + 2 * x[1] <= 2)
    p.constrain("least", 2 * x[0] + x[1] >= F(5, 2))
    p.constrain("both", x[0] - x[1] <= F(1, 3))
    program = p.program()
    solution = Exact().solve(program)
    assert solution.status is Status.INFEASIBLE
    assert accepted(certify_solution(program, solution)).startswith("no point satisfies the program [program ")


def test_throughputs_out_of_reach() -> None:
    # together they can have 3/2 and 15/4; at prices 1 and 2 of the types, 3/2 and 4 cost more than there is
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    wanted = [("u1", F(3, 2)), ("u2", F(4))]
    duals = [["capacity", 0, F(1)], ["capacity", 1, F(2)], ["at_least", 0, F(-1)], ["at_least", 1, F(-2, 5)]]
    assert "no feasible allocation gives 'u1' 3/2 and 'u2' 4 [market" in accepted(
        Certificate(UNREACHABLE, market, wanted, duals)
    )


def test_a_float_point_that_breaks_a_row_by_a_hair_proves_nothing() -> None:
    program = knapsack(3, integer=False)
    solution = Exact().solve(program)
    assert solution.x is not None
    broken = Solution(Status.OPTIMAL, "by hand", "nobody", x=solution.x + F(1, 10**12), dual=solution.dual)
    with pytest.raises(NotCapable, match="floats prove nothing"):
        certify_solution(program, broken)


@pytest.mark.parametrize("policy", [CooperativeOEF(), NonCooperativeOEF(), MaxEfficiency()], ids=lambda each: each.name)
def test_a_point_short_of_the_optimum_has_a_gap(policy: Policy) -> None:
    for market in sample_markets(8, seed=5, users=(2, 5), types=(2, 3)):
        best = allocate(policy, market, Exact())
        assert policy.certify(best).kind is OPTIMALITY
        nothing = Solution(
            Status.LIMIT, "by hand", "nobody", x=np.zeros(len(best.program.cost)), dual=best.solution.dual
        )
        certificate = certify_bound(policy, market, nothing)
        assert certificate.kind is MARKET_BOUND
        assert (certificate.value, certificate.gap) == (0, best.objective)
        assert "feasible point" in accepted(certificate)


def test_the_exact_back_end_stops_short_with_a_bound() -> None:
    market = next(sample_markets(1, seed=9, users=(8, 8), types=(4, 4), most=9))
    program = CooperativeOEF().formulate(market, None)
    stopped = Exact().solve(program, time_limit=1e-6)
    assert stopped.status is Status.LIMIT
    best = allocate(CooperativeOEF(), market, Exact()).objective
    certificate = certify_bound(CooperativeOEF(), market, stopped)
    assert certificate.value <= best <= certificate.bound
    assert "feasible point" in accepted(certificate)


def test_duals_are_named_by_block_and_position() -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    program = CooperativeOEF().formulate(market, None)
    dual = np.array([F(0), F(1), F(0), F(-2)], dtype=object)
    assert row_duals(program, dual) == [["capacity", 1, F(1)], ["envy_free", 1, 0, F(-2)]]
    assert bare_duals(dual) == [["row", 1, F(1)], ["row", 3, F(-2)]]


def test_what_a_search_does_not_find_is_not_certified() -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    verdict = StrategyProofness().search(NonCooperativeOEF(), market, effort=Effort(60)).by_misreport["larger"]
    with pytest.raises(NotCapable, match="proves nothing"):
        certify_search(NonCooperativeOEF(), market, verdict)


def test_a_certificate_file_reads_back(tmp_path: Path) -> None:
    from fairopt.certificates import read_certificate
    from fairopt.errors import BadInput

    decision = allocate(CooperativeOEF(), Market.of([[1, 2], [1, 5]], [1, 1]), Exact())
    CooperativeOEF().certify(decision).write(tmp_path / "c.json")
    assert verify(read_certificate(tmp_path / "c.json"))
    (tmp_path / "c.json").write_text('{"schema": 2}')
    with pytest.raises(BadInput, match=r"c\.json.*schema 1"):
        read_certificate(tmp_path / "c.json")
    with pytest.raises(BadInput, match=r"nothing\.json"):
        read_certificate(tmp_path / "nothing.json")


class ByAnotherAuthor(MaxEfficiency):
    """A program that the verifier does not know how to write; it happens to be that of another policy."""

    name = "by-another-author"
    verifier_knows_program = False


def test_a_lie_to_a_policy_of_others_is_proved_up_to_what_its_program_is() -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    policy = ByAnotherAuthor()
    program = "program [0-9a-f]{32}: 4 variables, 2 rows"
    author = "the author of 'by-another-author' wrote, "
    open_ = "whether it is the policy's program is not decided here; "
    said = accepted(policy.certify(allocate(policy, market, Exact())))
    assert re.match(
        f"the embedded program, which {author}has this optimum: objective 6 \\[{open_}{program}; market ", said
    )
    found = StrategyProofness().search(policy, market, effort=Effort(60)).by_misreport["larger"].witness
    for every_optimum in (False, True):
        witness = found.but(user="u1", report=np.array([F(1), F(6)], dtype=object), every_optimum=every_optimum)
        said = accepted(certify_misreport(policy, market, witness))
        rewards = "'by-another-author' rewards 'u1' for reporting \\(1, 6\\): "
        assert re.match(f"by the two embedded programs, which {author}{rewards}", said)
        assert re.search(f"\\[{open_}on the truth {program}; on the misreport {program}; market ", said)
        assert "2 more, by the two decisions given; where optima tie, the policy may choose others" in said


class HalfOfIt(ByAnotherAuthor):
    """Decides otherwise than its program says."""

    name = "half-of-it"

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        found = super().decide(problem, state, solve)
        return replace(found, shares=found.shares / 2)


def test_a_program_is_no_evidence_for_other_shares_than_its_optimum() -> None:
    market, policy = Market.of([[1, 2], [1, 5]], [1, 1]), HalfOfIt()
    with pytest.raises(NotCapable, match="the shares that half-of-it decided are no optimum of its program"):
        policy.certify(allocate(policy, market, Exact()))
    verdict = StrategyProofness().search(policy, market, effort=Effort(60))
    assert not verdict.witness.every_optimum  # the program says nothing of what else it might have decided
    with pytest.raises(NotCapable, match="are no optimum of its program"):
        certify_search(policy, market, verdict)


@pytest.mark.parametrize("policy", [MaxEfficiency(), ByAnotherAuthor()], ids=lambda policy: policy.name)
def test_the_evidence_is_about_the_optimum_that_was_chosen(policy: Policy) -> None:
    market = Market.of([[1, 2], [1, 3], [1, 3]], [3, 1])  # ties: the solver's optimum is not the canonical one
    chosen = {tuple(map(tuple, allocate(policy, market, Exact(), canonical=way).shares)) for way in (False, True)}
    assert len(chosen) == 2
    decision = allocate(policy, market, Exact(), canonical=True)
    certificate = policy.certify(decision)
    shares = certificate.allocation if certificate.kind is OPTIMALITY else certificate.point[certificate.shares]
    assert np.array_equal(shares, decision.shares)
    assert accepted(certificate)


class OfNobody(ByAnotherAuthor):
    """Its evidence is about a program only, and does not say which variables are the shares."""

    name = "of-nobody"

    def certify(self, decision: Allocation) -> Certificate:
        return bound_of_optimum(decision.program, decision.solution)


def test_a_lie_is_not_proved_by_certificates_that_decide_nobody_s_shares() -> None:
    market = Market.of([[1, 2], [1, 5]], [1, 1])
    verdict = StrategyProofness().search(OfNobody(), market, effort=Effort(60))
    with pytest.raises(NotCapable, match="does not say whose shares it decides"):
        certify_search(OfNobody(), market, verdict)


def test_a_certificate_is_copied_whole_and_is_not_changed() -> None:
    market = oef_example()
    for kind, parts in ((PROPERTY, ("feasibility", "HOLDS")), (ENVY, ("u2", "u1"))):
        made = Certificate(kind, market, market.equal_split(), *parts)
        for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
            assert again.kind == kind
            assert again.to_json() == made.to_json()
        with pytest.raises(AttributeError, match="cannot be changed"):
            made.market = None


def test_wrong_parts_of_a_certificate_are_named() -> None:
    market = oef_example()
    rows = market.equal_split()
    for given, named, said in (
        ((market, rows, "u2"), {"envied": None}, "missing: envied"),
        ((market, rows, "u2", "u1", 5), {}, "too many: 1"),
        ((market, rows, "u2", "u1"), {"user": "u2"}, "twice: user"),
        ((market, rows, "u2", "u1"), {"who": "u2"}, "unknown: who"),
    ):
        with pytest.raises(TypeError, match=said):
            Certificate(ENVY, *given, **named)
    with pytest.raises(TypeError, match="needs a CertificateKind"):
        Certificate("envy", market)
