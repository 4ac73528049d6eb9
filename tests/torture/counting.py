"""The counts of all trials, as a table in a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from campaign import Chunk, summed
from catalogue import KINDS, TRIALS
from trials import FAULTS, Ending

BEGIN, END = "<!-- counts: begin, written by make torture -->", "<!-- counts: end -->"
LETTERS = {
    "a": "bad input",
    "b": "spoiled answers of solvers",
    "c": "kills and stops",
    "d": "hard numbers",
    "e": "changed evidence",
    "f": "changed evidence of newer kinds",
}
SHOWN = (Ending.RIGHT, Ending.REFUSED, Ending.UNDECIDED)


def put_into(text: str, chunks: Iterable[Chunk]) -> str:
    """Return a page with the table of what all trials came to."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, "", *rows(list(chunks)), "", END + after])


def rows(chunks: Sequence[Chunk]) -> Iterator[str]:
    """Yield the rows of the table in Markdown, and the sum of each letter."""
    counts = summed(chunks)
    yield "| trials | what is tried | number | wanted | right | refused | undecided | faults |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|"
    for letter, wanted in TRIALS.items():
        own = [kind for kind in KINDS if kind.letter == letter and kind.name in counts]
        whole = sum((counts[kind.name] for kind in own), start=Counter[str]())
        yield _row(f"**({letter})**", f"**{LETTERS[letter]}**", whole, f"{wanted:,}")
        for kind in own:
            yield _row("", kind.name, counts[kind.name], "")


def _row(first: str, name: str, counts: Counter[str], wanted: str) -> str:
    faults = sum(counts[each.value] for each in FAULTS)
    told = [f"{counts[each.value]:,}" for each in SHOWN]
    return f"| {first} | {name} | {counts.total():,} | {wanted} | {' | '.join(told)} | {faults:,} |"
