"""What the README says is what happens: its Python runs, its table is what the command prints, its names exist."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

from fairopt import read_market
from fairopt.cli import main
from fairopt.discovery import BACKENDS, POLICIES, names

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
POLICY_PAGE = (ROOT / "docs/policies.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["README.md", "docs/python.md", "docs/rounds.md", "docs/benchmarks.md"])
def test_python_in_the_documents_runs(name: str) -> None:
    found = doctest.testfile(str(ROOT / name), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 5
    assert found.failed == 0


def test_the_readme_is_read_in_ten_minutes() -> None:
    prose = re.sub(r"^```.*?^```", "", README, flags=re.M | re.S)
    assert len(prose.split()) <= 700
    assert len(README.split()) <= 1400


def test_the_table_in_the_readme_is_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    command = "compare fairopt/datasets/oef_example.toml"
    assert command in README
    monkeypatch.setattr(sys, "argv", ["fairopt", *command.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == README.split(f"{command}\n")[1].split("```")[0].splitlines()


@pytest.mark.parametrize("name", ["README.md", "docs/command_line.md"])
def test_the_market_file_in_the_documents_is_valid(tmp_path: Path, name: str) -> None:
    path = tmp_path / "readme.toml"
    text = re.search(r"```toml\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.S)
    assert text is not None
    path.write_text(text[1])
    market = read_market(path)
    assert market.users == ("A", "B/train", "B/tune")


def test_all_policies_and_back_ends_are_listed() -> None:
    for group in (POLICIES, BACKENDS):
        assert all(f"`{name}`" in text for text in (README, POLICY_PAGE) for name in names(group))
