"""Pictures of graphs: who envies whom, who could trade with whom, trees of groups and of hosts.

>>> from fairopt import Market, envy_graph, plot
>>> figure = plot.graph(envy_graph(Market.of([[1, 2], [1, 5]], [1, 1]), [[1, 0], [0, 1]]), "Who envies whom")
>>> figure.axes[0].get_title(loc="left")
'Who envies whom'
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt import discovery
from fairopt.errors import BadInput, type_of
from fairopt.experiment.plot.figures import COLOURS, axes_of, short_name
from fairopt.numbers import counted
from fairopt.problem import Market
from fairopt.properties.graphs import IDLE, envy_graph, trade_graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

#: The most nodes of a picture; with more it cannot be read. On a page: the most arrows, and the size in inches.
MOST_NODES, ARROWS, ON_PAGE = 60, 8, (4.2, 3.4)
#: How far arrows there and back bend apart, and where on them their numbers stand; a name's letters in a line.
BEND, ALONG, LETTERS = 0.18, 0.4, 14
_CYCLE, _OTHER, _TREE = COLOURS[5], COLOURS[0], "0.55"


def graph(given: Any, title: str = "", *, ax: Axes | None = None, size: tuple[float, float] | None = None) -> Figure:
    """Draw a graph: a tree from left to right, any other in a circle, with an arrow for each edge.

    At an arrow stands its ``amount``, with the ``type`` of GPUs where it says one; arrows of a cycle of trades are
    thick. ``given`` is what `fairopt.envy_graph`, `fairopt.trade_graph` and `fairopt.properties.graphs` return;
    ``size`` is the figure's in inches, by default one that fits.

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
    amounts = any("amount" in edge for *_, edge in given.edges(data=True))
    tree = not amounts and bool(networkx.is_arborescence(given))
    place = _tree(given, networkx) if tree else _circle(given)
    leaves = sum(not given.out_degree(node) for node in given)
    ax = axes_of(ax, *(size or (7.5, max(2.5, 0.42 * leaves) if tree else 5.5)))
    boxes = {}
    for node, (x, y) in place.items():
        data, name = given.nodes[node], short_name(str(node))
        said = next((f"\n{float(data[key]):.4g}" for key in ("throughput",) if key in data), "")
        said = f" ({data['gpus']})" if "gpus" in data else said or _held(data)
        said = f"{name if tree else fill(name, LETTERS)}{said}"
        box = {"boxstyle": "round,pad=0.35", "facecolor": "white", "edgecolor": "0.3"}
        boxes[node] = ax.text(x, y, said, ha="center", va="center", fontsize="small", bbox=box, zorder=2)
    if tree:
        ax.update_datalim([*place.values()])
        ax.autoscale_view()
        ax.margins(0.25, 0.3)
    else:  # arrows bend, and names stick out
        ax.set(xlim=(-1.55, 1.55), ylim=(-1.25, 1.25))
        ax.set_aspect("equal")
    ax.set_axis_off()
    ax.set_title(title, loc="left")
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # arrows end at the boxes, whose sizes are known then
    for one, other, edge in given.edges(data=True):
        _arrow(ax, (boxes[one], boxes[other]), edge, tree=tree)
    return figure


def graphs_to_see(market: Market, shares: Any, user: str = "") -> list[tuple[str, Any]]:
    """Return who envies whom most, and a cycle of trades, as graphs that a page has room for, each with its caption.

    Only those that have an arrow are there. ``user``: whose envy, and envy of whom, is shown; all by default. Errors:
    as `fairopt.envy_graph`.

    >>> from fairopt import Market
    >>> for caption, found in graphs_to_see(Market.of([[1, 2], [1, 5]], [1, 1]), [[1, 0], [0, 1]]):
    ...     print(caption, *found.edges)
    Who envies whom: what an arrow's beginning would get more with the GPUs at its end, by weight ('u1', 'u2')
    """
    whole, found = envy_graph(market, shares), []
    envy = [pair for pair in whole.edges if user in ("", *pair)]
    most = sorted(envy, key=lambda pair: -whole.edges[pair]["times"])[:ARROWS]
    if most:
        many = f", the {ARROWS} that envy most of {counted(len(envy), 'pair')}" if len(envy) > ARROWS else ""
        said = f"Who envies whom{many}: what an arrow's beginning would get more with the GPUs at its end, by weight"
        found.append((said, whole.edge_subgraph(most)))
    cycle = trade_graph(market, shares, whole=False)
    if cycle.edges:
        said = "A gift" if IDLE in cycle or len(cycle.edges) == 1 else "A cycle of trades"
        found.append((f"{said} that hurts nobody, so that these shares are not Pareto-efficient", cycle))
    return found


def _held(data: Mapping[str, Any]) -> str:
    """Return what a node holds of what it is guaranteed, by GPU type, a line each."""
    types = dict.fromkeys(key.partition(" ")[2] for key in data if key.startswith(("held ", "guarantee ")))
    held = ((data.get(f"held {each}", 0), data.get(f"guarantee {each}", 0), each) for each in types)
    return "".join(f"\n{float(own):g} of {float(of):g} {each}" for own, of, each in held)


def _circle(given: Any) -> dict[Any, tuple[float, float]]:
    """Return where the nodes of a graph stand: around a circle, from the top on, so that few are side by side."""
    turn = np.linspace(np.pi / 2, -1.5 * np.pi, len(given), endpoint=False)
    return dict(zip(given, zip(np.cos(turn), np.sin(turn), strict=True), strict=True))


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


def _arrow(ax: Axes, boxes: tuple[Text, Text], edge: dict[str, Any], *, tree: bool) -> None:
    cycle = bool(edge.get("cycle"))
    colour = _TREE if tree else _CYCLE if cycle else _OTHER
    arrow: dict[str, Any] = {
        "arrowstyle": "-" if tree else "-|>",
        "connectionstyle": f"arc3,rad={0 if tree else BEND}",
        "color": colour,
        "linewidth": 2.4 if cycle else 1.2,
    }
    for patch, box in zip(("patchA", "patchB"), () if tree else boxes, strict=False):
        arrow[patch] = box.get_bbox_patch()
    one, other = (np.array(box.get_position()) for box in boxes)
    ax.annotate("", xy=tuple(other), xytext=tuple(one), arrowprops=arrow, zorder=3)  # after the boxes, where it ends
    if "amount" in edge:
        along, rest = other - one, 1 - ALONG
        bent = (one + other) / 2 + BEND * np.array([along[1], -along[0]])
        at = rest * rest * one + 2 * ALONG * rest * bent + ALONG * ALONG * other
        said = f"{float(edge['amount']):.3g} {edge.get('type', '')}".strip()
        ax.text(at[0], at[1], said, ha="center", va="center", fontsize="x-small",
                bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}, zorder=4)  # fmt: skip
