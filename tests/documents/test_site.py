"""The site of documents: its settings load, all pages are linked, and each format and each paper has its place."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib import import_module
from os.path import normpath
from pathlib import Path

import pytest

from fairopt.proofs.ledger.entries import ledger

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDERS = (
    "first-ten-minutes",
    "tutorials",
    "howto",
    "concepts",
    "formats",
    "papers",
    "reference",
    "notebooks",
    "schedulers",
)
SCHEMAS = sorted((ROOT / "fairopt").rglob("*.py"))


def linked(page: Path) -> set[str]:
    """The pages in the tables of contents of a page, by their paths from docs."""
    found = set()
    for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), re.S):
        names = [line.strip() for line in block.splitlines() if line.strip() and not line.startswith(":")]
        found |= {normpath(page.parent.relative_to(DOCS) / name) for name in names}
    return found


def test_every_page_is_linked() -> None:
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("*.md")}
    for folder in FOLDERS:
        pages |= {
            f"{folder}/{path.stem}" for path in (DOCS / folder).iterdir() if path.suffix in {".md", ".rst", ".ipynb"}
        }
    named = set().union(*(linked(page) for page in [*DOCS.glob("*.md"), *DOCS.glob("*/index.md")]))
    assert pages - named == {"index"}
    assert named - pages == {"_generated/pictures/index"}  # made by the build


@pytest.mark.parametrize("folder", ["first-ten-minutes", "tutorials", "howto", "formats", "concepts"])
def test_an_index_speaks_of_each_of_its_pages(folder: str) -> None:
    index = (DOCS / folder / "index.md").read_text(encoding="utf-8")
    spoken = set(re.findall(r"\{doc\}`([\w/-]+)`", index))
    assert {path.stem for path in (DOCS / folder).glob("*.md")} - spoken == {"index"}


def test_every_published_schema_has_a_page() -> None:
    shown = {
        name
        for page in (DOCS / "formats").glob("*.md")
        for name in re.findall(r"\{json-schema\} [\w.]+:(\w+)", page.read_text(encoding="utf-8"))
    }
    public = {
        name
        for path in SCHEMAS
        for name in re.findall(r"^def (\w+_schema)\((?:command.*)?\) ->", path.read_text(encoding="utf-8"), re.M)
    }
    assert public
    assert shown == public


def test_every_notebook_is_on_its_page() -> None:
    spoken = set(re.findall(r"\{doc\}`../notebooks/(\w+)`", (DOCS / "papers" / "index.md").read_text(encoding="utf-8")))
    assert spoken == {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_the_extensions_load_and_know_every_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx", reason="needs the extra docs")
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    for path in (DOCS / "_extensions").glob("*.py"):
        import_module(path.stem)
    findings = import_module("findings")
    assert {row.paper for row in ledger()} == findings.PAPERS.keys()
    assert {each.notebook for each in findings.PAPERS.values() if each.notebook} <= {
        path.stem for path in (ROOT / "notebooks").iterdir()
    }


def test_the_settings_load(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sphinx", reason="needs the extra docs")
    for name in ("PATH", "COLUMNS", "IPYTHONDIR"):
        monkeypatch.setenv(name, "")  # what the settings change is put back
    settings = runpy.run_path(str(DOCS / "conf.py"))
    assert settings["nitpicky"]
    assert settings["nb_execution_raise_on_error"]


def test_what_the_site_needs_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {re.split(r"[>=<\[]", each)[0] for each in project["optional-dependencies"]["docs"]}
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    assert needed <= pinned
