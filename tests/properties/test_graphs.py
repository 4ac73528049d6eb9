"""Graphs of envy and of trades say what the properties say; trees have what markets and clusters have."""

from __future__ import annotations

from fractions import Fraction
from io import BytesIO

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairopt
from fairopt import Market, plot
from fairopt.datasets import oef_example, philly_cluster
from fairopt.errors import BadInput
from fairopt.problem import Cluster, Entitlements
from fairopt.properties import Answer, EnvyFreeness, ParetoEfficiency
from fairopt.properties.graphs import (
    IDLE,
    ROOT,
    as_graphml,
    envy_graph,
    group_tree,
    host_tree,
    trade_cycle,
    trade_graph,
)

SMALL = st.integers(0, 4)


@st.composite
def allocations(draw: st.DrawFn, demand: bool = False) -> tuple[Market, np.ndarray]:
    n, k = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    speedup = [[draw(SMALL) for _ in range(k)] for _ in range(n)]
    for row in speedup:
        row[draw(st.integers(0, k - 1))] = draw(st.integers(1, 4))
    capacity = [draw(st.integers(1, 3)) for _ in range(k)]
    weight = [draw(st.integers(1, 3)) for _ in range(n)]
    limits = [draw(st.integers(1, 4)) for _ in range(n)] if demand else None
    market = Market.of(speedup, capacity, weight=weight, demand=limits)
    parts = np.array([[Fraction(draw(SMALL)) for _ in range(k)] for _ in range(n)], dtype=object)
    total = parts.sum(axis=0) + draw(st.sampled_from([0, 0, 1]))
    shares = parts * market.capacity / np.where(total == 0, Fraction(1), total)
    return market, shares


@given(allocations())
def test_the_graphs_say_what_the_properties_say(case: tuple[Market, np.ndarray]) -> None:
    market, shares = case
    envy, trades = envy_graph(market, shares), trade_graph(market, shares)
    assert bool(envy.edges) == (EnvyFreeness().check(market, shares, tolerance=0).answer is Answer.FAILS)
    fails = ParetoEfficiency().check(market, shares, tolerance=0).answer is Answer.FAILS
    assert bool(trades.edges) == bool(trade_cycle(market, shares)) == fails
    own = market.utility(shares)
    values = market.values(shares)
    for one, other, edge in envy.edges(data=True):
        i, j = market.index(one), market.index(other)
        assert edge["amount"] == values[i, j] - own[i] > 0


@given(st.one_of(allocations(), allocations(demand=True)))
def test_a_cycle_of_trades_is_a_witness(case: tuple[Market, np.ndarray]) -> None:
    market, shares = case
    gifts = trade_cycle(market, shares)
    if not gifts:
        return
    after = shares.copy()
    for each in gifts:
        kind = market.types.index(each.type)
        assert each.amount > 0
        after[market.index(each.receiver), kind] += each.amount
        if each.giver == IDLE:
            assert after[:, kind].sum() <= market.capacity[kind]
        else:
            after[market.index(each.giver), kind] -= each.amount
    assert (after >= 0).all()
    gains = market.utility(after) - market.utility(shares)
    assert (gains >= 0).all()
    assert all(gains[market.index(each.receiver)] > 0 for each in gifts)
    assert ParetoEfficiency().check(market, shares, tolerance=0).answer is Answer.FAILS


@given(allocations())
def test_in_floats_the_same_edges(case: tuple[Market, np.ndarray]) -> None:
    market, shares = case
    floats = market.as_(float), shares.astype(float)
    assert set(envy_graph(*floats).edges) == set(envy_graph(market, shares).edges)
    assert bool(trade_graph(*floats).edges) == bool(trade_graph(market, shares).edges)


def test_three_users_who_can_only_trade_in_a_circle() -> None:
    market = Market.of([[1, 2, 0], [0, 1, 2], [2, 0, 1]], [1, 1, 1])
    graph = trade_graph(market, np.eye(3, dtype=int))
    assert set(graph.edges) == {("u2", "u1"), ("u1", "u3"), ("u3", "u2")}
    assert all(edge["cycle"] and edge["gain"] > 0 for *_, edge in graph.edges(data=True))
    assert len(networkx.find_cycle(graph)) == 3


