"""The verifier of schedules accepts what the policies decide, and rejects what is changed in it."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn_seeds import counts
from tampering import Tampering, at, changes, places

from fairopt.errors import BadInput
from fairopt.models.astraea.batch_private import BatchPrivate
from fairopt.models.astraea.fcfs import FirstComeFirstServed
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.models.astraea.reference import Reference
from fairopt.policy import Policy, decide
from fairopt.problem.batch import Batch
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps
from fairopt.program import Number
from fairopt.proofs.claims.astraea.batches import Deviating, example, random_batch
from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.proofs.verifier.front import main
from fairopt.proofs.verifier.reading import Unreadable
from fairopt.schedules.document import document
from fairopt.testing.counted_steps import CountedSteps

FILE = Path(__file__).parents[2] / "proofs" / "verify_schedule.py"
SIXTEEN = (16, 16)
#: Steps, fewer than are taken by what has no end without a limit.
A_HANG = 10_000_000
PRINTED = PostedPricePacking(theta=SIXTEEN, search=Deviating(all_chunks=True, least_used=True), intervals=2)


def documented(policy: Policy, batch: Batch) -> dict[str, Any]:
    return document(decide(policy, batch))


def rejected(data: dict[str, Any]) -> list[str]:
    try:
        return verify_schedule.decide(json.dumps(data))[0]
    except Unreadable as error:
        return [f"unreadable: {error}"]


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
    assert re.sub("batch [0-9a-f]{32}", "batch 0", statement) == (
        "3 of 4 jobs of 'posted-prices' run within (3a)-(3o); "
        "8 decisions at posted prices, up to 1e-09 of 1 or of the prices of a round, in 2 intervals; "
        "whether more intervals were due was not judged; "
        "4 payments, 16 in all, reach the owners exactly "
        "[batch 0: 4 jobs, 2 tenants, 4 servers]"
    )
    exact = verify_schedule.decide(json.dumps(documented(PRINTED, example())), Fraction(0))[1]
    assert exact == statement.replace("up to 1e-09 of 1", "up to 0 of 1")


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
            documented(PostedPricePacking(theta=SIXTEEN, search=Reference(enough_ps=False)), random_batch(seed))
        )
    ]
    assert found
    assert all("(3i)" in each for each in found)


Changing = Callable[[dict[str, Any]], None]


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


TAMPERED: list[tuple[str, Changing]] = [
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
    ("unreadable: bases[1]: one is below 1", lambda d: d["bases"][1].update(workers=["1/2"])),
    ("unreadable: schedule, workers: servers do not rise", lambda d: _both(d, "j12", workers=[["s4", 1], ["s3", 2]])),
    ("unreadable: schedule, worker_type: 's9' is unknown", lambda d: _both(d, "j12", worker_type="s9")),
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
def test_a_violation_is_named(says: str, change: Changing) -> None:
    data = copy.deepcopy(documented(PRINTED, example()))
    change(data)
    found = rejected(data)
    assert any(says in each for each in found), found


@pytest.mark.parametrize("each", counts(1, 3))
def test_a_change_stands_only_where_what_is_said_stays_true(each: int) -> None:
    """Of ``each`` so many changes at each place of the printed example, decided again by what they are about."""
    data, random, total = documented(PRINTED, example()), Random(1), 0
    for place in places(data):
        for change in changes(data, place, random)[:each]:
            total += 1
            if not rejected(change.of(data)):
                assert harmless(data, place, change.value), change
    assert total > 200 * each


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
        name = data["batch"]["jobs"][place[2]]["name"]
        if place[3] == "tenant":  # its quotas count where the job was admitted as its own
            return not any(each["own"] and each["admitted"] for each in data["admissions"] if each["job"] == name)
        # an earlier arrival in the same interval, or less work; gradients of jobs that run on one server are idle
        together = next(each for each in data["schedules"] if each["job"] == name)
        return (place[3] == "gradient" and together["together"]) or Fraction(value) < Fraction(was)
    if place[0] == "bases" and len(place) > 1:  # prices are judged up to the tolerance that the statement says
        return abs(Fraction(value) - Fraction(was)) <= verify_schedule.NEAR * Fraction(was)
    return place == ("bases",)  # without bases there is nothing to say of prices


def test_a_base_may_be_off_by_the_tolerance_that_is_stated() -> None:
    data = documented(PRINTED, example())
    place = ("bases", 1, "workers", 0)
    for off, fine in ((Fraction(1, 10**10), True), (Fraction(1, 10**8), False)):
        other, value = copy.deepcopy(data), str(Fraction(at(data, place)) * (1 + off))
        other["bases"][1]["workers"][0] = value
        assert (not rejected(other), harmless(data, place, value)) == (fine, fine)


def test_the_tolerance_is_for_prices_only() -> None:
    data = documented(PRINTED, example())
    paid = data["payments"][0]
    paid["incomes"] = [
        str(Fraction(each) + Fraction(sign, 10**15)) for each, sign in zip(paid["incomes"], (1, -1), strict=True)
    ]
    assert any("incomes" in each for each in rejected(data))
    data = documented(PostedPricePacking(theta=(10, 10)), random_batch(3))
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


# -- small files that ask for much --------------------------------------------------------------------------------
def test_a_power_too_high_to_be_computed_is_refused_with_a_message() -> None:
    data = documented(PostedPricePacking(theta=SIXTEEN), _with_utility(Power(Fraction(5), Fraction(2))))
    for job in data["batch"]["jobs"]:
        job["utility"] = {"form": "power", "scale": 3, "exponent": 10**8}
    with CountedSteps(A_HANG):
        assert "exponent" in rejected(data)[0]
        assert "too many to decide" in rejected(data)[0]
        for job in data["batch"]["jobs"]:
            job["utility"] = {"form": "power", "scale": 10**300, "exponent": "3/2"}
        assert "too large" in rejected(data)[0]


def test_rounds_in_which_nobody_waits_take_no_time() -> None:
    data = documented(PRINTED, example())
    for base in data["bases"]:
        base["rounds"] = 10**9
    with CountedSteps(A_HANG):
        assert any("the round begins at" in each for each in rejected(data))


@pytest.mark.parametrize("slots", [10**7, 10**300])
def test_a_schedule_of_many_slots_takes_no_time(slots: int) -> None:
    data = documented(PRINTED, example())
    _both(data, "j12", last=slots)
    with CountedSteps(A_HANG):
        found = rejected(data)
    assert any("leave the round" in each for each in found)
    assert any("missing" in each for each in found)
    alone = documented(FirstComeFirstServed(), _with_utility(Linear(Fraction(-1), Fraction(9))))
    alone.update(admissions=[], payments=[])
    alone["schedules"] = [alone["schedules"][0] | {"last": slots}]
    with CountedSteps(A_HANG):
        assert rejected(alone) == []


def test_jobs_that_are_never_offered_a_place_are_counted_in_the_statement() -> None:
    """A plan may end before all have arrived; the verifier cannot tell how many intervals there should be."""
    data = documented(PRINTED, example())
    _job(data, "j22")["arrival"] = 5
    data["admissions"] = [each for each in data["admissions"] if each["job"] != "j22"]
    found, statement = verify_schedule.decide(json.dumps(data))
    assert found == []
    assert "1 jobs arrive after them and were never offered a place" in statement
    assert "whether more intervals were due was not judged" in statement
    data["bases"] = []
    assert "the order of which were not judged" in verify_schedule.decide(json.dumps(data))[1]
    data["admissions"] = data["payments"] = []
    statement = verify_schedule.decide(json.dumps(data))[1]
    assert "how this was decided is not told; no payments" in statement


ODD = (None, True, -1, 0, 10**300, "x", "1/0", [], {}, [0], 1.5, 1e300, "9" * 5000)


@pytest.mark.parametrize("step", counts(15, 1))
@pytest.mark.parametrize("odd", ODD, ids=str)
def test_nothing_that_stands_anywhere_makes_it_stumble(odd: Any, step: int) -> None:
    """What is no plan cannot be read, or is rejected; there is no other error. Each place has some of the values."""
    data = documented(PRINTED, example())
    for place in list(places(data))[ODD.index(odd) % step :: step]:
        rejected(Tampering(place, "odd", odd).of(data))
