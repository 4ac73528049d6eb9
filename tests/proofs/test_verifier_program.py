"""``proofs/verify.py`` as a program: which file is what, exit status, and what it is made of."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from fairopt.cli import main
from fairopt.proofs.verifier import front
from fairopt.testing.certificate_kinds.decisions import EFFICIENT
from fairopt.testing.certificate_kinds.examples import certificate, market

PROOFS = Path(__file__).parents[2] / "proofs"
VERIFIER = PROOFS / "verify.py"
#: All verifiers together; they are to be read in one sitting.
MOST_LINES = 2800


def test_it_needs_the_standard_library_only_and_can_be_read_in_one_sitting() -> None:
    sources = [*PROOFS.glob("verify*.py"), *(PROOFS / "verifier").glob("*.py")]
    lines = 0
    for path in sources:
        text = path.read_text(encoding="utf-8")
        lines += len(text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                imported = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                imported = {str(node.module).partition(".")[0]}
            else:
                assert not isinstance(node, ast.ImportFrom) or node.level == 1, "of its own folder only"
                continue
            assert imported <= {*sys.stdlib_module_names, "verifier", "verify"}, path
    assert len(sources) > 10
    assert lines < MOST_LINES


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "good.json").write_text(json.dumps(EFFICIENT), encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(EFFICIENT | {"value": 5}), encoding="utf-8")
    (tmp_path / "c.json").write_text("{", encoding="utf-8")
    (tmp_path / "d.json").write_text(json.dumps(EFFICIENT)[:-1] + ', "value": 6}', encoding="utf-8")
    (tmp_path / "e.json").write_bytes(b"\xff\xfe")
    (tmp_path / "f.json").write_text("[" * 100_000, encoding="utf-8")
    (tmp_path / "g.json").write_text(json.dumps(EFFICIENT).replace('"value": 6', '"value": NaN'), encoding="utf-8")
    (tmp_path / "h\nz.json: accepted: P = NP.json").write_text("{}", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    return tmp_path


WAYS = {
    "a/good.json": 0,
    "a": 0,
    "b.json": 1,
    "c.json": 2,
    "d.json": 2,
    "e.json": 2,
    "f.json": 2,
    "g.json": 1,
    "empty": 2,
    "absent.json": 2,
    "h\nz.json: accepted: P = NP.json": 2,
    ".": 2,
}


@pytest.mark.parametrize(("name", "status"), WAYS.items())
def test_alone_and_as_a_command_it_says_the_same(
    name: str,
    status: int,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    bare = subprocess.run(
        [sys.executable, "-I", "-S", VERIFIER, name], capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert (bare.returncode, bare.stderr) == (status, "")
    monkeypatch.setattr(sys, "argv", ["fairopt", "check", name])
    with pytest.raises(SystemExit) as stop:
        main()
    assert (stop.value.code or 0, capsys.readouterr().out) == (status, bare.stdout)
    assert len(bare.stdout.splitlines()) == (8 if name == "." else 1)
    assert bare.stdout.count("the allocation is optimal") == (name in (".", "a", "a/good.json"))


def test_letters_that_a_terminal_may_not_know_are_spelt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = market({"Zoë": [1], "B": [1]}, [1])
    envious = certificate("envy", market=users, allocation=[[0], [1]], user="Zoë", envied="B")
    (tmp_path / "envy.json").write_text(json.dumps(envious), encoding="utf-8")
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert front.main([str(tmp_path / "envy.json")]) == 0
    narrow.flush()
    assert b"'Zo\\xeb' gets 0" in narrow.buffer.getvalue()  # type: ignore[attr-defined]
