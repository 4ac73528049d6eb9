"""Small markets of every shape, decided exactly by every policy and option: the judge is the policy's definition.

A trial draws bare numbers. fairopt reads them, from Python or from a file, and decides; `plainly` is given the same
numbers, and says whether that is the decision. So a fault in what fairopt makes of a market, in a formulation, or in a
rule is seen, however consistent it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from math import sqrt
from random import Random
from typing import Any

from inputs import folder
from plain_efficient import efficient
from plain_filling import Tree
from plain_lp import NoPoint, Row, largest
from plain_market import NOTHING, Given, given, held, rows, used
from plainly import JUDGES, PROGRAMS, Off, filling, max_min, minus, off, raised
from trials import Ending, Fault, Kind

from fairopt import allocate, discovery, read_market
from fairopt.errors import BadInput, NotSolved
from fairopt.models.gavel.partitions import Normaliser
from fairopt.policy import Policy
from fairopt.problem import Entitlements, Market

#: Parts that are roots, and utilities that are irrational, are rounded: this is far above it.
ROUNDED, IN_FLOATS = Fraction(1, 10**9), Fraction(1, 10**4)
#: What a market may say beside speedups, capacities, weights and demands.
BOUNDS, CAPS, FLOORS, GROUPS = "bounds", "caps", "floors", "groups"


@dataclass(frozen=True)
class Case:
    """A policy with its options, and its judge; ``supports`` are the markets that it is asked on."""

    policy: Policy
    off: Off
    supports: tuple[str, ...] = ()
    demands: bool = True


@cache
def cases() -> Mapping[str, Case]:
    """Return all policies of shares that need no entitlements, with their options."""
    supports = dict.fromkeys(("max-efficiency", "max-min", "nash-welfare", "water-filling"), (CAPS, FLOORS))
    supports |= {"hierarchical-water-filling": (CAPS, FLOORS, GROUPS), "oef-cooperative": (CAPS, FLOORS)}
    supports |= {"oef-noncooperative": (CAPS, FLOORS), "max-min-robust": (BOUNDS, CAPS, FLOORS)}
    supports |= {"oef-cooperative-robust": (BOUNDS,)}
    found = {name: Case(_loaded(name), partial(off, name), supports.get(name, ())) for name in JUDGES}
    for name, judge in (("max-min", max_min), ("water-filling", filling)):
        for normaliser in Normaliser:
            policy, own = _loaded(name, normaliser=normaliser), partial(judge, normaliser=normaliser.value)
            found[f"{name}, {normaliser.value}"] = Case(policy, own, supports[name])
    for normaliser in Normaliser:
        judge = partial(raised, normaliser=normaliser.value)
        found[f"no user can be raised, {normaliser.value}"] = Case(
            _loaded("water-filling", normaliser=normaliser), judge
        )
    found["oef-efficient"] = Case(_loaded("oef-efficient"), efficient, demands=False)
    return found


def _loaded(name: str, **options: Any) -> Policy:
    made: Policy = discovery.load(discovery.POLICIES, name)(**options)
    return made


# -- what is drawn -----------------------------------------------------------------------------------------------------
def drawn(draw: Random, demands: bool) -> Given:
    """Return a small market of numbers with many ties; everybody can run on a type that there is."""
    n, k = draw.randint(1, 4), draw.randint(1, 3)
    some = draw.choice([[0, 1, 1, 2, 3], [1, 2, 3, 5, 7], [Fraction(1, 3), Fraction(5, 4), 2, 0], [1]])
    capacity = [draw.choice([1, 1, 2, 3, 4, Fraction(5, 2)]) for _ in range(k)]
    if k > 1 and draw.random() < 0.15:
        capacity[draw.randrange(k)] = 0
    there = draw.choice([j for j, m in enumerate(capacity) if m])
    speedup = [[draw.choice(some) for _ in range(k)] for _ in range(n)]
    for row in speedup:
        row[there] = row[there] or 1
    weight = [draw.choice([1, 2, 3, Fraction(1, 2)]) for _ in range(n)] if draw.random() < 0.6 else None
    asks = demands and draw.random() < 0.5
    limit = [draw.choice([None, 1, 2, Fraction(1, 2), 4]) for _ in range(n)] if asks else None
    return given(speedup, capacity, weight, limit)


def with_bounds(market: Given, draw: Random) -> Given:
    """Return the market with bounds on some speedups, some of them without an end."""
    lower = [[v * draw.choice([1, Fraction(1, 2), Fraction(9, 10)]) for v in row] for row in market.speedup]
    upper = [[v * draw.choice([1, 2, Fraction(11, 10)]) for v in row] for row in market.speedup]
    endless = draw.random() < 0.3
    most = [[None if v and endless and draw.random() < 0.3 else v for v in row] for row in upper]
    return market._replace(least=lower, most=most)


def with_caps(market: Given, draw: Random, floors: bool) -> Given:
    """Return the market with caps of users and of groups, and with guarantees, of which a user can use a part."""
    n = len(market.users)
    cap = [[draw.choice([None, Fraction(1), Fraction(1, 2), Fraction(2)]) for _ in market.types] for _ in market.users]
    members = sorted(i for i in market.users if draw.random() < 0.6)
    together = [(members, j, Fraction(draw.randint(1, 2))) for j in market.types if members and draw.random() < 0.5]
    floor = None
    if floors:
        promised = [[m * draw.choice([0, 1, 1]) / (2 * n) for m in market.capacity] for _ in market.users]
        floor = [
            [p if c is None else min(p, c) for p, c in zip(*pair, strict=True)]
            for pair in zip(promised, cap, strict=True)
        ]
    return market._replace(cap=cap, together=together, floor=floor)


def one_group(market: Given) -> tuple[Tree, dict[str, str]]:
    """Return the tree of those that are capped together, a group, and of the others; and who is in the group."""
    inside = sorted({i for members, _, _ in market.together for i in members})
    rest: list[int | str] = [i for i in market.users if i not in inside]
    top = Tree({"": [*rest, "some"], "some": [*inside]}, {"some": Fraction(1)}) if inside else Tree({"": rest}, {})
    return top, {f"u{i + 1}": "some" for i in inside}


def with_groups(market: Given, draw: Random) -> tuple[Tree, dict[str, str]]:
    """Return a tree of groups over the users, and which group each user and group is in."""
    inside: dict[str, str] = {f"u{i + 1}": draw.choice(["a", "b"]) for i in market.users if draw.random() < 0.8}
    if "b" in inside.values() and "a" in inside.values() and draw.random() < 0.4:
        inside["b"] = "a"
    names = sorted(set(inside.values()))
    members: dict[str, list[int | str]] = {
        group: [i for i in market.users if inside.get(f"u{i + 1}", "") == group]
        + [each for each in names if inside.get(each, "") == group]
        for group in ("", *names)
    }
    weight = {name: Fraction(draw.choice([0, 1, 2, 3])) for name in names}
    first = [name for name in names if draw.random() < 0.3]
    return Tree(members, weight, first), inside


# -- what fairopt is given ---------------------------------------------------------------------------------------------
def written(value: Fraction, draw: Random) -> Any:
    """Return a number in one of the ways in which it may be written."""
    ways: list[Any] = [str(value)]
    if value.denominator == 1:
        ways += [int(value), f"{value}.0", f"{value}e0"]
    if value.denominator in (1, 2, 4):
        ways.append(float(value))
    return draw.choice(ways)


def read(market: Given, draw: Random, entitled: Entitlements | None) -> Market:
    """Return what fairopt makes of the numbers: of lists, or of a file that is written here."""
    users = [f"u{i + 1}" for i in market.users]
    types = [f"T{j + 1}" for j in market.types]
    speedup = [[written(v, draw) for v in row] for row in market.speedup]
    capacity = [written(m, draw) for m in market.capacity]
    weight = [written(w, draw) for w in market.weight]
    demand = [None if d is None else written(d, draw) for d in market.limit]
    if market.least is not None or entitled is not None or draw.random() < 0.5:
        least, most = market.least, market.most
        return Market.of(
            speedup, capacity, weight=weight, demand=demand, users=users, types=types, least=least, most=most,
            entitlements=entitled,
        )  # fmt: skip
    named = [
        {"name": user, "speedup": row, "weight": w} | ({} if d is None else {"demand": d})
        for user, row, w, d in zip(users, speedup, weight, demand, strict=True)
    ]
    if len(named) > 1 and draw.random() < 0.3:
        return _as_jobs(named, types, capacity, market)
    path = folder() / f"drawn{draw.choice(['.json', '.csv'])}"
    path.write_text(_csv(named, types, capacity) if path.suffix == ".csv" else _json(named, types, capacity))
    return read_market(path)


def _as_jobs(users: list[dict[str, Any]], types: list[str], capacity: list[Any], market: Given) -> Market:
    """Return what is read where the first two are job types of one user, whose weight is divided among them."""
    weights = market.weight[:2]
    jobs = [each | {"weight": str(5 * w)} for each, w in zip(users, weights, strict=False)]
    first = {"name": "u1", "weight": str(sum(weights)), "job": jobs}
    path = folder() / "drawn-jobs.json"
    path.write_text(_json([first, *users[2:]], types, capacity))
    return read_market(path)


def _json(users: list[dict[str, Any]], types: list[str], capacity: list[Any]) -> str:
    return json.dumps({"schema": 1, "types": types, "capacity": capacity, "user": users})


def _csv(users: list[dict[str, Any]], types: list[str], capacity: list[Any]) -> str:
    lines = [["user", "weight", "demand", *types], ["capacity", "", "", *capacity]]
    lines += [[each["name"], each["weight"], each.get("demand", ""), *each["speedup"]] for each in users]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def entitled(market: Given, tree: Tree | None, inside: Mapping[str, str]) -> Entitlements | None:
    """Return the entitlements that say what was drawn; None where nothing was."""
    users, types = [f"u{i + 1}" for i in market.users], [f"T{j + 1}" for j in market.types]
    if market.cap is None:
        return None if tree is None else Entitlements.of(users, types, group=inside, borrow_weight=tree.weight)
    cap: dict[str, Any] = {
        user: {t: c for t, c in zip(types, row, strict=True) if c is not None}
        for user, row in zip(users, market.cap, strict=True)
    }
    group: dict[str, str] = {}
    for members, j, most in market.together:
        group |= {users[i]: "some" for i in members}
        cap["some"] = cap.get("some", {}) | {types[j]: most}
    owed: dict[str, Any] = {} if market.floor is None else dict(zip(users, market.floor, strict=True))
    if owed and group:  # else what a member cannot use of its own is the group's all the same
        owed["some"] = [NOTHING for _ in types]
    return Entitlements.of(users, types, group=group, cap=cap, guarantee=owed)


# -- trials ------------------------------------------------------------------------------------------------------------
def attempt(draw: Random) -> Ending:
    """Decide a market that was drawn; the definition says whether the decision is right, or why there is none."""
    name = draw.choice(sorted(cases()))
    case = cases()[name]
    what = draw.choice([None, None, *case.supports])
    market, tree, inside = drawn(draw, case.demands and what != BOUNDS), None, {}
    policy, judge = case.policy, case.off
    if what == BOUNDS:
        market = with_bounds(market, draw)
    elif what in (CAPS, FLOORS):
        market = with_caps(market, draw, what == FLOORS)
    if name == "hierarchical-water-filling":
        tree, inside = with_groups(market, draw) if what == GROUPS else one_group(market)
        normaliser = draw.choice(list(Normaliser))
        policy = _loaded(name, fifo=tree.first, normaliser=normaliser)
        judge = partial(filling, normaliser=normaliser.value, rates=tree.rates, weights=False)
    owed = entitled(market, tree, inside)
    usable = market if market.floor is None else market._replace(floor=floors(market))
    try:
        found = allocate(policy, read(market, draw, owed), exact=True)
    except (BadInput, NotSolved) as error:
        return _none(name, usable, error)
    wrong = judge(usable, found)
    if wrong > slack_of(name, market, found):
        raise Fault(Ending.WRONG, f"{name}: off by {float(wrong):.3g} of the right value: {market}, {inside}, {tree}")
    return Ending.RIGHT


def slack_of(name: str, market: Given, found: Any) -> Fraction:
    """Return how far a decision may be off: not at all, where nothing in it is rounded.

    Bounds on utilities of the largest product grow with the root of what weights are apart.
    """
    if not found.exact:
        return IN_FLOATS * Fraction(sqrt(max(market.weight) / min(market.weight)))
    rounded = found.error or name == "partial-allocation"  # parts are roots
    return max(ROUNDED, 2 * Fraction(found.error)) if rounded else NOTHING


def floors(market: Given) -> list[list[Fraction]]:
    """Return which part of its guarantee each user can use: within its demand, the fastest GPUs first."""
    assert market.floor is not None
    return [used(market, i, row) for i, row in enumerate(market.floor)]


def _none(name: str, market: Given, error: Exception) -> Ending:
    """Return REFUSED where the definition says that there is no decision: no shares, or nothing for somebody."""
    least = [Row(minus({"t": Fraction(1)}, held(market, i)), NOTHING) for i in market.users]
    try:
        if name in PROGRAMS:
            largest(*PROGRAMS[name](market))
        nothing = largest({"t": Fraction(1)}, [*rows(market), *least]).value == 0
    except NoPoint:
        return Ending.REFUSED
    if nothing and name in ("nash-welfare", "partial-allocation"):
        return Ending.REFUSED
    raise Fault(Ending.WRONG, f"{name}: {error}, but there is a decision: {market}") from error


KINDS = [Kind("d", "decisions by definition", attempt, 40, 12, cases)]
