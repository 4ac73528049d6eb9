"""The page "What we found", made from the ledger: ``python -m fairopt.proofs.ledger.page docs/ledger.md``."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import shorten

from fairopt.ledger import Entry, Ruling, ledger
from fairopt.problem.files.storage import write_text

BEGIN, END = "<!-- what we found: begin, written by make claims -->", "<!-- what we found: end -->"
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


def section(rows: Sequence[Entry]) -> str:
    """Return the section in Markdown: how many claims got which verdict, then all that do not simply hold.

    Theorems and tables of properties stand there in full, with their counterexamples; the rest in short.
    """
    return "\n".join([BEGIN, "", *_counts(rows), "", *_theorems(rows), *_others(rows), "", END])


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


def put_into(text: str, rows: Sequence[Entry]) -> str:
    """Return a document with the section between its two markers written anew."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"the document has no place for the section: put {BEGIN} and {END} into it")
    return before + section(rows) + after


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        write_text(path, put_into(path.read_text(encoding="utf-8"), ledger()))
