"""The verifier of runs reads records of changes, and a forger gains nothing, in whatever unit."""

from __future__ import annotations

import copy
import gzip
import json
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest
from drawn_seeds import counts
from tampering import Tampering, changes, places

from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.proofs.verifier.reading import Unreadable
from fairopt.proofs.verifier.runs import decide, decide_file
from fairopt.simulation import Mechanics, Setting
from fairopt.simulation.engine import Engine
from fairopt.simulation.recording import header, write_record
from fairopt.testing.counted_steps import CountedSteps
from fairopt.testing.round_samples import LENGTH, by_hand, documented, sample_settings
from fairopt.testing.round_suite import Lender

NEAR = Fraction(1, 10**9)
#: Steps, fewer than are taken by what has no end where rounds are not skipped.
A_HANG = 10_000_000


def recorded(policy: Policy, setting: Setting, path: Path, rounds: int | None = None) -> list[dict[str, Any]]:
    """The lines of a run's record, which is at ``path``, too."""
    cluster, trace, mechanics = setting.cluster, setting.trace, setting.mechanics
    run_ = header(policy.name, trace, cluster, length=setting.length, mechanics=mechanics)
    play = Engine(policy, trace, cluster, length=setting.length, mechanics=mechanics, rounds=rounds)
    write_record(path, run_, trace, cluster, play)
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


def of_lines(lines: list[dict[str, Any]], tolerance: Fraction = Fraction(0)) -> list[str]:
    return decide("\n".join(map(json.dumps, lines)), tolerance)[0]


