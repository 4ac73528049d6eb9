"""The kinds of certificates: what each states, and its parts in the order in which they are written.

A shape is (n, k) for n users and k types. Entries of ``duals`` are [block, index..., value], those of a bare program
["row", number, value]; a block is named as in the program, and indices begin at 0.
"""

from __future__ import annotations

import json
from collections import defaultdict
from importlib import resources
from typing import Any

from fairopt.certificates.certificate import Certificate, CertificateKind, part
from fairopt.problem.floors import is_entitled


def rows_of(form: str) -> dict[str, Any]:
    """Return the JSON Schema of a non-empty list of a named definition."""
    return {"type": "array", "items": {"$ref": f"#/$defs/{form}"}, "minItems": 1}


def _always(certificate: Certificate) -> bool:
    return True


def _within_bounds(certificate: Certificate) -> bool:
    return not certificate.market.known.all()


def _entitled(certificate: Certificate) -> bool:
    return is_entitled(certificate.market)


def _as_its_truth(certificate: Certificate) -> bool:
    return bool(certificate.truth.tells_whole())


def _has_owed(certificate: Certificate) -> bool:
    return certificate.owed is not None


# -- parts that several kinds have -------------------------------------------------------------------------------------
MARKET, PROGRAM = part("market", "The market."), part("program", "The program.")
SHARES = part("table", "GPUs of each type for each user.")
DUALS = part("duals", "Multipliers of the program's rows, those that are not zero, for the objective maximised.")
BARE_DUALS = part(
    "bare_duals", 'Multipliers of the program\'s rows, ["row", number, value], for the objective maximised.'
)
VARIABLES = part("variables", "The values of the program's variables other than shares.")
PRICES = part("numbers", "A price for each type.")
DEMAND_DUALS = part("numbers", "What a right to one more GPU is worth to each user.")
WEIGHTS = part("numbers", "A positive weight for each user.")
POLICY, USER = part("name", "The policy."), part("name", "The user.")
KNOWN_POLICY = part(
    {"enum": ["max-efficiency", "oef-noncooperative", "oef-cooperative", "max-min"]},
    "The policy, one that the verifier writes the program of.",
)
VALUE, UP_TO = part("number", "The objective."), part("number", "The bound.")
GAP = part("amount", "The gap; 0 proves the point optimal.")
POINT = part({"type": "array", "items": {"$ref": "#/$defs/number"}}, "A number for each variable.")
OWED = part("floors", "What entitlements make of the market's groups.")
OF_ALLOCATION = {"market": MARKET, "allocation": SHARES}
BOUNDED = {"value": VALUE, "bound": UP_TO, "gap": GAP}
WITHIN = {
    "gap": part("amount", "The gap between the allocation and the largest Nash welfare, at most."),
    "lower": part("numbers", "The least that each user's utility can be."),
    "upper": part("numbers", "The most that each user's utility can be."),
}

#: The properties that are decided by evaluating their definition.
PROPERTIES = [
    "feasibility",
    "sharing_incentive",
    "envy_freeness",
    "work_conservation",
    "adjacent_types",
    "pareto_efficiency",
    "guarantee_kept",
    "cap_kept",
    "guarantee_incentive",
    "nobody_starves_while_lent",
    "whole_gpu_conservation",
    "group_fairness",
    "envy_within_peers",
]

# -- of an allocation --------------------------------------------------------------------------------------------------
PROPERTY = CertificateKind(
    "property",
    "``property`` (a name) holds or fails for ``allocation`` by its definition; ``answer`` is HOLDS or FAILS. Where "
    "speedups of the market are known only within bounds, it is so for all of them, or it DEPENDS.",
    OF_ALLOCATION
    | {
        "property": part({"enum": PROPERTIES}, "The property, by name."),
        "answer": part({"enum": ["HOLDS", "FAILS", "DEPENDS"]}, "Whether it holds, for all speedups."),
        "speedups": part("table", "Speedups at which it holds, where it depends on them."),
    },
    optional=("speedups",),
    whole=_always,
)
ENVY = CertificateKind(
    "envy",
    "``user`` would get more out of the shares of ``envied``, by weight, than out of its own.",
    OF_ALLOCATION | {"user": USER, "envied": part("name", "Whose shares the user would rather have.")},
)
DOMINANCE = CertificateKind(
    "dominance",
    "``better`` is feasible and gives nobody less and somebody more: ``allocation`` is not Pareto-efficient. Where "
    "speedups of the market are known only within bounds, it is so for all of them. With ``optima``, no optimum of a "
    "policy is Pareto-efficient. These are an extreme for each user, in order: the most that it gets at any optimum.",
    OF_ALLOCATION
    | {
        "better": part("table", "The better allocation."),
        "optima": part(rows_of("extreme"), "The most that each user gets at any optimum, in order."),
    },
    optional=("optima",),
    whole=_within_bounds,
)
PARETO = CertificateKind(
    "pareto_weights",
    "``allocation`` maximises the sum of throughputs by positive ``weights`` (n,): it is Pareto-efficient. The proof "
    "is the dual solution: ``prices`` (k,) of GPUs, and ``demand_duals`` (n,), the duals of the users' demands.",
    OF_ALLOCATION | {"weights": WEIGHTS, "prices": PRICES, "demand_duals": DEMAND_DUALS},
    optional=("demand_duals",),
)
UNREACHABLE = CertificateKind(
    "infeasibility",
    "No feasible allocation of ``market`` gives these users these throughputs: ``at_least`` of (user, throughput).",
    {"market": MARKET, "at_least": part(rows_of("at_least"), "What each user should get."), "duals": DUALS},
)

