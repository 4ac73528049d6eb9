"""How users and groups stand with shares of a market with entitlements, and which properties these have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import floor, inf
from typing import Any

from .entitled import MOST_GPUS, Entitled, Gang, apart, asks, cuts, plus, told, uses
from .market import ZERO, Market, Table, dot, minus
from .reading import Number, Rejected, summed, within


class Standing:
    """What shares mean to every user and group: as `fairopt.properties.entitlements` defines it."""

    def __init__(self, market: Market, shares: Table, *, says: str = "entitlements") -> None:
        """``says`` is what the market must say: entitlements, guarantees, caps, or what anybody holds."""
        owed, k = market.entitled, len(market.types)
        if owed is None or not SAID[says](market, owed):
            raise Rejected(f"the market says no {says}")
        self.owed, self.types, self.users = owed, k, len(shares)
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
        both = zip(self.held, fixed, strict=True)
        self.movable = [[x - f for x, f in zip(*rows, strict=True)] for rows in both]
        self.guarantee = [
            [Fraction(min(own, most)) for own, most in zip(row, there, strict=False)]
            for row in owed.guarantee
        ]
        self.free = [most - summed(row[c] for row in mine) for c, most in enumerate(there)]
        self.more = self._more(self._unserved(market, mine))

    def _unserved(self, market: Market, mine: Table) -> list[list[Number]]:
        owed = self.owed
        out: list[list[Number]] = [[ZERO for _ in self.columns] for _ in mine]
        parts = ((user, part) for user, asked in enumerate(asks(market, owed)) for part in apart(asked))
        for user, part in parts:
            limits = cuts(part, mine[user])
            now = min(limits.values())
            for j in frozenset[int]().union(*part):
                most = min(limit for types, limit in limits.items() if j not in types)
                out[user][j] = minus(most, Fraction(now))
        for gang in owed.pending if self.now else ():
            for resource, amount in gang.other.items():
                goods = {owed.good(resource, market.types[j], market.types) for j in gang.types}
                for good in (each for each in goods if each is not None):
                    out[gang.user][self.types + good] += amount
        return out

    def _more(self, unserved: list[list[Number]]) -> list[list[Number]]:
        owed, more = self.owed, [*unserved]
        more += [[ZERO for _ in self.columns] for _ in owed.nodes[len(unserved) :]]
        for node in owed.inside_first():
            more[node] = [max(ZERO, min(more[node][c], self.room(node, c))) for c in self.columns]
            over = owed.over[node]
            if over is not None:
                more[over] = [plus(pair) for pair in zip(more[over], more[node], strict=True)]
        return more

    def room(self, node: int, column: int) -> Number:
        """Return how much more the cap of a node leaves it."""
        return minus(self.owed.cap[node][column], self.held[node][column])

    def goods(self, market: Market, gang: Gang, j: int) -> list[tuple[int, Fraction]]:
        """Return the columns of goods, and how much of each, that a gang takes on a type, where goods count."""
        names = gang.other.items() if self.now else ()
        goods = [(self.owed.good(name, market.types[j], market.types), amount) for name, amount in names]
        return [(self.types + good, amount) for good, amount in goods if good is not None and amount]

    def above(self, node: int, column: int) -> Fraction:
        """Return what a node holds beyond its guarantee; below zero where that is more."""
        return self.held[node][column] - self.guarantee[node][column]

    def lent(self, column: int) -> list[Fraction]:
        """Return what could be taken back for each node; a group gives no more than it holds too much."""
        owed, gives = self.owed, [ZERO] * len(self.held)
        families: dict[int | None, Fraction] = dict.fromkeys([None, *range(len(gives))], ZERO)
        for node in owed.inside_first():
            most = self.movable[node][column] if node < self.users else families[node]
            gives[node] = max(ZERO, min(self.above(node, column), most))
            families[owed.over[node]] += gives[node]
        paths = map(owed.path, range(len(gives)))
        return [summed(families[owed.over[each]] - gives[each] for each in path) for path in paths]

    def owes(self, node: int, column: int) -> bool:
        """Return whether a node holds less than its guarantee, and could use more."""
        return self.above(node, column) < 0 < self.more[node][column]


def leaves_goods_out(market: Market, shares: Table) -> bool:
    """Return whether there are goods and the shares, which are not what is held, do not say who has them."""
    owed = market.entitled
    return bool(owed and owed.goods) and not Standing(market, shares).now


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
    """Return whether no user is owed more, for whole gangs, that could be had of others' loans and idle GPUs."""
    stands = Standing(market, shares, says="guarantees")
    owed, waits = stands.owed, dict[tuple[int, int], list[Any]]()
    lent = [stands.lent(c) for c in stands.columns]
    for gang, j in ((gang, j) for gang in owed.pending for j in gang.types):
        goods, user = stands.goods(market, gang, j), gang.user
        got = {c: min(stands.room(user, c), stands.free[c] + lent[c][user]) for c in (j, *dict(goods))}
        if all(amount <= got[c] for c, amount in goods):  # it can have what it takes of other columns
            for c, amount in [(j, gang.gpus), *(goods if gang.gpus <= got[j] else ())]:
                waits.setdefault((user, c), []).append(amount)
    asks_gpus = told(market, owed)
    for user, c in ((user, c) for user in range(len(shares)) for c in stands.columns):
        if lent[c][user] > 0 and stands.owes(user, c):
            held, gangs = stands.held[user][c], waits.get((user, c), [])
            most = min(stands.guarantee[user][c], owed.cap[user][c], held + stands.free[c] + lent[c][user])
            if c >= stands.types:
                most = held if min(gangs, default=inf) > most - held else most
            elif asks_gpus:  # what is held now goes first
                first = min(owed.held[user][c], most)
                most = first + fullest(gangs, floor(most - first))
            if most > held:
                return False
    return True