def test_users_that_trade_in_pairs_and_idle_gpus() -> None:
    market = oef_example()
    decision = fairopt.allocate("equal-split", market)
    graph = fairopt.trade_graph(market, decision)
    assert {frozenset(edge) for edge in graph.edges} == {
        frozenset(("u1", "u2")),
        frozenset(("u1", "u3")),
        frozenset(("u2", "u3")),
    }
    assert any(edge["cycle"] for *_, edge in graph.edges(data=True))
    assert not fairopt.envy_graph(market, decision).edges
    assert not trade_graph(market, fairopt.allocate("max-min", market, exact=True)).edges
    idle = trade_graph(Market.of([[1, 2]], [1, 1]), [[1, 0]])
    assert list(idle.edges(data="amount")) == [(IDLE, "u1", 1)]


def test_trees() -> None:
    owed = Entitlements.of(
        ["A", "B"],
        ["H100"],
        group={"A": "ml", "ml": "all", "B": "all"},
        groups=["ml", "all"],
        guarantee={"ml": [3]},
        cap={"A": [2]},
    )
    tree = group_tree(owed)
    assert networkx.is_arborescence(tree)
    assert set(tree.edges) == {("all", "ml"), ("all", "B"), ("ml", "A")}
    assert tree.nodes["ml"] == {"user": False, "guarantee H100": 3}
    assert tree.nodes["A"]["user"]
    assert tree.nodes["A"]["cap H100"] == 2
    cluster = Cluster.of(types=["K80"], hosts=["a", "b"], gpu_type=["K80", "K80"], gpus=[4, 2], rack=["r1", "r2"])
    hosts = host_tree(cluster)
    assert networkx.is_arborescence(hosts)
    assert hosts.nodes[ROOT]["gpus"] == 6
    assert set(hosts.successors("K80")) == {"K80, r1", "K80, r2"}
    assert networkx.is_arborescence(host_tree(philly_cluster()))


def test_graphml_is_read_again() -> None:
    market = oef_example()
    for graph in (trade_graph(market, market.equal_split()), group_tree(Entitlements.of(["A"], ["H100"]))):
        read = networkx.read_graphml(BytesIO(as_graphml(graph).encode()))
        assert set(read.edges) == set(graph.edges)
        for one, other, edge in graph.edges(data=True):
            assert read.edges[one, other]["amount"] == pytest.approx(float(edge["amount"]))
            assert read.edges[one, other]["type"] == edge["type"]
    with pytest.raises(BadInput, match="Give a networkx"):
        as_graphml("graph")


def test_shares_of_another_shape_are_refused() -> None:
    with pytest.raises(BadInput, match="shape"):
        envy_graph(oef_example(), np.zeros((2, 2)))


def test_pictures_have_a_place_for_each_node_and_an_arrow_for_each_edge() -> None:
    market = oef_example()
    for graph in (
        trade_graph(market, market.equal_split()),
        envy_graph(market, fairopt.allocate("oef-noncooperative", market)),
        host_tree(philly_cluster()),
        envy_graph(Market.of([[1]], [1]), [[1]]),
    ):
        figure = plot.graph(graph, "A title")
        texts = [each.get_text() for each in figure.axes[0].texts]
        assert all(any(text.startswith(str(node)) for text in texts) for node in graph)
        amounts = [edge for *_, edge in graph.edges(data=True) if "amount" in edge]
        assert len(texts) == len(graph) + len(graph.edges) + len(amounts)
        figure.canvas.draw()
    with pytest.raises(BadInput, match=r"Give a networkx.DiGraph"):
        plot.graph("graph")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="a graph of 61 nodes"):
        plot.graph(networkx.path_graph(61, create_using=networkx.DiGraph))
