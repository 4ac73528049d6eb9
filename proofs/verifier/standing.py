"""How users and groups stand with shares of a market with entitlements, and which properties these have."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from math import floor, inf, lcm
from typing import Any

from .entitled import Entitled, Gang, apart, cuts, plus
from .market import Market, minus, table_shown
from .programs import Program, Row
from .reading import MOST_COMPARED, ONE, STEPS, ZERO, Entry, Number, Rejected, Table, require, summed

#: The most GPUs, times gangs, for which gangs are chosen.
MOST_SUMS = 2**34


class Standing:
    """What shares mean to every user and group: as `fairopt.properties.entitlements` defines it."""

    def __init__(self, market: Market, shares: Table, *, says: str = "entitlements") -> None:
        """``says`` is what the market must say: entitlements, guarantees, caps, or what anybody holds."""
        entitled, k = market.entitled, len(market.types)
        if entitled is None or not SAID[says](market, entitled):
            raise Rejected(f"the market says no {says}")
        self.entitled, self.types, self.users = entitled, k, len(shares)
        now = all(row[:k] == share for row, share in zip(entitled.held, shares, strict=True))
        mine = entitled.held if now else shares
        there = [*market.capacity, *entitled.stock][: len(mine[0])]
        self.columns, self.now = range(len(there)), now
        self.held = entitled.total(mine)
        stays = [
            [min(fx) for fx in zip(*rows, strict=False)] for rows in zip(entitled.fixed, mine, strict=True)
        ]
        fixed = entitled.total(stays)
        both = zip(self.held, fixed, strict=True)
        self.movable = [[x - f for x, f in zip(*rows, strict=True)] for rows in both]
        self.guarantee = [
            [Fraction(min(ends)) for ends in zip(row, there, strict=False)] for row in entitled.guarantee
        ]
        self.free = [most - summed(row[c] for row in mine) for c, most in enumerate(there)]
        self.asked = entitled.asks(market.speedup, market.demand)
        self.more = self._more(self._unserved(market, mine))

    def _unserved(self, market: Market, mine: Table) -> list[list[Number]]:
        entitled = self.entitled
        out: list[list[Number]] = [[ZERO for _ in self.columns] for _ in mine]
        parts = ((user, part) for user, asked in enumerate(self.asked) for part in apart(asked))
        for user, part in parts:
            limits = cuts(part, mine[user])
            now = min(limits.values())
            for j in frozenset[int]().union(*part):
                most = min(limit for types, limit in limits.items() if j not in types)
                out[user][j] = minus(most, Fraction(now))
        for gang in entitled.pending if self.now else ():
            for resource, amount in gang.other.items():
                goods = {entitled.good(resource, market.types[j], market.types) for j in gang.types}
                for good in (each for each in goods if each is not None):
                    waits = out[gang.user]
                    waits[self.types + good] = summed((Fraction(waits[self.types + good]), amount))
        return out

    def _more(self, unserved: list[list[Number]]) -> list[list[Number]]:
        entitled, more = self.entitled, [*unserved]
        more += [[ZERO for _ in self.columns] for _ in entitled.nodes[len(unserved) :]]
        for node in entitled.inside_first():
            more[node] = [max(ZERO, min(more[node][c], self.room(node, c))) for c in self.columns]
            over = entitled.over[node]
            if over is not None:
                more[over] = [plus(pair) for pair in zip(more[over], more[node], strict=True)]
        return more

    def room(self, node: int, column: int) -> Number:
        """Return how much more the cap of a node leaves it."""
        return minus(self.entitled.cap[node][column], self.held[node][column])

    def idle(self, user: int, column: int) -> Number:
        """Return how much is free of a column, within the caps above a user."""
        return min(self.free[column], *(self.room(node, column) for node in self.entitled.path(user)))

    def goods(self, market: Market, gang: Gang, j: int) -> list[tuple[int, Fraction]]:
        """Return the columns of goods that a gang takes on a type, and how much, where goods count."""
        names = gang.other.items() if self.now else ()
        goods = [(self.entitled.good(name, market.types[j], market.types), amount) for name, amount in names]
        return [(self.types + good, amount) for good, amount in goods if good is not None and amount]

    def above(self, node: int, column: int) -> Fraction:
        """Return what a node holds beyond its guarantee; below zero where that is more."""
        return self.held[node][column] - self.guarantee[node][column]

    def reachable(self, column: int, idle: Fraction) -> list[Fraction]:
        """Return what each could have of what is idle or lent; groups take in what their caps leave."""
        entitled, gives, out = self.entitled, [ZERO] * len(self.held), [ZERO] * len(self.held)
        families: dict[int | None, Fraction] = dict.fromkeys([None, *range(len(gives))], ZERO)
        came: dict[int | None, Fraction] = {None: idle}
        nodes = entitled.inside_first()
        for node in nodes:
            most = self.movable[node][column] if node < self.users else families[node]
            gives[node] = max(ZERO, min(self.above(node, column), most))
            families[entitled.over[node]] += gives[node]
        for node in reversed(nodes):
            out[node] = came[entitled.over[node]] + families[entitled.over[node]] - gives[node]
            came[node] = Fraction(min(out[node], max(ZERO, self.room(node, column))))
        return out

    def owes(self, node: int, column: int) -> bool:
        """Return whether a node holds less than its guarantee, and could use more."""
        return self.above(node, column) < 0 < self.more[node][column]


def leaves_goods_out(market: Market, shares: Table) -> bool:
    """Return whether there are goods and the shares, which are not what is held, do not say who has them."""
    entitled = market.entitled
    return bool(entitled and entitled.goods) and not Standing(market, shares).now


#: What a market says, by the word for it.
SAID: dict[str, Callable[[Market, Entitled], bool]] = {
    "entitlements": lambda market, entitled: True,
    "guarantees": lambda market, entitled: any(map(any, entitled.guarantee)),
    "caps": lambda market, entitled: any(most < inf for row in entitled.cap for most in row),
    "holdings": lambda market, entitled: entitled.usage_known(len(market.types)),
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


def require_entitled(market: Market, shares: Table) -> None:
    """Reject shares that break a cap or a guarantee of GPUs; users ask for demands, whatever they hold."""
    if market.entitled is None:
        return
    numbers = [[ZERO if most == inf else most for most in row] for row in market.entitled.guarantee]
    none = [[ZERO for _ in row] for row in shares]
    entitled = replace(market.entitled, guarantee=numbers, held=none, fixed=none, pending=[])
    market = replace(market, entitled=entitled)  # a guarantee without bound is no number
    for says, keeps in (("caps", cap_kept), ("guarantees", guarantee_kept)):
        if SAID[says](market, entitled) and not keeps(market, shares):
            raise Rejected(f"the allocation breaks {says}")


def nobody_starves_while_lent(market: Market, shares: Table) -> bool:
    """Return whether no user is owed more, for whole gangs, that could be had of loans and what is idle."""
    stands = Standing(market, shares, says="guarantees")
    entitled, columns, usage_known = (
        stands.entitled,
        stands.columns,
        stands.entitled.usage_known(stands.types),
    )
    lent, reach = (
        [stands.reachable(c, ZERO) for c in columns],
        [stands.reachable(c, stands.free[c]) for c in columns],
    )
    pairs = [(user, c) for user in range(len(shares)) for c in columns]
    sure = {  # how much more of its guarantee each could use and have
        (i, c): Fraction(min(stands.more[i][c], stands.room(i, c), reach[c][i], -stands.above(i, c)))
        for i, c in pairs
    }
    waits: dict[tuple[int, int], list[Any]] = {pair: [] for pair in pairs}
    for gang in entitled.pending:
        for j in gang.types:
            needs = [(j, gang.gpus)] * (gang.gpus > 0) + stands.goods(market, gang, j)
            pair = {c: (gang.user, c) for c, _ in needs}
            short = {c for c, most in needs if most > max(sure[pair[c]], stands.idle(*pair[c]))}
            for c, most in needs:
                waits[pair[c]] += [most] if short <= {c} else []
    for i, c in (each for each in pairs if min(sure[each], lent[each[1]][each[0]]) > 0):
        first = min(
            entitled.held[i][c], stands.held[i][c] + sure[i, c]
        )  # what is held now precedes what waits
        over, gangs = stands.held[i][c] - first, waits[i, c]
        most = min(floor((over + sure[i, c]) * common(gangs)), sum(gangs) * common(gangs))
        work = int(most) * len(gangs) if over > 0 else 0
        market.budget.spend(work, MOST_SUMS, "entitlements", "GPUs for which gangs are chosen, times gangs")
        if not usage_known or over < 0 or fits_between(gangs, over, over + sure[i, c]):
            return False
    return True


def fits_between(gangs: list[Any], over: Fraction, most: Number) -> bool:
    """Return whether some gangs together take more than ``over`` and no more than ``most``."""
    fitting = [each for each in gangs if each <= most]
    if any(each > over for each in fitting):
        return True
    parts = common(fitting)  # of a GPU: in these sizes are whole
    sums, room = (
        1,
        int(min(floor(most * parts), sum(fitting) * parts)),
    )  # sums that can be had are bits of a number
    for gpus in fitting:
        sums |= (sums << int(gpus * parts)) & (2 << room) - 1
    return sums >> floor(over * parts) + 1 > 0


def common(sizes: list[Any]) -> int:
    """Return the least common denominator of some sizes."""
    return lcm(*(Fraction(each).denominator for each in sizes))


def whole_gpu_conservation(market: Market, shares: Table) -> bool:
    """Return whether no gang that waits fits into free whole GPUs, caps and further goods."""
    stands = Standing(market, shares, says="holdings")

    def fits(gang: Gang, j: int) -> bool:
        needs: list[tuple[int, Any]] = [(j, gang.gpus), *stands.goods(market, gang, j)]
        waits = gang.gpus <= min(stands.more[gang.user][j], floor(stands.free[j]))
        return waits and all(amount <= stands.idle(gang.user, c) for c, amount in needs)

    return not any(fits(gang, j) for gang in stands.entitled.pending if gang.gpus for j in gang.types)


def group_fairness(market: Market, shares: Table) -> bool:
    """Return whether siblings' loans are max-min by weight up to one GPU, among those of one tier."""
    stands = Standing(market, shares)
    entitled, families = stands.entitled, dict[Any, list[int]]()
    for node in range(len(entitled.nodes)):
        families.setdefault((entitled.over[node], entitled.tier[node]), []).append(node)
    for family in families.values():
        for j in range(len(market.types)):
            loan = {node: max(ZERO, stands.above(node, j)) for node in family}
            wants = [node for node in family if stands.more[node][j] >= 1 and entitled.weight[node] > 0]
            least = min((loan[node] / entitled.weight[node] for node in wants), default=inf)
            givers = [d for d in family if wants and stands.movable[d][j] >= 1]
            if any(loan[d] - 1 > entitled.weight[d] * least for d in givers):
                return False
    return True


