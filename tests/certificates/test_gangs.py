"""What FFT's round costs at least, certified: no gap where HiGHS and enumeration agree, and no forgery accepted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from certificate_kinds import BY_HAND, require_true
from certificate_kinds.examples import Untrue
from tampering import tampered

from fairopt.backends import Highs
from fairopt.benchmarks.fft_rounds import EVEN, Case
from fairopt.certificates import Certificate
from fairopt.errors import BadInput, NotSolved
from fairopt.evidence import certify_gangs
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs, usable_gpus
from fairopt.proofs.verifier import gangs
from fairopt.proofs.verifier.reading import Entry
from fairopt.proofs.verify import Rejected, verify


def written(proof: Certificate) -> Any:
    return json.loads(json.dumps(proof.to_json()))


def small(seed: int) -> GangAssignment:
    """A few jobs with gangs that leave gaps: floats, whole and tied costs; all, half or no GPUs that must be busy."""
    random = np.random.default_rng([16, seed])
    n, k = int(random.integers(1, 7)), int(random.integers(1, 4))
    size = random.choice([[1, 2, 4], [2, 3], [3, 5, 7], [2, 2, 4]][seed % 4], n)
    cost = random.normal(0, 5, (n, k))
    cost = (cost, np.round(cost), np.round(cost / 3) * 3)[seed % 3]
    capacity, allowed = random.integers(0, 9, k), random.random((n, k)) < 0.8
    least = usable_gpus(size, allowed, capacity) * (seed // 3 % 3) // 2
    return GangAssignment(cost, size, capacity, least, allowed)


@pytest.mark.parametrize("tens", range(6))
def test_small_rounds_are_proved_optimal_and_are_by_enumeration(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        problem = small(seed)
        proof = certify_gangs(problem, solve_gangs(problem))
        assert "optimal" in verify(written(proof)), seed
        require_true(written(proof))


@pytest.mark.parametrize(
    "case", [Case("Philly", 100, 40), Case("even", 60, 30, EVEN), Case("tied", 80, 30, rounded=5.0)]
)
def test_highs_finds_nothing_below_the_bound(case: Case) -> None:
    problem = case.instance()
    proof = certify_gangs(problem, solve_gangs(problem))
    assert proof.gap == 0
    assert "optimal" in verify(written(proof))
    best = Highs().solve(problem.program(), gap=0.0).require_optimal().objective
    assert float(proof.bound) == pytest.approx(best, rel=1e-9)


def test_a_round_of_400_jobs_and_8_types_is_certified() -> None:
    problem = Case("Philly", 400, 100).instance()
    proof = certify_gangs(problem, solve_gangs(problem), time_limit=10)
    assert proof.gap == 0
    assert "optimal [round" in verify(written(proof))


def test_without_time_a_gap_is_proved() -> None:
    problem = Case("Philly", 400, 100).instance()
    found = solve_gangs(problem)
    proof = certify_gangs(problem, found, time_limit=0)
    assert 0 < proof.gap < abs(proof.value) / 10
    assert float(proof.bound) == pytest.approx(found.effort["dual_bound"], rel=1e-9)  # that of the prices alone
    assert "optimal" not in verify(written(proof))


def test_what_has_no_assignment_has_no_proof() -> None:
    ones = np.ones((1, 1), dtype=bool)
    problem = GangAssignment(np.zeros((1, 1)), np.array([2]), np.array([1]), 2, ones)
    with pytest.raises(NotSolved, match=r"no assignment to prove anything of \(infeasible\)"):
        certify_gangs(problem, solve_gangs(problem))


def test_the_answer_of_another_problem_is_refused() -> None:
    problem, other = Case("Philly", 40, 20).instance(), Case("Philly", 30, 20).instance()
    with pytest.raises(BadInput, match="no assignment of this problem: 40 jobs for 30"):
        certify_gangs(other, solve_gangs(problem))


@pytest.mark.parametrize("part", range(3))
def test_a_change_is_rejected_or_leaves_the_statement_true(part: int, conformance: Callable[[object], None]) -> None:
    random, rejected, true = Random(part), 0, 0
    for seed in range(100 + 20 * part, 120 + 20 * part):
        problem = small(seed)
        proof = written(certify_gangs(problem, solve_gangs(problem)))
        for change in tampered(proof, random, 25):
            try:
                verify(change.of(proof))
            except Rejected:
                rejected += 1
            else:
                require_true(change.of(proof))
                true += 1
    assert rejected > true > 0
    conformance(f"tampering, gangs {part + 1}/3: {rejected} rejected, {true} accepted and true, 0 accepted and false")


SPLIT, ONE, MORE = BY_HAND["GANGS"]["cases"]
#: A job waits for a GPU of a type of which there is none, and which has a price.
ONE_WAITS = {"gangs": [1], "capacity": [0], "least": 0, "cost": [[0]], "types": [-1], "value": 0, "cases": []}
ONE_WAITS |= {"root": {"prices": [1], "reward": 0}}
#: A job runs for 5, and could wait for nothing; who runs is paid 10, but none need to run.
ONE_RUNS = {"gangs": [1], "capacity": [1], "least": 0, "cost": [[5]], "types": [0], "value": 5, "cases": []}
ONE_RUNS |= {"root": {"prices": [0], "reward": 0, "tolls": [[1, 0, -10]]}}


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"cases": [SPLIT, ONE]}, "a case is missing"),
        ({"cases": [SPLIT, ONE, MORE, MORE]}, "one too many"),
        ({"cases": [ONE]}, "sign of a bound that there is not"),  # a toll on what is not limited
        ({"cases": [MORE]}, "not bounded"),
        ({"cases": [SPLIT, MORE, ONE]}, "sign|not bounded"),
        ({"cases": [{"prices": [2, 0], "reward": 0}]}, "not bounded"),
        ({"root": {"prices": [-1, 0], "reward": 0}}, "too little"),
        ({"bound": -5, "gap": 1}, "not bounded"),
        ({"types": [1, 0, 0], "value": -10, "gap": 4}, "more GPUs"),
        ({"types": [1, 1, 0], "value": -6}, "may not run"),
        ({"least": 4}, "too few are busy"),
        ({"grain": 1, "cost": [["1/2", -1], [-4, None], [-5, None]]}, "no multiple"),
        ({"grain": 4}, "no multiple"),
        ({"grain": 0}, "too little"),
        ({"cases": [{"split": [2, 0, n]} for n in range(2000)]}, "cases in each other"),
        ({"cases": 3}, "no list"),
        ({"gangs": [0, 2, 2]}, "at least 1"),
        ({"cases": [[]]}, "no object"),
        (ONE_WAITS | {"bound": 1, "gap": 1}, "a case is missing"),  # who waits pays no price
        (ONE_WAITS | {"gangs": [0], "bound": 0, "gap": 0, "root": {"prices": [0], "reward": 0}}, "at least 1"),
        (ONE_RUNS | {"bound": 5, "gap": 0}, "a case is missing"),
    ],
)
def test_forged(change: dict[str, Any], why: str) -> None:
    with pytest.raises(Rejected, match=why):
        verify(BY_HAND["GANGS"] | change)


def test_a_gap_is_not_optimal_and_numbers_may_be_long() -> None:
    said = "an assignment of jobs to types costs -6, none costs less than -7 ["
    assert verify(BY_HAND["GANGS"] | {"bound": -7, "gap": 1}).startswith(said)
    dear = verify(BY_HAND["GANGS"] | {"cost": [[0, -1], [-4, f"1{'0' * 5000}"], [-5, None]]})
    assert ": optimal [round " in dear


def test_a_bound_looks_at_kinds_of_gangs_that_may_run_only() -> None:
    """Not at every size on every type: many cases of a file without costs would take hours."""
    waits = Counter({(size, ((gangs.WAITS, gangs.ZERO),)): 1 for size in range(1, 4)})
    told = Entry({"prices": [0] * 5, "reward": 0, "tolls": None})
    assert gangs.Round(waits, [1] * 5, 0).bound(told, {})[1].keys() == {(size, gangs.WAITS) for size in range(1, 4)}


def no_split(left: Any, told: Any, less: Any) -> None:
    return None


def test_a_verifier_that_skips_the_cases_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    low = BY_HAND["GANGS"] | {"bound": -5, "gap": 1}
    monkeypatch.setattr(gangs, "_require_bounded", no_split)
    assert verify(low)
    with pytest.raises(Untrue):
        require_true(low)
