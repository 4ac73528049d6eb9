"""``proofs/verify.py`` as a program: which file is what, exit status, and what it is made of."""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from certificate_kinds import BY_HAND
from certificate_kinds.decisions import EFFICIENT
from certificate_kinds.examples import certificate, market

from fairopt.cli import main
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.proofs.claims.astraea.batches import Deviating, example
from fairopt.proofs.verifier import front
from fairopt.schedules.document import document
from fairopt.testing.round_samples import by_hand, documented

PROOFS = Path(__file__).parents[2] / "proofs"
VERIFIER = PROOFS / "verify.py"
#: All verifiers together; they are to be read in one sitting. Floors, caps and normalisers took 120, whole gangs 60,
#: what two decisions tell 17; one budget for a file, and small steps with names for water filling, 110; limits of time
#: for small files, and rows of envy in whole numbers, 60; a batch's digest, however its numbers are written, 20.
MOST_LINES = 4_880


def plan_of_the_example() -> dict[str, Any]:
    policy = PostedPricePacking(theta=(16, 16), search=Deviating(all_chunks=True, least_used=True), intervals=2)
    batch = example()
    return document(policy.decide(batch, policy.start(batch), None))


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
    good = name in (".", "a", "a/good.json")
    assert bare.stdout.count("the allocation is optimal") == bare.stdout.count(": accepted: ") == good


def test_letters_that_a_terminal_may_not_know_are_spelt_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    users = market({"Zoë": [1], "B": [1]}, [1])
    envious = certificate("envy", market=users, allocation=[[0], [1]], user="Zoë", envied="B")
    (tmp_path / "envy.json").write_text(json.dumps(envious), encoding="utf-8")
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", narrow)
    assert front.main([str(tmp_path / "envy.json")]) == 0
    narrow.flush()
    assert b"'Zo\\xeb' gets 0" in narrow.buffer.getvalue()  # type: ignore[attr-defined]


