"""The JSON Schema of what every command prints with ``--json``. Keys are added over time, never renamed or dropped."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairopt.cli.as_json import DECIDES, SCHEMA
from fairopt.cli.audit_schema import AUDITING
from fairopt.cli.schema_parts import (
    LEFT_OUT,
    NAMES,
    NUMBER,
    NUMBERS,
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
from fairopt.frontier import Frontier
from fairopt.ledger import Ruling
from fairopt.properties import Verdict

SECONDS = object_of("Seconds.", dict.fromkeys(("build", "solve", "certify"), ({"type": "number"}, "Seconds.")))
_STATUS: Keys = {
    **VERSION,
    "policy": (TEXT, "Who decided."),
    "status": (TEXT, "`optimal` or `decided`; else why there is no answer."),
}
_DECISION: Keys = {
    "backend": (or_null(TEXT), "The backend that was asked for, or auto."),
    "objective": (or_null(NUMBER), "What is optimised, in the policy's own unit."),
    "users": (NAMES, "The users, in the order of the rows."),
    "types": (NAMES, "The GPU types, in the order of the columns."),
    "allocation": (or_null(listed(NUMBERS)), "GPUs of each type for each user; null without an answer."),
    "utilities": (or_null(NUMBERS), "Throughput of each user, in its own unit."),
    "unique": (or_null(TRUTH), "Whether no other optimum has other shares; null where nobody asked, or nobody knows."),
    "seconds": (SECONDS, "What it took."),
}
_DECISION_BESIDE: Keys = {
    "unique_utilities": (or_null(TRUTH), "The same of utilities."),
    "at_worst": (
        OBJECT,
        "With --at-worst: bounds on what a user truly gets, of its equal share, and how they were found.",
    ),
    "solver": (or_null(TEXT), "Who solved."),
    "evidence": ({}, "What the policy brings to show that the decision is right."),
    "proven": (or_null(OBJECT), "Bounds between which the optimum lies, with the multipliers that prove them."),
    "owners": (NAMES, "Whose the users are, where users have several job types."),
    "raw_status": (or_null(TEXT), "Without an answer: the solver's own word."),
    "incumbent": ({}, "Without an answer: the best point that was found; shares, where a method found them."),
    "bound": (or_null(NUMBER), "Without an answer: what no point is better than."),
    "gap": (or_null(NUMBER), "Without an answer: how far the best point may be from the optimum, as a part of it."),
    "conflict": (NAMES, "Without an answer: constraints that cannot hold together."),
    "error": (TEXT, "Without an answer: why."),
}
METRICS = object_of(
    "Numbers of an allocation.",
    {
        "total_efficiency": (NUMBER, "The sum of the users' throughputs."),
        "efficiency": (by_name(NUMBER), "Throughput of each user."),
        "ratio_to_equal_split": (by_name(or_null(NUMBER)), "Throughput over that of an equal split, of each user."),
        "jain_index": (NUMBER, "Jain's index of these ratios."),
        "utilisation": (
            by_name(or_null(NUMBER)),
            "Part of the GPUs in use, of each type; null where there are none.",
        ),
        "price_of_fairness": (NUMBER, "The part of the greatest total efficiency that is lost."),
    },
)
_RUN: Keys = {
    "length": (NUMBER, "Seconds of a round."),
    "mechanics": (OBJECT, "What starting and moving jobs costs."),
    "cluster": (OBJECT, "Types and hosts."),
    "trace": (OBJECT, "Tenants, jobs and outages."),
    "rounds": (listed(OBJECT), "What happened in each round."),
    "standing": (listed(OBJECT), "How the jobs that are still there stand."),
    "outcome": (
        object_of(
            "How the run ended.",
            {
                "options": (NAMES, "What --set gave."),
                "complete": (TRUTH, "Whether every job that can run is done."),
                "stopped": (or_null(TEXT), "Why the run ended before that."),
            },
        ),
        "How the run ended.",
    ),
    "measures": (OBJECT, "What was measured; `row` compares policies, in the units of `units`."),
}
_SCHEDULE: Keys = {
    "batch": (OBJECT, "The batch."),
    "bases": (listed(OBJECT), "The bases of posted prices."),
    "schedules": (listed(OBJECT), "Which job runs where and when."),
    "admissions": (listed(OBJECT), "Each decision, in order."),
    "payments": (listed(OBJECT), "Who pays whom."),
    "options": (NAMES, "What --set gave."),
    "backend": (or_null(TEXT), "The backend that was asked for, or auto."),
    "revenue": (NUMBER, "The total utility of the jobs that run."),
    "gains": (by_name(NUMBER), "Utility less payments, by tenant."),
    "unscheduled": (NAMES, "The jobs that do not run."),
    "proven": (TEXT, "What is proven of the plan."),
    "seconds": (SECONDS, "What it took."),
}
_COMPARED: Keys = {
    "properties": (VERDICTS, "Verdicts by name."),
    "metrics": ({"anyOf": [METRICS, {"type": "object", "maxProperties": 0}]}, "Of a market: numbers."),
    "measures": (OBJECT, "Of a trace or a batch: what was measured."),
    "cell_seconds": (by_name({"type": "number"}), "What each cell of the table took."),
}
_WRITTEN: Keys = {
    "file": (TEXT, "The file that was written."),
    "kind": (TEXT, "What it is: a market, a trace, a cluster or a batch."),
    "holds": (TEXT, "What it holds, in short."),
}
_UNPLACED: Keys = {
    "unplaced": (
        listed(object_of("What was not taken over.", dict.fromkeys(("place", "value", "why"), (TEXT, "In words.")))),
        "What the file says and the problem has no place for.",
    )
}
_OPTION: Keys = {
    "name": (TEXT, "The name."),
    "type": (TEXT, "What can be given."),
    "default": (TEXT, "What it is else."),
    "meaning": (TEXT, "What it does."),
}
_LISTED: Keys = {"name": (TEXT, "The name."), "source": (TEXT, "Where it is from.")}
_BENCH_LISTS: Keys = dict.fromkeys(
    ("specifications", "tasks", "families of instances", "contenders"), (listed(OBJECT), "By name.")
)
_ENDS = object_of("A number and its interval.", dict.fromkeys(("value", "low", "high"), (or_null(NUMBER), "Or null.")))
_SETTING: Keys = dict.fromkeys(("trace", "cluster", "load", "error", "mechanics"), (TEXT, "The label."))
_MEAN: Keys = {
    **_SETTING,
    **dict.fromkeys(("policy", "measure"), (TEXT, "The name.")),
    **dict.fromkeys(("value", "low", "high"), (or_null(NUMBER), "The mean over seeds, and its interval.")),
    "seeds": ({"type": "integer"}, "How many runs it is of."),
}
_PAIR: Keys = {
    **_SETTING,
    **dict.fromkeys(("measure", "better", "than"), (TEXT, "What is compared, who is better, than whom.")),
    "sure": (TRUTH, "Whether the family of comparisons allows to say so."),
    **dict.fromkeys(("factor", "difference"), (_ENDS, "By how much; null where it is not known.")),
    **dict.fromkeys(("p", "p_holm"), (or_null(NUMBER), "The p-value, alone and among all comparisons.")),
    "seeds": ({"type": "integer"}, "How many pairs of runs."),
    "verdict": (TEXT, "The same in words."),
}
_STUDY: Keys = {
    **VERSION,
    "study": (TEXT, "Its name."),
    **dict.fromkeys(("cells", "missing"), ({"type": "integer"}, "Cells that ended, and those that were not played.")),
    "failed": (listed(OBJECT), "Cells that ended with an error, and the error."),
    "notes": (NAMES, "What a reader must know before the numbers."),
    "means": (listed(object_of("A policy in a setting.", _MEAN)), "Of each measure that is compared."),
    "pairs": (listed(object_of("Two policies in a setting.", _PAIR)), "Every pair, one family of comparisons."),
}
#: What is printed by command; of commands under another one by both names.
OUTPUTS: Mapping[str, Schema] = MappingProxyType(
    {
        "solve": object_of("An allocation.", {**_STATUS, **_DECISION}, _DECISION_BESIDE),
        "verify": object_of(
            "Verdicts on an allocation, a schedule or a recorded run.",
            {**VERSION, "properties": (VERDICTS, "Verdicts by name.")},
            {
                "metrics": (METRICS, "Of an allocation: numbers."),
                "accepted": (TRUTH, "Of a schedule: whether it keeps all constraints."),
                "violations": (NAMES, "Of a schedule: the constraints that it breaks."),
                "statement": (or_null(TEXT), "Of a schedule: what was checked."),
            },
        ),
        "compare": {
            "anyOf": [
                object_of(
                    "What is said of each policy.",
                    {**VERSION, "policies": (by_name(part("compared")), "By the policy's name.")},
                    LEFT_OUT,
                ),
                part("study"),
            ]
        },
        **AUDITING,
        "policies": listed(part("policy")),
        "backends": listed(part("backend")),
        "properties": listed(part("property")),
        "plugins": listed(part("plugin")),
        "datasets": {"anyOf": [listed(part("dataset")), part("written")]},
        "generate": {"anyOf": [listed(part("generator")), part("generated")]},
        "import": part("written"),
        "check": object_of("What was decided.", {**VERSION, "files": (listed(part("checked")), "Of each file.")}),
        "claims": listed(part("claim")),
        "lie": object_of(
            "A misreport that pays, if one was found.",
            {
                **VERSION,
                "found": (TRUTH, "Whether one was found; that none was proves nothing."),
                "effort": (TEXT, "What was looked at."),
            },
            {
                "policy": (TEXT, "The policy."),
                "market": (OBJECT, "The market, as in a market file."),
                "misreport": (OBJECT, "Who reports what, and what it gains."),
            },
        ),
        "frontier": Frontier.form.schema(),
        "incentives": object_of(
            "How much lies pay.",
            {
                **VERSION,
                "policies": (OBJECT, "By name: the best lie found of each kind, and what is proved of all reports."),
            },
            LEFT_OUT,
        ),
        "run": object_of("A run.", {**VERSION, "policy": (TEXT, "Who decided."), **_RUN}),
        "schedule": object_of("A plan.", {**VERSION, "policy": (TEXT, "Who decided."), **_SCHEDULE}),
        "study run": part("study"),
        "study merge": object_of(
            "A file of all cells.",
            {**VERSION, "written": (NAMES, "The file."), "cells": ({"type": "integer"}, "How many it holds.")},
        ),
        "study report": part("study"),
        "study list": listed(
            object_of("A study.", {**VERSION, "name": (TEXT, "The name."), "title": (TEXT, "What it is about.")})
        ),
        "bench run": object_of("A line of results.", {**VERSION, "kind": (TEXT, "environment or measurement.")}),
        "bench list": object_of("What is installed.", {**VERSION, **_BENCH_LISTS}),
        "bench report": object_of(
            "A page that was written, and the means in it.",
            {**VERSION, "written": (NAMES, "The files."), "means": (listed(OBJECT), "Shifted geometric means.")},
        ),
        "bench export": object_of(
            "Files of instances.",
            {
                **VERSION,
                "folder": (TEXT, "Where they are."),
                "instances": (listed(OBJECT), "The metadata of each file."),
                "skipped": (listed(OBJECT), "What is left out, and why."),
            },
        ),
        "bench figures": part("files"),
    }
)
_PARTS: Mapping[str, Schema] = {
    "study": object_of("Who is better, by how much, and how sure.", _STUDY),
    "verdict": Verdict.form.schema(),
    "compared": object_of("What is said of one policy.", _STATUS, {**_DECISION, **_DECISION_BESIDE, **_COMPARED}),
    "policy": object_of(
        "A policy.",
        {
            **VERSION,
            **_LISTED,
            "decides": ({"enum": list(DECIDES.values())}, "What it decides."),
            "own_algorithm": (TRUTH, "Whether it has a method of its own."),
            "methods": (NAMES, "Its methods; the first is the default."),
            "program": (TRUTH, "Whether a backend can decide it."),
            "available": (TRUTH, "Whether it can decide here."),
            "options": (listed(object_of("An option.", _OPTION)), "What --set takes."),
            "claims": (listed(OBJECT), "What its source claims."),
        },
    ),
    "backend": object_of(
        "A backend.",
        {
            **VERSION,
            "name": _LISTED["name"],
            "available": (TRUTH, "Whether it can be used here."),
            "missing": (NAMES, "What is to be installed for that."),
            "capabilities": (NAMES, "What it can do."),
            "numbers": ({"enum": ["floats", "exact rationals"]}, "What it computes in."),
        },
    ),
    "property": object_of(
        "A property.",
        {**VERSION, **_LISTED, "of": (TEXT, "Of what."), "definition": (TEXT, "The definition.")},
    ),
    "plugin": object_of(
        "What another package brings.",
        {**VERSION, **dict.fromkeys(("group", "name", "value", "package"), (TEXT, "As it is registered."))},
    ),
    "dataset": object_of(
        "A data set.",
        {**VERSION, "name": _LISTED["name"], "kind": (TEXT, "What it is."), "about": (TEXT, "What it is about.")},
    ),
    "generator": object_of(
        "A generator of traces.",
        {
            **VERSION,
            **_LISTED,
            "about": (TEXT, "What it is about."),
            "cluster": (TEXT, "The data set of its own cluster; empty where it has none."),
            "options": (listed(object_of("An option.", _OPTION)), "What --set takes."),
        },
    ),
    "generated": object_of(
        "A trace that was written.",
        {
            **VERSION,
            **_WRITTEN,
            "load": ({"type": "number"}, "Demand for GPU-time over GPU-time."),
            "counted": (TEXT, "The speed at which GPU-time is counted: mean or fastest."),
        },
    ),
    "written": object_of("A file that was written.", {**VERSION, **_WRITTEN}, _UNPLACED),
    "files": object_of("Files that were written.", {**VERSION, "written": (NAMES, "The files.")}),
    "checked": object_of(
        "What was decided of a file.",
        {
            "file": (TEXT, "The file."),
            "status": ({"enum": ["accepted", "rejected", "unreadable"]}, "The decision."),
            "said": (NAMES, "What was checked, or what is wrong."),
        },
    ),
    "claim": object_of(
        "A paper's claim.",
        {
            **VERSION,
            **dict.fromkeys(("id", "paper", "where", "kind", "says", "evidence"), (TEXT, "As in the ledger.")),
            "table": (listed(OBJECT), "What is printed beside what a study found: claimed, found, interval, holds."),
            "verdict": ({"enum": [each.value for each in Ruling]}, "What a computation says of it."),
            "waits_for": (or_null(TEXT), "What is missing for a verdict."),
            "run": (or_null(TEXT), "The function that computes it."),
            "seconds": (or_null({"type": "number"}), "With --run: what it took."),
        },
        {
            "follows": (TRUTH, "With --run: whether the stored verdict follows."),
            "recomputed": (or_null(OBJECT), "With --run: what was computed."),
            "error": (TEXT, "With --run: what stopped it."),
        },
    ),
}


def output_schema(command: str = "") -> Schema:
    """Return the JSON Schema (draft 2020-12) of what ``command`` prints with --json; "": the parts, by command.

    >>> output_schema("solve")["$ref"]
    '#/$defs/solve'
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://fairopt.invalid/output.schema.json",
        "title": f"fairopt --json, version {SCHEMA}",
        "description": "What the commands print with `--json`. Other keys may stand beside those that are listed.",
        **({"$ref": f"#/$defs/{command}"} if command else {}),
        "$defs": {**OUTPUTS, **_PARTS},
    }
