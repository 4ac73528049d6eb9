"""Pictures within a page: SVG whose text is text, in the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

from fairopt.discovery import library

#: What stands for the colour of text in a picture, until that of the page takes its place.
INK = "#010203"
#: What a picture's colours become in a page, which is light or dark.
IN_PAGE = {INK: "var(--ink)", "#1a1a1a": "var(--ink)", "#ffffff": "var(--ground)"}


def svg(draw: Callable[[], Any], title: str, what: str) -> str:
    """Return what ``draw`` draws as SVG for a page; ``title`` is its text for those who do not see it.

    Errors: `NotInstalled` without matplotlib, which says that ``what`` needs it.

    >>> from fairopt import allocate, plot
    >>> from fairopt.datasets import oef_example
    >>> picture = svg(lambda: plot.shares(allocate("max-min", oef_example())), "who has what", "a page")
    >>> picture.startswith('<svg role="img" aria-label="who has what" ')
    True
    """
    matplotlib = library("matplotlib", what, "plot")
    colours = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    style = {**colours, "svg.fonttype": "none", "svg.hashsalt": "fairopt", "axes.facecolor": "none"}
    with matplotlib.rc_context({**style, "figure.facecolor": "none"}):
        figure, into = draw(), io.StringIO()
        figure.savefig(into, format="svg", metadata={"Date": None, "Creator": None})
    text = into.getvalue()
    text = text[text.index("<svg") :]
    for colour, of_page in IN_PAGE.items():
        text = text.replace(colour, of_page)
    # ids are of this picture alone, since a page has several
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>p{crc32(title.encode()):08x}-", text)
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return text.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