@pytest.mark.parametrize("number", [Fraction, float])
@pytest.mark.parametrize("policy", [ShortestRemainingTimeFirst(), Lender(seed=5)], ids=lambda policy: policy.name)
def test_records_are_accepted(policy: Policy, number: type, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl.gz"
    for at, setting in enumerate(sample_settings(24, seed=9)):
        recorded(policy, setting.as_(number), path, rounds=(None, 3, 8)[at % 3])
        assert decide_file(path, NEAR if number is float else None)[0] == []


def test_a_change_of_a_record_is_rejected(tmp_path: Path) -> None:
    """Every number, name and list of what changed, and every line left out or said twice."""
    lines = recorded(Lender(seed=1), by_hand(), tmp_path / "run.jsonl")
    assert of_lines(lines) == []
    judged = 0
    for at, line in enumerate(lines[1:], 1):
        for other in ([*lines[:at], *lines[at + 1 :]], [*lines[: at + 1], *lines[at:]]):
            assert not quietly_accepted(other), line
        for place in places(line):
            if {"seconds", "unschedulable", "costs", "notes"} & set(place) or "job" in line or "lease" in place:
                continue
            for change in changes(line, place, Random(at)):
                if change.value is None:
                    continue
                judged += 1
                assert not quietly_accepted([*lines[:at], change.of(line), *lines[at + 1 :]]), change
    assert judged > 50


def quietly_accepted(lines: list[dict[str, Any]]) -> bool:
    try:
        return not of_lines(lines)
    except Unreadable:
        return False


ODD: tuple[Any, ...] = (None, 7, [0], {"x": 1})


@pytest.mark.parametrize("step", counts(9, 1))
@pytest.mark.parametrize("odd", ODD, ids=str)
def test_nothing_that_stands_anywhere_makes_it_stumble(odd: Any, step: int, tmp_path: Path) -> None:
    """What is no run cannot be read, or is rejected; there is no other error. Each place has some of the values."""
    lines = recorded(ShortestRemainingTimeFirst(), by_hand(), tmp_path / "run.jsonl")
    for at, line in enumerate(lines):
        for place in list(places(line))[(at + ODD.index(odd)) % step :: step]:
            quietly_accepted([*lines[:at], Tampering(place, "odd", odd).of(line), *lines[at + 1 :]])
        for key in {} if "job" in line else line:
            quietly_accepted([*lines[:at], {**line, key: odd}, *lines[at + 1 :]])
    data = documented(ShortestRemainingTimeFirst(), by_hand())
    for place in list(places(data))[ODD.index(odd) % step : 120 : step]:  # what a run begins with
        with suppress(Unreadable):
            decide(json.dumps(Tampering(place, "odd", odd).of(data)))


def scaled(time: str, work: str, shift: str = "0") -> Setting:
    """One job on one GPU, a gang that waits for it, in other units of time and work, begun at another time."""
    cluster = Cluster.of(["T"], [2])
    beat, unit, begun = Fraction(time), Fraction(work), Fraction(shift)
    jobs = Jobs.of(
        gpus=[1, 2],
        work=[100 * 60 * unit, 1200 * unit],
        types=["T"],
        throughput=[[unit / beat], [unit / beat]],
        arrival=[begun, begun],
        names=["long", "gang"],
    )
    setting = Setting(cluster, Trace(jobs), Mechanics(), 60 * beat)
    return setting.as_(float)


UNITS = [("1", "1", "0"), ("1", "1e-6", "0"), ("1e-6", "1", "0"), ("1e9", "1e9", "0"), ("1", "1", "1700000040")]
USUAL = Fraction(1, 10**6)


@pytest.mark.parametrize("units", UNITS)
def test_the_tolerance_is_a_part_of_a_round_and_of_its_work(units: tuple[str, str, str], tmp_path: Path) -> None:
    """Whatever the units, and whatever the clock says: a forger gains no part of a round that anybody could see."""
    lines = recorded(ShortestRemainingTimeFirst(), scaled(*units), tmp_path / "run.jsonl")
    assert of_lines(lines, USUAL) == []
    beat = float(Fraction(lines[0]["run"]["length"]))
    data = documented(ShortestRemainingTimeFirst(), scaled(*units))
    assert decide(json.dumps(data), USUAL)[0] == []
    ended = [line for line in lines if "complete" in line]
    assert len(ended) == 2
    for part in (0.5, 1e-4):
        forged = copy.deepcopy(lines)
        end = next(line for line in forged if "complete" in line)
        [job] = end["complete"]
        end["complete"][job] -= part * beat
        assert of_lines(forged, USUAL), part
        other = copy.deepcopy(data)
        ran = other["rounds"][1]["ran"][0]
        ran["remaining"] -= part * ran["speed"] * beat
        assert decide(json.dumps(other), USUAL)[0], part
    # all of a job's work in its first round
    other = copy.deepcopy(data)
    ran = other["rounds"][0]["ran"][0]
    ran.update(progress=ran["progress"] + ran["remaining"], remaining=0.0, completed=True)
    assert decide(json.dumps(other), USUAL)[0]
    # twenty rounds are missing while a job waits
    other = copy.deepcopy(data)
    del other["rounds"][5:25]
    assert any("have no record" in what for what in decide(json.dumps(other), USUAL)[0])


def test_1200_seconds_of_work_in_a_round_of_60_are_rejected() -> None:
    """With Unix timestamps a millionth of the clock is half an hour."""
    jobs = Jobs.of(gpus=[1], work=[1200], types=["T"], arrival=[1_700_000_040])
    data = documented(
        ShortestRemainingTimeFirst(), Setting(Cluster.of(["T"], [1]), Trace(jobs), Mechanics(), LENGTH).as_(float)
    )
    assert len(data["rounds"]) == 20
    del data["rounds"][1:]
    ran = data["rounds"][0]["ran"][0]
    ran.update(end=ran["end"] + 1140, progress=1200.0, remaining=0.0, completed=True)
    data["standing"] = []
    assert decide(json.dumps(data), USUAL)[0]


@pytest.mark.parametrize("index", [10**9, 10**300])
def test_however_many_rounds_lie_between_two_lines_they_are_skipped_at_once(index: int, tmp_path: Path) -> None:
    cluster, jobs = Cluster.of(["T"], [1]), Jobs.of(gpus=[1], work=[30], types=["T"], arrival=[60])
    lines = recorded(
        ShortestRemainingTimeFirst(), Setting(cluster, Trace(jobs), Mechanics(), LENGTH), tmp_path / "run.jsonl"
    )
    lines[0]["run"]["trace"]["outages"] = [
        {"host": lines[0]["run"]["cluster"]["hosts"][0]["name"], "begin": 0, "end": 1}
    ]
    lines[1]["job"]["work"] = index * 10**6
    lines[-1]["end"] = index
    with CountedSteps(A_HANG):
        assert of_lines(lines)


def test_what_is_not_judged_is_said_and_the_outcome_is_judged() -> None:
    data = documented(ShortestRemainingTimeFirst(), by_hand())
    data |= {
        "policy": "fair",
        "measures": {"jct_mean": 0},
        "outcome": {"complete": True, "stopped": None, "options": []},
    }
    found, said = decide(json.dumps(data))
    assert not found
    assert "Not judged: whether the policy that is said to be 'fair' decides so" in said
    assert "measures" in said.partition("Not judged")[2]
    data["outcome"] = {"complete": True}  # why a run stopped need not be told
    assert not decide(json.dumps(data))[0]
    data["outcome"]["complete"] = False
    assert decide(json.dumps(data))[0] == ["outcome: complete is False and should be True"]


def test_a_record_that_breaks_off_and_a_state_of_an_earlier_fairopt_are_refused(tmp_path: Path) -> None:
    lines = recorded(ShortestRemainingTimeFirst(), by_hand(), tmp_path / "run.jsonl")
    with pytest.raises(Unreadable, match="breaks off"):
        of_lines(lines[:-1])
    with pytest.raises(Unreadable, match="earlier fairopt"):
        of_lines([{"schema": 1, "run": {}}])
    with pytest.raises(Unreadable, match="tolerance"):
        of_lines(lines, Fraction(1, 2))


def test_a_record_and_a_document_name_the_same_trace_and_the_same_mechanics(tmp_path: Path) -> None:
    """A document's line named neither, so that runs of different traces, or at other costs of moving, had one line."""

    def named(setting: Setting) -> list[str]:
        lines = recorded(Lender(seed=1), setting, tmp_path / "run.jsonl")
        texts = ["\n".join(map(json.dumps, lines)), json.dumps(documented(Lender(seed=1), setting))]
        return [decide(text)[1].partition("; the trace has sha256 ")[2].partition(".")[0] for text in texts]

    (record, document), (dearer, _) = named(by_hand()), named(replace(by_hand(), mechanics=Mechanics(Fraction(5))))
    assert record == document
    trace, _, mechanics = record.partition("; length, mechanics and cluster are ")
    assert (len(trace), len(mechanics)) == (64, 32)
    assert dearer.startswith(f"{trace}; ")
    assert dearer != record
