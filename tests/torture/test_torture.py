"""The trials themselves: a few of each kind, that they go on where they stopped, and that they find what is planted."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from campaign import Chunk, play, read, run, summed, wanted
from catalogue import KINDS, TRIALS
from planted import PLANTED, Planted, first_fault, found, planted
from trials import Ending, Fault, Kind, TooLong, at_most

QUICK = {"a": 6, "b": 3, "c": 0, "d": 2, "e": 1, "f": 1}
TEN_MINUTES = 120.0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if QUICK[kind.letter]], ids=lambda kind: kind.name)
def test_a_few_trials_have_no_fault(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evidence.MARKETS", 2)  # to make certificates takes most of the time of a few changes
    chunk = play(kind, 0, QUICK[kind.letter])
    assert not chunk.faults
    assert sum(chunk.counts.values()) == QUICK[kind.letter]


@pytest.mark.slow
@pytest.mark.parametrize("letter", TRIALS)
def test_ten_minutes_of_trials_have_no_fault(letter: str, tmp_path: Path) -> None:
    todo = wanted(KINDS, {letter: TRIALS[letter]}, [])
    chunks = list(run(todo, tmp_path / "journal.jsonl", 2, time.monotonic() + TEN_MINUTES))
    assert chunks
    assert not [chunk.faults for chunk in chunks if chunk.faults]


@pytest.mark.slow
@pytest.mark.parametrize("fault", PLANTED, ids=lambda fault: f"{fault.kind}: {fault.old[:40]}")
def test_what_is_planted_is_found(fault: Planted, tmp_path: Path) -> None:
    assert found(fault, tmp_path)


def test_what_is_planted_stands_where_it_is_said(tmp_path: Path) -> None:
    assert len(PLANTED) >= 40
    top = Path(__file__).parents[2]
    for fault in PLANTED:
        assert (top / fault.file).read_text(encoding="utf-8").count(fault.old) == 1, fault
    assert planted(PLANTED[0], tmp_path).exists()


def test_several_processes_play(tmp_path: Path) -> None:
    kind = next(kind for kind in KINDS if kind.name == "call Market.of")
    chunks = list(run(iter([(kind, 0, 3), (kind, 1, 4)]), tmp_path / "journal.jsonl", 2, time.monotonic() + 60))
    assert sorted((chunk.number, sum(chunk.counts.values())) for chunk in chunks) == [(0, 3), (1, 4)]


def test_trials_go_on_where_they_stopped(tmp_path: Path) -> None:
    kind = Kind("a", "coin", lambda draw: draw.choice([Ending.RIGHT, Ending.REFUSED]), cost=1000.0)
    journal = tmp_path / "journal.jsonl"
    first = [next(run(wanted([kind], {"a": 33}, []), journal, 1, time.monotonic() + 60))]
    with journal.open("a") as stream:
        stream.write('{"kind": "coi')  # it was stopped while it wrote
    done = read(journal)
    assert [chunk.number for chunk in done] == [chunk.number for chunk in first] == [0]
    rest = list(run(wanted([kind], {"a": 33}, done), journal, 1, time.monotonic() + 60))
    assert [chunk.number for chunk in rest] == [1, 2, 3, 4, 5, 6]
    assert summed(read(journal))["coin"].total() == 33


def test_other_kinds_make_up_for_one_of_which_few_are_enough() -> None:
    few, many = (
        Kind("b", name, lambda draw: Ending.RIGHT, cost=1.0, most=most) for name, most in (("few", 7), ("many", 10**9))
    )
    counts = {"few": 0, "many": 0}
    for kind, _, count in wanted([few, many], {"b": 20_000}, []):
        counts[kind.name] += count
    assert counts == {"few": 7, "many": 19_993}


def _slow(draw: random.Random) -> Ending:
    while True:
        time.sleep(0.01)


def _hang(draw: random.Random) -> Ending:
    raise Fault(Ending.HANG, "no end")


def _wrong(draw: random.Random) -> Ending:
    raise Fault(Ending.WRONG, "two and two are five")


FAULTS = [(_slow, "slow"), (_hang, "hang"), (_wrong, "wrong"), (lambda draw: 1 / 0, "traceback")]


@pytest.mark.parametrize(("attempt", "ending"), FAULTS)
def test_a_fault_is_kept_with_its_seed(attempt: object, ending: str) -> None:
    chunk: Chunk = play(Kind("a", "bad", attempt, limit=0.05), 0, 2)  # type: ignore[arg-type]
    assert chunk.counts == {ending: 2}
    assert [fault["seed"] for fault in chunk.faults] == [0, 1]


@pytest.mark.parametrize(("attempt", "trials"), [(_slow, 0), (_hang, 1), (_wrong, 1), (lambda draw: Ending.RIGHT, 0)])
def test_what_is_planted_is_found_by_a_hang_but_not_by_slowness(attempt: object, trials: int) -> None:
    assert first_fault(Kind("a", "bad", attempt, limit=0.01), 2) == trials  # type: ignore[arg-type]


def _limits(reached: list[str]) -> None:
    with at_most(0.03):
        try:
            with at_most(0.01):
                time.sleep(60)
        except TooLong:
            reached.append("inner")
        time.sleep(60)


def test_a_limit_within_another_lets_that_one_go_on() -> None:
    reached: list[str] = []
    with pytest.raises(TooLong):
        _limits(reached)
    assert reached == ["inner"]
