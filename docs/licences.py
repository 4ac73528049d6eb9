"""Write LICENSES.md, the licences of what fairopt depends on, from what is installed: ``python docs/licences.py``."""

from __future__ import annotations

import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from fairopt.problem.files.storage import write_text

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "LICENSES.md"
#: Extras that help to work on fairopt, and are no part of it.
WORKSHOP = ("all", "dev", "docs", "mutation")
INTRODUCTION = """\
# Licences of dependencies

fairopt is under the licence in LICENSE, and holds no code of the libraries below. This page is written by `make sbom`
from the metadata of what is installed. It also writes `dist/sbom.json`, which lists every library of the environment
with its version (CycloneDX).
"""


def page() -> str:
    """Return the page. Errors: `SystemExit` for a library that is not installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {name: _names(given) for name, given in project["optional-dependencies"].items() if name not in WORKSHOP}
    lines = [INTRODUCTION, "## `pip install fairopt`", "", "| library | licence |", "|---|---|"]
    lines += [f"| {name} | {licence(name)} |" for name in sorted(closure(_names(project["dependencies"])))]
    lines += ["", "## Extras", "", "| library | licence | extra |", "|---|---|---|"]
    for name in sorted({name for given in extras.values() for name in given}):
        lines.append(f"| {name} | {licence(name)} | {', '.join(each for each in extras if name in extras[each])} |")
    return "\n".join(lines) + "\n"


def closure(names: set[str]) -> set[str]:
    """Return the names and all that they need on this system, without extras."""
    found: set[str] = set()
    while names:
        found |= names
        needed = {need for name in names for need in map(Requirement, _installed(name).requires or ())}
        here = {need for need in needed if need.marker is None or need.marker.evaluate({"extra": ""})}
        names = {canonicalize_name(need.name) for need in here} - found
    return found


def licence(name: str) -> str:
    """Return the licence that a library states: an SPDX expression, else its classifiers, else its own words."""
    said = _installed(name).metadata
    classified = [
        each.rpartition(" :: ")[2] for each in said.get_all("Classifier") or [] if each.startswith("License ::")
    ]
    words = (said["License"] or "").strip().partition("\n")[0]
    return said["License-Expression"] or ", ".join(classified) or words or "not stated"


def _names(given: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(each).name) for each in given}


def _installed(name: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise SystemExit(f"{name} is not installed: run `make .venv/ready`") from error


if __name__ == "__main__":
    write_text(PAGE, page())
