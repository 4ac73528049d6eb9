"""What measures a checkout says what is wrong with a folder that is none, before it measures anything."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent / "house.py"


@pytest.mark.parametrize("folder", ["missing", "empty"])
@pytest.mark.parametrize("options", [[], ["--write"]])
def test_a_folder_that_is_no_checkout_is_refused_by_name(
    folder: str, options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr("sys.argv", ["house.py", *options, str(tmp_path / folder)])
    with pytest.raises(SystemExit, match=f"{folder}: it is no checkout of fairopt") as stop:
        runpy.run_path(str(HOUSE), run_name="__main__")
    assert "git worktree add" in str(stop.value)


def test_what_it_takes_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["house.py", "--help"])
    runpy.run_path(str(HOUSE), run_name="__main__")
    assert "--write" in capsys.readouterr().out
