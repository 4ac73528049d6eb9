"""HTML in which nothing is forgotten to be escaped: text becomes HTML only through `element`, which escapes it."""

from __future__ import annotations

import re
from html import escape

#: Elements that have no content and no end.
VOID = frozenset({"br", "hr", "meta", "col"})
#: What no page may hold: control characters, and halves of pairs that cannot be written as UTF-8.
UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Html(str):
    """Text that is HTML already: made by `element` and `joined` only."""

    __slots__ = ()


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """Return an element; children that are not `Html` are escaped, those that are None left out.

    In the names of attributes ``_`` stands for ``-``, and one at the end is dropped (``class_``); an attribute that is
    None is left out, and True has no value.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items() if value is not None)
    if name in VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(*children)}</{name}>")


def joined(*children: object) -> Html:
    """Return the children one after another, escaped unless they are `Html`."""
    return Html("".join(text(child) for child in children if child is not None))


def text(value: object) -> Html:
    """Return a value as HTML; what cannot be written becomes U+FFFD."""
    return value if isinstance(value, Html) else Html(escape(UNWRITABLE.sub("\ufffd", str(value))))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(str(value))}"'


def table(caption: object, head: list[Html], rows: list[Html], class_: str = "") -> Html:
    """Return a table that scrolls inside the page where it is wider; ``head`` and ``rows`` are ``tr`` elements."""
    inside = element(
        "table",
        element("caption", caption),
        element("thead", *head),
        element("tbody", *rows),
        class_=class_ or None,
    )
    return element("div", inside, class_="wide", tabindex="0", role="region", aria_label=str(caption))


def row(first: object, *cells: object, number: bool = True, **attributes: object) -> Html:
    """Return a row of a table's body: its header, and cells (``td`` elements as they are)."""
    class_ = "n" if number else None
    return element(
        "tr",
        element("th", first, scope="row"),
        *(cell if _is_cell(cell) else element("td", cell, class_=class_) for cell in cells),
        **attributes,
    )


def header(*names: object) -> Html:
    """Return a row of a table's head."""
    return element("tr", *(name if _is_cell(name) else element("th", name, scope="col") for name in names))


def _is_cell(value: object) -> bool:
    return isinstance(value, Html) and value.startswith(("<td", "<th"))


def page(title: str, *children: object) -> str:
    """Return a page that needs no other file, light or dark as its reader prefers, and fit for paper."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        Html(f"<style>{STYLE}</style>"),
    )

    body = element("body", element("main", *children))
    return "<!DOCTYPE html>\n" + element("html", head, "\n", body, lang="en") + "\n"


#: Okabe and Ito's colours, which colour-blind people tell apart, lightened where the ground is dark; yellow left out.
STYLE = """
:root { --ground: #ffffff; --ink: #1b1f24; --soft: #57606a; --rule: #d0d7de; --shade: #f6f8fa; --link: #0a58a8;
  --good: #00694a; --bad: #a63c00; --best: #e3f2ec;
  --c0: #0072b2; --c1: #d55e00; --c2: #009e73; --c3: #b7518c; --c4: #2f9bd6; --c5: #c98500; --c6: #555555; }
@media (prefers-color-scheme: dark) { :root { --ground: #14181d; --ink: #e6e9ec; --soft: #a2abb5; --rule: #3a434d;
  --shade: #1d232a; --link: #79b8f5; --good: #4fd0a0; --bad: #ff9a5c; --best: #16362b;
  --c0: #4aa8e8; --c1: #ff8a3d; --c2: #2fcf9d; --c3: #e79cc8; --c4: #8fd3ff; --c5: #f2b93b; --c6: #b5b5b5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 28px 24px 64px; }
h1 { font-size: 1.75em; line-height: 1.2; margin: 0 0 .4em; }
h2 { font-size: 1.35em; margin: 2.2em 0 .5em; padding-top: .7em; border-top: 2px solid var(--rule); }
h3 { font-size: 1.08em; margin: 1.9em 0 .4em; }
p, ul, ol { max-width: 78ch; margin: .5em 0; } li { margin: .15em 0; }
a { color: var(--link); } td a, th a { color: inherit; text-decoration-color: var(--rule); text-underline-offset: 2px; }
.wide { overflow-x: auto; margin: .8em 0 1.2em; }
table { border-collapse: collapse; font-size: .88em; line-height: 1.35; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding: 0 0 .45em; }
th, td { padding: .32em .75em; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
thead th { background: var(--shade); font-weight: 600; vertical-align: bottom; } thead th.n { text-align: right; }
thead th.group { text-align: center; border-left: 1px solid var(--rule); }
tbody th { font-weight: 600; white-space: nowrap; }
table.goals th { white-space: normal; min-width: 18ch; } table.goals thead th { min-width: 9ch; }
 td.n { text-align: right; white-space: nowrap; }
.tight { white-space: nowrap; } td.small-text { font-size: .92em; max-width: 60ch; }
td.best { background: var(--best); } td .main { font-weight: 600; }
small, .small { display: block; font-size: .84em; color: var(--soft); font-weight: 400; }
.bad { color: var(--bad); font-weight: 600; } .good { color: var(--good); font-weight: 600; }
.soft { color: var(--soft); }
td.message { max-width: 62ch; overflow-wrap: anywhere; white-space: pre-wrap; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .88em; }
pre { background: var(--shade); border: 1px solid var(--rule); padding: .8em 1em; overflow-x: auto;
  white-space: pre-wrap; }
.note { border-left: 4px solid var(--c5); background: var(--shade); padding: .5em .9em; max-width: 80ch; }
figure { margin: 1em 0 1.4em; } figcaption { color: var(--soft); font-size: .9em; max-width: 90ch; }
svg { display: block; width: 100%; max-width: 960px; height: auto; } svg text { fill: var(--ink); font-size: 13px; }
svg .tick { fill: var(--soft); font-size: 12px; } svg .grid { stroke: var(--rule); stroke-width: 1; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .leader { stroke: var(--soft); stroke-width: .8; opacity: .6; fill: none; }
svg .limit { stroke: var(--bad); stroke-width: 1.2; stroke-dasharray: 2 4; }
svg .line { fill: none; stroke-width: 2.2; stroke-linejoin: round; }
svg .thin { stroke-width: 1; } svg .mark { stroke-width: 1.8; }
:target { outline: 2px solid var(--c5); outline-offset: -2px; }
nav ul { columns: 2; padding-left: 1.2em; margin-top: 1em; } @media (max-width: 700px) { nav ul { columns: 1; } }
dt { font-weight: 600; } dd { margin: 0 0 .5em 1.5em; max-width: 78ch; }
@page { size: A4 landscape; margin: 12mm; }
@media print { :root { --ground: #ffffff; --ink: #000000; --soft: #444444; --rule: #bbbbbb; --shade: #f4f4f4;
  --link: #000000; --good: #00573d; --bad: #8a3200; --best: #e3f2ec; --c0: #0072b2; --c1: #d55e00; --c2: #009e73;
  --c3: #b7518c; --c4: #2f9bd6; --c5: #c98500; --c6: #555555; }
  body { font-size: 9pt; } main { max-width: none; padding: 0; }
  .wide { overflow: visible; } th, td { padding: .25em .5em; }
  table { font-size: 7.5pt; } tr, figure { break-inside: avoid; } h2, h3 { break-after: avoid; }
  a { text-decoration: none; }
  td.n, tbody th, .tight { white-space: normal; } figure { max-width: 230mm; } }
"""