OPTIMUM = {"allocation": SHARES, "value": VALUE, "duals": DUALS, "variables": VARIABLES}

# -- of what a policy decides ------------------------------------------------------------------------------------------
OPTIMALITY = CertificateKind(
    "optimality",
    "``allocation`` (n, k) is optimal for the program that ``policy`` makes of the market; ``value`` is its objective.",
    {
        "market": MARKET,
        "policy": KNOWN_POLICY,
        **OPTIMUM,
    },
    optional=("variables",),
    decides=True,
)
MARKET_BOUND = CertificateKind(
    "bound",
    "``allocation`` is feasible for the policy's program, with objective ``value``; no other exceeds ``bound``.",
    {
        "market": MARKET,
        "policy": KNOWN_POLICY,
        "allocation": SHARES,
        **BOUNDED,
        "duals": DUALS,
        "variables": VARIABLES,
    },
    optional=("variables",),
)
OUTSIDE_DECISION = CertificateKind(
    "bound",
    "The optimum of a program of an outside policy, which the verifier does not know. ``shares`` (n, k) are the "
    "positions of the share variables. It proves what it says of the program, which the policy's author wrote. Whether "
    "that is the policy's program, the verifier cannot decide, and says so. Where the market has entitlements, it does "
    "decide that the shares keep the caps, and the guarantees that can be used.",
    {
        "market": MARKET,
        "policy": POLICY,
        "program": PROGRAM,
        "point": POINT,
        "shares": part(rows_of("positions"), "Which variable is which share."),
        **BOUNDED,
        "duals": BARE_DUALS,
    },
    decides=True,
    whole=_entitled,
)
WATER_FILLING = CertificateKind(
    "levels",
    '``allocation`` is lexicographically max-min; ``rounds`` of water filling are {"level", "fixed", "duals"}. '
    "``normaliser``: to what ratios are; own partitions where it is absent. ``owed``, where there are entitlements: "
    "floors of groups (G, k), and ``lent`` (k,) GPUs. With ``rates`` (rounds, n) users rise at these, from what they "
    "had.",
    OF_ALLOCATION
    | {
        "rounds": part(rows_of("level"), "The rounds, in order."),
        "normaliser": part({"enum": ["equal-time", "isolated"]}, "What throughputs are compared with."),
        "owed": OWED,
        "rates": part("table", "How fast each user rises in each round."),
    },
    optional=("normaliser", "owed", "rates"),
    decides=True,
    whole=_has_owed,
)
EQUILIBRIUM = CertificateKind(
    "equilibrium",
    "``allocation`` maximises Nash welfare: at ``prices`` (k,), with weights as budgets, all buy their best bundle. "
    "With ``demand_duals`` (n,) of the users' demands, a GPU costs a user its price and the user's demand dual.",
    OF_ALLOCATION | {"prices": PRICES, "demand_duals": DEMAND_DUALS},
    optional=("demand_duals",),
    decides=True,
)
NASH_BOUNDS = CertificateKind(
    "nash_bounds",
    "Where Nash welfare is largest, the utility of each user lies between ``lower`` and ``upper`` (n,). ``allocation`` "
    "is feasible. By ``prices`` (k,) and ``demand_duals`` (n,), the duals of the users' demands, the sum of weight "
    "times log utility is less than ``gap`` below the largest.",
    OF_ALLOCATION | {"prices": PRICES, "demand_duals": DEMAND_DUALS} | WITHIN,
)
NASH_WITHIN = CertificateKind(
    "nash_bounds",
    "Where Nash welfare within entitlements is largest, each utility lies between ``lower`` and ``upper`` (n,). "
    "``allocation`` is one of those. With ``costs`` (n,) of a unit of utility, ``duals`` of the rows prove the most "
    "that all utilities together cost, and that the sum of weight times log utility is at most ``gap`` below the "
    "largest. ``owed`` holds the floors of groups.",
    OF_ALLOCATION
    | {"owed": OWED, "costs": part("numbers", "What a unit of utility costs each user."), "duals": DUALS}
    | WITHIN,
    whole=_has_owed,
)
PARTIAL_ALLOCATION = CertificateKind(
    "partial",
    "``allocation`` is that of partial allocation: each user keeps the part ``kept`` (n,) of its bundle. ``together`` "
    'is {"allocation", "prices"} of the equilibrium with all users, ``apart`` the same without each user in turn.',
    OF_ALLOCATION
    | {
        "kept": part("numbers", "What part of its bundle each user keeps."),
        "together": part("shared", "The bundles of all users."),
        "apart": part(rows_of("shared_or_none"), "The bundles without each user in turn."),
    },
    decides=True,
)
TRADES = CertificateKind(
    "trace",
    "``allocation`` is the result of ``trades`` from the equal split; without trades it is the equal split.",
    OF_ALLOCATION | {"trades": part({"type": "array", "items": {"$ref": "#/$defs/trade"}}, "The trades, in order.")},
    optional=("trades",),
    decides=True,
)
EFFICIENT = CertificateKind(
    "efficient",
    "``allocation`` is envy-free, sharing-incentive and Pareto-efficient; no such one has a total beyond ``bound``. "
    "``value`` is its total, and ``weights`` (n,) are those of a sum of throughputs that it maximises. ``nodes`` are a "
    'tree of programs, each "without" some pairs of a user and a type. A "circle" of pairs would improve whoever holds '
    'them all, so that the programs without one of them more take its place; "duals" prove the bound at each end.',
    OF_ALLOCATION | {"weights": WEIGHTS, **BOUNDED, "nodes": part(rows_of("node"), "The tree, in any order.")},
    decides=True,
)
EXTREME = CertificateKind(
    "extreme",
    "Over all allocations that a policy may choose, the sum of ``weights`` (n, k) times shares is at most ``value``. "
    'With ``sense`` "minimize", instead of "maximize", it is at least ``value``. ``of`` certifies the decision; '
    "``allocation`` attains the value.",
    {
        "of": part("decided", "The decision."),
        "sense": part("sense", "Which way the sum goes."),
        "weights": part("table", "A weight for each share."),
        **OPTIMUM,
    },
    optional=("variables",),
    decides=True,
)
MISREPORT = CertificateKind(
    "misreport",
    "On ``market``, ``user`` gains ``gain`` (by its true speedups) from ``policy`` by reporting ``report`` (k,). "
    "``truth`` and ``lie`` certify the two decisions; or, as extremes, the most that the user gets at any optimum on "
    "the truth, and the least at any optimum on the lie.",
    {
        "market": MARKET,
        "policy": POLICY,
        "user": USER,
        "report": part("numbers", "What it reports."),
        "gain": part("number", "What it gains."),
        "truth": part("decided", "The decision on the truth, or its best for the user."),
        "lie": part("decided", "The decision on the lie, or its worst for the user."),
    },
    whole=_as_its_truth,
)

