"""What users and groups are guaranteed, may take, hold and ask for, and what is decided of it.

Nodes are the users, in the market's order, then the groups. Columns are the types, then further goods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf
from typing import Any, NamedTuple

from .market import ZERO, Market, Table, dot, exactly, minus, row_exactly
from .reading import Entry, Number, Rejected, distinct, require, summed, within

#: The most groups inside each other, gangs, GPUs of a gang, and unions of sets of types of one user.
DEEPEST, MOST_GANGS, MOST_GPUS, MOST_UNIONS = 50, 2_000_000, 1_000_000, 4096
#: GPUs that a user asks for, by the types that serve.
Asked = dict[frozenset[int], Number]


class Gang(NamedTuple):
    """GPUs that a user waits for, all of one type; ``other`` is what else the gang takes, by resource."""

    user: int
    gpus: int
    types: frozenset[int]
    other: dict[str, Fraction]


@dataclass(frozen=True)
class Entitled:
    """What a market says of its users and groups; ``over`` is the group that each is in, None at the top."""

    nodes: list[str]
    over: list[int | None]
    goods: list[tuple[str, str]]
    stock: list[Fraction]
    guarantee: list[list[Number]]
    cap: list[list[Number]]
    weight: list[Fraction]
    tier: list[int]
    held: Table
    fixed: Table
    pending: list[Gang]

    def path(self, node: int) -> Iterator[int]:
        """Yield a node, the group that it is in, and so on to the top."""
        at: int | None = node
        while at is not None:
            yield at
            at = self.over[at]

    def total(self, table: Table) -> Table:
        """Return what users have as what users and groups have."""
        out = [list(row) for row in table] + [[ZERO] * len(table[0]) for _ in self.nodes[len(table) :]]
        for user, row in enumerate(table):
            for node in list(self.path(user))[1:]:
                out[node] = [a + b for a, b in zip(out[node], row, strict=True)]
        return out

    def good(self, resource: str, kind: str, types: list[str]) -> int | None:
        """Return which good a gang on a type takes of a resource: the type's own, or that of no type."""
        flavors = {flavor: at for at, (name, flavor) in enumerate(self.goods) if name == resource}
        elsewhere = (at for flavor, at in flavors.items() if flavor not in types)
        return flavors[kind] if kind in flavors else next(elsewhere, None)

    def __str__(self) -> str:
        """Say of how many there are entitlements."""
        return f"entitlements of {len(self.nodes)} users and groups, {len(self.pending)} gangs wait"

    def canonical(self) -> list[Any]:
        """Return all of it for a digest."""
        ends = [[[exactly(each) for each in row] for row in table] for table in (self.guarantee, self.cap)]
        tables = [[row_exactly(row) for row in table] for table in (self.held, self.fixed)]
        gangs = [
            [g.user, g.gpus, sorted(g.types), sorted([k, exactly(v)] for k, v in g.other.items())]
            for g in self.pending
        ]
        columns = [row_exactly(self.stock), row_exactly(self.weight), self.tier]
        return [self.nodes, self.over, self.goods, *columns, *ends, *tables, gangs]


