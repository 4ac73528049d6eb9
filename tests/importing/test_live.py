"""Commands of a cluster: what is run is what the pages say, it only reads, and what goes wrong is named."""

from __future__ import annotations

import os
import re
import shlex
from importlib.resources import files
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fairopt import discovery
from fairopt.audit import audit
from fairopt.cli.app import app
from fairopt.errors import BadInput, NotInstalled, OutOfTime
from fairopt.importing.live import as_lines, fetched, source

ROOT = Path(__file__).parents[2]
SAMPLES = Path(str(files("fairopt.datasets") / "clusters"))
OWN = Path(__file__).parent / "configurations"
#: The sample that stands for what each command prints.
PRINTED = {
    "kueue": {"cluster.json": "kueue/cluster.json", "configuration.json": str(OWN / "kueue.json")},
    "kai": {"cluster.json": "kai/snapshot.json"},
    "volcano": {"cluster.json": "volcano/capacity.json", "configuration.json": str(OWN / "volcano.json")},
    "yarn": {
        "capacity-scheduler.xml": "yarn/capacity-scheduler.xml",
        "scheduler.json": "yarn/scheduler.json",
        "metrics.json": "yarn/metrics.json",
    },
    "slurm": {
        f"{name}.txt": f"slurm/{name}.txt"
        for name in ("sshare", "assoc", "nodes", "qos", "partitions", "config", "squeue")
    },
}
#: The words that may follow each program: all of them read.
READS = {
    "kubectl": {("get",)},
    "sshare": {()},
    "squeue": {()},
    "sacctmgr": {("show", "assoc", "tree"), ("show", "qos")},
    "scontrol": {("show", "node"), ("show", "partition"), ("show", "config")},
    "curl": {()},
    "cat": {()},
}


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of programs, the only one on the PATH but for what a shell script needs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("YARN_RM", "http://rm:8088")
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop/conf")
    return folder


def _fake(folder: Path, program: str, script: str) -> None:
    path = folder / program
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def _fakes(folder: Path, name: str) -> None:
    """Write programs that print the samples for exactly the documented words, and fail for all others."""
    cases: dict[str, list[str]] = {}
    for file, words in source(name).items():
        words = tuple(re.sub(r"\$(\w+)", lambda found: os.environ[found[1]], word) for word in words)
        wanted = shlex.quote(" ".join(words[1:]))
        cases.setdefault(words[0], []).append(f"{wanted}) exec /bin/cat {SAMPLES / PRINTED[name][file]} ;;")
    for program, lines in cases.items():
        wrong = '*) echo "unknown: $*" >&2; exit 9 ;;'
        _fake(folder, program, 'case "$*" in\n' + "\n".join([*lines, wrong]) + "\nesac")


def test_all_sources_are_asked_here() -> None:
    assert set(PRINTED) == set(discovery.names(discovery.SOURCES))


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_run_is_what_the_page_says(name: str) -> None:
    page = (ROOT / f"docs/schedulers/{name}.md").read_text(encoding="utf-8").replace("\\\n", "")
    shown = [tuple(shlex.split(line.removeprefix("$ "), comments=True)) for line in page.splitlines() if " > " in line]
    for file, words in source(name).items():
        assert (*words, ">", file) in shown


@pytest.mark.parametrize("name", PRINTED)
def test_no_command_can_write(name: str) -> None:
    for program, *words in source(name).values():
        allowed = READS[program]
        assert any(tuple(words[: len(verbs)]) == verbs for verbs in allowed)
        assert not {"-X", "-d", "--data", "-o", "-T", "-F"} & set(words) or program in ("squeue", "kubectl")


@pytest.mark.parametrize("name", PRINTED)
def test_a_live_audit_is_that_of_the_saved_files(name: str, programs: Path) -> None:
    _fakes(programs, name)
    ran = CliRunner().invoke(app, ["audit", "--from", name, "--json"])
    assert ran.exit_code in (0, 1), ran.output
    saved = [str(SAMPLES / file) for file in PRINTED[name].values()]
    assert ran.stdout == CliRunner().invoke(app, ["audit", *saved, "--from", name, "--json"]).stdout