# -- of a trade-off ----------------------------------------------------------------------------------------------------
FRONTIER = CertificateKind(
    "frontier",
    "The largest ``goal`` where ``property`` fails by epsilon at most, for every epsilon from that of the first point. "
    '``points`` are {"epsilon", "value", "allocation", "variables"}: what an allocation reaches. ``lines`` are '
    '{"constant", "slope", "duals", "factors"}, one for each span from a point to the next and for what comes after '
    "the last: nothing is above it. ``gap`` is the largest distance between the two.",
    {
        "market": MARKET,
        "goal": part({"enum": ["total_efficiency", "nash_welfare", "least_gain"]}, "What is largest."),
        "property": part(
            {"enum": ["envy_freeness", "sharing_incentive", "equal_throughput", "pareto_efficiency"]},
            "What may fail by epsilon.",
        ),
        "points": part(rows_of("reached"), "What is reached, by rising epsilon."),
        "lines": part(rows_of("above"), "What nothing is above, span by span."),
        "gap": GAP,
    },
)
EFFICIENT_FRONTIER = CertificateKind(
    "frontier",
    "The same of Pareto-efficient allocations: all points have the largest sum of throughputs by positive ``weights``. "
    "Their mixtures have it too. ``prices`` (k,) of GPUs, and ``demand_duals`` (n,), the duals of demands, prove it.",
    {**FRONTIER.parts, "weights": WEIGHTS, "prices": PRICES, "demand_duals": DEMAND_DUALS},
    optional=("demand_duals",),
)