def read_entitled(told: Entry, users: list[str], types: list[str]) -> Entitled | None:
    """Return the entitlements of a market; None where it says nothing of any."""
    if told.value is None:
        return None
    at = told.fields("groups in goods stock guarantee cap borrow_weight tier held fixed pending")
    nodes = distinct([*users, *(each.name() for each in at["groups"].items())], at["groups"].place)
    place = {name: node for node, name in enumerate(nodes)}
    over = [None if each.value is None else each.position(place) for each in at["in"].items(len(nodes))]
    require(all(each is None or each >= len(users) for each in over), at["in"].place, "a user is no group")
    goods = []
    for each in at["goods"].items():
        good = each.fields("resource flavor")
        goods.append((good["resource"].name(), good["flavor"].name()))
    require(len(set(goods)) == len(goods), at["goods"].place, "a good stands twice")
    width = len(types) + len(goods)
    guarantee, cap = (
        [[_end(each) for each in row.items(width)] for row in at[key].items(len(nodes))]
        for key in ("guarantee", "cap")
    )
    held, fixed = (
        [[each.amount() for each in row.items(width)] for row in at[key].items(len(users))]
        for key in ("held", "fixed")
    )
    gangs = at["pending"].items()
    within(len(gangs), MOST_GANGS, at["pending"].place, "gangs")
    owed = Entitled(
        nodes=nodes,
        over=over,
        goods=goods,
        stock=[each.amount() for each in at["stock"].items(len(goods))],
        weight=[each.amount() for each in at["borrow_weight"].items(len(nodes))],
        tier=[each.integer(-(2**62)) for each in at["tier"].items(len(nodes))],
        pending=[_read_gang(each, users, types) for each in gangs],
        guarantee=guarantee,
        cap=cap,
        held=held,
        fixed=fixed,
    )
    for node in range(len(nodes)):
        for depth, _ in enumerate(owed.path(node)):
            require(depth <= DEEPEST, at["in"].place, "groups in a circle, or too deep")
    pairs = zip(owed.fixed, owed.held, strict=True)
    require(
        all(f <= h for row, all_ in pairs for f, h in zip(row, all_, strict=True)),
        at["fixed"].place,
        "too much",
    )
    return owed


def _end(entry: Entry) -> Number:
    return inf if entry.value is None else entry.amount()


def _read_gang(entry: Entry, users: list[str], types: list[str]) -> Gang:
    told = entry.fields("user gpus types", "other")
    allowed = frozenset(each.position(types) for each in told["types"].items())
    require(allowed, told["types"].place, "no types")
    gpus = told["gpus"].integer()
    within(gpus, MOST_GPUS, told["gpus"].place, "GPUs of a gang")
    return Gang(
        told["user"].position(users),
        gpus,
        allowed,
        {k: each.amount() for k, each in told["other"].by_name().items()},
    )


# -- what users could use ----------------------------------------------------------------------------------
def plus(values: Iterable[Number]) -> Number:
    """Return a sum, which may be infinite."""
    found = list(values)
    return inf if inf in found else summed(Fraction(each) for each in found)


def served(asked: Asked, room: list[Fraction]) -> Number:
    """Return how much of what a user asks for runs on so many GPUs of each type: the least cut.

    For every set of types: the GPUs of these, and all that is asked for and may run elsewhere.
    """
    unions = {frozenset[int]()}
    for types in asked:
        unions |= {each | types for each in unions}
        within(len(unions), MOST_UNIONS, "entitlements", "sets of types of one user")
    cuts = (
        plus(
            [max(ZERO, room[j]) for j in types] + [more for each, more in asked.items() if not each <= types]
        )
        for types in unions
    )
    return min(cuts)


def asks(market: Market, owed: Entitled) -> list[Asked]:
    """Return what each user asks for: what it holds, of that type, and what waits; else its demand."""
    k = len(market.types)
    if not told(market, owed):
        runs = (frozenset(j for j, speed in enumerate(row) if speed) for row in market.speedup)
        return [{types: most} for types, most in zip(runs, market.demand, strict=True)]
    asked: list[Asked] = [{frozenset([j]): x for j, x in enumerate(row[:k]) if x} for row in owed.held]
    for gang in owed.pending:
        asked[gang.user][gang.types] = asked[gang.user].get(gang.types, ZERO) + gang.gpus
    return asked


def told(market: Market, owed: Entitled) -> bool:
    """Return whether it is said of anybody how many GPUs it holds or asks for."""
    return any(gang.gpus for gang in owed.pending) or any(any(row[: len(market.types)]) for row in owed.held)


def uses(asked: Asked, speeds: list[Fraction], bundle: list[Fraction]) -> list[Fraction]:
    """Return which GPUs of a bundle serve what a user asks for: the fastest first."""
    out, before, room = [ZERO] * len(speeds), ZERO, [ZERO] * len(speeds)
    for j in sorted(range(len(speeds)), key=lambda j: -speeds[j]):
        room[j] = bundle[j]
        now = Fraction(served(asked, room))
        out[j], before = now - before, now
    return out


