"""Pictures of graphs: who envies whom, who could trade with whom, trees of groups and of hosts.

>>> from fairopt import Market, envy_graph, plot
>>> figure = plot.graph(envy_graph(Market.of([[1, 2], [1, 5]], [1, 1]), [[1, 0], [0, 1]]), "Who envies whom")
>>> figure.axes[0].get_title(loc="left")
'Who envies whom'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt import discovery
from fairopt.errors import BadInput, type_of
from fairopt.experiment.plot.figures import COLOURS, axes_of, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The most nodes of a picture; with more it cannot be read.
MOST_NODES = 60
#: How far arrows there and back bend apart.
BEND = 0.18
_CYCLE, _OTHER, _TREE = COLOURS[5], COLOURS[0], "0.55"


def graph(given: Any, title: str = "", *, ax: Axes | None = None) -> Figure:
    """Draw a graph: a tree from left to right, any other in a circle, with an arrow for each edge.

    At an arrow stands its ``amount``, with the ``type`` of GPUs where it says one; arrows of a cycle of trades are
    thick. ``given`` is what `fairopt.envy_graph`, `fairopt.trade_graph` and `fairopt.properties.graphs` return.

    Errors: `NotInstalled`; `BadInput` for what is no `networkx.DiGraph`, for none and for too many nodes.

    >>> from fairopt.datasets import philly_cluster
    >>> from fairopt.properties.graphs import host_tree
    >>> len(graph(host_tree(philly_cluster())).axes[0].texts) > 12
    True
    """
    networkx = discovery.library("networkx", "a picture of a graph", "solvers")
    if not isinstance(given, networkx.DiGraph):
        raise BadInput(f"got {type_of(given)}", place="graph", remedy="Give a networkx.DiGraph, as fairopt.envy_graph")
    if not 1 <= len(given) <= MOST_NODES:
        remedy = f"Give one of 1 to {MOST_NODES}, such as graph.subgraph(names)"
        raise BadInput(f"a graph of {len(given)} nodes", place="graph", remedy=remedy)
    tree = bool(networkx.is_arborescence(given))
    place = _tree(given, networkx) if tree else networkx.circular_layout(given)
    leaves = sum(not given.out_degree(node) for node in given)
    ax = axes_of(ax, 7.5, max(2.5, 0.42 * leaves) if tree else 5.5)
    for one, other, edge in given.edges(data=True):
        _arrow(ax, np.array(place[one]), np.array(place[other]), edge, tree=tree)
    for node, (x, y) in place.items():
        data = given.nodes[node]
        said = next((f"\n{float(data[key]):.4g}" for key in ("throughput",) if key in data), "")
        said = f" ({data['gpus']})" if "gpus" in data else said
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "0.3"}
        ax.text(x, y, short_name(str(node)) + said, ha="center", va="center", fontsize="small", bbox=box, zorder=3)
    ax.margins(0.18)
    ax.set_axis_off()
    ax.set_title(title, loc="left")
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def _tree(given: Any, networkx: Any) -> dict[Any, tuple[float, float]]:
    """Return where the nodes of a tree stand: across by depth, down in the order of the leaves."""
    root = next(node for node, count in given.in_degree() if not count)
    down: dict[Any, float] = {}
    leaves = 0
    for node in networkx.dfs_postorder_nodes(given, root):
        below = [down[child] for child in given.successors(node)]
        down[node] = sum(below) / len(below) if below else float(leaves)
        leaves += not below
    depth = networkx.single_source_shortest_path_length(given, root)
    return {node: (float(depth[node]), -down[node]) for node in given}


def _arrow(ax: Axes, one: Any, other: Any, edge: dict[str, Any], *, tree: bool) -> None:
    cycle = bool(edge.get("cycle"))
    colour = _TREE if tree else _CYCLE if cycle else _OTHER
    bend = "arc3,rad=0" if tree else f"arc3,rad={BEND}"
    arrow = {
        "arrowstyle": "-" if tree else "-|>",
        "connectionstyle": bend,
        "color": colour,
        "shrinkA": 16,
        "shrinkB": 16,
    }
    ax.annotate("", xy=tuple(other), xytext=tuple(one), arrowprops={**arrow, "linewidth": 2.4 if cycle else 1.2})
    ax.update_datalim([tuple(one), tuple(other)])
    if "amount" in edge:
        along = other - one
        middle = (one + other) / 2 + BEND / 2 * np.array([along[1], -along[0]])
        said = f"{float(edge['amount']):.3g} {edge.get('type', '')}".strip()
        ax.text(middle[0], middle[1], said, ha="center", va="center", fontsize="x-small", color=colour,
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}, zorder=2)  # fmt: skip
