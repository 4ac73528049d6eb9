"""What all pages have in common: HTML that needs no other file, made from templates, and pictures within it."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from html import escape
from os import PathLike
from typing import Any
from zlib import crc32

from fairopt.discovery import library
from fairopt.numbers import counted
from fairopt.problem.files.storage import naming, write_text

#: Characters that no page may hold: control characters, and halves of pairs, which UTF-8 cannot write.
UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
#: What stands for the colour of text in a picture, until that of the page takes its place.
INK = "#010203"
#: What a picture's colours become in a page, which is light or dark.
IN_PAGE = {INK: "var(--ink)", "#1a1a1a": "var(--ink)", "#ffffff": "var(--ground)"}


def rendered(template: str, package: str, what: str, words: Mapping[str, Any], /, **values: Any) -> str:
    """Return the page that a template of a package makes of values.

    ``words`` are functions, by name, that the template may use as filters too, beside `count`, a number with its noun.
    Errors: as `templates`.
    """
    made = templates(package, what)
    made.filters |= {"count": counted, **words}
    text: str = made.get_template(template).render(**words, **values)
    return UNWRITABLE.sub("\ufffd", text)


def write_page(text: str, path: str | PathLike[str]) -> None:
    """Write a page to a file. Errors: `BadInput` for the place."""
    with naming(path):
        write_text(path, text)


@cache
def templates(package: str, what: str) -> Any:
    """Return Jinja's environment of a package's pages: its own templates, and the parts and style of all pages.

    Errors: `NotInstalled` without Jinja2, which says that ``what`` needs it.
    """
    jinja = library("jinja2", what)
    places = dict.fromkeys((package, "fairopt.experiment"))
    layout = {"trim_blocks": True, "lstrip_blocks": True, "undefined": jinja.StrictUndefined}
    loader = jinja.ChoiceLoader([jinja.PackageLoader(each) for each in places])
    return jinja.Environment(loader=loader, autoescape=True, **layout)


def svg(draw: Callable[[], Any], title: str, what: str, description: str = "") -> str:
    """Return what ``draw`` draws as SVG for a page; ``title`` and ``description`` are for those who do not see it.

    Errors: `NotInstalled` without matplotlib, which says that ``what`` needs it.

    >>> from fairopt import allocate, plot
    >>> from fairopt.datasets import oef_example
    >>> picture = svg(lambda: plot.shares(allocate("max-min", oef_example())), "who has what", "a page")
    >>> picture.startswith('<svg role="img" aria-label="who has what" ')
    True
    """
    matplotlib = library("matplotlib", what, "plot")
    colours = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    style: dict[str, Any] = {**colours, "svg.fonttype": "none", "svg.hashsalt": "fairopt", "axes.facecolor": "none"}
    style |= {"figure.facecolor": "none", "text.parse_math": False}  # a name may have dollar signs
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # text is drawn by who shows the page, with fonts of its own
        figure, into = draw(), io.StringIO()
        figure.savefig(into, format="svg", metadata={"Date": None, "Creator": None})
    text = into.getvalue()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text[text.index("<svg") :], count=1, flags=re.DOTALL)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)  # within a page these go without saying
    for colour, of_page in IN_PAGE.items():
        text = text.replace(colour, of_page)
    # ids are of this picture alone, since a page has several
    text = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>p{crc32(title.encode()):08x}-", text)
    said = f"<desc>{escape(description)}</desc>" if description else ""
    head, end, rest = text.partition(">")
    text = f"{head}{end}{said}{rest}".replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)
    return UNWRITABLE.sub("\ufffd", text)
