"""`fairopt schedule` and `fairopt verify` of a schedule keep their contracts: JSON, tables, exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ran_command import Ran

from fairopt import discovery
from fairopt.benchmarks.workloads.astraea_batches import astraea_small, astraea_workload
from fairopt.configuring import configured
from fairopt.datasets import astraea_example, dataset_path
from fairopt.errors import BadInput
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.policy import decide
from fairopt.problem.files.batch import read_batch, write_batch
from fairopt.proofs.verifier import schedules as verify_schedule
from fairopt.schedules.document import document, plan_from

EXAMPLE = dataset_path("astraea_example.toml")
ALGORITHMS = ("posted-prices", "batch-private", "fcfs")


def test_json_is_the_plan(fairopt: Callable[..., Ran]) -> None:
    ran = fairopt("schedule", EXAMPLE, "--policy", "posted-prices", "--set", "theta=16", "--json")
    plan = decide(PostedPricePacking(theta=(16, 16)), astraea_example())
    assert ran.status == 0
    assert ran.data["policy"] == "posted-prices"
    assert ran.data["options"] == ["theta=16"]
    assert {each["job"]: (each["first"], each["last"]) for each in ran.data["schedules"]} == {
        plan.batch.jobs.names[each.job]: (each.first, each.last) for each in plan.schedules
    }
    assert Fraction(ran.data["revenue"]) == plan.revenue
    assert {name: Fraction(gain) for name, gain in ran.data["gains"].items()} == dict(
        zip(plan.batch.tenants, plan.gains, strict=True)
    )
    assert ran.data["unscheduled"] == [plan.batch.jobs.names[job] for job in plan.unscheduled]
    assert ran.data["seconds"]["solve"] >= 0


def test_gains_add_up_to_the_revenue(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "batch.toml"
    write_batch(astraea_workload(jobs=40, servers=10), path)
    data = fairopt("schedule", path, "--policy", "posted-prices", "--json").data
    assert data["payments"]
    assert sum(Fraction(gain) for gain in data["gains"].values()) == Fraction(data["revenue"])
    runs = [each["job"] for each in data["schedules"]]
    assert sorted([*runs, *data["unscheduled"]]) == sorted(job["name"] for job in data["batch"]["jobs"])


@pytest.mark.parametrize("policy", ALGORITHMS)
def test_tables_say_the_same(fairopt: Callable[..., Ran], policy: str) -> None:
    data = fairopt("schedule", EXAMPLE, "--policy", policy, "--json").data
    ran = fairopt("schedule", EXAMPLE, "--policy", policy)
    assert ran.status == 0
    lines = {line.split()[0]: line.split() for line in ran.out.splitlines() if line.strip()}
    for each in data["schedules"]:
        cells = lines[each["job"]]
        assert f"{each['first']}-{each['last']}" in cells
        assert all(f"{server}:{count}" in " ".join(cells) for server, count in each["workers"])
    for name, gain in data["gains"].items():
        assert lines[name][-1] == f"{float(Fraction(gain)):.6g}"
    for name in data["unscheduled"]:
        assert name in ran.out.splitlines()[-1]


def test_tables_of_several_types(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "types.toml"
    path.write_text(
        'schema = 1\nworker_types = ["K80", "V100"]\n[bandwidth]\nworker = 1\nps = 1\n'
        '[[tenant]]\nname = "u"\nworkers = [2, 3]\nps = 1\n[[server]]\nworkers = [2, 3]\nps = 1\n'
        '[[job]]\nname = "j"\ntenant = "u"\nepochs = 1\nchunks = 2\nminibatches = 1\nminibatch_time = [2, 1]\n'
        "utility = {linear = [-1, 9]}\n"
    )
    ran = fairopt("schedule", path, "--policy", "posted-prices")
    assert "worker type" in ran.out
    assert "V100" in ran.out
    assert "2 + 3" in ran.out


@pytest.mark.parametrize("convex", [False, True])
@pytest.mark.parametrize("policy", ALGORITHMS)
def test_what_is_scheduled_is_accepted(fairopt: Callable[..., Ran], tmp_path: Path, policy: str, convex: bool) -> None:
    batch, schedule = tmp_path / "batch.json", tmp_path / "schedule.json"
    for seed in range(2):
        write_batch(astraea_small(jobs=12, servers=6, seed=seed, convex=convex), batch)
        schedule.write_text(fairopt("schedule", batch, "--policy", policy, "--json").out)
        ran = fairopt("verify", batch, schedule, "--property", "budget_balance")
        assert (ran.status, ran.err) == (0, "")
        assert "accepted" in ran.out
        said = fairopt("verify", batch, schedule, "--property", "budget_balance", "--json").data
        assert said["accepted"] is True
        assert said["violations"] == []


def example_schedule(fairopt: Callable[..., Ran]) -> dict[str, Any]:
    data: dict[str, Any] = fairopt("schedule", EXAMPLE, "--policy", "posted-prices", "--json").data
    return data


def test_a_schedule_by_anyone_needs_no_more_than_schedules(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"schedules": example_schedule(fairopt)["schedules"]}))
    assert fairopt("verify", EXAMPLE, path, "--property", "budget_balance").status == 0
    # what a property needs of a policy's own reasons is not there: that one is undecided, and says why
    ran = fairopt("verify", EXAMPLE, path, "--property", "gain_as_you_contribute")
    assert ran.status == 4
    assert "0 were admitted" in " ".join(ran.out.split())


@pytest.mark.parametrize("policy", ALGORITHMS)
def test_a_schedule_has_the_properties_of_the_plan_that_it_was_written_from(
    fairopt: Callable[..., Ran], tmp_path: Path, policy: str
) -> None:
    schedule = tmp_path / "schedule.json"
    schedule.write_text(fairopt("schedule", EXAMPLE, "--policy", policy, "--json").out)
    ran = fairopt("verify", EXAMPLE, schedule, "--json")
    compared = fairopt("compare", EXAMPLE, "--policy", policy, "--json").data["policies"][policy]["properties"]
    answers = {name: each["answer"] for name, each in ran.data["properties"].items()}
    assert answers == {name: compared[name]["answer"] for name in answers}
    assert set(compared) - set(answers) == {"schedule_strategy_proofness"}
    assert ran.status == (1 if "FAILS" in answers.values() else 4)


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = decide(discovery.policy("posted-prices"), read_batch(EXAMPLE))
    again = plan_from(json.loads(json.dumps(document(plan))), plan.batch)
    assert document(again) == document(plan)
    assert (again.schedules, again.admissions, again.payments) == (plan.schedules, plan.admissions, plan.payments)


@pytest.mark.parametrize(
    ("change", "letter"),
    [
        ({"first": 2, "last": 3}, "(3l)"),
        ({"last": 9}, "(3k)"),
        ({"workers": [["s1", 3]]}, "(3c)"),
        ({"ps": []}, "(3g)"),
        ({"workers": [["s1", 1], ["s2", 1]]}, "(3j)"),
    ],
)
def test_broken_constraints_are_named(
    fairopt: Callable[..., Ran], tmp_path: Path, change: dict[str, Any], letter: str
) -> None:
    path = tmp_path / "mine.json"
    first = example_schedule(fairopt)["schedules"][0]
    path.write_text(json.dumps({"schedules": [{**first, **change}]}))
    ran = fairopt("verify", EXAMPLE, path)
    assert ran.status == 1
    assert letter in ran.out
    said = fairopt("verify", EXAMPLE, path, "--json")
    assert said.status == 1
    assert said.data["accepted"] is False
    assert any(letter in each for each in said.data["violations"])


def test_it_is_judged_on_the_batch_that_is_given(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    batch, schedule = tmp_path / "less.toml", tmp_path / "schedule.json"
    schedule.write_text(json.dumps(example_schedule(fairopt)))
    text = EXAMPLE.read_text().replace("count   = 4", "count   = 1").replace("workers = 4", "workers = 1")
    # one server with two workers and a PS, which u1 owns half of
    batch.write_text(text.replace("ps      = 2", "ps      = 1", 1).replace("ps      = 2", "ps      = 0"))
    ran = fairopt("verify", batch, schedule)
    assert ran.status in (1, 2)
    other = tmp_path / "later.toml"
    other.write_text(EXAMPLE.read_text().replace("arrival        = 3", "arrival        = 30"))
    ran = fairopt("verify", other, schedule)
    assert ran.status == 1
    assert "made for another batch" in ran.err
    assert "(3l)" in ran.out


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("schedule", "nowhere.toml", "--policy", "fcfs"), 2, "there is no such file"),
        (("schedule", dataset_path("oef_example.toml"), "--policy", "fcfs"), 2, "the key 'user' is that of a market"),
        (
            ("schedule", dataset_path("philly_cluster.toml"), "--policy", "fcfs"),
            2,
            "the key 'host' is that of a cluster",
        ),
        (("schedule", EXAMPLE, "--policy", "posted-price"), 2, "Did you mean posted-prices"),
        (("schedule", EXAMPLE, "--policy", "posted-prices", "--backend", "highs"), 3, "no program for highs"),
        (("schedule", EXAMPLE, "--policy", "posted-prices", "--set", "theta=1"), 2, "--set theta: got '1'"),
        (("schedule", EXAMPLE, "--policy", "posted-prices", "--set", "round=3"), 2, "Did you mean 'rounds'"),
        (("schedule", EXAMPLE, "--policy", "posted-prices", "--set", "search=x"), 2, "Known choices: Fast, Reference"),
        (("schedule", EXAMPLE, "--policy", "posted-prices", "--set", "rounds=0"), 2, "Give a whole number from 1"),
        (("verify", EXAMPLE, "nowhere.json"), 2, "nowhere.json: there is no such file"),
        (("verify", EXAMPLE, EXAMPLE), 2, "not JSON"),
        (("verify", EXAMPLE, "nowhere.json", "--property", "envy_freeness"), 2, "a property of an allocation"),
        (("verify", EXAMPLE, "nowhere.json", "--certificates", "DIR"), 2, "example.toml is a batch"),
        (
            ("verify", EXAMPLE, "nowhere.json", "--property", "schedule_strategy_proofness"),
            2,
            "not of one outcome",
        ),
    ],
)
def test_what_cannot_be_meant(
    fairopt: Callable[..., Ran], arguments: tuple[object, ...], status: int, says: str
) -> None:
    ran = fairopt(*arguments)
    assert (ran.status, ran.out) == (status, "")
    assert says in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "Add schedules"),
        ('{"schedules": [], "shedules": []}', "Did you mean 'schedules'"),
        ('{"schedules": 3}', "`fairopt schedule BATCH --json` shows the form"),
        ('{"schedules": [{"job": "j"}]}', "the form"),
        ('{"schedules": [], "schema": 7}', "got version 7"),
        ('{"schedules": [NaN]}', "the form"),
        ("[]", "Give an object"),
    ],
)
def test_schedules_that_cannot_be_read(fairopt: Callable[..., Ran], tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    ran = fairopt("verify", EXAMPLE, path)
    assert (ran.status, ran.out) == (2, "")
    assert str(path) in ran.err
    assert says in ran.err


def test_options() -> None:
    rule = discovery.policy("posted-prices")
    changed: Any = configured(rule, ["rounds=3", "intervals=none", "theta=admissible"])
    assert (changed.rounds, changed.intervals, changed.theta) == (3, None, None)
    changed = configured(rule, ["theta=16, 2.5"])
    assert changed.theta == (16.0, 2.5)
    for text in ("theta=1,2,3", "theta=high", "theta=0.5", "theta="):
        with pytest.raises(BadInput, match="--set theta"):
            configured(rule, [text])


def test_policies_of_schedules_are_listed(fairopt: Callable[..., Ran]) -> None:
    decides = {row["name"]: row["decides"] for row in fairopt("policies", "--json").data}
    assert {decides[name] for name in ALGORITHMS} == {"schedules"}
    assert (decides["srtf"], decides["max-min"]) == ("rounds", "shares")
    out = fairopt("policies").out
    assert out.index("policy of rounds") < out.index("policy of schedules") < out.index("posted-prices")


def test_the_optimum_by_name(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    batch, schedule = tmp_path / "batch.toml", tmp_path / "schedule.json"
    write_batch(astraea_small(jobs=3, servers=2), batch)
    ours = fairopt("schedule", batch, "--policy", "posted-prices", "--json").data
    ran = fairopt("schedule", batch, "--policy", "packing", "--json")
    assert Fraction(ran.data["revenue"]) >= Fraction(ours["revenue"])
    schedule.write_text(ran.out)
    assert fairopt("verify", batch, schedule, "--property", "budget_balance").status == 0
    assert "-" in fairopt("schedule", batch, "--policy", "packing").out


def test_the_verifier_itself_says_the_same(fairopt: Callable[..., Ran]) -> None:
    found, statement = verify_schedule.decide(json.dumps(example_schedule(fairopt)))
    assert found == []
    assert "(3a)-(3o)" in statement


@pytest.mark.parametrize(
    ("policy", "option"),
    [
        ("posted-prices", "intervals=60"),
        ("posted-prices", "rounds=1000000"),
        ("batch-private", None),
        ("posted-prices", None),
        ("fcfs", None),
        ("packing", "slots=100000000"),
    ],
)
def test_too_many_slots_are_refused(
    fairopt: Callable[..., Ran], tmp_path: Path, policy: str, option: str | None
) -> None:
    """Tables have a column for each slot: what would take a mistake's worth of them says so at once, in one line."""
    text = EXAMPLE.read_text(encoding="utf-8")
    if option is None:  # a job of 10^12 mini-batches and more
        text = text.replace("epochs         = 2", "epochs = 1000000").replace(
            "minibatches    = 1", "minibatches = 1000000"
        )
    path = tmp_path / "batch.toml"
    path.write_text(text, encoding="utf-8")
    ran = fairopt("schedule", path, "--policy", policy, *(() if option is None else ("--set", option)))
    assert ran.status == 2
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    assert "slot" in ran.err
