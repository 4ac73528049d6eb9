"""What flows of money and spanning forests cost, written by hand and by networkx: seconds of processor and ratios.

    .venv/bin/python benchmarks/flows.py

`spend` and the forest of `fairopt.methods.eisenberg_gale.exact` are asked for on markets drawn from a seed, and so are
networkx's maximum flow (of five algorithms the fastest) and its maximum spanning edges. Amounts are compared: both
spend all, and both forests weigh as much.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import lcm
from time import process_time
from typing import Any

import networkx as nx
import numpy as np
from networkx.algorithms import flow as by

from fairopt.methods.eisenberg_gale.exact import _spanning, spend

ALGORITHMS = (
    by.edmonds_karp,
    by.shortest_augmenting_path,
    by.preflow_push,
    by.dinitz,
    by.boykov_kolmogorov,
)


def seconds(do: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """Return the processor seconds of a call, the least of at least three and of half a second, and its result."""
    best, spent = float("inf"), 0.0
    while spent < 0.5:
        begun = process_time()
        found = do(*given)
        took = process_time() - begun
        best, spent = min(best, took), spent + max(took, 1 / 6)
    return best, found


def drawn(groups: int, goods: int, seed: int) -> tuple[list[Fraction], list[list[int]], list[Fraction]]:
    """Return budgets, wishes and values of goods that can all be spent and paid for."""
    random = np.random.default_rng(seed)
    paid = random.integers(1, 10**6, (groups, goods)) * (random.random((groups, goods)) < 3 / goods)
    paid[np.arange(groups), random.integers(0, goods, groups)] += 7
    paid[random.integers(0, groups, goods), np.arange(goods)] += 7
    total = int(paid.sum())
    budgets, values = ([Fraction(int(each), total) for each in paid.sum(axis=axis)] for axis in (1, 0))
    return budgets, [np.flatnonzero(row).tolist() for row in paid], values


def by_networkx(budgets: list[Fraction], wishes: list[list[int]], values: list[Fraction], algorithm: Any) -> int:
    """Return the largest flow in whole units, the graph's making included, as `spend` begins from lists too."""
    unit = lcm(*(each.denominator for each in (*budgets, *values)))
    graph = nx.DiGraph()
    graph.add_edges_from(("source", ("group", g), {"capacity": int(own * unit)}) for g, own in enumerate(budgets))
    graph.add_edges_from((("good", j), "sink", {"capacity": int(value * unit)}) for j, value in enumerate(values))
    graph.add_edges_from((("group", g), ("good", j)) for g, row in enumerate(wishes) for j in row)
    return int(nx.maximum_flow_value(graph, "source", "sink", flow_func=algorithm))


def forest(key: np.ndarray) -> list[tuple[Any, Any]]:
    """Return networkx's spanning edges of a table (n, k) of keys."""
    graph = nx.Graph()
    n, k = key.shape
    graph.add_weighted_edges_from((i, n + j, key[i, j]) for i in range(n) for j in range(k))
    return list(nx.maximum_spanning_edges(graph, data=False))


def main() -> None:
    for users, types in (5, 4), (20, 5), (200, 10), (1000, 10):
        given = drawn(users, types, 0)
        ours, found = seconds(spend, *given)
        theirs = {each.__name__: seconds(by_networkx, *given, each) for each in ALGORITHMS}
        name, (took, _) = min(theirs.items(), key=lambda item: item[1][0])
        if found is None or len({value for _, value in theirs.values()}) > 1:
            raise SystemExit("the flows differ")
        print(f"flow {users} x {types}: {ours:.2g} s, networkx {took:.2g} s ({name}), {took / ours:.1f} times")
        key = np.random.default_rng(1).random((users, types))
        ours, edges = seconds(_spanning, key, key.size)
        took, others = seconds(forest, key)
        if abs(key[tuple(edges.T)].sum() - sum(key[i, j - users] for i, j in map(sorted, others))) > 1e-9:
            raise SystemExit("the forests differ")
        print(f"forest {users} x {types}: {ours:.2g} s, networkx {took:.2g} s, {took / ours:.1f} times", flush=True)


if __name__ == "__main__":
    main()