class Standing:
    """What shares mean to every user and group: as `fairopt.properties.entitlements` defines it."""

    def __init__(self, market: Market, shares: Table, *, says: str = "entitlements") -> None:
        """``says`` is what the market must say: entitlements, guarantees, caps, or what anybody holds."""
        owed, k = market.entitled, len(market.types)
        if owed is None or not SAID[says](market, owed):
            raise Rejected(f"the market says no {says}")
        self.owed, self.types = owed, k
        now = all(row[:k] == share for row, share in zip(owed.held, shares, strict=True))
        mine = owed.held if now else shares
        there = [*market.capacity, *owed.stock][: len(mine[0])]
        self.columns, self.now = range(len(there)), now
        self.held = owed.total(mine)
        stays = [
            [min(f, x) for f, x in zip(fixed, row, strict=False)]
            for fixed, row in zip(owed.fixed, mine, strict=True)
        ]
        fixed = owed.total(stays)
        self.movable = [
            [x - f for x, f in zip(*rows, strict=True)] for rows in zip(self.held, fixed, strict=True)
        ]
        self.guarantee = [
            [Fraction(min(own, most)) for own, most in zip(row, there, strict=False)]
            for row in owed.guarantee
        ]
        self.free = [most - summed(row[c] for row in mine) for c, most in enumerate(there)]
        self.more = self._more(self._unserved(market, mine))

    def _unserved(self, market: Market, mine: Table) -> list[list[Number]]:
        owed = self.owed
        out: list[list[Number]] = [[ZERO for _ in self.columns] for _ in mine]
        for user, asked in enumerate(asks(market, owed)):
            now = served(asked, mine[user])
            for j in frozenset[int]().union(*asked):
                here = plus(more for types, more in asked.items() if j in types)
                rest = served({types: more for types, more in asked.items() if j not in types}, mine[user])
                out[user][j] = inf if here == inf else Fraction(here) + Fraction(rest) - Fraction(now)
        for gang in owed.pending if self.now else ():
            for resource, amount in gang.other.items():
                goods = {owed.good(resource, market.types[j], market.types) for j in gang.types}
                for good in (each for each in goods if each is not None):
                    out[gang.user][self.types + good] += amount
        return out

    def _more(self, unserved: list[list[Number]]) -> list[list[Number]]:
        owed, more = self.owed, [*unserved]
        more += [[ZERO for _ in self.columns] for _ in owed.nodes[len(unserved) :]]
        for node in sorted(range(len(owed.nodes)), key=lambda node: -len(list(owed.path(node)))):
            more[node] = [max(ZERO, min(more[node][c], self.room(node, c))) for c in self.columns]
            over = owed.over[node]
            if over is not None:
                more[over] = [plus(pair) for pair in zip(more[over], more[node], strict=True)]
        return more

    def room(self, node: int, column: int) -> Number:
        """Return how much more the cap of a node leaves it."""
        return minus(self.owed.cap[node][column], self.held[node][column])

    def above(self, node: int, column: int) -> Fraction:
        """Return what a node holds beyond its guarantee; below zero where that is more."""
        return self.held[node][column] - self.guarantee[node][column]

    def owes(self, node: int, column: int) -> bool:
        """Return whether a node holds less than its guarantee, and could use more."""
        return self.above(node, column) < 0 < self.more[node][column]


#: What a market says, by the word for it.
SAID: dict[str, Callable[[Market, Entitled], bool]] = {
    "entitlements": lambda market, owed: True,
    "guarantees": lambda market, owed: any(map(any, owed.guarantee)),
    "caps": lambda market, owed: any(most < inf for row in owed.cap for most in row),
    "holdings": told,
}


# -- properties --------------------------------------------------------------------------------------------
def guarantee_kept(market: Market, shares: Table) -> bool:
    """Return whether nobody below its guarantee could use more, within its cap and those in it."""
    stands = Standing(market, shares, says="guarantees")
    return not any(stands.owes(node, c) for node in range(len(stands.held)) for c in stands.columns)


def cap_kept(market: Market, shares: Table) -> bool:
    """Return whether nobody holds more than its cap."""
    stands = Standing(market, shares, says="caps")
    return all(stands.room(node, c) >= 0 for node in range(len(stands.held)) for c in stands.columns)


