"""The verifier of schedules accepts what the policies decide, and rejects what is changed in it."""

from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairopt.errors import BadInput
from fairopt.models.astraea.batch_private import BatchPrivate
from fairopt.models.astraea.fcfs import FirstComeFirstServed
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.models.astraea.price_bases import Given
from fairopt.models.astraea.reference import Readings, Reference
from fairopt.policy import Policy, decide
from fairopt.problem.batch import Batch
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps
from fairopt.program import Number
from fairopt.proofs import verify_schedule
from fairopt.proofs.claims.astraea.batches import Deviating, example, random_batch
from fairopt.proofs.verify_schedule import Unreadable, main
from fairopt.schedules.document import document
from fairopt.testing.tampering import at, changes, places

FILE = Path(__file__).parents[2] / "proofs" / "verify_schedule.py"
SIXTEEN = Given(16, 16)
PRINTED = PostedPricePacking(theta=SIXTEEN, search=Deviating(all_chunks=True, least_used=True), intervals=2)


def documented(policy: Policy, batch: Batch) -> dict[str, Any]:
    return document(decide(policy, batch))


def rejected(data: dict[str, Any]) -> list[str]:
    try:
        return verify_schedule.decide(json.dumps(data))[0]
    except Unreadable as error:
        return [f"unreadable: {error}"]


def test_it_imports_the_standard_library_only_and_is_short() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in modules} <= set(sys.stdlib_module_names)
    assert len(FILE.read_text(encoding="utf-8").splitlines()) < 400