def peers(market: Market, shares: Table) -> Iterator[tuple[int, list[Fraction]]]:
    """Yield each user with its guaranteed part and what a peer holds beyond it, by weight, within caps."""
    entitled, users = Standing(market, shares).entitled, range(len(shares))
    ends = [
        [*zip(*rows, strict=False)] for rows in zip(shares, entitled.guarantee, entitled.cap, strict=False)
    ]
    # a guarantee without bound is none
    sure = [[ZERO if owes == inf else Fraction(min(x, owes, most)) for x, owes, most in row] for row in ends]
    place = list(zip(entitled.over, entitled.tier, strict=True))
    pairs = sum(many**2 for many in Counter(place[: len(users)]).values())
    market.budget.spend(pairs * (20 + 4 * len(market.types)), MOST_COMPARED, "peers", STEPS)
    for i, other in ((i, other) for i in users for other in users if place[i] == place[other]):
        scale = market.weight[i] / market.weight[other]
        held = [g + scale * (x - own) for g, x, own in zip(sure[i], shares[other], sure[other], strict=True)]
        yield i, [Fraction(min(pair)) for pair in zip(held, entitled.cap[i], strict=False)]


#: How each property is decided, and what it means that it holds.
PROPERTIES: dict[str, tuple[Callable[[Market, Table], bool], str]] = {
    "guarantee_kept": (
        guarantee_kept,
        "each user and group holds its guarantee (at most all that there is), or all that it could use if"
        " that is less",
    ),
    "cap_kept": (cap_kept, "no user and no group holds more than its cap"),
    "nobody_starves_while_lent": (
        nobody_starves_while_lent,
        "no user could run more whole gangs (or any part, where nobody says what is asked for) within its"
        " guarantee and the caps above it on what is idle and what others, and each group around that but not"
        " around the user, hold beyond their guarantees and can be taken back",
    ),
    "whole_gpu_conservation": (
        whole_gpu_conservation,
        "no gang waits that fits free whole GPUs, free goods and the caps above it",
    ),
    "group_fairness": (
        group_fairness,
        "no GPU can move to a sibling of its tier that borrows less, by weight, than the giver then does",
    ),
}


