"""Markets, entitlements and programs as JSON, as certificates hold them: every number an integer or a string "p/q"."""

from __future__ import annotations

import json
from fractions import Fraction
from hashlib import sha256
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.numbers import in_full
from fairopt.problem import Entitlements, Market
from fairopt.problem.entitled_rows import TOP
from fairopt.program import INFINITY, Array, Program


def market_json(market: Market, *, whole: bool = False) -> dict[str, Any]:
    """Return a market with the keys of market files, a user for each row (job type), and every number a string.

    ``whole``: with entitlements, and with the bounds of speedups that are not known.
    """
    market = market.as_(Fraction)
    users, known, limit = [], market.known, market.limit
    for i, name in enumerate(market.users):
        row: dict[str, Any] = {"name": name, "speedup": [in_full(value) for value in market.speedup[i]]}
        row |= {} if market.weight[i] == 1 else {"weight": in_full(market.weight[i])}
        row |= {} if limit[i] == INFINITY else {"demand": in_full(limit[i])}
        if whole and not known[i]:
            row |= {name: _ends(each[i]) for name, each in zip(("least", "most"), market.ends, strict=True)}
        users.append(row)
    capacity = [in_full(value) for value in market.capacity]
    told: dict[str, Any] = {"schema": 1, "types": list(market.types), "capacity": capacity, "user": users}
    owed = market.entitlements if whole else None
    return told if owed is None else told | {"entitlements": entitlements_json(owed)}


def _ends(row: Array) -> list[str | None]:
    return [None if value == INFINITY else in_full(value) for value in row]


def entitlements_json(owed: Entitlements) -> dict[str, Any]:
    """Return entitlements, users before groups; null is infinity, or nobody above. Of gangs those that are pending."""
    gangs = owed.gangs
    return {
        "groups": list(owed.groups),
        "in": [None if over == TOP else owed.nodes[over] for over in owed.parent.tolist()],
        "goods": [good._asdict() for good in owed.goods],
        "stock": [in_full(value) for value in owed.stock],
        **{name: [_ends(row) for row in getattr(owed, name)] for name in ("guarantee", "cap", "held", "fixed")},
        "borrow_weight": [in_full(value) for value in owed.borrow_weight],
        "tier": owed.tier.tolist(),
        "pending": [
            {
                "user": owed.users[gangs.user[gang]],
                "gpus": size if isinstance(size := gangs.size(gang), int) else in_full(size),
                "types": [owed.types[j] for j in np.flatnonzero(gangs.allowed[gang])],
                "other": {name: in_full(each) for name, each in zip(gangs.resources, gangs.other[gang], strict=True)},
            }
            for gang in np.flatnonzero(gangs.pending)
        ],
    }


def market_digest(market: Market) -> str:
    """Return 128 bits of SHA-256 of a market in lowest terms, as ``proofs/verify.py`` does in `Market.canonical`.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> market_digest(market)
    '6db21dbf1c96231afaa6d57e57bf4f9a'
    """
    told = market_json(market)
    users = [[u["name"], u["speedup"], u.get("weight", "1"), u.get("demand")] for u in told["user"]]
    text = json.dumps(["market", told["types"], told["capacity"], users], separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()[:32]


def program_json(program: Program) -> dict[str, Any]:
    """Return a program; infinite bounds are null, other numbers strings. Errors: `BadInput` for one with logarithms."""
    if program.logarithms is not None:
        raise BadInput("its objective has logarithms", place=program.name, remedy="Certify the equilibrium instead")
    program = program.as_(Fraction)
    rows, columns = program.rows, (program.cost, program.lower, program.upper, program.integer)
    terms: list[list[list[Any]]] = [[] for _ in range(len(rows))]
    for r, j, value in zip(rows.row.tolist(), rows.column.tolist(), rows.value, strict=True):
        terms[r].append([j, in_full(value)])

    def between(low: Any, high: Any) -> dict[str, str | None]:
        sides = {"lower": low, "upper": high}
        return {key: None if abs(side) == INFINITY else in_full(side) for key, side in sides.items()}

    return {
        "sense": program.sense.value,
        "offset": in_full(Fraction(program.offset)),
        "variables": [
            {"cost": in_full(cost), **between(low, high), "integer": bool(integer)}
            for cost, low, high, integer in zip(*columns, strict=True)
        ],
        "rows": [
            {"terms": each, **between(low, high)} for each, low, high in zip(terms, rows.lower, rows.upper, strict=True)
        ],
    }
