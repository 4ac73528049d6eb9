"""The pages made from the ledger: ``python -m fairopt.proofs.ledger.page docs/ledger.md docs/beyond.md``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from textwrap import shorten

from fairopt.problem.files.storage import write_text
from fairopt.proofs.ledger.entries import OWN, Entry, Ruling, ledger
from fairopt.proofs.ledger.figures import HEADS, cells

#: A section of a document stands between two markers; what the first one names says which section it is.
BEGIN, END = "<!-- {}: begin, written by make claims -->", "<!-- {}: end -->"
PAPERS = {
    "oef": "OEF (Middleware 2024)",
    "gandiva": "Gandiva_fair (EuroSys 2020)",
    "fft": "FFT (2025)",
    "ltgf": "ASTRAEA, long-term GPU-time fairness (2022)",
    "astraea": "Astraea, posted prices (2023)",
    "kueue": "Kueue, the scheduler (2026)",
    "slurm": "Slurm (documents and code, 2026)",
    "drf": "Dominant Resource Fairness (NSDI 2011)",
    "karma": "Karma (OSDI 2023)",
    "kai": "KAI Scheduler (documents and code, 2026)",
    "armada": "Armada (documents and code, 2026)",
    "volcano": "Volcano (documents and code, 2026)",
    "yarn": "YARN capacity scheduler (documents and code)",
}
#: What a reader of the paper would get wrong, the gravest first.
UNEXPECTED = (Ruling.REFUTED, Ruling.INCONSISTENT, Ruling.QUALIFIED, Ruling.NOT_DECIDABLE_HERE)
#: What speaks of all markets; the other kinds speak of one.
GENERAL = ("theorem", "table")
IN_SHORT = 220


def papers(rows: Sequence[Entry]) -> str:
    """Return in Markdown how many claims of papers got which verdict, then all that do not simply hold.

    Theorems and tables of properties stand there in full, with their counterexamples; the rest in short.
    """
    told = [row for row in rows if row.paper != OWN]
    return "\n".join([*_counts(told), "", *_theorems(told), *_others(told)])


def beyond(rows: Sequence[Entry]) -> str:
    """Return in Markdown all that we found ourselves, a section a folder, named by its docstring."""
    own = [row for row in rows if row.paper == OWN]
    return "\n".join(line for package in dict.fromkeys(row.package for row in own) for line in _subject(package, own))


def in_short(rows: Sequence[Entry]) -> str:
    """Return in Markdown what we found ourselves as one table a folder: each statement, its verdict and its row."""
    own = [row for row in rows if row.paper == OWN]
    lines = list[str]()
    for package in dict.fromkeys(row.package for row in own):
        lines += [f"### {_title(package)}", "", "| statement | verdict | row |", "|---|---|---|"]
        told = (row for row in own if row.package == package)
        lines += [f"| {row.says.strip().replace('|', '/')} | {row.verdict.value} | `{row.id}` |" for row in told]
        lines += [""]
    return "\n".join(lines).rstrip()


def policies(rows: Sequence[Entry]) -> str:
    """Return in Markdown what rows say of each policy in numbers."""
    head = f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}"
    return "\n".join([head, *(f"| {' | '.join(line)} |" for line in cells(rows))])


def _title(package: str) -> str:
    return (import_module(package).__doc__ or package).strip().splitlines()[0].rstrip(".")


def _subject(package: str, own: Sequence[Entry]) -> Iterator[str]:
    yield f"### {_title(package)}"
    for row in (row for row in own if row.package == package):
        yield ""
        yield f"**{row.where[:1].upper()}{row.where[1:]}: {row.verdict.value}.** {row.says.strip()}"
        yield ""
        short, *more = row.evidence.strip().splitlines() or [f"It waits for {row.waits_for}"]
        yield short
        yield from _folded(more)
        if row.run:
            yield ""
            yield f"`fairopt claims {row.id} --run`{' (minutes)' if row.slow else ''}"
    yield ""


def _folded(lines: Sequence[str]) -> Iterator[str]:
    """Yield what a first reading may leave out, a point for each line of the evidence after the first."""
    if lines:
        yield from ("", "<details><summary>Case by case</summary>", "")
        yield from (f"* {line}" for line in lines)
        yield from ("", "</details>")


def _counts(rows: Sequence[Entry]) -> Iterator[str]:
    used = [ruling for ruling in Ruling if any(row.verdict is ruling for row in rows)]
    yield "| paper | " + " | ".join(ruling.value for ruling in used) + " |"
    yield "|---|" + "---:|" * len(used)
    for paper, title in PAPERS.items():
        counts = Counter(row.verdict for row in rows if row.paper == paper)
        yield f"| {title} | " + " | ".join(str(counts[ruling] or "") for ruling in used) + " |"


def _theorems(rows: Sequence[Entry]) -> Iterator[str]:
    for row in _unexpected(rows):
        if row.kind in GENERAL:
            yield f"* **{_place(row)}: {row.verdict.value}** (`{row.id}`). {row.says.strip()}"
            yield f"  *Found:* {row.evidence.strip()}"
            yield ""


def _others(rows: Sequence[Entry]) -> Iterator[str]:
    yield "| examples, models, figures | verdict | found, in short |"
    yield "|---|---|---|"
    for row in _unexpected(rows):
        if row.kind not in GENERAL:
            short = shorten(row.evidence, IN_SHORT, placeholder=" ...").replace("|", "/")
            yield f"| {_place(row)} (`{row.id}`) | {row.verdict.value} | {short} |"


def _unexpected(rows: Sequence[Entry]) -> list[Entry]:
    return [row for ruling in UNEXPECTED for row in rows if row.verdict is ruling]


def _place(row: Entry) -> str:
    return f"{PAPERS[row.paper].partition(' (')[0]}, {row.where}"


#: What the sections are called in the markers of a document, and what writes them.
SECTIONS = {
    "what we found": papers,
    "beyond the papers": beyond,
    "beyond the papers, in short": in_short,
    "policies in numbers": policies,
}


def put_into(text: str, rows: Sequence[Entry]) -> str:
    """Return a document with the sections that it has markers for written anew."""
    there = [name for name in SECTIONS if BEGIN.format(name) in text and END.format(name) in text]
    if not there:
        wanted = " or ".join(BEGIN.format(name) for name in SECTIONS)
        raise SystemExit(f"the document has no place for a section: put {wanted} into it, and the same with its end")
    for name in there:
        begin, end = BEGIN.format(name), END.format(name)
        before, after = text.split(begin)[0], text.split(end)[1]
        text = "\n".join([f"{before}{begin}", "", SECTIONS[name](rows), "", f"{end}{after}"])
    return text


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        write_text(path, put_into(path.read_text(encoding="utf-8"), ledger()))
