"""Rows of the ledger of claims as tables for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import shorten

from rich.text import Text

from fairopt.cli.tables import CASES, say, table_of, texts
from fairopt.numbers import counted
from fairopt.proofs.ledger.entries import Entry, Finding, PrintedAndFound, Ruling

#: What the ledger's table shows of a row's evidence; the row itself shows all of it.
IN_SHORT = 110
RULINGS: Mapping[Ruling, str] = {
    **dict.fromkeys((Ruling.REPRODUCED, Ruling.PROVED, Ruling.HOLDS_BOUNDED), "green"),
    **dict.fromkeys((Ruling.REFUTED, Ruling.INCONSISTENT), "red"),
    Ruling.QUALIFIED: "yellow",
}


def claims(rows: Sequence[Entry], *, in_full: bool) -> None:
    """Print rows of the ledger: a line each, or in full."""
    if not in_full:
        shorts = [shorten(row.evidence or f"waits for {row.waits_for}", IN_SHORT, placeholder=" ...") for row in rows]
        lines = ((row.id, row.where, _ruling(row), short) for row, short in zip(rows, shorts, strict=True))
        say(table_of(texts("claim", "where", "verdict", "in short"), lines))
        counts = Counter(row.verdict.value for row in rows)
        say(f"{counted(len(rows), 'claim')}: " + ", ".join(f"{n} {name}" for name, n in counts.items()))
        return
    for row in rows:
        say(Text(f"{row.id} ({row.paper}, {row.where}; {row.kind})", style="bold"))
        say(f"  claim:    {row.says}")
        say(Text("  verdict:  ").append(_ruling(row)))
        shown = f"  evidence: {row.evidence.replace(*CASES)}" if row.evidence else f"  waits for {row.waits_for}"
        say(shown)
        if row.table:
            say(table_of(texts(*PrintedAndFound._fields), row.table))
        if row.run:
            say(f"  again:    fairopt claims {row.id} --run")


def recomputed(row: Entry, outcome: Finding | Exception, seconds: float, *, follows: bool) -> None:
    """Print the result of recomputing one row, or the error that stopped it."""
    if not isinstance(outcome, Finding):
        say(f"{row.id}: not recomputed: {outcome}")
        return
    said = "is confirmed"
    if outcome.verdict is not row.verdict:
        said = f"is NOT confirmed: the computation says {outcome.verdict.value}"
    elif not follows:
        said = "is confirmed, but NOT its stored evidence"
    say(f"{row.id}: the verdict, {row.verdict.value}, {said} ({seconds:.1f} s)")
    say(f"  computed: {outcome.evidence.replace(*CASES)}")


def _ruling(row: Entry) -> Text:
    return Text(row.verdict.value, style=RULINGS.get(row.verdict, ""))
