"""The two verifiers side by side: a few files, and that a difference would be seen."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import differential
import pytest
from certificate_kinds import BY_HAND
from differential import Block, Proved, differ, play, put_into, read, renamed, respelled, summed
from drawn_seeds import counts, seeds
from tampering import changes, places

from fairopt.proofs.verifier import front
from fairopt.proofs.verifier.reading import one_line
from fairopt.proofs.verify import verify

BUILT = pytest.mark.skipif(not differential.PROGRAM.exists(), reason="it is not built: make verified")


@BUILT
@pytest.mark.parametrize("seed", seeds(1, 2))
def test_both_say_the_same(seed: int, tmp_path: Path) -> None:
    with Proved() as proved:
        block = play(10**6 + seed, proved, tmp_path / "file.json")
    assert not block.differences
    assert sum(count for name, count in block.counts.items() if name.endswith(": accepted")) > 30


#: Of what is worked out by hand, what the proved verifier does not decide.
OPEN = """
UP_TO_2 UP_TO_4 ENVIOUS NEVER EFFICIENT_IN_RANGE DOMINATED_IN_RANGE NASH_COSTS_NOTHING
"""


@BUILT
@pytest.mark.parametrize("most", counts(3, 1_000))
@pytest.mark.parametrize("name", BY_HAND)
def test_what_is_worked_out_by_hand_is_accepted_and_what_is_forged_is_not(name: str, most: int, tmp_path: Path) -> None:
    data, draw, path = json.loads(json.dumps(BY_HAND[name])), Random(name), tmp_path / "file.json"
    everywhere = list(places(data))
    possible = [changes(data, place, draw) for place in draw.sample(everywhere, min(most, len(everywhere)))]
    with Proved() as proved:
        path.write_text(json.dumps(data))
        found = proved.report(path)
        assert found[0] == 4 if name in OPEN.split() else found == (0, f"accepted: {verify(data)}")
        for change in [draw.choice(each) for each in possible if each]:
            path.write_text(json.dumps(change.of(data)))
            status, said = front.report(path)
            assert not differ((status, one_line(said[0])), proved.report(path)), f"{change.kind} at {change.place}"


class Wrong:
    """It accepts everything, with a statement of its own."""

    def ask(self, paths: list[Path]) -> None:
        pass

    def answer(self) -> tuple[int, str]:
        return 0, "accepted: all is well"


def test_a_difference_is_kept_with_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = [(f"{name}, as written", json.dumps(each).encode()) for name, each in [*BY_HAND.items()][::6]]
    monkeypatch.setattr("differential.files", lambda seed, only, enough: iter(drawn))
    block = play(0, Wrong(), tmp_path / "file.json")
    assert [json.loads(each["file"]) for each in block.differences] == [json.loads(each) for _, each in drawn]
    assert sum(block.counts.values()) == len(drawn)
    assert {each["coq"] for each in block.differences} == {"accepted: all is well"}
    assert all(name.endswith(": difference") for name in block.counts)


def test_answers_differ_in_their_status_and_in_what_is_accepted() -> None:
    assert not differ((1, "REJECTED: this"), (1, "REJECTED: that"))
    assert differ((0, "accepted: this"), (0, "accepted: that"))
    assert differ((2, "cannot be read: this"), (1, "REJECTED: this"))
    assert differ((1, "REJECTED: this"), (0, "accepted: this"))
    assert not differ((0, "accepted: this"), (4, "NOT COVERED: this"))


def test_what_is_spelled_otherwise_says_the_same() -> None:
    for name, data in BY_HAND.items():
        assert verify(respelled(json.loads(json.dumps(data)), Random(name))) == verify(data)


def test_what_is_renamed_is_still_proved() -> None:
    for name, data in BY_HAND.items():
        other = renamed(json.loads(json.dumps(data)), Random(name))
        assert verify(other)
        assert (other == data) is ("market" not in data and "of" not in data)


def test_counts_go_into_the_page_and_a_line_that_broke_off_is_played_again(tmp_path: Path) -> None:
    blocks = [
        Block(0, {"bound, forged: REJECTED": 2}),
        Block(1, {"bound, forged: REJECTED": 1, "envy, as written: accepted": 1}),
    ]
    page = put_into(f"before\n{differential.BEGIN}\nold\n{differential.END}\nafter", blocks)
    assert "| bound | 3 | 3 | 0 | 3 | 0 | 0 | 0 |" in page
    assert "| envy | 1 | 0 | 1 | 0 | 0 | 0 | 0 |" in page
    assert "| **all** | 4 | 3 | 1 | 3 | 0 | 0 | 0 |" in page
    assert "old" not in page
    assert page.endswith("\nafter")
    journal = tmp_path / "journal.jsonl"
    journal.write_text('{"seed": 0, "counts": {"a: accepted": 1}, "differences": []}\n{"seed": 1, "cou')
    assert [block.seed for block in read(journal)] == [0]
    assert summed(read(journal)).total() == 1
