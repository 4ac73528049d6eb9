"""The bounded decisions: a query says what it should, quick ones come out as stored, counterexamples hold water."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # `proofs` is no part of the package

z3 = pytest.importorskip("z3")

from fairopt import allocate  # noqa: E402
from fairopt.backends.exact import Exact  # noqa: E402
from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NonCooperativeOEF  # noqa: E402
from fairopt.policy.optima import is_extreme  # noqa: E402
from fairopt.problem import Market  # noqa: E402
from fairopt.proofs.bounded import policies, tickets  # noqa: E402
from fairopt.proofs.bounded.catalogue import CLAIMS  # noqa: E402
from fairopt.proofs.bounded.claims import COOPERATIVE, NONCOOPERATIVE, SHARING_INCENTIVE, market_of  # noqa: E402
from fairopt.proofs.bounded.decisions import HOLDS, REFUTED, UNKNOWN  # noqa: E402
from fairopt.proofs.bounded.exact import ExactOptima  # noqa: E402
from fairopt.proofs.bounded.solver import Asker, Disjunction, Limits, Question  # noqa: E402
from fairopt.proofs.bounded.store import BEGIN, END, size_name, stored, table  # noqa: E402
from fairopt.proofs.bounded.symbolic import SymbolicMarket  # noqa: E402
from fairopt.proofs.ledger.citing import theorem  # noqa: E402
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency  # noqa: E402

FOLDER = ROOT / "proofs" / "bounded"
STORED = stored(FOLDER)
PAIRS = [
    (policies.cooperative, CooperativeOEF()),
    (policies.noncooperative, NonCooperativeOEF()),
    (policies.max_min, MaxMin()),
    (policies.max_efficiency, MaxEfficiency()),
    (policies.sharing_incentive, SharingIncentiveEfficiency()),
]
#: What is decided again may share its processor with much else.
PATIENT = Limits(split=6, leaf=120, guess=120, total=900)
#: Quick decisions that take longer than this are left to `make campaign`.
SECONDS = 0.5


def keys(*, slow: bool) -> list[tuple[str, str]]:
    found = []
    for claim in CLAIMS:
        for size in (*claim.quick, *claim.slow):
            key = claim.name, size_name(size)
            decided = key in STORED and STORED[key]["answer"] != UNKNOWN
            if decided and slow == (size in claim.slow or STORED[key]["seconds"] > SECONDS):
                found.append(key)
    return found


def numbers(speedups: list[list[str]]) -> Market:
    return Market.of(speedups, [1] * len(speedups[0]))


def given(market: SymbolicMarket, table: Market) -> list[z3.BoolRef]:
    entries = np.ndenumerate(table.speedup / table.speedup[0, 0])
    return [market.speedup(u, j) == z3.RealVal(str(value)) for (u, j), value in entries]


@pytest.mark.parametrize("speedups", [[[1, 2], [1, 5]], [[1, 2, 4], [2, 6, 10]], [[1, 2], [3, 9], [1, 4]]], ids=str)
@pytest.mark.parametrize(("symbolic", "policy"), PAIRS, ids=[policy.name for _, policy in PAIRS])
def test_the_conditions_accept_the_optimum_and_not_the_equal_split(symbolic, policy, speedups) -> None:
    table = Market.of(speedups, [1] * len(speedups[0]))
    market = SymbolicMarket(*table.shape)
    optimum = symbolic(market)

    def accepted(shares) -> bool:
        held = [optimum.share[u][j] == z3.RealVal(str(value)) for (u, j), value in np.ndenumerate(shares)]
        reply = Asker(Limits()).ask(
            Question((*optimum.constraints, *given(market, table), *held), tuple(optimum.cases))
        )
        assert not reply.open
        return reply.model is not None

    assert accepted(allocate(policy, table, Exact()).shares)
    assert not accepted(table.equal_split())


@pytest.mark.parametrize("assumptions", ["", "normalised", "normalised rising", "ordered", "normalised rising ordered"])
@pytest.mark.parametrize("mode", [COOPERATIVE, NONCOOPERATIVE, SHARING_INCENTIVE], ids=["coop", "noncoop", "si"])
def test_no_claim_holds_because_nothing_satisfies_its_assumptions(mode, assumptions: str) -> None:
    market, domain = market_of(2, 3, assumptions)
    optimum = mode[0](market)
    table = Market.of([[1, 2, 5], [1, 3, 8]], [1, 1, 1])  # rises, and is strictly ordered by ratios
    question = Question((*domain, *optimum.constraints, *given(market, table)), tuple(optimum.cases))
    assert Asker(Limits()).ask(question).model is not None


def test_what_z3_gives_up_on_is_split_and_what_stays_open_is_counted() -> None:
    x, y = z3.Reals("x y")
    either = Disjunction(((x == 0,), (y == 0,)))
    assert Asker(Limits()).ask(Question((x * y > 0,), (either,))).model is None
    assert Asker(Limits()).ask(Question((x * y >= 0, x + y == 3), (either,))).model is not None
    assert Asker(Limits(total=0)).ask(Question((x > 0,), (either,))).open == 1


def test_optima_speak_of_all_optima() -> None:
    tie = ExactOptima(MaxEfficiency(), numbers([["1", "2"], ["1", "3"]]))
    assert tie.throughput(0) == (0, 1)
    assert not tie.same_throughputs
    assert tie.having([(0, 0), (1, 0)]) is not None
    assert tie.having([(0, 1)]) is None
    gap = numbers([["1", "1", "2"], ["1", "2", "3"]])
    assert ExactOptima(CooperativeOEF(), gap).without_gaps() is None
    even = numbers([["1", "1"], ["1", "1"]])
    assert is_extreme(CooperativeOEF().formulate(gap, None), ExactOptima(CooperativeOEF(), gap).shares.ravel())
    assert not is_extreme(CooperativeOEF().formulate(even, None), np.full(4, Fraction(1, 2)))


def test_code_that_divides_wrongly_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_proportion(held, wanted, gpus):
        return {user: own * gpus / sum(held.values()) for user, own in held.items()}

    assert tickets.redistribution("x", 2, Limits()).answer == HOLDS
    monkeypatch.setattr(tickets, "entitled", in_proportion)
    assert tickets.redistribution("x", 2, Limits()).answer == REFUTED


def test_every_path_is_taken_once() -> None:
    x = z3.Real("x")

    def code(path: tickets.Path) -> dict[str, tickets.Symbol]:
        value = tickets.Symbol(x, path)
        return {"least": value if value < 0 or (value > 1 and value > 2) else value * 0}

    pairs = tickets.paths([x > -1], code)
    found = [(str(z3.simplify(z3.And(*path.taken))), str(result["least"].term)) for path, result in pairs]
    assert len(found) == len(set(found)) == 4
    assert sorted(term for _, term in found) == ["0", "0", "x", "x"]


def decided_again(key: tuple[str, str]) -> None:
    claim = next(claim for claim in CLAIMS if claim.name == key[0])
    size = next(size for size in (*claim.quick, *claim.slow) if size_name(size) == key[1])
    assert claim.run(*size, PATIENT).answer == STORED[key]["answer"]


@pytest.mark.parametrize("key", keys(slow=False), ids="-".join)
def test_quick_decisions_come_out_as_stored(key: tuple[str, str]) -> None:
    decided_again(key)


REFUTATIONS = [
    pytest.param(claim, size, id=f"{claim.name}-{size_name(size)}")
    for claim in CLAIMS
    for size in (*claim.quick, *claim.slow)
    if claim.search and STORED.get((claim.name, size_name(size)), {}).get("answer") == REFUTED
    if not claim.name.startswith("truth")  # two markets: decided again as a whole
]


@pytest.mark.parametrize(("claim", "size"), REFUTATIONS)
def test_stored_counterexamples_are_confirmed_exactly(claim, size) -> None:
    found = claim.search(*size).confirm(numbers(STORED[claim.name, size_name(size)]["counterexample"]["speedup"]))
    assert found is not None


@pytest.mark.parametrize(("claim", "size"), REFUTATIONS)
def test_z3_agrees_with_stored_counterexamples(claim, size) -> None:
    search = claim.search(*size)
    (market,) = search.markets
    table = numbers(STORED[claim.name, size_name(size)]["counterexample"]["speedup"]).speedup
    n, k = size

    def agrees(speedup: np.ndarray) -> bool:
        fixed = market.valued(Market.of(speedup.tolist(), [1] * k)).items()
        for question in search.questions:
            solver = z3.SimpleSolver()
            parts = (*question.constraints, *(case.whole() for case in question.cases))
            solver.add(z3.simplify(z3.substitute(z3.And(*parts), *fixed)))
            if solver.check() == z3.sat:
                return True
        return False

    # a question speaks of the first users and types where they can be renamed
    named = (table[np.ix_(users, types)] for users in permutations(range(n)) for types in permutations(range(k)))
    same_units = z3.is_rational_value(market.unit[-1])
    assert any(agrees(speedup) for speedup in named if not same_units or (speedup[:, 0] == speedup[0, 0]).all())


@pytest.mark.slow
@pytest.mark.parametrize("key", keys(slow=True), ids="-".join)
def test_slow_decisions_come_out_as_stored(key: tuple[str, str]) -> None:
    decided_again(key)


def test_every_stored_decision_is_decided_again_by_one_of_these_tests() -> None:
    assert {*keys(slow=False), *keys(slow=True)} == {key for key, entry in STORED.items() if entry["answer"] != UNKNOWN}


@pytest.mark.usefixtures("coq_is_asked_once")
def test_what_z3_gives_up_on_and_a_theorem_decides() -> None:
    named = {(claim.name, size_name(size)): name for claim in CLAIMS for size, name in claim.proved.items()}
    assert named
    assert not [key for key in named if STORED[key]["answer"] == REFUTED]
    assert [key for key in named if STORED[key]["answer"] == UNKNOWN]
    assert {theorem(*name.split(".")) for name in named.values()}


def test_the_table_is_that_of_the_stored_decisions() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert text.split(BEGIN)[1].split(END)[0].strip() == table(STORED).strip()
    assert all(entry["counterexample"] for entry in STORED.values() if entry["answer"] == REFUTED)
