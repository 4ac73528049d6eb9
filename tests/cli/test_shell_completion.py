"""Shells are told what may come next: the protocol of completion, as the scripts of the shells speak it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from ran_command import Ran

SHELLS = ("bash", "zsh", "fish")
PROPOSED = [
    ("so", {"solve"}),
    ("solve --pol", {"--policy"}),
    ("solve @", {"@gandiva-table3", "@gavel-example", "@oef-eq6", "@oef-example"}),
    ("solve @gav", {"@gavel-example"}),
    ("solve market.toml --policy oef-", {"oef-cooperative", "oef-noncooperative"}),
    ("solve @gavel-example --policy oef-cooperative --backend e", {"ecos", "envy-free", "exact"}),
    ("run @philly-trace --cluster @p", {"@philly-cluster"}),
    ("run t.csv --policy oef-", {"oef-rounds"}),
    ("run t.csv --policy fft --set rem", {"remaining="}),
    ("schedule b.toml --policy f", {"fcfs"}),
    ("compare --property en", {"envy_freeness", "envy_within_peers"}),
    ("frontier @gavel-example --goal n", {"nash_welfare"}),
    ("frontier --property envy_", {"envy_freeness"}),
    ("compare --policy f", {"fft", "fcfs", "fifo", "fifo-quota"}),
    ("verify @astraea-s", {"@astraea-small"}),
    ("policies stri", {"stride"}),
    ("datasets gav", {"gavel-example"}),
    ("bench oef-n", set()),
    ("bench run oef-n", {"oef-noncooperative"}),
    ("solve mark", set()),  # files are the shell's own
]


@pytest.fixture
def asked(fairopt: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Return what answers a shell that asks what ``fairopt LINE`` may go on with."""

    def ask(shell: str, line: str, action: str = "get-args") -> Ran:
        words = ["fairopt", *line.split(" ")]
        monkeypatch.setenv("_FAIROPT_COMPLETE", f"complete_{shell}")
        monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(words))
        monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", action)
        # bash splits at an @
        words = [part for word in words for part in (word.replace("@", "@ ").split() if "@" in word else [word])]
        monkeypatch.setenv("COMP_WORDS", "\n".join(words))
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        return fairopt()

    return ask


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("line", "proposed"), PROPOSED, ids=[line for line, _ in PROPOSED])
def test_what_is_proposed(asked: Callable[..., Ran], shell: str, line: str, proposed: set[str]) -> None:
    ran = asked(shell, line)
    lines = ran.out.removeprefix("_arguments '*: :((").split("\n")
    found = {each.strip('"').split('"')[0].split("\t")[0] for each in lines} - {"", "_files"}
    assert found == proposed
    assert ran.err == ""


def test_where_nothing_is_proposed_shells_propose_files(asked: Callable[..., Ran]) -> None:
    assert asked("zsh", "solve mark").out.strip() == "_files"
    assert asked("fish", "solve mark", "is-args").status == 1


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_to_be_sourced(shell: str) -> None:
    assert "_FAIROPT_COMPLETE=complete_" in script(shell)
    assert shell != "bash" or "-o default" in script(shell)  # without proposals, its own: files


def script(shell: str) -> str:
    """Return what `fairopt --show-completion` prints in a shell."""
    ran = subprocess.run(
        [str(Path(sys.executable).with_name("fairopt")), "--show-completion", shell],
        capture_output=True,
        text=True,
        env=os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        check=True,
    )
    return ran.stdout
