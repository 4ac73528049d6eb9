"""Docstrings of fairopt are plain text with `names` and ``code`` in backticks; here they become reStructuredText.

Letters that mathematics needs and reStructuredText takes for markup (``x_``, ``*``, ``|``) are escaped outside of code.
A name between single backticks becomes a link where this site has a page for it.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode

#: Code in one or two backticks, which is left alone.
CODE = re.compile(r"(``[^`]+(?:`[^`]+)*``|`[^`]+`)", re.S)
#: A bullet at the beginning of a line or *emphasis*, which stay; or a letter that would be taken for markup.
MARKUP = re.compile(r"(^\s*[*-] |(?<!\w)\*[^\s*][^*]*\*(?!\w))|[*|\\]|(?<=\w)_(?!\w)", re.M)
HEADS = re.compile(r"^(Errors|Source|Returns|Raises): ")
NAME = re.compile(r"[A-Za-z_][\w.]*$")


def escaped(text: str) -> str:
    """Return plain text in which nothing is markup; a bullet at the beginning of a line stays one."""
    return MARKUP.sub(lambda found: found[0] if found[1] else f"\\{found[0]}", text)


def name(text: str) -> str:
    """Return code in single backticks as a link to what is so called, or as code."""
    inner = text[1:-1]
    return f":py:obj:`{inner}`" if NAME.match(inner) else f"``{inner}``"


def rewrite(app: Sphinx, what: str, full: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Turn the lines of one docstring into reStructuredText, in place."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            paragraphs[-1].append(line)
        else:
            paragraphs.append([])
    written: list[str] = []
    for paragraph in paragraphs:
        text = "\n".join(paragraph)
        if not text.lstrip().startswith((">>>", "..", ":")):
            pieces = CODE.split(text)
            kept = [piece if piece.startswith("``") else name(piece) for piece in pieces[1::2]]
            plain = [escaped(piece) if at == 0 else escaped("." + piece)[1:] for at, piece in enumerate(pieces[::2])]
            text = "".join(a + b for a, b in zip(plain, [*kept, ""], strict=True))
            text = HEADS.sub(r"**\1:** ", text)
        written += [*text.split("\n"), ""]
    lines[:] = written


def linked(app: Sphinx, env: Any, node: pending_xref, inside: nodes.Element) -> nodes.Node | None:
    """Link a name to what has a page here under another name: a class is public in one package and written in another.

    A name of a docstring that has no page stays code.
    """
    if node.get("refdomain") != "py":
        return None
    target, within = node["reftarget"], node.get("py:module") or "fairopt"
    pages = env.domains["py"].objects
    for path in (target, f"{within}.{target}", f"fairopt.{target}"):
        found = written_as(path)
        if found in pages:
            return make_refnode(app.builder, node["refdoc"], pages[found].docname, pages[found].node_id, inside, found)
    if node["reftype"] != "obj":
        return None
    named = {(page.docname, page.node_id) for name, page in pages.items() if name.endswith(f".{target}")}
    if len(named) != 1:
        return inside.deepcopy()
    return make_refnode(app.builder, node["refdoc"], *named.pop(), inside, target)


@cache
def written_as(path: str) -> str:
    """Return the name under which an object was written; "" where there is no such object, or it has no such name."""
    try:
        found = pkgutil.resolve_name(path)
    except (ImportError, AttributeError, ValueError):
        return ""
    return f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("autodoc-process-docstring", rewrite)
    app.connect("missing-reference", linked, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