def test_what_a_file_is_its_contents_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Certificates and plans, packed or not, under any name; of a folder, files with the right endings."""
    plan = plan_of_the_example()
    (tmp_path / "a.json").write_text(json.dumps(plan), encoding="utf-8")
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(json.dumps(plan, indent=1).encode()))
    (tmp_path / "c.json.gz").write_bytes(gzip.compress(json.dumps(BY_HAND["TWO_LEVELS"]).encode()))
    (tmp_path / "notes.txt").write_text("nothing", encoding="utf-8")
    assert front.main([str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.partition("accepted: ")[2][:12] for line in said] == ["3 of 4 jobs ", "3 of 4 jobs ", "ratios to ow"]
    (tmp_path / "d.json").write_text(json.dumps(EFFICIENT) + "\n" + json.dumps(EFFICIENT), encoding="utf-8")
    assert front.main([str(tmp_path / "d.json")]) == 2
    assert "there is more than one document" in capsys.readouterr().out
    (tmp_path / "e.json").write_text('{"jobs": []}', encoding="utf-8")
    assert front.main([str(tmp_path / "e.json")]) == 2
    assert "no certificate, no run and no schedule: it holds ['jobs']" in capsys.readouterr().out


def test_many_violations_are_counted_and_few_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of_the_example()
    paid = plan["payments"]
    plan["payments"] = paid + [{**paid[0], "slot": slot} for slot in range(100, 120)]
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert front.main([str(tmp_path / "plan.json")]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 20
    plan["payments"] = paid + [{**paid[0], "slot": slot} for slot in range(100, 130)]
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert front.main([str(tmp_path / "plan.json")]) == 1
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 21
    assert said[-1].endswith("REJECTED: 30 violations in all")


def test_the_tolerance_is_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = plan_of_the_example()
    offer = next(each for each in plan["admissions"] if each["job"] == "j12" and each["admitted"])
    offer["worker_cost"] = 12.000001
    for payment in plan["payments"]:
        payment["workers"] = 12.000001 / 4
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan), encoding="utf-8")
    for tolerance, right in (("1/1000", True), ("1e-12", False)):
        monkeypatch.setattr(sys, "argv", ["fairopt", "check", "--tolerance", tolerance, str(path)])
        with pytest.raises(SystemExit):
            main()
        assert ("cost 12.000001 and should cost 12" not in capsys.readouterr().out) == right


@pytest.mark.parametrize("name", ["verify.py", "verify_schedule.py"])
def test_the_names_of_before_are_doors_to_the_same_program(name: str, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(EFFICIENT), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-I", PROOFS / name, tmp_path / "c.json"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ": accepted: the allocation is optimal" in ran.stdout


def test_a_reader_that_goes_away_rejects_nothing(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(json.dumps(EFFICIENT), encoding="utf-8")
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run([sys.executable, "-I", VERIFIER, tmp_path], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.parametrize("text", ["1e-100000000", "-1e-6", "1/0", "nan", "9" * 10_000, "١"])
def test_a_tolerance_that_is_no_small_number_is_refused_at_once(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        front.main(["nothing.json", f"--tolerance={text}"])
    assert stop.value.code == 2
    assert "is no number like 1e-6" in capsys.readouterr().err


def test_a_tolerance_may_be_written_in_capitals_and_the_help_says_what_is_decided(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert front.small_number("1E-6") == front.small_number("1/1000000") == front.small_number("0.000001")
    with pytest.raises(SystemExit):
        front.main(["--help"])
    assert "It decides certificates, recorded runs and schedules" in capsys.readouterr().out


# -- of a folder, only regular files are opened -------------------------------------------------------------
@pytest.mark.parametrize("command", [[sys.executable, VERIFIER], None])
def test_a_pipe_in_a_folder_is_named_and_nobody_waits_for_it(
    command: list[Any] | None, tmp_path: Path, forked_fairopt: list[str]
) -> None:
    command = command or [*forked_fairopt, "check"]
    (tmp_path / "good.json").write_text(json.dumps(EFFICIENT), encoding="utf-8")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "pipe.json")
    (tmp_path / "notes").mkdir()
    ran = subprocess.run([*command, tmp_path], capture_output=True, text=True, check=False, timeout=60)
    said = ran.stdout.splitlines()
    assert ran.returncode == front.UNREADABLE
    assert "good.json: accepted: " in said[0]
    assert [Path(line.partition(": ")[0]).name for line in said[1:]] == ["link.json", "pipe.json"]
    assert all(line.endswith(NOT_OPENED) for line in said[1:])


NOT_OPENED = "skipped: of a folder, only files that hold something are opened"


def test_what_is_empty_in_a_folder_is_named_and_not_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As some files of the kernel seem to be, which are waited for without end."""
    (tmp_path / "empty.json").touch()
    assert front.main([str(tmp_path)]) == front.UNREADABLE
    assert capsys.readouterr().out.rstrip().endswith(NOT_OPENED)
    (tmp_path / "link.json").symlink_to("/proc/kmsg")  # it is regular, of size 0, and does not end
    assert list(front.files(tmp_path)) == [tmp_path / "empty.json", tmp_path / "link.json"]
    assert not any(front.opens(path, tmp_path) for path in front.files(tmp_path))


def test_a_folder_that_cannot_be_looked_into_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "shut").mkdir()
    scandir = os.scandir

    def forbidden(path: Any) -> Any:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", forbidden)
    assert folder / "shut" in front.files(folder)
    assert front.main([str(folder / "shut")]) == front.UNREADABLE
    assert "or it cannot be looked into" in capsys.readouterr().out


def test_folders_that_are_very_deep_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(1_400):
        os.mkdir("a")
        os.chdir("a")
    (deepest,) = front.files(tmp_path)
    assert len(deepest.parts) > front.DEEPEST
    assert front.report(deepest, given=tmp_path)[0] == front.UNREADABLE
    for _ in range(1_400):  # who clears up after tests goes into each other of them
        os.chdir("..")
        os.rmdir("a")


@pytest.mark.parametrize("command", [[sys.executable, VERIFIER], [sys.executable, "-m", "fairopt", "check"]])
@pytest.mark.parametrize("layout", ["one line", "many lines", "packed", "run"])
def test_a_pipe_that_is_named_is_read(command: list[Any], layout: str, tmp_path: Path) -> None:
    text = json.dumps(EFFICIENT, indent=1 if layout == "many lines" else None).encode()
    if layout == "run":
        text = json.dumps(documented(ShortestRemainingTimeFirst(), by_hand()), indent=1).encode()
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as stream:
        stream.write(gzip.compress(text) if layout == "packed" else text)
    ran = subprocess.run(
        [*command, f"/dev/fd/{reader}"], capture_output=True, text=True, check=False, pass_fds=[reader], timeout=60
    )
    os.close(reader)
    assert (ran.returncode, ": accepted: " in ran.stdout) == (front.FINE, True), ran.stdout