@pytest.mark.parametrize(
    "policy",
    [
        PostedPricePacking(),
        PostedPricePacking(rounds=3, theta=SIXTEEN),
        BatchPrivate(),
        FirstComeFirstServed(),
        FirstComeFirstServed(shared=True),
    ],
    ids=lambda policy: policy.name,
)
def test_plans_are_accepted(policy: Policy) -> None:
    for seed in range(10):
        batch = random_batch(seed, types=(1 + seed % 2, 1 + seed // 2 % 2))
        violations, statement = verify_schedule.decide(json.dumps(documented(policy, batch)))
        assert not violations
        assert "within (3a)-(3o)" in statement


def test_the_statement_says_what_was_decided() -> None:
    statement = verify_schedule.decide(json.dumps(documented(PRINTED, example())))[1]
    assert statement == (
        "3 of 4 jobs of 'posted-prices' run within (3a)-(3o); 8 decisions at posted prices; "
        "4 payments, 16 in all, reach the owners exactly"
    )


def test_a_schedule_alone_is_judged_too() -> None:
    data = documented(PRINTED, example())
    data.update(bases=[], admissions=[], payments=[])
    assert verify_schedule.decide(json.dumps(data))[0] == []


def test_utilities_of_every_form_and_none_of_ones_own() -> None:
    class Own(CompletionUtility):
        def value(self, time: Number) -> Number:
            return -time

    for utility in (
        Linear(Fraction(-1, 3), Fraction(7)),
        Power(Fraction(5), Fraction(3, 2)),
        Steps((Fraction(9), Fraction(1))),
    ):
        batch = _with_utility(utility)
        assert verify_schedule.decide(json.dumps(documented(PostedPricePacking(theta=SIXTEEN), batch)))[0] == []
    with pytest.raises(BadInput, match="Own"):
        documented(PostedPricePacking(theta=SIXTEEN), _with_utility(Own()))


def _with_utility(utility: CompletionUtility) -> Batch:
    return Batch.of(
        workers=[1],
        ps=[1],
        worker_quota={"u": 1},
        ps_quota={"u": 1},
        tenant=["u"] * 2,
        epochs=[1, 2],
        chunks=[1, 1],
        minibatches=[1, 1],
        minibatch_time=[1, 1],
        update_time=[0, 0],
        gradient=[0, 0],
        utility=[utility] * 2,
    )


def test_the_printed_fourth_algorithm_breaks_the_bandwidth_constraint() -> None:
    """5 workers elsewhere ask for 3 PS where a PS carries twice a worker; the server that has 1 is taken for it."""
    found = [
        each
        for seed in range(40)
        for each in rejected(
            documented(
                PostedPricePacking(theta=SIXTEEN, search=Reference(Readings(enough_ps=False))), random_batch(seed)
            )
        )
    ]
    assert found
    assert all("(3i)" in each for each in found)


Change = Callable[[dict[str, Any]], None]


def _job(data: dict[str, Any], name: str) -> Any:
    return next(each for each in data["batch"]["jobs"] if each["name"] == name)


def _both(data: dict[str, Any], job: str, **what: Any) -> None:
    """Change the schedule of a job, and the decision that made it."""
    for each in data["schedules"]:
        if each["job"] == job:
            each.update(what)
    for each in data["admissions"]:
        if each["job"] == job and each["admitted"]:
            each["schedule"].update(what)


TAMPERED: list[tuple[str, Change]] = [
    ("quotas: tenants own 9 workers", lambda d: d["batch"]["tenants"][0].update(workers=[5])),
    ("(3a) slot 9: 5 workers of 4", lambda d: d["batch"]["tenants"][0].update(workers=[0])),
    ("(3b) slot 9: 2 ps of 1", lambda d: _few_ps(d)),
    ("(3c) server 's1', slot 9: 3 workers of 2", lambda d: _both(d, "j11", workers=[["s1", 3]])),
    ("(3d) server 's4', slot 9: 2 ps of 1", lambda d: _both(d, "j12", ps=[["s3", 1], ["s4", 2]])),
    ("(3e) 2 workers for 1 chunks", lambda d: _job(d, "j11").update(chunks=1, epochs=4)),
    ("(3g) 0 workers", lambda d: _both(d, "j11", workers=[])),
    ("(3i) 1 PS on 's3'", lambda d: d["batch"]["ps_types"][0].update(bandwidth="1/2")),
    ("(3j) zeta is 1", lambda d: _both(d, "j12", together=True)),
    ("(3j) zeta is 0", lambda d: _both(d, "j11", together=False)),
    ("(3k) 4 mini-batches of 6", lambda d: _job(d, "j11").update(epochs=3)),
    ("(3l) it begins in slot 9 and arrives at 10", lambda d: _job(d, "j11").update(arrival=10)),
    ("a job has two schedules", lambda d: d["schedules"].append(d["schedules"][0])),
    ("the schedules are not those admitted", lambda d: d["schedules"].pop()),
    ("admission of 'j21': utility 96 and should be 92", lambda d: d["admissions"][2].update(utility=96)),
    ("within a share of", lambda d: _own(d)),
    ("'j12': workers cost 11.0 and should cost 12", lambda d: _cost(d)),
    ("the round begins at 8, not 9", lambda d: d["admissions"][0].update(origin=9)),
    ("leave the round", lambda d: _both(d, "j11", first=8)),
    ("not every job that waits is offered", lambda d: d["admissions"].pop(1)),
    ("'j21': gains 92.0 and is refused", lambda d: _refused(d)),
    ("payment of 'j12', slot 9: workers cost 2 and should cost 3", lambda d: d["payments"][0].update(workers=2)),
    ("payment of 'j12', slot 10: missing", lambda d: d["payments"].pop(1)),
    ("payment of 'j11', slot 9: for nothing", lambda d: d["payments"].append({**d["payments"][0], "job": "j11"})),
    ("a job pays twice for a slot", lambda d: d["payments"].append(d["payments"][0])),
    ("payment of 'j12', slot 9: incomes", lambda d: d["payments"][0].update(incomes=["1", "3"])),
    ("workers cost", lambda d: d["bases"][1].update(workers=[20])),
    ("its bases are those of", lambda d: d["bases"][1].update(slots=8)),
    ("unreadable: bases: one is below 1", lambda d: d["bases"][1].update(workers=["1/2"])),
    ("unreadable: schedule, workers: servers do not rise", lambda d: _both(d, "j12", workers=[["s4", 1], ["s3", 2]])),
    ("unreadable: schedule: 's9' is unknown", lambda d: _both(d, "j12", worker_type="s9")),
]


def _few_ps(data: dict[str, Any]) -> None:
    for owned, tenant in enumerate(data["batch"]["tenants"]):
        tenant["ps"] = [owned]


def _own(data: dict[str, Any]) -> None:
    """J12 runs within u1's own share, which j11 has half of."""
    next(each for each in data["admissions"] if each["job"] == "j12" and each["admitted"])["own"] = True


def _cost(data: dict[str, Any]) -> None:
    next(each for each in data["admissions"] if each["job"] == "j12" and each["admitted"])["worker_cost"] = 11


def _refused(data: dict[str, Any]) -> None:
    data["admissions"][2]["admitted"] = False


@pytest.mark.parametrize(("says", "change"), TAMPERED, ids=[says for says, _ in TAMPERED])
def test_a_violation_is_named(says: str, change: Change) -> None:
    data = copy.deepcopy(documented(PRINTED, example()))
    change(data)
    found = rejected(data)
    assert any(says in each for each in found), found


def test_a_change_stands_only_where_what_is_said_stays_true() -> None:
    """Of three changes at each place of the printed example, decided again by what they are about."""
    data, random, total = documented(PRINTED, example()), Random(1), 0
    for place in places(data):
        for change in changes(data, place, random)[:3]:
            total += 1
            if not rejected(change.of(data)):
                assert harmless(data, place, change.value), change
    assert total > 600


def harmless(data: dict[str, Any], place: tuple[Any, ...], value: Any) -> bool:
    """Whether a change leaves the plan as right as it was: there is slack there, or nothing depends on it."""
    was = at(data, place)
    if place == ("policy",) or place[:2] == ("bases", 0):
        return True  # a name; an interval in which nobody arrived
    if place[:2] == ("batch", "ps_types"):
        return Fraction(value) > was  # a PS that carries more
    if place[:3] == ("batch", "jobs", 3):
        return True  # j22 runs nowhere; that nothing would fit is not decided
    if place[:2] == ("batch", "jobs"):
        # an earlier arrival in the same interval, or less work; gradients of jobs that run on one server are idle
        together = next(each for each in data["schedules"] if each["job"] == data["batch"]["jobs"][place[2]]["name"])
        return (place[3] == "gradient" and together["together"]) or Fraction(value) < Fraction(was)
    return place == ("bases",)  # without bases there is nothing to say of prices


def test_the_tolerance_is_for_prices_only() -> None:
    data = documented(PRINTED, example())
    paid = data["payments"][0]
    paid["incomes"] = [
        str(Fraction(each) + Fraction(sign, 10**15)) for each, sign in zip(paid["incomes"], (1, -1), strict=True)
    ]
    assert any("incomes" in each for each in rejected(data))
    data = documented(PostedPricePacking(theta=Given(10, 10)), random_batch(3))
    assert rejected(data) == []
    costs = [each for each in data["admissions"] if isinstance(each["worker_cost"], float) and each["worker_cost"] % 1]
    costs[0]["worker_cost"] *= 1 + 1e-6
    assert any("workers cost" in each for each in rejected(data))


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": 1, "schema": 1}', "{}", "null", "[" * 100_000, '{"schema": NaN}', "12"]
)
def test_what_is_no_plan_cannot_be_read(text: str) -> None:
    with pytest.raises(Unreadable):
        verify_schedule.decide(text)


def test_the_command_line(tmp_path: Path) -> None:
    right, wrong, odd = (tmp_path / f"{name}.json" for name in ("right", "wrong", "odd"))
    data = documented(PRINTED, example())
    right.write_text(json.dumps(data))
    data["schedules"][0]["last"] = 9
    wrong.write_text(json.dumps(data))
    odd.write_text("{}")
    ran = subprocess.run([sys.executable, "-I", str(FILE), str(right)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert "accepted: 3 of 4 jobs" in ran.stdout
    assert main([str(right), str(wrong)]) == 1
    assert main([str(wrong), str(odd), str(right)]) == 2
    assert main([str(tmp_path / "none.json")]) == 2
