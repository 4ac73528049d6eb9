"""The pages of an audit, an explanation and a what-if: HTML that needs no other file and no network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from fairopt.audit.alternatives import few_digits
from fairopt.audit.auditing import Audit
from fairopt.audit.explaining import Explanation
from fairopt.audit.status import EntitlementStatus, NodeStatus, on_type
from fairopt.audit.whatif import WhatIf
from fairopt.experiment.page import rendered, templates
from fairopt.program import INFINITY, Number, number_text
from fairopt.properties.verdict import MARKS
from fairopt.report import Statement

#: The numbers of a line, as a head says them, and what they are called in `ON_TYPE`.
NUMBERS = {"held": "holds", "owed": "owed", "cap": "cap", "asks": "asks", "short": "short", "borrows": "borrows"}
#: The most lines of the table of users, and of every other table.
LINES, OTHERS = 2_000, 200
WHAT = "an audit's page"
#: How a verdict reads.
ANSWERS = {answer: words.lower() for answer, words in MARKS.items()}


class _PageLine(NamedTuple):
    """A line of the table of users: who, how it stands on a type (before and after), and how deep it is in the tree."""

    row: NodeStatus
    stands: tuple[Statement, ...]
    depth: int = 0
    broken: bool = False


@singledispatch
def page(found: Any, files: Sequence[object] = ()) -> str:
    """Return the page of an `Audit`, `Explanation` or `WhatIf` of ``files``. Errors: `NotInstalled` without Jinja2."""
    raise TypeError(f"there is no page of a {type(found).__name__}")


def audit_page(template: str, **values: Any) -> str:
    """Return the page that a template makes of values; numbers of GPUs are written as in all pages of audits."""
    words = {"gpus": gpus_text, "signed": signed, "digits": few_digits, "longest": longest}
    return rendered(template, __package__, WHAT, words, **values)


@page.register
def _(found: Audit, files: Sequence[object] = ()) -> str:
    lines = list(_lines(found))
    script = templates(__package__, WHAT).get_template("audit_page.js").render()
    return audit_page(
        "audit_page.html",
        title=f"Audit of {', '.join(Path(str(file)).name for file in files) or 'a market'}",
        found=found,
        accounts=found.accounts,
        statuses=list(EntitlementStatus),
        lines=lines[:LINES],
        left_out=max(0, len(lines) - LINES),
        declared=[each for each in found.declared if each.computed is not None],
        types=list(
            zip(found.market.types, found.market.capacity, found.accounts.all_held, found.accounts.free, strict=True)
        ),
        answers=ANSWERS,
        most=OTHERS,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def gpus_text(number: Number) -> str:
    """Return a number of GPUs as text, rounded where it is not whole; "–" for no bound."""
    if number == INFINITY:
        return "–"
    return number_text(number) if number == int(number) else f"{float(number):.4g}"


def signed(number: Number) -> str:
    """Return a difference of GPUs as text, with its sign."""
    sign = "+" if number > 0 else "−" if number < 0 else ""
    return f"{sign}{gpus_text(max(number, -number))}"


def _lines(found: Audit) -> Iterator[_PageLine]:
    """Yield the lines of all nodes, each group before its members; none where nothing is held, owed or asked for."""
    said = found.accounts.said
    broken = {(each.name, each.type) for each in found.violations}
    nodes = [(node, 0) for node in reversed(said.tops)]
    while nodes:
        node, depth = nodes.pop()
        row = found.rows[node]
        nodes += [(child, depth + 1) for child in reversed(said.children[node])]
        for own in row.types:
            if not (own.holds or own.owed or own.asks):
                continue
            yield _PageLine(row, (own,), depth, (row.name, own.type) in broken)


def longest(stands: Sequence[Statement]) -> float:
    """Return how many GPUs the longest bar of these is for."""
    ends = [end for own in stands for end in (own.holds, own.owed, own.cap) if end < INFINITY]
    return float(max(1, *ends))


# -- one user or group ----------------------------------------------------------------------------------------------
@page.register
def _(found: Explanation, files: Sequence[object] = ()) -> str:
    from fairopt.experiment.graph_pictures import graph_pictures, tree_pictures  # here, since few ask for it

    audited, name = found.found, found.row.name
    return audit_page(
        "explanation_page.html",
        title=f"{name} in {Path(str(files[0])).name}" if files else name,
        found=found,
        row=found.row,
        rules=[each for each in found.alternatives if not each.error],
        numbers=NUMBERS,
        most=OTHERS,
        pictures=[
            *tree_pictures(audited.accounts.said, name),
            *graph_pictures(audited.market, audited.held, name, name),
        ],
    )


# -- what would change ----------------------------------------------------------------------------------------------
@page.register
def _(found: WhatIf, files: Sequence[object] = ()) -> str:
    lines = list(_changed(found))
    names = [Path(str(file)).name for file in files]
    of = f"What if {names[0]} were changed" if names and found.settings else "What changes"
    return audit_page(
        "whatif_page.html",
        title=of if found.settings or len(names) != 2 else f"From {names[0]} to {names[1]}",
        found=found,
        statuses=list(EntitlementStatus),
        lines=lines[:LINES],
        left_out=max(0, len(lines) - LINES),
        numbers=NUMBERS,
        given=_given(found),
        types=list(dict.fromkeys((*found.before.market.types, *found.after.market.types))),
        answers=ANSWERS,
        most=OTHERS,
    )


def _changed(found: WhatIf) -> Iterator[_PageLine]:
    """Yield users and groups that stand differently on a type, in the order of the audit after."""
    old, new = ({row.name: row for row in each.rows} for each in (found.before, found.after))
    types = dict.fromkeys((*found.before.market.types, *found.after.market.types))
    for name in dict.fromkeys((*new, *old)):
        for kind in types:
            before, after = (_stands(rows.get(name), kind) for rows in (old, new))
            if before != after:
                yield _PageLine(new.get(name) or old[name], (before, after))


def _stands(row: NodeStatus | None, kind: str) -> Statement:
    """Return how a user or group stands on a type; one that is not there holds, is owed and asks for nothing."""
    own = None if row is None else row.on(kind)
    return own or on_type(kind, EntitlementStatus.IDLE, 0, 0, 0, INFINITY, 0, 0, 0)


def _given(found: WhatIf) -> Mapping[str, str | dict[str, dict[str, tuple[Number, Number]]]]:
    """Return by policy what users get before and after, by type, where that differs; or why nobody knows."""
    out: dict[str, str | dict[str, dict[str, tuple[Number, Number]]]] = {}
    for each in (decided for pair in found.decisions for decided in pair):
        if out.get(each.policy, {}) == {}:
            out[each.policy] = each.error or {}
    for policy, (was, now) in found.undecided.items():
        out[policy] = f"before: {was or 'decides'}; after: {now or 'decides'}"
    for given in found.given:
        rows = out[given.policy]
        if isinstance(rows, dict):
            rows.setdefault(given.name, {})[given.type] = (given.before, given.after)
    return out