def guarantee_incentive(market: Market, shares: Table) -> bool:
    """Return whether everybody gets at least what its guarantee is worth to it, for what it asks for."""
    stands = Standing(market, shares, says="guarantees")
    rows = zip(asks(market, stands.owed), market.speedup, shares, stands.guarantee, strict=False)
    return all(
        dot(speeds, uses(asked, speeds, own)) >= dot(speeds, uses(asked, speeds, owed))
        for asked, speeds, own, owed in rows
    )


def nobody_starves_while_lent(market: Market, shares: Table) -> bool:
    """Return whether no user is owed what another, and its own groups, hold beyond their guarantees."""
    stands = Standing(market, shares, says="guarantees")
    users, path = range(len(shares)), stands.owed.path
    for c in stands.columns:
        lenders = [u for u in users if stands.movable[u][c] > 0 < stands.above(u, c)]
        for user in (u for u in users if stands.owes(u, c)):
            own = set(path(user))
            if any(
                all(stands.above(over, c) > 0 for over in path(u) if over not in own)
                for u in lenders
                if u != user
            ):
                return False
    return True


def whole_gpu_conservation(market: Market, shares: Table) -> bool:
    """Return whether no gang that waits fits into free whole GPUs, caps and further goods."""
    stands = Standing(market, shares, says="holdings")
    owed, types = stands.owed, market.types

    def fits(gang: Gang, j: int) -> bool:
        most = [stands.room(node, j) for node in owed.path(gang.user)]
        goods = [(owed.good(resource, types[j], types), amount) for resource, amount in gang.other.items()]
        return gang.gpus <= min(floor(stands.free[j]), stands.more[gang.user][j], *most) and all(
            amount <= min(stands.free[c], *(stands.room(node, c) for node in owed.path(gang.user)))
            for c, amount in [
                (len(types) + good, amount) for good, amount in goods if good is not None and amount
            ]
            if stands.now
        )

    return not any(fits(gang, j) for gang in owed.pending if gang.gpus for j in gang.types)


def group_fairness(market: Market, shares: Table) -> bool:
    """Return whether siblings' loans are max-min by weight up to one GPU, among those of one tier."""
    stands = Standing(market, shares)
    owed, families = stands.owed, dict[Any, list[int]]()
    for node in range(len(owed.nodes)):
        families.setdefault((owed.over[node], owed.tier[node]), []).append(node)
    for family in families.values():
        for j in range(len(market.types)):
            loan = {node: max(ZERO, stands.above(node, j)) for node in family}
            wants = [node for node in family if stands.more[node][j] >= 1 and owed.weight[node] > 0]
            least = min((loan[node] / owed.weight[node] for node in wants), default=inf)
            if any(
                loan[d] - 1 > owed.weight[d] * least for d in family if wants and stands.movable[d][j] >= 1
            ):
                return False
    return True


def envy_within_peers(market: Market, shares: Table) -> bool:
    """Return whether nobody prefers the shares of another of its group and tier, by weight, to its own."""
    owed, users = Standing(market, shares).owed, range(len(shares))
    own, place = market.worths(shares), list(zip(owed.over, owed.tier, strict=True))
    pairs = ((i, other) for i in users for other in users if place[i] == place[other])
    return all(own[i] >= market.out_of_shares(shares, i, other) for i, other in pairs)


#: How each property is decided, and what it means that it holds.
PROPERTIES: dict[str, tuple[Callable[[Market, Table], bool], str]] = {
    "guarantee_kept": (
        guarantee_kept,
        "each user and group holds its guarantee, or all that it could use if less",
    ),
    "cap_kept": (cap_kept, "no user and no group holds more than its cap"),
    "guarantee_incentive": (
        guarantee_incentive,
        "everybody gets at least what its guarantee is worth to it, for what it asks for",
    ),
    "nobody_starves_while_lent": (
        nobody_starves_while_lent,
        "no user is owed more while another holds more than its guarantee that can be taken back",
    ),
    "whole_gpu_conservation": (
        whole_gpu_conservation,
        "no gang waits that fits free whole GPUs and the caps above it",
    ),
    "group_fairness": (
        group_fairness,
        "no GPU can move to a sibling of its tier that borrows less, by weight, than the giver then does",
    ),
    "envy_within_peers": (
        envy_within_peers,
        "nobody would get more out of another's shares, scaled by weights, in its group and tier",
    ),
}
