"""The first ten minutes of four users, and two tutorials: each command prints what stands below it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from transcripts import BLOCK, PAGES, ROOT, alike, ended, rewritten, script, steps

WITH_COMMANDS = [page for page in PAGES if page.stem != "index"]
#: Most of the time of all sessions; what they show (templates, backends, columns, own functions) has tests of its own.
SLOW = {"author", "own-data", "solvers"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="the transcripts are sessions of bash")
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in SLOW else []) for page in WITH_COMMANDS],
    ids=lambda page: page.stem,
)
def test_the_transcript_is_what_the_commands_print(page: Path, tmp_path: Path, forked_fairopt: list[str]) -> None:
    command = tmp_path / "fairopt"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(forked_fairopt)} "$@"\n', encoding="utf-8")
    command.chmod(0o700)
    assert rewritten(page, tmp_path) == page.read_text(encoding="utf-8"), (
        "make transcripts; then look at what has changed"
    )


def test_there_is_a_transcript_for_each_of_them() -> None:
    clusters = {"cluster-kubernetes", "cluster-slurm", "cluster-plan"}
    assert {page.stem for page in WITH_COMMANDS} == {
        "researcher",
        "own-data",
        "operator",
        "solvers",
        "author",
    } | clusters
    for page in WITH_COMMANDS:
        blocks = [block[2] for block in BLOCK.finditer(page.read_text(encoding="utf-8")) if block[1] == "console"]
        assert len([step for block in blocks for step in steps(block)]) >= 5
    assert "verify.py" in script(ROOT / "docs" / "first-ten-minutes" / "author.md")


def test_commands_and_outputs_are_told_apart() -> None:
    first, second = steps("$ cat > a <<'END'\n> one\n> END\n$ echo '$ two'\n$ two\n")[0], steps("$ a\n> no\nyes\n")[0]
    assert first.command == "cat > a <<'END'\none\nEND\n"
    assert (second.command, second.output) == ("a\nno\n", "yes\n")


def test_only_seconds_and_spaces_at_the_ends_of_lines_may_differ() -> None:
    assert alike("took 0.31 s, 12 ms, 1.5e-05 seconds") == "took 0 s, 0 ms, 0 seconds"
    assert alike("12 GPUs, 3 users, at 0.31") == "12 GPUs, 3 users, at 0.31"
    assert ended("a  \n\nb") == "a\n\nb\n"


def test_a_wrong_output_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    file = "```{code-block} text\n:caption: a.txt\n\n1\n2\n```\n\n"
    page.write_text(f"{file}```console\n$ cat a.txt\n1\n3\n$ false\n$ echo $?\n0\n```\n")
    assert rewritten(page).endswith("```console\n$ cat a.txt\n1\n2\n$ false\n$ echo $?\n1\n```\n")