def entitle(program: Program, market: Market, entitled: Entitled, entry: Entry) -> str:
    """Add floors and caps; a user's floor is what it can use of its guarantee, and one without bound is none.

    Told, and returned, are floors of groups, what members can use, and how much is lent where some is kept.
    """
    users, types, at = range(len(market.users)), range(len(market.types)), entry.fields("floors", "lent")
    require(len(set(entitled.tier)) == 1, "tier", "floors and caps know no tiers")
    for i, cap in zip(users, entitled.cap, strict=False):
        pairs = list(zip(entitled.guarantee[i], cap, strict=True))[: len(types)]
        floor = market.used(i, [ZERO if most == inf else Fraction(min(most, high)) for most, high in pairs])
        for j in types:
            most = min(cap[j], market.capacity[j], program.bounds["share", i, j][1])
            program.bounds["share", i, j] = (floor[j], most)
    lent = market.capacity if at["lent"].value is None else at["lent"].numbers(len(types))
    for j, most in enumerate(lent):
        program.rows["capacity", j] = program.rows["capacity", j]._replace(high=min(most, market.capacity[j]))
    groups = range(len(users), len(entitled.nodes))
    below: dict[int, list[int]] = {node: [] for node in range(len(entitled.nodes))}
    for i in users:
        for node in entitled.path(i):
            below[node].append(i)
    for at_group, row in zip(groups, at["floors"].items(len(groups)), strict=True):
        for j, least in enumerate(row.numbers(len(types))):
            terms = {("share", i, j): ONE for i in below[at_group]}
            most, key = entitled.guarantee[at_group][j], (at_group - len(users), j)
            require(least <= (ZERO if most == inf else most), row.place, "a floor is above the guarantee")
            program.rows["group_floor", *key] = Row(terms, least, inf)
            program.rows["group_cap", *key] = Row(terms, -inf, entitled.cap[at_group][j])
    floors = [row.numbers() for row in at["floors"].items()]
    shown_too = f"{table_shown(floors)} and {table_shown([lent])}" if floors else table_shown([lent])
    return f"floors of groups, and GPUs that are lent, are as told: {shown_too}"
