"""Pictures of graphs for pages: who envies whom, a cycle of trades, and the groups around a user."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from fairopt.discovery import library
from fairopt.errors import NotInstalled
from fairopt.experiment import plot
from fairopt.experiment.page import svg
from fairopt.experiment.plot.graphs import ON_PAGE, graphs_to_see
from fairopt.problem import Entitlements, Market
from fairopt.program import number_text
from fairopt.properties.graphs import group_tree

#: The most groups and users of a tree.
NODES = 24


def graph_pictures(market: Market, shares: Any, name: str, user: str = "") -> list[tuple[str, str]]:
    """Return pictures of who envies whom and of a cycle of trades, each with its caption; see `graphs_to_see`.

    None where matplotlib or networkx are not installed, or where speedups are not known.
    """
    with suppress(NotInstalled):
        found = graphs_to_see(market, shares, user) if market.known.all() else []
        return [
            (caption, svg(partial(_drawn, graph), f"{name}: {caption}", "a picture of a graph", _arrows(graph)))
            for caption, graph in found
        ]
    return []


def tree_pictures(owed: Entitlements, name: str) -> list[tuple[str, str]]:
    """Return the picture of the groups around a user or group, with its caption; as `graph_pictures`."""
    with suppress(NotInstalled):
        tree = group_tree(owed)
        if name not in tree or len(tree) == 1:
            return []
        up = [name]
        while below := next(iter(tree.pred[up[-1]]), None):
            up.append(below)
        near = dict.fromkeys((*reversed(up), *tree.succ[name], *(tree.succ[up[1]] if len(up) > 1 else ())))
        shown = tree.subgraph([*near][:NODES])
        caption = f"The groups around {name}, with the GPUs that each holds of those that it is guaranteed"
        lines = 0.35 + 0.22 * len(owed.types)  # in inches
        height = max(2.0, lines * sum(not shown.out_degree(node) for node in shown))
        return [(caption, svg(partial(_drawn, shown, (ON_PAGE[0], height)), caption, "a picture of a graph"))]
    return []


def _drawn(graph: Any, size: tuple[float, float] = ON_PAGE) -> Any:
    with library("matplotlib", "a picture", "plot").rc_context({"font.size": 12.5}):  # to be read on a phone
        return plot.graph(graph, size=size)


def _arrows(graph: Any) -> str:
    """Return in words what the arrows of a graph show."""
    said = "{} to {}: {} {}".format
    return "; ".join(
        said(one, other, number_text(edge["amount"]), edge.get("type", "")).rstrip()
        for one, other, edge in graph.edges(data=True)
    )
