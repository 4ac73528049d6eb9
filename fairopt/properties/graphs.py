"""Graphs of a market and a cluster, as networkx has them: who envies whom, who could trade with whom, and trees.

Numbers on nodes and edges are those of the market: Fractions where it is exact. `as_graphml` writes them as floats.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from math import prod
from operator import mul
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.deadline import left
from fairopt.errors import BadInput, type_of
from fairopt.later import library
from fairopt.methods.efficient_faces import improving_circle
from fairopt.numbers import arithmetic
from fairopt.problem import Market, worth
from fairopt.program import INFINITY, Array, Number, number_text
from fairopt.report import ResultForm, Statement

if TYPE_CHECKING:
    from fairopt.problem import Cluster, Entitlements

#: Who gives what nobody has: GPUs that are idle.
IDLE = "(idle)"
#: The root of a tree of groups without one root of its own, and of a tree of hosts.
ROOT = "(cluster)"
#: Less than this part of a user's equal share, or of a type, is rounding of floats; logarithms are off by less.
ROUNDED, OFF = 1e-9, 1e-13


def _gift(it: Statement) -> str:
    what = f"{number_text(it.amount)} {it.type}"
    return f"{it.receiver} takes {what}, idle" if it.giver == IDLE else f"{it.giver} gives {it.receiver} {what}"


#: What one user, the ``giver``, or nobody (`IDLE`), gives a ``receiver`` in a trade: an ``amount`` of GPUs of a
#: ``type``.
GIFT = ResultForm("A gift.", in_full=True, sentence=_gift)


def envy_graph(market: Market, shares: Any) -> Any:
    """Return who envies whom, as a `networkx.DiGraph` of users: an edge from who envies to who is envied.

    ``shares`` (n, k) are anybody's: an array, lists, a table, or what `fairopt.allocate` returns. A node has its
    ``throughput``. An edge has ``amount``, the throughput more that the other's shares would give, scaled to equal
    weight, and ``times``, as a part of its own. The allocation is free of envy if and only if there is no edge; in
    floats envy within rounding is none.

    Errors: `BadInput` for shares of another shape; `NotInstalled` without networkx. Source: that of `EnvyFreeness`.

    >>> from fairopt import Market
    >>> graph = envy_graph(Market.of([[1, 2], [1, 5]], [1, 1]), [[1, 0], [0, 1]])
    >>> [(*pair, str(amount)) for *pair, amount in graph.edges(data="amount")]
    [('u1', 'u2', '1')]
    """
    graph, given, market = _users(market, shares)
    values = market.values(given)
    own = market.utility(given)
    more = values - own[:, None]
    slack = 0 if arithmetic(given).exact else ROUNDED
    for i, other in zip(*np.nonzero(more > slack * market.fair_utility()[:, None]), strict=True):
        times = INFINITY if own[i] == 0 else values[i, other] / own[i]
        graph.add_edge(market.users[i], market.users[other], amount=more[i, other], times=times)
    return graph


def trade_graph(market: Market, shares: Any, *, whole: bool = True) -> Any:
    """Return who could swap what with a gain, as a `networkx.DiGraph` of users, and of `IDLE` where GPUs are.

    An edge is a gift: its ``amount`` of GPUs of a ``type``, and what the receiver gains by the whole trade (``gain``).
    Of two users who could both gain by a swap there are both edges, of the swap that gains most, each over what its
    equal share is worth. The edges of `trade_cycle`, which more than two may need, have ``cycle`` True. The allocation
    is Pareto-efficient if and only if there is no edge, but for gains below what `trade_cycle` sees; with demands an
    edge shows that it is not, and no edge shows nothing. With ``whole`` False the cycle is all, which is much sooner.

    ``shares`` (n, k) as in `envy_graph`. Errors: as there. Source: OEF Sec. 2.3.1 (4); cycles of trades:
    `fairopt.properties.shares.pareto_within_bounds`.

    >>> from fairopt import Market
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> for giver, receiver, edge in trade_graph(market, market.equal_split()).edges(data=True):
    ...     print(giver, receiver, edge["amount"], edge["type"], edge["gain"])
    u1 u2 1/7 T2 3/14
    u2 u1 1/2 T1 3/14
    """
    graph, given, market = _users(market, shares)
    for gift, gain in _free(market, given):
        graph.add_edge(gift.giver, gift.receiver, type=gift.type, amount=gift.amount, gain=gain, cycle=False)
        if not whole:
            return graph.edge_subgraph([*graph.edges])
    fair = market.fair_utility()
    for i in range(len(market.users) if whole else 0):
        left()
        for swaps in _swaps(market, given, i, fair.astype(float)):
            for gifts in swaps:  # the best first; few do not pay, where demands bind
                if gains := _gains(market, given, gifts, fair):
                    _add(graph, gifts, gains, cycle=False)
                    break
    cycle = trade_cycle(market, given)
    if len(cycle) == 2 and graph.has_edge(cycle[0].giver, cycle[0].receiver):
        for each in cycle:
            graph.edges[each.giver, each.receiver]["cycle"] = True
    elif len(cycle) > 1:
        _add(graph, cycle, _gains(market, given, cycle, fair) or {}, cycle=True)
    return graph if whole else graph.edge_subgraph([*graph.edges])


def trade_cycle(market: Market, shares: Any) -> tuple[Statement, ...]:
    """Return trades in a circle by which all gain that take part; () where there are none.

    Each user gives GPUs of one type to the next, the last to the first. GPUs that are idle (`IDLE`), or held by a user
    that cannot use them, are a gift for nothing. Any of these trades shows that the shares (n, k) are not
    Pareto-efficient. Without demands there is one if and only if they are not; a gain within rounding is none.

    Errors: as `envy_graph`. Source: `fairopt.methods.efficient_faces`.

    >>> from fairopt import Market
    >>> market = Market.of([[1, 2, 0], [0, 1, 2], [2, 0, 1]], [1, 1, 1])
    >>> for gift in trade_cycle(market, [[1, 0, 0], [0, 1, 0], [0, 0, 1]]):
    ...     print(gift)
    u3 gives u2 0.5625 T3
    u2 gives u1 0.75 T2
    u1 gives u3 1 T1
    """
    _, given, market = _users(market, shares)
    free = next(_free(market, given), None)
    if free is not None:
        return (free[0],)
    circle = improving_circle(market.speedup, np.where(market.speedup > 0, given, 0 * given))
    gifts = () if circle is None else _around(market, given, circle)
    return gifts if gifts and _gains(market, given, gifts, market.fair_utility()) else ()


def group_tree(owed: Entitlements) -> Any:
    """Return the tree of groups and users as a `networkx.DiGraph`: an edge from a group to what is in it.

    A node has ``user``, and by GPU type its guarantee, cap and what it holds, as ``guarantee H100``. Several groups at
    the top are below `ROOT`. Errors: `NotInstalled` without networkx.

    >>> from fairopt.problem import Entitlements
    >>> owed = Entitlements.of(["A", "B"], ["H100"], group={"A": "ml"}, guarantee={"ml": [3]})
    >>> sorted(group_tree(owed).edges)
    [('(cluster)', 'B'), ('(cluster)', 'ml'), ('ml', 'A')]
    """
    graph = library("networkx", "a graph", "solvers").DiGraph()
    names, held = owed.nodes, owed.total(owed.held)
    for node, name in enumerate(names):
        graph.add_node(name, user=node < len(owed.users))
        for what, amounts in (("guarantee", owed.guarantee), ("cap", owed.cap), ("held", held)):
            for kind, amount in zip(owed.types, amounts[node] if node < len(amounts) else (), strict=False):
                if amount not in (0, INFINITY):
                    graph.nodes[name][f"{what} {kind}"] = amount
    graph.add_edges_from((names[node], names[child]) for node, below in enumerate(owed.children) for child in below)
    if len(owed.tops) > 1:
        graph.add_edges_from((ROOT, names[top]) for top in owed.tops)
    return graph


def host_tree(cluster: Cluster) -> Any:
    """Return a cluster's types, racks and hosts as a `networkx.DiGraph`: an edge from each to what is in it.

    A node has ``gpus``, how many there are below it. Racks are there where the cluster says them. Errors:
    `NotInstalled` without networkx.

    >>> from fairopt.datasets import philly_cluster
    >>> tree = host_tree(philly_cluster())
    >>> tree.nodes["(cluster)"]["gpus"], tree.nodes["K80"]["gpus"], len(tree)
    (64, 32, 12)
    """
    graph = library("networkx", "a graph", "solvers").DiGraph()
    for host, name in enumerate(cluster.hosts):
        kind = cluster.types[cluster.gpu_type[host]]
        rack = [f"{kind}, {cluster.rack[host]}"] if cluster.rack else []
        path, gpus = [ROOT, kind, *rack, name], int(cluster.gpus[host])
        for node in path:
            graph.add_node(node, gpus=graph.nodes.get(node, {}).get("gpus", 0) + gpus)
        graph.add_edges_from(pairwise(path))
    return graph


def as_graphml(graph: Any) -> str:
    """Return a graph as GraphML, which other programs read; Fractions become floats.

    Several graphs by what they are, as {"envy": ..., "trade": ...}, become one of all nodes and edges; an edge then
    says its ``kind``. Errors: `BadInput` for what is no graph.

    >>> from fairopt import Market
    >>> text = as_graphml(envy_graph(Market.of([[1, 2], [1, 5]], [1, 1]), [[1, 0], [0, 1]]))
    >>> "<graphml" in text and 'source="u1" target="u2"' in text
    True
    """
    networkx = library("networkx", "a graph", "solvers")
    several = graph if isinstance(graph, Mapping) else {"": graph}
    whole = networkx.MultiDiGraph() if isinstance(graph, Mapping) else networkx.DiGraph()
    for kind, each in several.items():
        if not isinstance(each, networkx.DiGraph):
            raise BadInput(f"got {type_of(each)}", place="graph", remedy="Give a networkx.DiGraph, or several by kind")
        for node, data in each.nodes(data=True):
            whole.add_node(node, **_plain(data))
        for one, other, data in each.edges(data=True):
            whole.add_edge(one, other, **_plain(data | ({"kind": kind} if kind else {})))
    out = io.BytesIO()
    networkx.write_graphml(whole, out)
    return out.getvalue().decode("utf-8")


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes in types that GraphML has: truth values, integers, floats and texts."""
    return {key: value if isinstance(value, bool | int | str) else float(value) for key, value in data.items()}


