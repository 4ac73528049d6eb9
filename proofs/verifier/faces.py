"""The largest total among envy-free, Pareto-efficient allocations: a tree shows that none has more.

If an allocation is Pareto-efficient, no circle of users can each give some of a type to the next and gain.
So where a circle would improve whoever holds all of its pairs (user, type), an efficient one lacks a pair.
"""

from dataclasses import replace
from math import inf, prod

from .market import Market
from .programs import Program, Terms, oef_cooperative, point_of, read_duals
from .reading import Entry, Rejected, Table, require, shown, within
from .statements import Decision, read_allocation, require_bound

Pairs = frozenset[tuple[int, int]]


def efficient(data: Entry) -> Decision:
    """The allocation is envy-free and Pareto-efficient, and no such allocation has a total beyond the bound.

    It gives everybody what its equal share is worth, too: all that somebody can use is given out, and who
    envies nobody values its own bundle at least like the mean of all, by weight.
    """
    certificate = data.fields("market allocation weights value bound gap nodes")
    market, shares = read_allocation(certificate)
    if min(market.demand) < inf:
        raise Rejected("with demands, other trades improve than those of the tree")
    program = oef_cooperative(market)
    for j, kind in enumerate(zip(*market.speedup, strict=True)):
        if max(kind) > 0:  # an efficient allocation leaves none of it
            program.rows["capacity", j] = program.rows["capacity", j]._replace(low=market.capacity[j])
    value = program.value(point_of(shares, Entry(None)))
    _require_efficient(market, shares, certificate["weights"])
    require_bound(value, certificate["bound"].number(), certificate)
    if value > certificate["bound"].number():
        raise Rejected("the bound is below the value")
    _require_bounded(market, program, certificate)
    said = "the allocation is envy-free, gives everybody its equal share's worth and is Pareto-efficient, "
    said += f"with the total {shown(value)}; none with these three properties has more"
    if certificate["gap"].number():
        said += f" than {shown(certificate['bound'].number())}"
    return Decision(said, market, shares, policy="oef-efficient")


def best(data: Entry) -> Decision:
    """The same as a decision of oef-efficient, which is proved where value and bound meet."""
    found = efficient(data)
    if data["gap"].number():
        raise Rejected("the allocation is not proved to be the best")
    return found


def _require_efficient(market: Market, shares: Table, entry: Entry) -> None:
    """Reject shares that do not maximise the sum of throughputs with these positive weights."""
    weights = entry.numbers(len(shares))
    if min(weights) <= 0:
        raise Rejected("a weight is not positive")
    for j, column in enumerate(zip(*market.speedup, strict=True)):
        worth = [weight * speed for weight, speed in zip(weights, column, strict=True)]
        if any(bundle[j] and each < max(worth) for bundle, each in zip(shares, worth, strict=True)):
            raise Rejected("the weights do not show that the allocation is Pareto-efficient")


def _require_bounded(market: Market, program: Program, certificate: Entry) -> None:
    """Follow the tree from the program that goes without nothing; multipliers must bound each end."""
    limit, entries = certificate["bound"].number(), certificate["nodes"].items()
    nodes: dict[Pairs, tuple[list[tuple[int, int]], Terms]] = {}
    for each in entries:
        node = each.fields("without", "circle duals")
        pairs = frozenset(_pairs(node["without"], market))
        require(pairs not in nodes, each.place, "it stands twice")
        circle = [] if node["circle"].value is None else _pairs(node["circle"], market)
        nodes[pairs] = circle, {} if circle else read_duals(node["duals"])
    waiting, seen = [Pairs()], set[Pairs]()
    while waiting:
        without = waiting.pop()
        if without not in nodes:
            raise Rejected("a part of the tree is missing")
        if without in seen:
            continue
        seen.add(without)
        circle, duals = nodes[without]
        if not circle:
            left = replace(program, bounds=program.bounds | {("share", *pair): (0, 0) for pair in without})
            if left.bound(duals) > limit:
                raise Rejected("a part of the tree is not bounded by its multipliers")
            continue
        # one that meets a type twice is two, of which one improves
        within(len(circle), len(market.types), "nodes", "pairs in a circle")
        given = [market.speedup[i][j] for i, j in circle]
        taken = [market.speedup[i][j] for (i, _), (_, j) in zip(circle[1:] + circle[:1], circle, strict=True)]
        if prod(taken) <= prod(given) or not without.isdisjoint(circle):
            raise Rejected("a circle improves nobody, or lacks a pair already and leads back to its own part")
        waiting += [without | {pair} for pair in circle]


def _pairs(entry: Entry, market: Market) -> list[tuple[int, int]]:
    found = [(each.items(2)[0].integer(), each.items(2)[1].integer()) for each in entry.items()]
    inside = all(i < len(market.users) and j < len(market.types) for i, j in found)
    require(inside, entry.place, "there is no such user or type")
    return found
