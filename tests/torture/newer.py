"""Changed certificates of the newer kinds, each kind by itself: what the verifier accepts is true all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from evidence import certificates, certified, changed, must_be_accepted
from trials import Ending, Kind

from fairopt.evidence import certify_gangs
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs

STORED = Path(__file__).parents[2] / "proofs" / "counterexamples"


def _users(data: Any) -> list[Any]:
    return list(data.get("market", {}).get("user", []))


def _inside(data: Any) -> bool:
    proofs = [data.get(key) for key in ("of", "truth", "lie")]
    return "shares" in data or any(each is not None and _inside(each) for each in proofs)


#: Which certificates a kind of trials changes, by the name of the kind.
GROUPS: dict[str, Callable[[Any], bool]] = {
    "gangs": lambda data: data["certificate"] == "gangs",
    "entitlements": lambda data: data.get("market", {}).get("entitlements") is not None,
    "frontiers": lambda data: data["certificate"] == "frontier",
    "bounds on Nash welfare": lambda data: data["certificate"] == "nash_bounds",
    "ranges over optima": lambda data: data["certificate"] == "extreme",
    "speedups within bounds": lambda data: any("least" in user for user in _users(data)),
    "rates that are told": lambda data: data["certificate"] == "levels" and data.get("rates") is not None,
    "programs inside certificates": _inside,
    "misreports": lambda data: data["certificate"] == "misreport",
}
#: Stored proofs: markets of the worst incentives and coalitions, rules that cannot be.
COUNTEREXAMPLES = "stored counterexamples"


@cache
def group(name: str) -> list[Any]:
    """Return the certificates that a kind of trials changes."""
    if name == COUNTEREXAMPLES:
        return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(STORED.glob("*.json"))]
    more = rounds() if name == "gangs" else []
    return [each for each in [*certificates(), *more] if GROUPS[name](each)]


@cache
def rounds() -> list[Any]:
    """Return what is proved of small rounds of gangs, drawn at random."""
    return drawn_rounds(Random("rounds"), 30)


def drawn_rounds(draw: Random, count: int) -> list[Any]:
    """Return what is proved of so many small rounds of gangs."""
    found = list[Any]()
    while len(found) < count:
        jobs, types = draw.randint(2, 5), draw.randint(1, 3)
        cost = np.array([[draw.randint(-6, 6) for _ in range(types)] for _ in range(jobs)], dtype=float)
        gangs = np.array([draw.choice([1, 1, 2, 3]) for _ in range(jobs)])
        room = np.array([draw.randint(1, 4) for _ in range(types)])
        allowed = np.array([[draw.random() < 0.8 for _ in range(types)] for _ in range(jobs)])
        problem = GangAssignment(cost, gangs, room, draw.randint(0, 2), allowed)
        solution = solve_gangs(problem)
        if "type_of" in solution.values:
            found.append(json.loads(json.dumps(certify_gangs(problem, solution).to_json())))
    return found


def attempt(name: str, draw: Random) -> Ending:
    """Change a certificate of a group in one to three places; one that is not changed is accepted."""
    data = draw.choice(group(name))
    other = changed(data, draw)
    if other == data:
        return must_be_accepted(certified(data), "a certificate")
    return certified(other)


KINDS = [Kind("f", name, partial(attempt, name), 20, 6, partial(group, name)) for name in [*GROUPS, COUNTEREXAMPLES]]
