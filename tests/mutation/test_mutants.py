"""The mutants themselves: each differs from the file in one place, and one that opens a hole is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray")

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