def _users(market: Market, shares: Any) -> tuple[Any, Array, Market]:
    """Return a graph of the users, the shares, and the market in their numbers."""
    networkx = library("networkx", "a graph", "solvers")
    given = market.shares(getattr(shares, "shares", shares))
    market = market.as_(arithmetic(given).number)
    graph = networkx.DiGraph()
    for name, own in zip(market.users, market.utility(given).tolist(), strict=True):
        graph.add_node(name, throughput=own)
    return graph, given, market


def _add(graph: Any, gifts: Sequence[Statement], gains: dict[str, Number], *, cycle: bool) -> None:
    for each in gifts:
        graph.add_edge(
            each.giver, each.receiver, type=each.type, amount=each.amount, gain=gains[each.receiver], cycle=cycle
        )


def _gains(market: Market, shares: Array, gifts: Sequence[Statement], fair: Array) -> dict[str, Number]:
    """Return what each user gains that takes part; {} where not all gain, or more is given than there is.

    ``fair`` (n,): what the equal shares are worth.
    """
    slack = 0 if arithmetic(shares).exact else ROUNDED
    users = [market.index(each.giver) for each in gifts]
    after = {user: shares[user].copy() for user in users}
    for user, each in zip(users, gifts, strict=True):
        kind = market.types.index(each.type)
        after[user][kind] -= each.amount
        after[market.index(each.receiver)][kind] += each.amount
    gains = {user: worth(market, user, row) - worth(market, user, shares[user]) for user, row in after.items()}
    given = all((row >= -slack * market.capacity).all() for row in after.values())
    if not given or not all(gain > slack * fair[user] for user, gain in gains.items()):
        return {}
    return {market.users[user]: gain for user, gain in gains.items()}


