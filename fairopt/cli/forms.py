"""What ``solve``, ``verify`` and ``compare`` print with ``--json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairopt.errors import NotSolved
from fairopt.problem import Market
from fairopt.program import Number
from fairopt.properties import Verdict
from fairopt.properties.metrics import Metrics
from fairopt.report import ABSENT, LEFT_OUT, SCHEMA_KEY, Key, ResultForm, Statement, by_name, keys_of

if TYPE_CHECKING:
    from fairopt.backends.solution import Solution
    from fairopt.policy import Allocation, Policy

SECONDS = ResultForm("Seconds.", *keys_of(float, "build solve certify", "Seconds."))
POLICY_NAME = Key("policy", str, "Who decided.")
_STATUS = (SCHEMA_KEY, POLICY_NAME, Key("status", str, "`optimal` or `decided`; else why there is no answer."))
_DECISION = (
    Key("backend", str | None, "The backend that was asked for, or auto."),
    Key("objective", Number | None, "What is optimised, in the policy's own unit."),
    Key("users", list[str], "The users, in the order of the rows."),
    Key("types", list[str], "The GPU types, in the order of the columns."),
    Key("allocation", list[list[Number]] | None, "GPUs of each type for each user; null without an answer."),
    Key("utilities", list[Number] | None, "Throughput of each user, in its own unit."),
    Key("unique", bool | None, "Whether no other optimum has other shares; null where nobody asked, or nobody knows."),
    Key("seconds", SECONDS, "What it took."),
)
_DECISION_BESIDE = (
    Key("unique_utilities", bool | None, "The same of utilities."),
    Key(
        "at_worst",
        dict,
        "With --at-worst: bounds on what a user truly gets, of its equal share, and how they were found.",
    ),
    Key("solver", str | None, "Who solved."),
    Key("evidence", object, "What the policy brings to show that the decision is right."),
    Key("proven", dict | None, "Bounds between which the optimum lies, with the multipliers that prove them."),
    Key("owners", list[str], "Whose the users are, where users have several job types."),
    Key("raw_status", str | None, "Without an answer: the solver's own word."),
    Key(
        "incumbent",
        object,
        "Without an answer: the best point that was found; shares, where a method found them.",
    ),
    Key("bound", Number | None, "Without an answer: what no point is better than."),
    Key("gap", Number | None, "Without an answer: how far the best point may be from the optimum, as a part of it."),
    Key("conflict", list[str], "Without an answer: constraints that cannot hold together."),
    Key("error", str, "Without an answer: why."),
)
SOLVED = ResultForm("An allocation.", *_STATUS, *_DECISION, beside=_DECISION_BESIDE)


def decision(
    decision: Allocation, unique: Statement, worst: Statement | None = None, *, exact: bool = False
) -> dict[str, Any]:
    """Return what ``solve --json`` prints."""
    proven = _proven(decision.solution)
    return SOLVED.json(
        decision,
        exact=exact,
        **_names(decision.market),
        allocation=decision.shares,
        unique=unique.shares,
        unique_utilities=unique.utilities,
        at_worst=ABSENT if worst is None else worst,
        # a method's proof is the evidence, unless the decision has more
        evidence=decision.evidence or (decision.method and proven),
        solver=None if decision.solver is None else decision.solver.name,
        proven=proven,
    )


def _proven(solution: Solution | None) -> dict[str, Any] | None:
    """Return the proven bounds on the optimum, with the multipliers that prove them; None without proof."""
    return None if solution is None or solution.lower is None else solution.summary()


def unsolved(policy: Policy, market: Market, error: NotSolved) -> dict[str, Any]:
    """Return what ``solve --json`` prints when there is no optimum: the status, and the incumbent if there is one."""
    found = error.solution
    nothing = {"backend": None, "status": "failed", "objective": None}
    return SOLVED.json(
        found or nothing,
        policy=policy.name,
        **_names(market),
        allocation=None,
        utilities=None,
        unique=None,
        raw_status=found and found.raw_status,
        bound=found and found.bound,
        gap=found and found.gap,
        incumbent=found and (found.values.get("share") if found.x is None else found.x),
        proven=_proven(found),
        conflict=found.conflict if found else (),
        error=str(error),
        seconds={"build": 0.0, "solve": found.seconds if found else 0.0, "certify": 0.0},
    )


def _names(market: Market) -> dict[str, Any]:
    owners = ABSENT if market.owner == market.users else market.owner
    return {"users": market.users, "types": market.types, "owners": owners}


VERDICTS = by_name(Verdict.form)
VERIFIED = ResultForm(
    "Verdicts on an allocation, a schedule or a recorded run.",
    SCHEMA_KEY,
    Key("properties", VERDICTS, "Verdicts by name."),
    beside=[
        Key("metrics", Metrics.form, "Of an allocation: numbers."),
        Key("accepted", bool, "Of a schedule: whether it keeps all constraints."),
        Key("violations", list[str], "Of a schedule: the constraints that it breaks."),
        Key("statement", str | None, "Of a schedule: what was checked."),
    ],
)
COMPARED = ResultForm(
    "What is said of one policy.",
    *_STATUS,
    beside=[
        *_DECISION,
        *_DECISION_BESIDE,
        Key("properties", VERDICTS, "Verdicts by name."),
        Key(
            "metrics",
            {"anyOf": [Metrics.form.schema(), {"type": "object", "maxProperties": 0}]},
            "Of a market: numbers.",
        ),
        Key("measures", dict, "Of a trace or a batch: what was measured."),
        Key("cell_seconds", dict[str, float], "What each cell of the table took."),
    ],
    name="compared",
)
COMPARISON = ResultForm(
    "What is said of each policy.",
    SCHEMA_KEY,
    Key("policies", by_name(COMPARED), "By the policy's name."),
    Key("answer", list[str], "What it comes to, in sentences."),
    Key("alike", list[list[str]], "Policies that give the same and of which the same is said, the best first."),
    beside=[LEFT_OUT],
)
