"""No code is run that a file brings, nothing is fetched, and what is written is there whole or not at all."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from stat import S_IMODE
from typing import Any

import pytest

import fairopt
from fairopt import replacing
from fairopt.backends import highs
from fairopt.certificates import PROPERTY, Certificate, read_certificate
from fairopt.datasets import oef_example
from fairopt.errors import BadInput
from fairopt.experiment.bench.records import KINDS
from fairopt.experiment.journal import LARGEST, read_records
from fairopt.models import MaxMin
from fairopt.problem.files.storage import LARGEST_FILE, read_text, write_text
from fairopt.replacing import Replacing
from fairopt.simulation.replay import lines

ROOT = Path(__file__).parent.parent

#: What runs code that a file brings, opens the network, or leaves a file where others may plant one.
REFUSED = {
    *("eval", "exec", "os.system", "os.popen", "tempfile.mktemp", "shell=True", "allow_pickle=True"),
    *("yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "pandas.read_pickle"),
    *("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib"),
    *("socket", "socketserver", "ssl", "asyncio", "urllib", "http", "requests", "httpx", "ftplib", "smtplib", "xmlrpc"),
}
#: Writing a file otherwise than by `fairopt.replacing`.
WRITING = {
    *(".write_text", ".write_bytes", ".savefig", ".savez", ".save", ".savetxt", ".tofile", ".dump", ".touch"),
    *(".to_csv", ".to_parquet", ".to_excel", ".to_pickle", ".copyfile", ".copy2", ".writeModel"),
    *("open to write", "os.open", "shutil.copy", "shutil.move", "os.rename"),
}
#: Where one of these stands all the same, and why.
EXCEPTIONS = {
    ("fairopt/testing/policy_suite.py", "pickle"): "the suite packs and unpacks an object of its own; it reads no file",
    ("fairopt/importing/kubernetes.py", "marshal"): "values are packed to be compared; nothing is unpacked",
    ("fairopt/replacing.py", "open to write"): "this is the one place",
    ("fairopt/replacing.py", "os.open"): "this is the one place",
    ("fairopt/backends/highs.py", ".writeModel"): "to the place beside that `fairopt.replacing` gives",
    ("fairopt/backends/apart.py", "os.open"): "the null device",
    ("fairopt/cli/exits.py", "os.open"): "the null device",
    ("proofs/ledger/citing.py", "shutil.copy"): "into a temporary folder",
    ("fairopt/experiment/journal.py", "open to write"): "lines are added to a file, each on the disk before the next",
    ("fairopt/experiment/machine.py", ".write_text"): "a switch of Linux under /proc",
    ("fairopt/experiment/bench/child.py", ".write_bytes"): "a measurement's own folder, which is temporary and private",
    ("fairopt/experiment/bench/measure.py", ".write_text"): "a measurement's own folder",
    ("fairopt/experiment/bench/measure.py", "open to write"): "a measurement's own folder",
    ("fairopt/experiment/bench/child.py", "open to write"): "the pipe to the process that measures",
    ("fairopt/backends/apart.py", "open to write"): "the pipe to the process that asked",
    ("fairopt/cli/given.py", ".write_bytes"): "the stand-in of standard input, in a temporary folder",
    ("fairopt/testing/data_suites.py", ".write_bytes"): "a file that a suite lets be refused, in a temporary folder",
    ("fairopt/cli/frontiers.py", ".savefig"): "to the place beside that `fairopt.replacing` gives",
    ("fairopt/experiment/page.py", ".savefig"): "a picture in memory, which becomes a part of the page",
}


def uses(tree: ast.AST) -> Iterator[str]:
    """Yield what of `REFUSED` and `WRITING` a module uses, under the names that it imports them by."""
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {(each.asname or each.name).split(".")[0]: each.name for each in node.names}
            yield from (each.name.split(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
            yield from (node.module.split(".")[0], *(f"{node.module}.{each.name}" for each in node.names))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            yield from (f"{known.get(owner, owner)}.{node.attr}", f".{node.attr}")
        elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant):
            yield f"{node.arg}={node.value.value}"
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if isinstance(node.func, ast.Name):
                yield name
            words = [each.value for each in (*node.args, *(key.value for key in node.keywords)) if is_text(each)]
            if name in ("open", "fdopen") and any(set(word) & set("wax+") and len(word) < 4 for word in words):
                yield "open to write"


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def found() -> set[tuple[str, str]]:
    files = [path for folder in ("models", "proofs") for path in (ROOT / folder).rglob("*.py")]
    links = {ROOT / "fairopt" / name for name in ("models", "proofs", "benchmarks")}
    files += [path for path in (ROOT / "fairopt").rglob("*.py") if not links & set(path.parents)]
    return {
        (path.relative_to(ROOT).as_posix(), use)
        for path in files
        for use in uses(ast.parse(path.read_text(encoding="utf-8")))
        if use in REFUSED | WRITING
    }


def test_nothing_runs_code_of_a_file_opens_the_network_or_writes_by_a_way_of_its_own() -> None:
    assert found() == set(EXCEPTIONS)


@pytest.mark.parametrize(
    ("text", "use"),
    [
        ("eval('1')", "eval"),
        ("import pickle as p", "pickle"),
        ("from urllib.request import urlopen", "urllib"),
        ("import yaml as y\ny.load(text)", "yaml.load"),
        ("from tempfile import mktemp", "tempfile.mktemp"),
        ("import os\nos.system('ls')", "os.system"),
        ("subprocess.run('ls', shell=True)", "shell=True"),
        ("np.load(path, allow_pickle=True)", "allow_pickle=True"),
        ("open(path, 'w')", "open to write"),
        ("path.open(mode='ab')", "open to write"),
        ("import numpy as np\nnp.save(path, x)", ".save"),
        ("from os import open as made\nmade(path, 1)", "os.open"),
        ("import shutil\nshutil.move(a, b)", "shutil.move"),
    ],
)
def test_what_is_refused_is_seen(text: str, use: str) -> None:
    assert use in uses(ast.parse(text))


def certificate(path: Path) -> None:
    Certificate(PROPERTY, oef_example(), oef_example().equal_split(), "sharing_incentive", "HOLDS").write(path)


WRITERS = {
    "one.txt": lambda path: write_text(path, "one"),
    "one.txt.gz": lambda path: write_text(path, "one"),
    "market.toml": lambda path: fairopt.write_market(oef_example(), path),
    "certificate.json": certificate,
    "x" * 251 + ".txt": lambda path: write_text(path, "one"),
    "program.lp": lambda path: highs.write(MaxMin().formulate(oef_example(), None), path),
}


@pytest.fixture(params=WRITERS.items(), ids=WRITERS.keys())
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Callable[[Path], None]]:
    name, write = request.param
    path = tmp_path / name
    path.write_bytes(b"before")
    return path, write


def test_what_cannot_be_written_whole_leaves_what_was_there(
    written: tuple[Path, Callable[[Path], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = written

    def full(*_: Any) -> None:
        assert S_IMODE(next(iter(set(path.parent.iterdir()) - {path})).stat().st_mode) == 0o600
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replacing.os, "fsync", full)
    with pytest.raises(BadInput, match="No space left on device"):
        write(path)
    assert path.read_bytes() == b"before"
    assert list(path.parent.iterdir()) == [path]


def test_what_is_written_has_the_permissions_of_what_it_replaces(
    written: tuple[Path, Callable[[Path], None]],
) -> None:
    path, write = written
    path.chmod(0o640)
    link = path.with_name(f"link{path.suffix}")
    link.symlink_to(path.name)
    write(link)
    assert link.is_symlink()
    assert S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_bytes() != b"before"
    path.unlink()
    write(path)
    umask = os.umask(0o022)
    os.umask(umask)
    assert S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_nothing_is_left_of_a_file_that_is_not_kept(tmp_path: Path) -> None:
    def interrupted() -> None:
        with Replacing(tmp_path / "one.txt") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/dev/stdout").exists(), reason="not on this system")
def test_what_is_open_already_is_written_straight(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    script = "from fairopt.problem.files.storage import write_text; write_text('/dev/stdout', 'one'); print(' two')"
    with out.open("ab") as stream:
        subprocess.run([sys.executable, "-c", script], stdout=stream, check=True)
    assert out.read_text() == "one two\n"


READERS: dict[str, tuple[Callable[[Path], object], int]] = {
    "text": (read_text, LARGEST_FILE),
    "certificate": (read_certificate, LARGEST_FILE),
    "results": (lambda path: read_records(path, KINDS), LARGEST),
    "line of a record": (lambda path: list(lines(path)), LARGEST_FILE),
}


@pytest.mark.parametrize(("read", "most"), READERS.values(), ids=READERS.keys())
def test_a_file_that_is_too_large_is_refused_before_it_fills_the_memory(
    read: Callable[[Path], object], most: int, tmp_path: Path
) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(most + 1)
    with pytest.raises(BadInput, match=f"more than {most >> 20} MB"):
        read(path)


def test_the_page_of_licences_names_every_library_that_fairopt_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = [line.split(" | ") for line in (ROOT / "LICENSES.md").read_text(encoding="utf-8").splitlines()]
    stated = {row[0].removeprefix("| "): row[1].rstrip(" |") for row in rows if len(row) > 1}
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + [each for name in extras for each in extras[name]]
    ours = [each for name in ("all", "dev", "docs", "mutation") for each in extras[name]]
    for each in set(needed) - set(ours):
        name = each.partition(">=")[0].partition("[")[0].lower()
        assert stated.get(name), name
        assert stated[name] != "not stated", name


def test_the_page_about_installing_names_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "howto" / "install.md").read_text(encoding="utf-8")
    named = {each.split("]'")[0] for each in page.split("| `'.[")[1:]}
    assert named == set(project["optional-dependencies"]) - {"dev", "docs", "mutation"}
