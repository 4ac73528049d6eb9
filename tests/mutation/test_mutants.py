"""The mutants themselves: each differs from the file in one place, and one that opens a hole is noticed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cosmic_ray")

import corpus
from explained import by_rule, read_ones
from mutants import mutants

SOURCE = '''"""A check."""


def check(amount: int | None, most: int) -> int:
    """Refuse too much."""
    require(amount)
    if amount > most:
        raise ValueError("too much")
    return min(amount, 1)
'''


def test_mutants_differ_in_one_place_and_annotations_stay(tmp_path: Path) -> None:
    path = tmp_path / "check.py"
    path.write_text(SOURCE)
    found = {each.name: each for each in mutants(path, path.name)}
    assert found["NeverDone 0"].change == "if amount > most: -> if False:"
    assert found["LeftOut 0"].change == "require(amount) -> pass"
    assert found["Gt_GtE 0"].change == "if amount > most: -> if amount >= most:"
    assert "max(amount, 1)" in found["OtherEnd 0"].change
    lines = {(each.change.partition(" -> ")[0], each.lines) for each in found.values()}
    assert lines == {
        ("require(amount)", range(6, 7)),
        ("if amount > most:", range(7, 8)),
        ("return min(amount, 1)", range(9, 10)),
    }
    assert not any(name.startswith("BitOr") for name in found)
    sources = [each.source for each in found.values()]
    assert len(set(sources)) == len(sources)
    assert SOURCE not in sources


RULED = """MOST = MOST_TERMS = 7


def check(amounts: list[int], most: list[int]) -> None:
    within(len(amounts) + 1, MOST)
    require(len(amounts) > 2, "place", f"{len(amounts) + 3} are too few")
    for amount, limit in zip(amounts, most, strict=True):
        if amount == inf or amount > limit + 4:
            raise ValueError(f"{amount - 5} is too much")
"""


def test_a_rule_explains_words_lengths_limits_and_infinity_and_no_check(tmp_path: Path) -> None:
    path = tmp_path / "check.py"
    path.write_text(RULED)
    rules = {each.change: by_rule(each) for each in mutants(path, path.name)}
    explained = {change for change, why in rules.items() if why}
    for change, why in (
        ("+ 1", "limit of work"),
        ("+ 3", "other words"),
        ("strict=False", "lengths"),
        ("- 5", "words"),
    ):
        assert any(change in each and why in (rules[each] or "") for each in explained)
    assert any("amount >= inf" in each for each in explained)
    checked = [each for each in rules if "> limit" in each.partition(" -> ")[0] and "amount >= inf" not in each]
    checked += [each for each in rules if "len(amounts) >= 2" in each]
    assert len(checked) > 5
    assert all(rules[each] is None for each in checked)


def test_what_was_read_is_still_there() -> None:
    """A change that is no mutant any more has to be read again; in a verifier an entry is of one place only."""
    verifiers, checkers = corpus.SUBJECTS["verifiers"].folder, corpus.SUBJECTS["properties"].folder
    for file, change in read_ones():
        path = next(found for each in (verifiers, checkers) if (found := each / file).exists())
        lines = [" ".join(each.split()) for each in path.read_text(encoding="utf-8").splitlines() if each.strip()]
        places = list(_places(lines, " ".join(change.partition(" -> ")[0].split())))
        assert len(places) == 1 if path.parent == verifiers else places, (file, change)


def _places(lines: list[str], changed: str) -> Iterator[int]:
    """Yield where lines stand, which were put behind each other."""
    for at, line in enumerate(lines):
        ends = range(at + 1, min(at + 20, len(lines)) + 1) if changed.startswith(line) else ()
        if any(" ".join(lines[at:end]) == changed for end in ends):
            yield at


def test_a_corpus_that_was_broken_off_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, part = [], tmp_path / "corpus" / "part"
    part.parent.mkdir()
    part.touch()

    def run(words: list[str], **options: Any) -> None:
        made.append(words)
        (Path(options["env"]["MUTATION_CORPUS"]) / "given.jsonl").touch()

    monkeypatch.setattr(corpus.subprocess, "run", run)
    for _ in range(2):
        assert corpus.collected(corpus.SUBJECTS["verifiers"], part.parent) == []
    assert len(made) == 1
    assert not part.exists()


def command() -> Any:
    """Return the command's module; its name is that of every command."""
    spec = spec_from_file_location("mutation_command", Path(__file__).with_name("__main__.py"))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_who_is_ended_by_the_clock_is_not_killed() -> None:
    fate = command().fate
    assert [fate(each) for each in (0, 1 << 8, signal.SIGPROF, signal.SIGALRM)] == [
        "survived",
        "killed",
        "killed",
        "out of time",
    ]


def test_tests_that_fail_without_a_mutant_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = command()
    monkeypatch.setattr(asked, "passes", lambda tests: tests == ("good.py",))
    asked.require_passing(None)
    asked.require_passing(("good.py",))
    with pytest.raises(SystemExit, match=r"bad\.py fail on the unchanged code: mend them"):
        asked.require_passing(("bad.py",))
