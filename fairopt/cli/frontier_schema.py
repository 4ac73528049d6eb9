"""The schema of what `fairopt frontier` prints with ``--json``; exact numbers are strings "p/q"."""

from __future__ import annotations

from fairopt.cli.schema_parts import (
    LEFT_OUT,
    NAMES,
    NUMBER,
    NUMBERS,
    TEXT,
    TRUTH,
    VERSION,
    Schema,
    by_name,
    listed,
    object_of,
    or_null,
)

_POINTS = listed(
    object_of(
        "What an allocation reaches.",
        {
            "epsilon": (NUMBER, "By how much the property fails, at most."),
            "value": (NUMBER, "The goal."),
            "allocation": (listed(NUMBERS), "GPUs of each type for each user."),
        },
    )
)
_LINE = object_of(
    "A line that the curve is nowhere above.",
    {"constant": (NUMBER, "Its height at epsilon 0."), "slope": (NUMBER, "Its rise.")},
)
_CURVE = object_of(
    "The most of a goal, as a function of epsilon.",
    {
        "goal": (TEXT, "What is largest."),
        "property": (TEXT, "What may fail by epsilon."),
        "exact": (TRUTH, "Whether points and lines meet everywhere."),
        "gap": (NUMBER, "By how much they are apart, at most."),
        "stopped": (or_null(TEXT), "Why it was not followed to its end; null where it was."),
        "points": (_POINTS, "The curve is on the straight lines between these, or above; level after the last."),
        "lines": (listed(_LINE), "One for each of these spans, and for what comes after the last point."),
        "efficient": (listed(_POINTS), "What Pareto-efficient allocations reach, on one efficient face after another."),
    },
)
_PLACED = object_of(
    "A policy beside the curves.",
    {
        "policy": (TEXT, "Who decided."),
        "exact": (TRUTH, "Whether its decision is in rational numbers."),
        "values": (by_name(NUMBER), "Each goal at its decision."),
        "epsilons": (by_name(NUMBER), "The least epsilon of each property."),
        "distances": (by_name(by_name(NUMBER)), "How far it is below the curve there, at most, by goal and property."),
        "reasons": (by_name(TEXT), "Why a number is not there."),
    },
    {"error": (TEXT, "Why it decided nothing.")},
)
_FAILED = object_of("Why there is no curve.", dict.fromkeys(("goal", "property", "error"), (TEXT, "In words.")))
FRONTIER: Schema = object_of(
    "Trade-offs of a market.",
    {
        **VERSION,
        "users": (NAMES, "The users, in the order of the rows."),
        "types": (NAMES, "The GPU types, in the order of the columns."),
        "curves": (listed(_CURVE), "A curve for each goal and property."),
        "failed": (
            listed(object_of("No curve.", dict.fromkeys(("goal", "property", "error"), (TEXT, "Text.")))),
            "Why.",
        ),
        "policies": (listed(_PLACED), "The policies."),
    },
    LEFT_OUT,
)
