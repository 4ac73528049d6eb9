"""The page of a what-if: what changes between two audits, as HTML that needs no other file and no network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from fairopt.audit.page import ANSWERS, LINES, OTHERS, Bar, audit_templates, length
from fairopt.audit.status import EntitlementStatus, NodeStatus, TypeStatus
from fairopt.audit.whatif import WhatIf
from fairopt.experiment.page import UNWRITABLE
from fairopt.problem.files.storage import naming, write_text
from fairopt.program import INFINITY, Number

#: The numbers of a line, as a head says them, and what they are called in `TypeStatus`.
NUMBERS = {"held": "holds", "owed": "owed", "cap": "cap", "asks": "asks", "short": "short", "borrows": "borrows"}


class ChangedLine(NamedTuple):
    """A user or group of which a number changes on a type: how it stands before and after, and a bar for both."""

    name: str
    is_group: bool
    type: str
    before: TypeStatus
    after: TypeStatus
    bars: tuple[Bar, Bar]


def write_page(found: WhatIf, path: str | PathLike[str], files: Sequence[object] = ()) -> None:
    """Write the page of a what-if about ``files``. Errors: `NotInstalled` without Jinja2; `BadInput` for the place."""
    with naming(path):
        write_text(path, page(found, files))


def page(found: WhatIf, files: Sequence[object] = ()) -> str:
    """Return the page; the rest as `write_page`."""
    lines = list(_lines(found))
    names = [Path(str(file)).name for file in files]
    of = f"What if {names[0]} were changed" if names and found.settings else "What changes"
    text: str = (
        audit_templates()
        .get_template("whatif_page.html")
        .render(
            title=of if found.settings or len(names) != 2 else f"From {names[0]} to {names[1]}",
            found=found,
            footings=list(EntitlementStatus),
            lines=lines[:LINES],
            left_out=max(0, len(lines) - LINES),
            numbers=NUMBERS,
            given=_given(found),
            types=list(dict.fromkeys((*found.before.market.types, *found.after.market.types))),
            answers=ANSWERS,
            most=OTHERS,
        )
    )
    return UNWRITABLE.sub("\ufffd", text)


def _lines(found: WhatIf) -> Iterator[ChangedLine]:
    """Yield users and groups that stand differently on a type, in the order of the audit after."""
    old, new = ({row.name: row for row in each.rows} for each in (found.before, found.after))
    types = dict.fromkeys((*found.before.market.types, *found.after.market.types))
    for name in dict.fromkeys((*new, *old)):
        for kind in types:
            before, after = (_stands(rows.get(name), kind) for rows in (old, new))
            if before != after:
                long = length(before, after)
                is_group = (new.get(name) or old[name]).is_group
                yield ChangedLine(name, is_group, kind, before, after, (Bar.of(before, long), Bar.of(after, long)))


def _stands(row: NodeStatus | None, kind: str) -> TypeStatus:
    """Return how a user or group stands on a type; one that is not there holds, is owed and asks for nothing."""
    own = None if row is None else row.on(kind)
    return own or TypeStatus(kind, EntitlementStatus.IDLE, 0, 0, 0, INFINITY, 0, 0, 0)


def _given(found: WhatIf) -> Mapping[str, str | dict[str, dict[str, tuple[Number, Number]]]]:
    """Return by policy what users get before and after, by type, where that differs; or why nobody knows."""
    out: dict[str, str | dict[str, dict[str, tuple[Number, Number]]]] = {}
    for each in (*found.before.alternatives, *found.after.alternatives):
        if out.get(each.policy, {}) == {}:
            out[each.policy] = each.error or {}
    for policy, (was, now) in found.undecided.items():
        out[policy] = f"before: {was or 'decides'}; after: {now or 'decides'}"
    for given in found.given:
        rows = out[given.policy]
        if isinstance(rows, dict):
            rows.setdefault(given.user, {})[given.type] = (given.before, given.after)
    return out
