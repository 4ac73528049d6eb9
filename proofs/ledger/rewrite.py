"""Recompute rows of the ledger and write what comes out into its files: ``python -m fairopt.proofs.ledger.rewrite``.

Named rows are always rewritten. Without names all rows are taken but those that are slow (``--slow`` takes them too),
and a measured row that still follows stays as it is, since what it measures differs from run to run. Only
``verdict``, ``evidence``, ``table`` and ``figures`` change in a file; everything else in it stays as somebody wrote it.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
import tomllib
from argparse import ArgumentParser
from pathlib import Path

from fairopt.errors import BadInput
from fairopt.problem.files.storage import write_text
from fairopt.proofs.ledger.entries import Entry, Finding, Ruling, read_package

FOLDER = Path(__file__).parent.parent / "claims"
PACKAGE = "fairopt.proofs.claims"
FINDINGS = "fairopt.proofs.findings"
WIDTH = 120
#: A value as it stands behind ``key = ``: a string of several lines, or of one.
STRING = r'(?:"""(?:[^\\]|\\.|\\\n)*?"""|"(?:[^"\\\n]|\\.)*")'


def main(arguments: list[str] | None = None) -> int:
    """Rewrite the rows that the command line names; return 0."""
    parser = ArgumentParser(prog="python -m fairopt.proofs.ledger.rewrite", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("id", nargs="*", help="rows to rewrite; all that are not slow by default")
    parser.add_argument("--slow", action="store_true", help="take the slow rows too")
    options = parser.parse_args(arguments)
    rows = {row.id: row for package in (PACKAGE, FINDINGS) for row in read_package(package)}
    for unknown in (name for name in options.id if name not in rows):
        raise BadInput(f"there is no row {unknown!r}", place="claims", remedy="Name the rows as the files do")
    for row in [rows[name] for name in options.id] or [row for row in rows.values() if row.run]:
        if row.slow and not options.slow and not options.id:
            print(f"{row.id}: slow, left alone")
            continue
        finding, seconds = row.recompute()
        print(f"{row.id}: {rewritten(row, finding, named=bool(options.id))} ({seconds:.1f} s)", flush=True)
    return 0


def rewritten(row: Entry, finding: Finding, *, named: bool) -> str:
    """Write a finding into the file of its row, and say what became of it."""
    stored = (row.verdict, row.evidence, row.table, row.figures)
    same = (finding.verdict, finding.evidence, finding.table, finding.figures) == stored
    if same or (row.follows(finding) and not named):
        return f"{row.verdict.value}, as it stands"
    files = sorted(FOLDER.parent.glob("*/*/*.toml"))
    path = next(path for path in files if row.id in _ids(path.read_text(encoding="utf-8")))
    # read only now: somebody may have written to the file while this row was computed
    text = path.read_text(encoding="utf-8")
    new = with_finding(text, row.id, finding)
    write_text(path, new)
    return f"{row.verdict.value} -> {finding.verdict.value}"


def with_finding(text: str, name: str, finding: Finding) -> str:
    """Return the text of a ledger's file with another verdict and evidence in the row called ``name``.

    Errors: `BadInput` where the row, its verdict or its evidence is not found, or would not be read back as written.
    """
    starts = [match.start() for match in re.finditer(r"^\[\[claim\]\]", text, re.MULTILINE)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        block = text[start:end]
        if not re.search(rf'^id = "{re.escape(name)}"$', block, re.MULTILINE):
            continue
        for key, value in (("verdict", finding.verdict.value), ("evidence", finding.evidence)):
            line = toml_line(key, value)
            block, count = re.subn(rf"^{key} = {STRING}", line.replace("\\", r"\\"), block, flags=re.MULTILINE)
            if count != 1:
                raise BadInput(f"{count} lines begin with {key!r}", place=name, remedy="Write it as one string")
        block = with_lists(block, finding)
        new = text[:start] + block + text[end:]
        _check(text, new, name, finding)
        return new
    raise BadInput("there is no such row", place=name, remedy="Give it [[claim]] and an id first")


def with_lists(block: str, finding: Finding) -> str:
    """Return the text of a row with another table and other figures behind its evidence; without what is empty."""
    block = re.sub(r"^(?:table|figures) = \[\n(?:  .*\n)*\]\n", "", block, flags=re.MULTILINE)
    text = ""
    for key, lines in _lists(finding).items():
        text += "\n".join([f"{key} = [", *(f"  {json.dumps(each, ensure_ascii=False)}," for each in lines), "]\n"])
    return re.sub(rf"^evidence = {STRING}\n", lambda found: found.group() + text, block, flags=re.MULTILINE)


def _lists(finding: Finding) -> dict[str, list[list[str]]]:
    """Return the lists of a row, those that are not empty, as they stand in a file."""
    figures = [[each.policy, each.measure.value, each.value, each.scope] for each in finding.figures]
    lists = {"table": [list(each) for each in finding.table], "figures": figures}
    return {key: lines for key, lines in lists.items() if lines}


def toml_line(key: str, value: str) -> str:
    """Return ``key = "value"``, folded where it is long."""
    escaped = json.dumps(value, ensure_ascii=False)
    if len(f"{key} = {escaped}") <= WIDTH:
        return f"{key} = {escaped}"
    lines = textwrap.wrap(escaped[1:-1], WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return f'{key} = """\\\n  ' + " \\\n  ".join(lines) + '"""'


def _check(old: str, new: str, name: str, finding: Finding) -> None:
    """Refuse a text that does not read back as the old one with this finding in its place."""
    wanted = tomllib.loads(old)["claim"]
    for row in wanted:
        if row["id"] == name:
            row |= {"verdict": finding.verdict.value, "evidence": finding.evidence}
            for key in ("table", "figures"):
                row.pop(key, None)
            row |= _lists(finding)
    if tomllib.loads(new)["claim"] != wanted or Ruling(finding.verdict) is Ruling.OPEN:
        raise BadInput(
            "it would not be read back as it is", place=name, remedy="Use single spaces and no control codes"
        )


def _ids(text: str) -> set[str]:
    return {row["id"] for row in tomllib.loads(text)["claim"]}


if __name__ == "__main__":
    sys.exit(main())