def _free(market: Market, shares: Array) -> Iterator[tuple[Statement, Number]]:
    """Yield GPUs that are idle, or held by who cannot use them, with who gains most by all of them, and its gain."""
    own, fair = market.utility(shares), market.fair_utility()
    slack = 0 if arithmetic(shares).exact else ROUNDED
    useless = np.where(market.speedup > 0, 0 * shares, shares)
    for j, kind in enumerate(market.types):
        free = [(IDLE, market.capacity[j] - shares[:, j].sum()), *zip(market.users, useless[:, j], strict=True)]
        for giver, amount in free:
            if not amount > slack * market.capacity[j]:
                continue
            gains = []
            for i, row in enumerate(shares):
                more = row.copy()
                more[j] += amount
                gains.append((worth(market, i, more) - own[i]) / fair[i])
            best = int(np.argmax(gains))
            if gains[best] > slack:
                gift = GIFT.of(giver=giver, type=kind, amount=amount, receiver=market.users[best])
                yield gift, gains[best] * fair[best]


def _swaps(market: Market, shares: Array, i: int, fair: Array) -> Iterator[Iterator[tuple[Statement, Statement]]]:
    """Yield for each later user the swaps by which it and user ``i`` both gain, the best first.

    Floats say which pay, and which gain most over what the two equal shares are worth, ``fair`` (n,).
    """
    speed, held = market.speedup.astype(float), shares.astype(float)
    there, others = _held(market, shares), slice(i + 1, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = (speed[i][:, None] / speed[i])[None]  # by what i gives and gets: what it asks of that for one of this
        most = speed[others][:, :, None] / speed[others][:, None, :]
        most = np.where(np.isfinite(most), most, 2 * least + 1)
        rate = (least + most) / 2
        given = np.minimum(held[i][None, :, None], held[others][:, None, :] / rate)
        gain = given * (rate * speed[i] - speed[i][:, None]) / fair[i]
        gain += given * (speed[others][:, :, None] - rate * speed[others][:, None, :]) / fair[others][:, None, None]
    pays = (least * (1 + OFF) < most) & there[i][None, :, None] & there[others][:, None, :]
    pays &= (speed[i] > 0)[None, None, :] & (speed[others] > 0)[:, :, None]
    for other, (able, score) in enumerate(zip(pays, gain, strict=True), start=i + 1):
        first, second = np.nonzero(able)
        order = np.argsort(-score[first, second], kind="stable")
        pairs = zip(first[order].tolist(), second[order].tolist(), strict=True)
        yield (_swap(market, shares, (i, other), pair) for pair in pairs)


def _swap(market: Market, shares: Array, users: tuple[int, int], types: tuple[int, int]) -> tuple[Statement, Statement]:
    """Return the swap of two types, at the middle of the users' rates, of as much as one of them has."""
    (i, other), (a, b), speed = users, types, market.speedup
    least = speed[i, a] / speed[i, b]  # what the first asks of b for one of a
    most = speed[other, a] / speed[other, b] if speed[other, b] else 2 * least + 1  # any rate will do
    rate = (least + most) / 2
    given = min(shares[i, a], shares[other, b] / rate)
    one, two = market.users[i], market.users[other]
    return (
        GIFT.of(giver=one, type=market.types[a], amount=given, receiver=two),
        GIFT.of(giver=two, type=market.types[b], amount=given * rate, receiver=one),
    )


def _held(market: Market, shares: Array) -> Array:
    """Return who holds what (n, k), but for what is rounding of floats."""
    return np.asarray(shares > (0 if arithmetic(shares).exact else ROUNDED) * market.capacity, dtype=bool)


def _around(market: Market, shares: Array, circle: Sequence[tuple[int, int]]) -> tuple[Statement, ...]:
    """Return the gifts of a circle: each gives a little less than it would for what it gets, all in the same part.

    Each pair of a user and a type gives the type to the user of the next pair.
    """
    number = arithmetic(shares).number
    # so much of what a user gives for one of what it gets
    pairs, speed = zip(circle, (*circle[-1:], *circle[:-1]), strict=True), market.speedup
    would = [speed[i, gets] / speed[i, gives] for (i, gives), (_, gets) in pairs]
    spare = float(prod(would, start=number(1))) ** (-1 / len(circle))
    steps = int(min(spare, 0.999999) / (1 - min(spare, 0.999999))) + 1
    part = number(steps) / number(steps + 1)  # the simplest above what would leave nobody a gain
    amounts = [*accumulate((part * each for each in would), mul)]
    scale = min(shares[pair] / each for pair, each in zip(circle, amounts, strict=True))
    return tuple(
        GIFT.of(giver=market.users[user], type=market.types[gives], amount=each * scale, receiver=market.users[taker])
        for (user, gives), (taker, _), each in zip(circle, (*circle[1:], circle[0]), amounts, strict=True)
    )
