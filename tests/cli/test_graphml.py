"""``--graphml FILE``: who envies whom, who could trade, and the tree of groups, for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import networkx
import pytest
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


def test_the_page_of_an_explanation_has_pictures(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="needs the extra bench")
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    write_small_files(tmp_path)
    known, page = tmp_path / "known.toml", tmp_path / "page.html"
    known.write_text((tmp_path / "now.toml").read_text().replace('speedup = "unknown"', "speedup = [2]"))
    assert fairopt("explain", known, "train", "--html", page).status == 0
    html = page.read_text()
    assert "<h1>train in known.toml</h1>" in html
    assert "what an arrow&#39;s beginning would get more" in html
    assert "<desc>train to batch: 12 </desc>" in html.replace("12</desc>", "12 </desc>")
    assert "6 of 2 H100" in html  # what batch holds, in the tree
    assert fairopt("explain", tmp_path / "now.toml", "train", "--html", page).status == 0
    assert "Who envies whom" not in page.read_text()  # nobody knows what another's GPUs are worth
