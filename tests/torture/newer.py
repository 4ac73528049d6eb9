"""Changed certificates of the newer kinds, each kind by itself: what the verifier accepts is true all the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from evidence import certificates, certified, changed, must_be_accepted
from trials import Ending, Kind

from fairopt.certificates import Certificate
from fairopt.evidence import certify_gangs, certify_misreport, extreme
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs
from fairopt.program import Sense
from fairopt.proofs.findings.liars import families
from fairopt.proofs.findings.liars.coalitions import COOPERATIVE, MAX_MIN, NASH, NONCOOPERATIVE
from fairopt.proofs.ledger.measuring import exactly

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


def stored() -> list[Any]:
    """Return the stored counterexamples: claims of papers that are false, and rules that cannot be."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(STORED.glob("*.json"))]


def of_coalitions() -> list[Any]:
    """Return proofs of what coalitions gain: what is decided before and after the lie, and what each liar has at least.

    They are of the markets that reach the bounds of `own-lies-coalitions`, or come near.
    """
    found = list[Certificate]()
    for family, (n, c, spread) in product((COOPERATIVE, MAX_MIN, NONCOOPERATIVE, NASH), COALITIONS):
        policy, markets = family.policy, family.markets(n, c, Fraction(spread))
        decisions = [exactly(policy, market) for market in markets]
        found += [policy.certify(decision) for decision in decisions]
        for liar, (decision, sense) in product(range(c), zip(decisions, (Sense.MAXIMIZE, Sense.MINIMIZE), strict=True)):
            weights = np.full(markets[0].shape, Fraction(0), dtype=object)
            weights[liar] = markets[0].speedup[liar]
            if policy.choices(decision) is not None:
                found.append(extreme(policy, decision, weights, sense))
    return [json.loads(json.dumps(each.to_json())) for each in found]


def of_incentives() -> list[Any]:
    """Return proofs of the lies that reach the bounds on what one liar gains (`own-lies-*`), or come near."""
    found = [
        certify_misreport(family.policy, family.market(n, spread), family.lie(n, spread))
        for family, (n, spread) in product(LIARS, ((2, 2), (2, 3), (2, 10), (3, 2), (3, 10), (4, 10)))
    ]
    return [json.loads(json.dumps(each.to_json())) for each in found]


#: Markets whose worst lie is worked out by hand.
LIARS = [each for each in vars(families).values() if isinstance(each, families.Family)]
#: Users, liars and spreads of the coalitions.
COALITIONS = ((3, 2, 2), (3, 2, 10), (4, 2, 5), (4, 2, 10), (4, 3, 3), (4, 3, 100))
#: Proofs that no market drawn at random has, by the name of the kind.
MADE: dict[str, Callable[[], list[Any]]] = {
    "stored counterexamples": stored,
    "coalitions": of_coalitions,
    "bounds of incentives": of_incentives,
}


@cache
def group(name: str) -> list[Any]:
    """Return the certificates that a kind of trials changes."""
    if name in MADE:
        return MADE[name]()
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


KINDS = [Kind("f", name, partial(attempt, name), 20, 6, partial(group, name)) for name in [*GROUPS, *MADE]]
