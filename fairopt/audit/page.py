"""The page of an audit: HTML that needs no other file and no network, made from the audit alone."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from fairopt.audit.auditing import Audit
from fairopt.audit.status import EntitlementStatus, NodeStatus, TypeStatus
from fairopt.experiment.page import UNWRITABLE, templates
from fairopt.problem.files.storage import naming, write_text
from fairopt.program import INFINITY, Number, number_text
from fairopt.properties import Answer

#: The most lines of the table of users, and of every other table.
LINES, OTHERS = 2_000, 200
#: How a verdict reads.
ANSWERS = {
    Answer.HOLDS: "yes",
    Answer.FAILS: "no",
    Answer.NOT_REFUTED: "not refuted",
    Answer.UNDECIDED: "undecided",
    Answer.DEPENDS: "depends",
}


class Bar(NamedTuple):
    """The parts of a bar in percent: held within what is owed, held beyond it, and the place of what is owed."""

    within: float
    beyond: float
    owed_at: float | None

    @classmethod
    def of(cls, own: TypeStatus, long: float) -> Bar:
        """Return the bar of who stands so on a type, of which ``long`` GPUs fill all of it."""
        inside = min(own.holds, own.owed)
        mark = None if own.owed == INFINITY else 100 * float(own.owed) / long
        return cls(100 * float(inside) / long, 100 * float(own.holds - inside) / long, mark)


class BarLine(NamedTuple):
    """A line of the table of users: who, how deep in the tree, on which type, and its bar."""

    row: NodeStatus
    depth: int
    own: TypeStatus
    bar: Bar
    broken: bool


def write_page(found: Audit, path: str | PathLike[str], files: Sequence[object] = ()) -> None:
    """Write the page of an audit of ``files``. Errors: `NotInstalled` without Jinja2; `BadInput` for the place."""
    with naming(path):
        write_text(path, page(found, files))


def page(found: Audit, files: Sequence[object] = ()) -> str:
    """Return the page; the rest as `write_page`."""
    lines = list(_lines(found))
    made = audit_templates()
    script = made.get_template("audit_page.js").render()
    text: str = made.get_template("audit_page.html").render(
        title=f"Audit of {', '.join(Path(str(file)).name for file in files) or 'a market'}",
        found=found,
        books=found.books,
        footings=list(EntitlementStatus),
        lines=lines[:LINES],
        left_out=max(0, len(lines) - LINES),
        declared=[each for each in found.declared if each.computed is not None],
        types=list(zip(found.market.types, found.market.capacity, found.books.all_held, found.books.free, strict=True)),
        answers=ANSWERS,
        most=OTHERS,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )
    return UNWRITABLE.sub("\ufffd", text)


@cache
def audit_templates() -> Any:
    """Return the templates of pages of audits. Errors: `NotInstalled` without Jinja2."""
    made = templates(__package__, "an audit's page")
    made.filters |= {"gpus": gpus_text, "signed": signed}
    return made


def gpus_text(number: Number) -> str:
    """Return a number of GPUs as text, rounded where it is not whole; "–" for no bound."""
    if number == INFINITY:
        return "–"
    return number_text(number) if number == int(number) else f"{float(number):.4g}"


def signed(number: Number) -> str:
    """Return a difference of GPUs as text, with its sign."""
    sign = "+" if number > 0 else "−" if number < 0 else ""
    return f"{sign}{gpus_text(max(number, -number))}"


def _lines(found: Audit) -> Iterator[BarLine]:
    """Yield the lines of all nodes, each group before its members; none where nothing is held, owed or asked for."""
    said = found.books.said
    broken = {(each.name, each.type) for each in found.violations}
    nodes = [(node, 0) for node in reversed(said.tops)]
    while nodes:
        node, depth = nodes.pop()
        row = found.rows[node]
        nodes += [(child, depth + 1) for child in reversed(said.children[node])]
        for own in row.types:
            if not (own.holds or own.owed or own.asks):
                continue
            yield BarLine(row, depth, own, Bar.of(own, length(own)), (row.name, own.type) in broken)


def length(*stands: TypeStatus) -> float:
    """Return how many GPUs the longest bar of these is for."""
    ends = [end for own in stands for end in (own.holds, own.owed, own.cap) if end < INFINITY]
    return float(max(1, *ends))
