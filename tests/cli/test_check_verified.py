"""`fairopt check --verified`: certificates go to the program that Coq proves; an error says how to build it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from certificate_kinds import BY_HAND
from certificate_kinds.examples import ALIKE, certificate
from ran_command import Ran

from fairopt.cli import verified
from fairopt.errors import NotInstalled
from fairopt.proofs.verify import verify

EXAMPLE = Path(__file__).parents[2] / "fairopt" / "datasets" / "oef_example.toml"
BUILT = pytest.mark.skipif(not verified.PROGRAM.exists(), reason="it is not built: make verified")
PROGRAM = {
    "sense": "maximize",
    "offset": 0,
    "variables": [{"cost": 1, "lower": 0, "upper": 2, "integer": False}],
    "rows": [],
}
RIGHT = certificate("bound", program=PROGRAM, point=[2], value=2, bound=2, gap=0, duals=[])


def written(folder: Path, **files: Any) -> Path:
    """Write files with JSON into a folder."""
    folder.mkdir(exist_ok=True)
    for name, data in files.items():
        text = data if isinstance(data, str) else json.dumps(data)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


@BUILT
def test_each_answer_has_a_line_and_an_exit_status(tmp_path: Path, fairopt: Callable[..., Ran]) -> None:
    other = {"right": RIGHT, "false": RIGHT | {"value": 1}, "cut": '{"schema": 1', "bounds": BY_HAND["UP_TO_2"]}
    folder = written(tmp_path / "of", **other)
    for name, status, begins in (
        ("right", 0, f"accepted: {verify(RIGHT)}"),
        ("false", 1, "REJECTED: "),
        ("cut", 2, "cannot be read: "),
        ("bounds", 4, "NOT COVERED: "),
    ):
        code, out, _ = fairopt("check", "--verified", folder / f"{name}.json")
        assert code == status
        assert out.startswith(f"{folder / name}.json: {begins}")
    assert fairopt("check", "--verified", folder)[0] == 2
    assert fairopt("check", "--verified", folder / "bounds.json", folder / "right.json")[0] == 4
    code, out, _ = fairopt("check", "--verified", "--json", folder / "false.json", folder / "bounds.json")
    assert code == 1
    assert [each["status"] for each in json.loads(out)["files"]] == ["rejected", "not covered"]


@BUILT
def test_nothing_that_is_no_certificate_is_passed_over(tmp_path: Path, fairopt: Callable[..., Ran]) -> None:
    bounded = json.loads(json.dumps(ALIKE))
    bounded["user"][0] |= {"least": [0], "most": [2]}
    body = {"allocation": [["1/2"], ["1/2"]], "property": "feasibility", "answer": "HOLDS"}
    folder = written(
        tmp_path / "of",
        run={"schema": 1, "rounds": [], "trace": {}},
        bounds=certificate("property", market=bounded, **body),
        ranges=BY_HAND["ENVIOUS"],
    )
    code, out, _ = fairopt("check", "--verified", folder)
    assert code == 4
    assert [line.split(": ", 2)[1] for line in out.splitlines()] == ["NOT COVERED"] * 3


@BUILT
def test_a_pipe_in_a_folder_is_named_and_nobody_waits_for_it(tmp_path: Path, fairopt: Callable[..., Ran]) -> None:
    folder = written(tmp_path / "of", right=RIGHT)
    os.mkfifo(folder / "pipe.json")
    (folder / "empty.json").touch()
    code, out, _ = fairopt("check", "--verified", folder)
    assert code == 2
    assert [line.split(": ")[1] for line in out.splitlines()] == ["cannot be read", "cannot be read", "accepted"]


@BUILT
def test_a_name_of_a_file_is_no_verdict(tmp_path: Path, fairopt: Callable[..., Ran]) -> None:
    path = tmp_path / "x: accepted: all\nof it.json"
    path.write_text("{}")
    code, out, _ = fairopt("check", "--verified", path)
    assert code == 2
    assert len(out.splitlines()) == 1
    assert ": cannot be read: it is no certificate" in out
    assert ": accepted: " not in out


def test_where_it_is_not_built_an_error_says_how(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="make verified"):
        list(verified.decide([tmp_path / "a"], tmp_path / "absent"))


def test_a_tolerance_is_refused(tmp_path: Path, fairopt: Callable[..., Ran]) -> None:
    path = written(tmp_path, one=RIGHT) / "one.json"
    ended = fairopt("check", "--verified", "--tolerance", "1e-6", path)
    assert ended.status == 2
    assert "--tolerance" in ended.err


@BUILT
def test_both_verifiers_accept_the_evidence_of_a_comparison(tmp_path: Path, fairopt: Callable[..., Ran]) -> None:
    fairopt("compare", EXAMPLE, "--evaluations", 12, "--certificates", tmp_path)
    python, proved = fairopt("check", tmp_path), fairopt("check", "--verified", tmp_path)
    assert (python.status, proved.status) == (0, 0)
    assert proved.out == python.out
    assert len(proved.out.splitlines()) > 80
