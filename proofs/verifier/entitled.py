"""What users and groups are guaranteed, may take, hold and ask for.

Nodes are the users, in the market's order, then the groups. Columns are the types, then further goods.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, lcm
from typing import Any, NamedTuple

from .reading import ZERO, Entry, Number, Table, distinct, exactly, require, row_exactly, summed, within

#: The most groups in each other, gangs, GPUs of a gang, unions of sets of types of a user, and such users.
DEEPEST, MOST_GANGS, MOST_GPUS, MOST_UNIONS, MOST_USERS_OF_UNIONS = 50, 2 * 10**6, 10**6, 4096, 128
#: The most bits of a user's amounts, over their common denominator, times unions: all of them are added up.
MOST_UNION_BITS = 2**19
#: GPUs that a user asks for, by the types that serve.
Asked = dict[frozenset[int], Number]


class Gang(NamedTuple):
    """GPUs that a user waits for, all of one type; ``other`` is what else the gang takes, by resource."""

    user: int
    gpus: int | Fraction
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

    def inside_first(self) -> list[int]:
        """Return all nodes, each before the group that it is in."""
        return sorted(range(len(self.nodes)), key=lambda node: -len(list(self.path(node))))

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

    def usage_known(self, types: int) -> bool:
        """Return whether it is said of anybody how many GPUs it holds or asks for."""
        return any(gang.gpus for gang in self.pending) or any(any(row[:types]) for row in self.held)

    def asks(self, speedup: Table, demand: list[Number]) -> list[Asked]:
        """Return what each user asks for: what it holds, of that type, and what waits; else its demand."""
        types = len(speedup[0])
        if not self.usage_known(types):
            runs = (frozenset(j for j, speed in enumerate(row) if speed) for row in speedup)
            return [{types: most} for types, most in zip(runs, demand, strict=True)]
        held = (enumerate(row[:types]) for row in self.held)
        asked: list[Asked] = [{frozenset([j]): x for j, x in row if x} for row in held]
        for gang in self.pending:
            asked[gang.user][gang.types] = asked[gang.user].get(gang.types, ZERO) + gang.gpus
        unions = sum(len(_unions(part)) for each in asked if len(each) > 1 for part in apart(each))
        within(unions, MOST_USERS_OF_UNIONS * MOST_UNIONS, "entitlements", "sets of types of all users")
        return asked

    def __str__(self) -> str:
        """Say of how many there are entitlements."""
        return f"entitlements of {len(self.nodes)} users and groups, {len(self.pending)} gangs wait"

    def canonical(self) -> list[Any]:
        """Return all of it for a digest."""
        ends = [[[exactly(each) for each in row] for row in table] for table in (self.guarantee, self.cap)]
        tables = [[row_exactly(row) for row in table] for table in (self.held, self.fixed)]
        other = [sorted([k, exactly(v)] for k, v in gang.other.items()) for gang in self.pending]
        sizes = [g.gpus if isinstance(g.gpus, int) else exactly(g.gpus) for g in self.pending]
        gangs = [
            [g.user, n, sorted(g.types), own] for g, n, own in zip(self.pending, sizes, other, strict=True)
        ]
        columns = [row_exactly(self.stock), row_exactly(self.weight), self.tier]
        return [self.nodes, self.over, self.goods, *columns, *ends, *tables, gangs]


def read_entitled(entry: Entry, users: list[str], types: list[str]) -> Entitled | None:
    """Return the entitlements of a market; None where it says nothing of any."""
    if entry.value is None:
        return None
    fields = entry.fields("groups in goods stock guarantee cap borrow_weight tier held fixed pending")
    nodes = distinct([*users, *(each.name() for each in fields["groups"].items())], fields["groups"].place)
    place = {name: node for node, name in enumerate(nodes)}
    over = [None if each.value is None else each.position(place) for each in fields["in"].items(len(nodes))]
    groups = all(each is None or each >= len(users) for each in over)
    require(groups, fields["in"].place, "a user is no group")
    each_good = [each.fields("resource flavor") for each in fields["goods"].items()]
    goods = [(good["resource"].name(), good["flavor"].name()) for good in each_good]
    require(len(set(goods)) == len(goods), fields["goods"].place, "a good stands twice")
    width = len(types) + len(goods)
    guarantee, cap = (
        [[_end(each) for each in row.items(width)] for row in fields[key].items(len(nodes))]
        for key in ("guarantee", "cap")
    )
    held, fixed = (
        [[each.amount() for each in row.items(width)] for row in fields[key].items(len(users))]
        for key in ("held", "fixed")
    )
    gangs = fields["pending"].items()
    within(len(gangs), MOST_GANGS, fields["pending"].place, "gangs")
    entitled = Entitled(
        nodes=nodes,
        over=over,
        goods=goods,
        stock=[each.amount() for each in fields["stock"].items(len(goods))],
        weight=[each.amount() for each in fields["borrow_weight"].items(len(nodes))],
        tier=[each.integer(-(2**62)) for each in fields["tier"].items(len(nodes))],
        pending=[_read_gang(each, users, types) for each in gangs],
        guarantee=guarantee,
        cap=cap,
        held=held,
        fixed=fixed,
    )
    for node in range(len(nodes)):
        for depth, _ in enumerate(entitled.path(node)):
            require(depth <= DEEPEST, fields["in"].place, "groups in a circle, or too deep")
    pairs = zip(entitled.fixed, entitled.held, strict=True)
    held_too = all(f <= h for row, all_ in pairs for f, h in zip(row, all_, strict=True))
    require(held_too, fields["fixed"].place, "too much")
    return entitled


def _end(entry: Entry) -> Number:
    return inf if entry.value is None else entry.amount()


def _read_gang(entry: Entry, users: list[str], types: list[str]) -> Gang:
    fields = entry.fields("user gpus types", "other")
    allowed = frozenset(each.position(types) for each in fields["types"].items())
    require(allowed, fields["types"].place, "no types")
    parts = fields["gpus"].amount()  # of a GPU that others share
    gpus = parts.numerator if parts.denominator == 1 else parts
    within(ceil(gpus), MOST_GPUS, fields["gpus"].place, "GPUs of a gang")
    other = {k: each.amount() for k, each in fields["other"].by_name().items()}
    return Gang(fields["user"].position(users), gpus, allowed, other)


# -- what users could use ----------------------------------------------------------------------------------
def plus(values: Iterable[Number]) -> Number:
    """Return a sum, which may be infinite."""
    found = list(values)
    return inf if inf in found else summed(Fraction(each) for each in found)


def apart(asked: Asked) -> list[Asked]:
    """Return what a user asks for in parts that have no type in common: each is served by itself."""
    parts: list[tuple[frozenset[int], Asked]] = []
    for types, most in asked.items():
        meet = [each for each in parts if each[0] & types]
        joined = {types: most}
        for _, part in meet:
            joined |= part
        parts = [each for each in parts if not each[0] & types]
        parts.append((types.union(*(each for each, _ in meet)), joined))
    return [part for _, part in parts]


def cuts(asked: Asked, room: list[Fraction]) -> dict[frozenset[int], Number]:
    """Return for sets of types: the GPUs of these, and all that is asked for and may run elsewhere.

    No more than that is served. The least of them is, and unions of the sets that are asked for are enough.
    """
    unions = _unions(asked)
    _require_short(len(unions), [*asked.values(), *room])
    here = [_whole(max(ZERO, each)) for each in room]
    amounts = [(types, _whole(more)) for types, more in asked.items()]
    found: dict[frozenset[int], Number] = {}
    for types in unions:
        elsewhere = [more for each, more in amounts if not each <= types]
        found[types] = inf if inf in elsewhere else Fraction(sum(elsewhere) + sum(here[j] for j in types))
    return found


def _unions(asked: Asked) -> set[frozenset[int]]:
    unions = {frozenset[int]()}
    for types in asked:
        unions |= {each | types for each in unions}
        within(len(unions), MOST_UNIONS, "entitlements", "sets of types of one user")
    return unions


def _require_short(unions: int, amounts: Iterable[Number]) -> None:
    bits = lcm(*(each.denominator for each in amounts if isinstance(each, Fraction))).bit_length()
    within(unions * bits, MOST_UNION_BITS, "entitlements", "bits in sums over sets of types")


def _whole(value: Number) -> Number:
    """Return a whole number as an int: sums of them are faster."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


def served(asked: Asked, room: list[Fraction]) -> Fraction:
    """Return how much of what a user asks for runs on so many GPUs of each type."""
    return summed(Fraction(min(cuts(part, room).values())) for part in apart(asked))


def uses(asked: Asked, speeds: list[Fraction], bundle: list[Fraction]) -> list[Fraction]:
    """Return which GPUs of a bundle serve what a user asks for: the fastest first."""
    out = [ZERO] * len(speeds)
    for part in apart(asked):
        before, limits = ZERO, cuts(part, [ZERO] * len(speeds))
        _require_short(len(limits), bundle)
        for j in sorted(frozenset[int]().union(*part), key=lambda j: -speeds[j]):
            for types, most in limits.items():
                if j in types and most != inf:
                    limits[types] = most + max(ZERO, bundle[j])
            now = Fraction(min(limits.values()))
            out[j], before = now - before, now
    return out