def fullest(gangs: list[int], room: int) -> int:
    """Return the most GPUs that gangs which fit together have: sums that can be had are bits of a number."""
    fitting = [gpus for gpus in gangs if gpus <= room]
    if sum(fitting) <= room:
        return sum(fitting)
    within(room, MOST_GPUS, "entitlements", "GPUs for which gangs are chosen")
    sums = 1
    for gpus, alike in Counter(fitting).items():
        count = min(alike, room // gpus)
        while count:  # 1, 2, 4, ... of those alike at a time
            taken = count - count // 2
            sums |= (sums << gpus * taken) & (2 << room) - 1
            count -= taken
    return sums.bit_length() - 1


def whole_gpu_conservation(market: Market, shares: Table) -> bool:
    """Return whether no gang that waits fits into free whole GPUs, caps and further goods."""
    stands = Standing(market, shares, says="holdings")
    owed = stands.owed

    def fits(gang: Gang, j: int) -> bool:
        most = [stands.room(node, j) for node in owed.path(gang.user)]
        return gang.gpus <= min(floor(stands.free[j]), stands.more[gang.user][j], *most) and all(
            amount <= min(stands.free[c], *(stands.room(node, c) for node in owed.path(gang.user)))
            for c, amount in stands.goods(market, gang, j)
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


def peers(market: Market, shares: Table) -> Iterator[tuple[int, list[Fraction]]]:
    """Yield each user with its guaranteed part and what a peer holds beyond it, by weight, within caps."""
    owed, users = Standing(market, shares).owed, range(len(shares))
    ends = [[*zip(*rows, strict=False)] for rows in zip(shares, owed.guarantee, owed.cap, strict=False)]
    # a guarantee without bound is none
    sure = [[ZERO if owes == inf else Fraction(min(x, owes, most)) for x, owes, most in row] for row in ends]
    place = list(zip(owed.over, owed.tier, strict=True))
    for i, other in ((i, other) for i in users for other in users if place[i] == place[other]):
        scale = market.weight[i] / market.weight[other]
        held = [g + scale * (x - own) for g, x, own in zip(sure[i], shares[other], sure[other], strict=True)]
        yield i, [Fraction(min(pair)) for pair in zip(held, owed.cap[i], strict=False)]


def envy_within_peers(market: Market, shares: Table) -> bool:
    """Return whether nobody prefers what a peer, of its group and tier, holds beyond its guarantee."""
    own = market.worths(shares)
    return all(own[i] >= market.worth(i, bundle) for i, bundle in peers(market, shares))


#: How each property is decided, and what it means that it holds.
PROPERTIES: dict[str, tuple[Callable[[Market, Table], bool], str]] = {
    "guarantee_kept": (
        guarantee_kept,
        "each user and group holds its guarantee (at most all that there is), or all that it could use if"
        " that is less",
    ),
    "cap_kept": (cap_kept, "no user and no group holds more than its cap"),
    "guarantee_incentive": (
        guarantee_incentive,
        "everybody gets at least what its guarantee (at most all that there is) is worth to it, for what it"
        " asks for",
    ),
    "nobody_starves_while_lent": (
        nobody_starves_while_lent,
        "no user could run more whole gangs (or any part, where nobody says what is asked for) within its"
        " guarantee on what others, and each group around that but not around the user, hold beyond theirs and"
        " can be taken back, with what is idle",
    ),
    "whole_gpu_conservation": (
        whole_gpu_conservation,
        "no gang waits that fits free whole GPUs, free goods and the caps above it",
    ),
    "group_fairness": (
        group_fairness,
        "no GPU can move to a sibling of its tier that borrows less, by weight, than the giver then does",
    ),
    "envy_within_peers": (
        envy_within_peers,
        "nobody would get more with what another of its group and tier holds beyond its guarantee, scaled by"
        " weights and within the own caps, in the place of what it holds so itself",
    ),
}
