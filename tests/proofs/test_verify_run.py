"""The verifier of runs accepts what `run` records, and of every change only what the core itself would record."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import pytest
from drawn_seeds import counts, seeds
from tampering import Tampering, changes, is_number, places, tampered

from fairopt.backends import Session
from fairopt.errors import BadInput
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Outage, Queue, Trace
from fairopt.proofs.verifier import runs as verify_run
from fairopt.proofs.verifier.front import main
from fairopt.proofs.verifier.reading import Unreadable
from fairopt.simulation import History, Mechanics, Setting, run
from fairopt.simulation.document import document
from fairopt.testing.round_samples import LENGTH, by_hand, documented, sample_settings
from fairopt.testing.round_suite import Lender

FILE = Path(__file__).parents[2] / "proofs" / "verify.py"
NEAR = Fraction(1, 10**9)


def test_a_run_worked_out_by_hand() -> None:
    """4 GPUs on a and b: launch 1, data of 6 GB over the slower link (1 GB/s): 7; half speed, being spread."""
    data = documented(ShortestRemainingTimeFirst(), by_hand())
    assert verify_run.decide(json.dumps(data))[0] == []
    first = data["rounds"][0]
    # of two types only the new one has the memory that j2 needs, and only the old one the GPUs that j1 needs
    assert {each["job"]: each["spots"] for each in first["ran"]} == {"j1": [["a", 2], ["b", 2]], "j2": [["c", 2]]}
    j1, j2 = first["ran"]
    assert (j1["setup"], j1["speed"], j1["progress"], j1["remaining"]) == (7, "1/2", "53/2", "247/2")
    assert (j2["setup"], j2["end"], j2["completed"]) == (1, 41, True)
    second = data["rounds"][1]
    lost = [each for each in second["ran"] if each["lost"]]
    assert [(each["job"], each["end"], each["progress"]) for each in lost] == [("j1", 90, 0)]
    assert data["rounds"][2]["down"] == ["b"]
    assert [each["change"] for record in data["rounds"] for each in record["ran"] if each["job"] == "j1"] == [
        *("start", "stay", "resume", "stay", "stay", "stay", "stay")
    ]
    assert data["rounds"][4]["ran"][0]["setup"] == 5  # the restart: its state and its data are where they were
    assert data["rounds"][2]["unschedulable"] == {"j4": "old: needs 9 GPUs of 4; new: needs 9 GPUs of 2"}
    assert [each["job"] for each in data["standing"]] == ["j4"]


@pytest.mark.parametrize("settings", counts(5, 40))
@pytest.mark.parametrize("number", [Fraction, float])
@pytest.mark.parametrize("policy", [ShortestRemainingTimeFirst(), Lender(seed=5)], ids=lambda policy: policy.name)
def test_runs_are_accepted(policy: Policy, number: type, settings: int) -> None:
    for setting in sample_settings(settings, seed=9):
        text = json.dumps(documented(policy, setting.as_(number)))
        violations, statement = verify_run.decide(text, NEAR if number is float else Fraction(0))
        assert not violations
        assert "0 are under way" in statement


def test_a_part_of_a_run_is_accepted_and_the_statement_says_so() -> None:
    violations, statement = verify_run.decide(json.dumps(documented(ShortestRemainingTimeFirst(), by_hand(), rounds=2)))
    assert not violations
    assert "of 4 jobs 2 arrived, 1 were completed, 0 fit no type, 1 are under way" in statement


def test_floats_need_a_tolerance() -> None:
    text = json.dumps(documented(ShortestRemainingTimeFirst(), by_hand().as_(float)))
    with pytest.raises(Unreadable, match="no exact number"):
        verify_run.decide(text)
    wrong = json.loads(text)
    wrong["rounds"][0]["ran"][0]["remaining"] += 1e-3
    assert verify_run.decide(json.dumps(wrong), NEAR)[0]
    assert not verify_run.decide(json.dumps(wrong), Fraction(1, 100))[0]


def test_a_run_without_its_beginning_has_no_document() -> None:
    setting = by_hand()
    records = list(run(ShortestRemainingTimeFirst(), setting.trace, setting.cluster, length=60))
    with pytest.raises(BadInput, match="present before it"):
        document(History.of(setting.trace, setting.cluster, records[1:]), setting.mechanics, 60, "srtf")


def test_mechanics_of_ones_own_are_not_decided() -> None:
    class Slower(Mechanics):
        pass

    setting = by_hand()
    records = run(ShortestRemainingTimeFirst(), setting.trace, setting.cluster, length=60, mechanics=Slower())
    data = document(History.of(setting.trace, setting.cluster, records), Slower(), 60, "srtf")
    with pytest.raises(Unreadable, match="mechanics"):
        verify_run.decide(json.dumps(data))


def test_a_round_that_somebody_arrives_for_is_not_skipped() -> None:
    """The arrival is at the very beginning of the round that has no record."""
    cluster, jobs = Cluster.of(["T"], [1]), Jobs.of(gpus=[1], work=[30], types=["T"], arrival=[60])
    data = documented(ShortestRemainingTimeFirst(), Setting(cluster, Trace(jobs), Mechanics(), LENGTH))
    assert [record["index"] for record in data["rounds"]] == [1]
    assert not verify_run.decide(json.dumps(data))[0]
    data["trace"]["jobs"][0]["arrival"] = 0
    assert "arrived at 0 and is not there before this round" in verify_run.decide(json.dumps(data))[0][0]


def _first(data: dict[str, Any], job: str) -> dict[str, Any]:
    return next(ran for record in data["rounds"] for ran in record["ran"] if ran["job"] == job)


def _tear(data: dict[str, Any]) -> None:
    _first(data, "j1")["spots"] = [["a", 2], ["b", 1]]


def _overbook(data: dict[str, Any]) -> None:
    _first(data, "j1")["spots"] = [["a", 4]]


def _use_a_failed_host(data: dict[str, Any]) -> None:
    data["trace"]["outages"][0]["begin"] = 0


def _use_too_little_memory(data: dict[str, Any]) -> None:
    data["cluster"]["memory"][0] = 7


def _drop_from_waiting(data: dict[str, Any]) -> None:
    record = next(each for each in data["rounds"] if each["waiting"])
    record["waiting"].pop()


def _run_twice_to_the_end(data: dict[str, Any]) -> None:
    data["rounds"][1]["ran"].append(copy.deepcopy(_first(data, "j2")))


def _skip_a_round(data: dict[str, Any]) -> None:
    del data["rounds"][1]


def _arrive_unseen(data: dict[str, Any]) -> None:
    data["trace"]["jobs"][2]["arrival"] = 0


def _work_while_loading(data: dict[str, Any]) -> None:
    _first(data, "j1")["setup"] = 0


@pytest.mark.parametrize(
    ("tamper", "says"),
    [
        (_tear, "round 0: job 'j1': it needs 4 GPUs at once"),
        (_overbook, "round 0: host 'a' gives out 4 GPUs and has 2"),
        (_use_a_failed_host, "round 0: host 'b' gives out 2 GPUs and has 0"),
        (_use_too_little_memory, "round 0: job 'j1': it cannot run there"),
        (_drop_from_waiting, "waiting is"),
        (_run_twice_to_the_end, "round 1: job 'j2': it ran and is not present"),
        (_skip_a_round, "rounds 1 to 1 have no record"),
        (_arrive_unseen, "round 0: arrived is"),
        (_work_while_loading, "round 0: job 'j1': setup is 0 and should be 7"),
    ],
)
def test_a_violation_is_named_with_its_place(tamper: Any, says: str) -> None:
    data = documented(ShortestRemainingTimeFirst(), by_hand())
    tamper(data)
    violations = verify_run.decide(json.dumps(data))[0]
    assert any(says in each for each in violations), violations


def test_the_command_line(tmp_path: Path) -> None:
    right, wrong, odd = (tmp_path / f"{name}.json" for name in ("right", "wrong", "odd"))
    data = documented(ShortestRemainingTimeFirst(), by_hand())
    right.write_text(json.dumps(data))
    data["rounds"][0]["usable"] = 5
    wrong.write_text(json.dumps(data))
    odd.write_text('{"schema": 1, "schema": 1}')
    ran = subprocess.run([sys.executable, "-I", str(FILE), str(right)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert "accepted: 9 rounds on 3 hosts (4 'old', 2 'new')" in ran.stdout
    assert main([str(right), str(wrong)]) == 1
    assert main([str(wrong), str(odd), str(right)]) == 2
    assert main([str(tmp_path / "none.json")]) == 2


@dataclass(frozen=True)
class Playback(Policy):
    """Decides what a document says was decided; the core then says what comes of it."""

    problem: ClassVar[type] = Queue
    name: ClassVar[str] = "playback"
    source: ClassVar[str] = "a document"
    data: Any = None

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        record = next(each for each in self.data["rounds"] if each["index"] == problem.index)
        placements, leases = {}, {}
        for ran in record["ran"]:
            row = problem.jobs.names.index(ran["job"])
            lease = float("inf") if ran["lease"] is None else Fraction(ran["lease"])
            # what the verifier asks beyond the core: a running lease is not cut short, and a unschedulable job does not
            # run
            assert row not in placements
            assert row not in problem.unschedulable
            assert row not in problem.leased or lease >= problem.lease[row]
            leases[row] = lease
            placements[row] = tuple((problem.cluster.hosts.index(host), gpus) for host, gpus in ran["spots"])
        return Schedule(self.data["policy"], problem, placements, leases)


def replayed(data: dict[str, Any]) -> dict[str, Any]:
    """The document that the core writes for the same inputs, placements and leases; any error means that it cannot."""
    cluster, trace, given = data["cluster"], data["trace"], data["mechanics"]
    hosts, jobs = cluster["hosts"], trace["jobs"]
    assert trace["types"] == cluster["types"]
    assert len(cluster["memory"]) == len(cluster["types"])
    own = Cluster.of(
        [host["type"] for host in hosts],
        [host["gpus"] for host in hosts],
        types=cluster["types"],
        memory=dict(zip(cluster["types"], cluster["memory"], strict=True)),
        bandwidth=[host["bandwidth"] for host in hosts],
        hosts=[host["name"] for host in hosts],
    )
    columns = {key: [job[key] for job in jobs] for key in jobs[0] if key != "name"}
    weights = {tenant["name"]: tenant["weight"] for tenant in trace["tenants"]}
    made = Jobs.of(types=trace["types"], names=[job["name"] for job in jobs], **columns)
    assert set(made.tenants) <= set(weights)
    assert all(Fraction(weight) > 0 for weight in weights.values())
    assert len(weights) == len(trace["tenants"])
    assert made.names == tuple(job["name"] for job in jobs), "not sorted by arrival"
    ends = [(each, float("inf") if each["end"] is None else Fraction(each["end"])) for each in trace["outages"]]
    played = Trace(made, tuple(Outage(each["host"], Fraction(each["begin"]), end) for each, end in ends))
    costs = {key: Fraction(given[key]) for key in ("restart", "launch", "spread")}
    setting = Setting(own, played, Mechanics(**costs, local_data=given["local_data"]), Fraction(data["length"]))
    return documented(Playback(data), setting, len(data["rounds"]))


def core_of(data: dict[str, Any]) -> str:
    """What of a document the replay decides: all but tenants, and what is the policy's own."""
    kept = copy.deepcopy(data)
    del kept["policy"], kept["trace"]["tenants"]
    for record in kept["rounds"]:
        record["unschedulable"] = list(record["unschedulable"])
        for key in ("costs", "notes", "backend", "seconds"):
            del record[key]
    return json.dumps(plain(kept))


