"""The schemas of what `fairopt audit`, `explain` and `whatif` print with ``--json``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairopt.cli.schema_parts import (
    NAMES,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    VERDICTS,
    VERSION,
    Keys,
    Schema,
    by_name,
    listed,
    object_of,
    or_null,
    part,
)

_FOOTING: Keys = {
    "name": (TEXT, "The user or group."),
    "kind": ({"enum": ["user", "group"]}, "Which."),
    "group": (or_null(TEXT), "The group that it is in."),
    "footing": (TEXT, "STARVED, BORROWING, WITHIN or IDLE; the first that is true on some type."),
    "weight": (NUMBER, "Its weight beside its siblings."),
    "priority": ({"type": "integer"}, "Higher goes first."),
    "types": (by_name(OBJECT), "By type: footing, holds, fixed, owed, cap, asks, short, borrows; null for no bound."),
    "goods": (by_name(OBJECT), "By good: holds, owed, cap."),
}
_MEND = "By type, the smallest reclaim (`is_smallest`: whether it is known that none is smaller)"
_ASIDE = (TEXT, "Resources that mends and loans do not look at, in words; empty for none.")
_AUDIT: Keys = {
    **VERSION,
    "source": (or_null(TEXT), "The importer that read the files; null for a market."),
    "owed_by": ({"enum": ["guarantee", "weight"]}, "What is owed; a part by weight is no promise."),
    "types": (by_name(OBJECT), "GPUs of each type, and how many are held, which may be more, and free."),
    "gangs": (OBJECT, "How many run and wait."),
    "counts": (by_name({"type": "integer"}), "How many users stand in each way."),
    "violated": (TRUTH, "Whether a guarantee is broken by others' borrowing, or a cap."),
    "users": (listed(object_of("A user.", _FOOTING)), "How each user stands."),
    "groups": (listed(object_of("A group.", _FOOTING)), "How each group stands."),
    "reasons": (by_name(OBJECT), "By user that waits: why its first gang does, by type."),
    "broken_guarantees": (listed(OBJECT), "Who waits for what it is owed, and who holds too much."),
    "broken_caps": (listed(OBJECT), "Who holds more than its cap."),
    "mends": (listed(OBJECT), f"{_MEND} that lets starving gangs run, and in `lacks` those that lack a good still."),
    "mends_leave_aside": _ASIDE,
    "past_use": (by_name(OBJECT), "Parts of past use: owed by weight, and used."),
    "declared": (listed(OBJECT), "Values that the file states, beside the same computed again."),
    "policies": (by_name(OBJECT), "What policies would give, and who gains."),
    "properties": (VERDICTS, "Verdicts on what is held, by name."),
    "unplaced": (listed(OBJECT), "What the file says and the market has no place for."),
}
_VERDICTS = object_of(
    "A verdict before and after; null where the property is not asked.",
    {when: (or_null(part("verdict")), f"The verdict {when}.") for when in ("before", "after")},
)
#: What the commands print, by command.
AUDITING: Mapping[str, Schema] = MappingProxyType(
    {
        "audit": object_of("Who is starved, who borrows, and why.", _AUDIT),
        "explain": object_of(
            "How one user or group stands, and why.",
            {
                **VERSION,
                **_FOOTING,
                "path": (NAMES, "The groups that it is in, from the inside outwards."),
                "waits": (listed(OBJECT), "Why its gangs wait: a reason, and how many gangs have it."),
                "mends": (listed(OBJECT), f"{_MEND} that lets its starving gangs run."),
                "mends_leave_aside": _ASIDE,
                "loans": (
                    listed(OBJECT),
                    "What its first waiting gang would have to be given, by type: enough unless gangs ahead take it.",
                ),
                "policies": (by_name(OBJECT), "What each policy gives it, and why, in a rule's own words."),
                "sensitivities": (listed(OBJECT), "What more of a quota, cap, capacity or weight gives it."),
            },
        ),
        "whatif": object_of(
            "What changes.",
            {
                **VERSION,
                "settings": (NAMES, "The changes that were asked for."),
                "implied": (NAMES, "The quotas of groups that follow."),
                "footings": (listed(OBJECT), "Who stands differently."),
                "given": (listed(OBJECT), "What policies give differently."),
                "undecided": (by_name(OBJECT), "Why policies give nothing, before and after, where that changes."),
                "reasons": (by_name(OBJECT), "Why users wait, before and after, where that changes."),
                "verdicts": (by_name(_VERDICTS), "Verdicts on what is held that change, in answer or margin, by name."),
                "mended": (NAMES, "What was broken and is no more."),
                "broken": (NAMES, "What is newly broken."),
                "before": (part("audit"), "The audit before."),
                "after": (part("audit"), "The audit after."),
            },
            {"emitted": (TEXT, "With --emit: the change as objects of a scheduler.")},
        ),
    }
)