def test_explain_whatif_and_plan_ask_too(programs: Path, tmp_path: Path) -> None:
    _fakes(programs, "kueue")
    table = tmp_path / "t.csv"
    table.write_text("user,h100,a100\nvision,2,1\nsearch,3,1\nnlp,5,1\nads,1.2,1\n")
    for words in (
        ["explain", "vision"],
        ["whatif", "--set", "vision.a100.quota=24"],
        ["plan", "--policy", "max-min", "--throughput", str(table)],
    ):
        live = CliRunner().invoke(app, [*words, "--from", "kueue", "--json"])
        command, *rest = words
        files = [str(SAMPLES / file) for file in PRINTED["kueue"].values()]
        saved = CliRunner().invoke(app, [command, *files, *rest, "--json"])
        assert live.exit_code == saved.exit_code in (0, 1), live.output
        assert live.stdout == saved.stdout


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed_to_paste_writes_the_same_files(name: str, programs: Path, tmp_path: Path) -> None:
    _fakes(programs, name)
    shown = CliRunner().invoke(app, ["audit", "--from", name, "--print-commands"])
    assert shown.output == as_lines(source(name))
    pasted, live = tmp_path / "pasted", tmp_path / "live"
    pasted.mkdir(), live.mkdir()
    assert os.spawnv(os.P_WAIT, "/bin/sh", ["sh", "-ec", f"cd {shlex.quote(str(pasted))}\n{shown.output}"]) == 0
    for path in fetched(name, live):
        assert path.read_bytes() == (pasted / path.name).read_bytes()


def test_a_program_that_is_not_there_is_named(programs: Path, tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match=r"no sshare on the PATH\. .*--print-commands"):
        fetched("slurm", tmp_path)
    ran = CliRunner().invoke(app, ["audit", "--from", "slurm"])
    assert isinstance(ran.exception, NotInstalled)


def test_a_command_that_fails_says_why(programs: Path, tmp_path: Path) -> None:
    _fake(programs, "kubectl", "echo noise >&2; echo 'connection refused' >&2; exit 7")
    with pytest.raises(BadInput, match=r"kubectl get .*: it ended with status 7: connection refused\. Run it by hand"):
        fetched("kueue", tmp_path)
    _fake(programs, "kubectl", "exit 0")
    with pytest.raises(BadInput, match="it printed nothing"):
        fetched("kueue", tmp_path)
    (programs / "kubectl").write_text("no program")
    with pytest.raises(BadInput, match="it cannot be run"):
        fetched("kueue", tmp_path)


def test_a_command_that_does_not_end_is_stopped(programs: Path, tmp_path: Path) -> None:
    _fake(programs, "kubectl", "exec /bin/sleep 60")
    with pytest.raises(OutOfTime, match=r"did not end within 0\.2 s\. Look whether the server answers"):
        fetched("kueue", tmp_path, seconds=0.2)


def test_what_a_command_needs_is_asked_for(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("YARN_RM")
    with pytest.raises(BadInput, match=r"the variable YARN_RM is not set\. Say where it is: export YARN_RM="):
        fetched("yarn", tmp_path)
    with pytest.raises(BadInput, match="'armada' has no commands that can be run as they are"):
        source("armada")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["audit"], "no file"),
        (["audit", "now.json", "--from", "kueue", "--print-commands"], "it does not go with files"),
    ],
)
def test_files_or_a_source(words: list[str], message: str) -> None:
    ran = CliRunner().invoke(app, words)
    assert isinstance(ran.exception, BadInput)
    assert message in str(ran.exception)


def test_what_a_command_printed_is_called_so(programs: Path, tmp_path: Path) -> None:
    _fake(programs, "kubectl", "echo '{'")
    ran = CliRunner().invoke(app, ["audit", "--from", "kueue"])
    assert str(ran.exception).startswith("kubectl get clusterqueues")


def test_the_files_can_be_audited_in_python(programs: Path, tmp_path: Path) -> None:
    _fakes(programs, "kueue")
    assert audit(fetched("kueue", tmp_path), policies=[]).source == "kueue"
