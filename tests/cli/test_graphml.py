"""``--graphml FILE``: who envies whom, who could trade, and the tree of groups, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx
from ran_command import Ran
from small_files import write_small_files

SHARES = "user,GPU1,GPU2\nu1,0,1\nu2,1,0\nu3,0,0\n"


def edges(path: Path) -> set[tuple[str, str, str]]:
    return {(one, other, edge["kind"]) for one, other, edge in networkx.read_graphml(path).edges(data=True)}


def test_of_a_decision(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "g.graphml"
    assert fairopt("solve", "@oef-example", "--policy", "oef-noncooperative", "--graphml", file).status == 0
    assert edges(file) == {("u2", "u1", "envy"), ("u3", "u1", "envy"), ("u3", "u2", "envy")}


def test_of_anybodys_allocation_with_a_cycle_in_words(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    shares, file = tmp_path / "shares.csv", tmp_path / "g.graphml"
    shares.write_text(SHARES)
    ran = fairopt("verify", "@oef-example", shares, "--graphml", file)
    assert ran.status == 1
    assert {("u1", "u2", "trade"), ("u2", "u1", "trade")} <= edges(file)
    assert "Nobody loses and somebody gains if u" in ran.out
    amounts = [edge for *_, edge in networkx.read_graphml(file).edges(data=True) if edge["kind"] == "trade"]
    assert all(edge["gain"] > 0 and edge["type"] in ("GPU1", "GPU2") for edge in amounts)


def test_of_a_cluster(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    write_small_files(tmp_path)
    file = tmp_path / "g.graphml"
    assert fairopt("explain", tmp_path / "now.toml", "train", "--graphml", file).status == 0
    assert edges(file) == {("(cluster)", "train", "in"), ("(cluster)", "batch", "in")}
    assert networkx.read_graphml(file).nodes["train"]["guarantee H100"] == 6


def test_a_place_that_cannot_be_written_is_refused(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    ran = fairopt("solve", "@oef-example", "--policy", "max-min", "--graphml", tmp_path / "no" / "g.graphml")
    assert ran.status == 2
    assert "--graphml: " in ran.err