# -- of bare programs, for which no market is needed -------------------------------------------------------------------
BOUND = CertificateKind(
    "bound",
    "``point`` is feasible with objective ``value``; no feasible point is better than ``bound``. ``gap`` is the "
    "difference; with a gap of 0 the point is optimal.",
    {"program": PROGRAM, "point": POINT, **BOUNDED, "duals": BARE_DUALS},
)
INFEASIBILITY = CertificateKind(
    "infeasibility",
    "No point satisfies the rows and bounds of ``program``: ``duals`` are multipliers that contradict them.",
    {"program": PROGRAM, "duals": BARE_DUALS},
)

# -- of gangs of GPUs: what a round of FFT costs at least --------------------------------------------------------------
_WHOLE = {"type": "array", "items": {"type": "integer"}}
_ROW = {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}]}}
_COSTS = {"type": "array", "items": _ROW}
_TOLL = [{"type": "integer"}, {"type": "integer"}, {"$ref": "#/$defs/number"}]
_CASE = {
    "type": "object",
    "properties": {
        "prices": {"type": "array", "items": {"$ref": "#/$defs/amount"}},
        "reward": {"$ref": "#/$defs/amount"},
        "tolls": {"type": "array", "items": {"type": "array", "prefixItems": _TOLL, "items": False, "minItems": 3}},
        "split": _WHOLE | {"minItems": 3, "maxItems": 3},
    },
    "additionalProperties": False,
}
GANGS = CertificateKind(
    "gangs",
    "Jobs run on ``types`` at a cost of ``value``; no assignment costs less than ``bound``. A job asks for a gang of "
    "GPUs of one type, or waits; ``least`` GPUs must be busy. With a gap of 0 the assignment is optimal. ``root``: "
    "prices of GPUs and a reward for busy ones; ``cases`` are split into at most so many gangs of a size on a type, "
    "and more than that, one after the other, until prices, reward and tolls bound each.",
    {
        "gangs": part(_WHOLE, "GPUs that each job asks for."),
        "capacity": part(_WHOLE, "GPUs of each type."),
        "least": part({"type": "integer"}, "How many GPUs must be busy."),
        "cost": part(_COSTS, "The cost of each job on each type; null where it may not run."),
        "types": part(_WHOLE, "The type of each job by position, -1 where it waits."),
        **BOUNDED,
        "root": part(_CASE, "Prices by type, and the reward of a busy GPU."),
        "cases": part(
            {"type": "array", "items": _CASE},
            "In order: split is [gang, type, number], for at most so many and then for more; others bound a case.",
        ),
        "grain": part("amount", "What all costs, and the bound, are multiples of."),
    },
    optional=("grain",),
)

#: All of them, as they stand above.
KINDS = tuple(each for each in list(vars().values()) if isinstance(each, CertificateKind))


def certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of all kinds of certificates; it describes their form, not their truth.

    >>> certificate_schema()['$defs']['version']
    {'type': 'integer', 'const': 1}
    """
    text = resources.files("fairopt.certificates").joinpath("certificate.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    forms: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in KINDS:
        forms[each.name].append(each.form())
    schema["$defs"] |= {kind: found[0] if len(found) == 1 else {"anyOf": found} for kind, found in forms.items()}
    schema["$defs"]["any"] = {
        "description": "A certificate; its kind says which other keys it has.",
        "type": "object",
        "properties": {"certificate": {"description": "Which statement it is.", "enum": sorted(forms)}},
        "required": ["schema", "certificate"],
        "allOf": [
            {"if": {"properties": {"certificate": {"const": kind}}}, "then": {"$ref": f"#/$defs/{kind}"}}
            for kind in sorted(forms)
        ],
    }
    schema["$defs"]["decided"] = {
        "description": "A decision, or how far its choices reach.",
        "allOf": [{"$ref": "#/$defs/any"}],
        "properties": {"certificate": {"enum": sorted({each.name for each in KINDS if each.decides})}},
    }
    return schema
