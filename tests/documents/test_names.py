"""What the documents name is there: modules, files, commands with their options, and targets of make."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fairopt.cli.app import COMMANDS, load

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "fairopt/datasets/SOURCES.md")),
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if "_generated" not in path.parts),
    *sorted((ROOT / "proofs").rglob("*.md")),
]
GROUPS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
#: Groups in which fairopt registers nothing itself.
EMPTY_GROUPS = {"fairopt.importers", "fairopt.commands"}
#: Where paths begin that are files of ours; a word in capitals stands for a name of the reader's.
TOP = ("fairopt", "models", "proofs", "tests", "docs", "notebooks", "benchmarks")
PATH = re.compile(rf"(?<![\w/.-])(?:{'|'.join(TOP)})(?:/[\w.*-]*[\w*])+/?")
CAPITALS = re.compile(r"/[A-Z_]+(?=[/.]|$)(?!\.md)")

parametrized = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


def code(document: Path) -> Iterator[str]:
    """Yield what a document shows as code: lines of blocks, and spans between backticks; of a session, the commands."""
    text = document.read_text(encoding="utf-8").replace("\\\n", " ")
    for at, part in enumerate(text.split("```")):
        lines = part.splitlines() if at % 2 else re.findall(r"`([^`\n]+)`", part)
        yield from (line for line in lines if not part.startswith("console") or line.startswith(("$ ", "> ")))


def now(document: Path) -> str:
    """Return the text of a document, of a table of renamed things the column of what they are called now."""
    text = document.read_text(encoding="utf-8")
    return re.sub(r"(?m)^\|[^|]*\|", "|", text) if document.name == "renamed.md" else text


def is_there(dotted: str) -> bool:
    """Whether a module is called so, or something in one."""
    parts = dotted.split(".")
    found: Any = import_module(parts[0])
    for at, part in enumerate(parts[1:], 2):
        try:
            found = import_module(".".join(parts[:at]))
        except ImportError:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
    return True


@parametrized
def test_modules_and_groups_are_there(document: Path) -> None:
    named = set(re.findall(r"\bfairopt(?:\.[A-Za-z_]\w*)+", now(document)))
    assert not {name for name in named - GROUPS.keys() - EMPTY_GROUPS if not is_there(name)}


@parametrized
def test_files_are_there(document: Path) -> None:
    named = {path for path in PATH.findall(now(document)) if not CAPITALS.search(path)}
    foreign = ("docs/",) if document.name == "ledger.md" else ()  # it cites the documents of schedulers
    assert not {path for path in named if not path.startswith(foreign) and not list(ROOT.glob(path))}


@parametrized
def test_commands_are_there(document: Path) -> None:
    wrong = []
    for line in code(document):
        for name, rest in re.findall(r"(?:^|[ /])fairopt ([a-z]+)(.*)", line):
            if name not in COMMANDS:
                wrong.append(line)
                continue
            known = options(load(name))
            wrong += [f"{line}: {each}" for each in re.findall(r"(?<!\S)--[a-z-]+", rest) if each not in known]
    assert not wrong


@parametrized
def test_targets_of_make_are_there(document: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = {name for line in code(document) for name in re.findall(r"^(?:\$ )?make ((?:[a-z-]+ ?)+)", line)}
    assert not {target for names in named for target in names.split()} - targets


def options(command: Any) -> set[str]:
    """Return the options of a command, and of the commands under it."""
    own = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    below = getattr(command, "commands", {}).values()
    return own.union({"--help"}, *(options(each) for each in below))


@pytest.mark.parametrize("name", ["fairopt.policy.Policy.decide", "fairopt.experiment.bench", "fairopt.compare"])
def test_a_name_that_is_there_is_found(name: str) -> None:
    assert is_there(name)


@pytest.mark.parametrize("name", ["fairopt.rounds", "fairopt.policy.Nobody", "fairopt.policy.Policy.nothing"])
def test_a_name_that_is_not_there_is_missed(name: str) -> None:
    assert not is_there(name)
