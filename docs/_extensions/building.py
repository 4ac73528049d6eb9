"""Small pieces of a page made of plain data: text with `code`, tables, sections, and parts that fold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

from docutils import nodes


def words(text: str) -> list[nodes.Node]:
    """Return one line of text as nodes; what stands between backticks is code."""
    pieces = re.split(r"`+([^`]+)`+", " ".join(text.split()))
    return [nodes.literal(text=piece) if at % 2 else nodes.Text(piece) for at, piece in enumerate(pieces) if piece]


def paragraph(text: str, *classes: str) -> nodes.paragraph:
    """Return a paragraph of `words`."""
    return nodes.paragraph("", "", *words(text), classes=list(classes))


def paragraphs(text: str) -> list[nodes.Node]:
    """Return a text whose paragraphs are parted by blank lines."""
    return [paragraph(each) for each in re.split(r"\n\s*\n", text.strip()) if each]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *classes: str) -> nodes.Node:
    """Return a table, in a box of its own that scrolls where the page is narrower."""
    made = nodes.table(classes=["table", *classes])
    group = nodes.tgroup(cols=len(heads))
    group += [nodes.colspec(colwidth=1) for _ in heads]
    group += nodes.thead("", _row(heads))
    group += nodes.tbody("", *map(_row, rows))
    made += group
    return nodes.container("", made, classes=["pst-scrollable-table-container"])


def _row(cells: Sequence[str]) -> nodes.row:
    return nodes.row("", *(nodes.entry("", paragraph(cell)) for cell in cells))


def section(title: str, name: str, *content: nodes.Node) -> nodes.section:
    """Return a section that can be linked to as ``#name``."""
    return nodes.section("", nodes.title("", "", *words(title)), *content, ids=[name], names=[name])


def code(text: str, language: str) -> nodes.literal_block:
    """Return a block of code."""
    return nodes.literal_block(text, text, language=language)


def folded(summary: str, *content: nodes.Node, opened: bool = False) -> list[nodes.Node]:
    """Return content that a click on the summary opens."""
    start = f"<details{' open' if opened else ''}><summary>{escape(summary)}</summary>"
    return [html(start), *content, html("</details>")]


def html(text: str) -> nodes.raw:
    """Return HTML as it stands."""
    return nodes.raw("", text, format="html")