def plain(value: Any) -> Any:
    """The same with every number written in one way: "4/2" and "2" are 2."""
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        return [[key, plain(each)] for key, each in pairs]
    return str(Fraction(value)) if is_number(value) else value


def right_by_the_core(data: dict[str, Any]) -> bool:
    try:
        return core_of(replayed(data)) == core_of(data)
    except Exception:  # noqa: BLE001  # whatever the core stumbles over, it would not have written this
        return False


def accepted(data: dict[str, Any]) -> bool:
    try:
        return not verify_run.decide(json.dumps(data))[0]
    except Unreadable:
        return False


def judged_alike(data: dict[str, Any], changed: Iterator[Tampering]) -> tuple[int, int]:
    total = stood = 0
    for change in changed:
        other = change.of(data)
        verdict = accepted(other)
        total, stood = total + 1, stood + verdict
        if change.place[-1] in ("backend", "policy", "seconds") or "unschedulable" in change.place:
            continue  # what nobody works out is checked for its form at most
        assert verdict == right_by_the_core(other), f"{'accepted' if verdict else 'rejected'}: {change}"
    return total, stood


def some(data: dict[str, Any], random: Random, most: int) -> Iterator[Tampering]:
    """One change at each of ``most`` places."""
    everywhere = list(places(data))
    for place in random.sample(everywhere, min(most, len(everywhere))):
        yield from random.sample(possible := changes(data, place, random), min(1, len(possible)))


@pytest.mark.parametrize("most", counts(150, 10_000))
def test_a_change_at_places_of_a_small_document(most: int) -> None:
    """In every run at some of its places, in the campaign at all."""
    data = documented(ShortestRemainingTimeFirst(), by_hand())
    assert right_by_the_core(data)
    total, stood = judged_alike(data, some(data, Random(1), most))
    assert total > min(most, 400) * 3 / 4
    assert 0 < stood < total / 4  # what a run does not depend on may change: the size of a state that never moves


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_changes_of_larger_documents(seed: int) -> None:
    for setting in sample_settings(1, seed=20 + seed, jobs=(5, 8)):
        data = documented(Lender(seed=seed), setting)
        assert right_by_the_core(data)
        judged_alike(data, some(data, Random(seed), 60))


@pytest.mark.slow
def test_every_change_of_a_small_document() -> None:
    data = documented(ShortestRemainingTimeFirst(), by_hand())
    total, _ = judged_alike(data, tampered(data, Random(1)))
    assert total > 1500


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_every_change_of_larger_documents(seed: int) -> None:
    for setting in sample_settings(1, seed=40 + seed, jobs=(5, 9)):
        data = documented(Lender(seed=seed), setting)
        judged_alike(data, tampered(data, Random(seed)))
