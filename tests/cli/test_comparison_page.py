"""The page of a comparison in a browser: bars of shares, who envies whom, cycles of trades, runs; for every reader."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import CHROMIUM, EACH_SCREEN, asked, browsed

from fairopt import Market, compare
from fairopt.compare.verifying import asked_properties
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.experiment.comparison_page import page
from fairopt.properties import Effort
from fairopt.simulation import Setting

pytest.importorskip("jinja2", reason="needs the extra bench")
pytest.importorskip("matplotlib", reason="needs the extra plot")
pytest.importorskip("networkx", reason="needs the extra solvers")
in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
EVIL = "<script>alert(1)</script>\"'&"
MARKET = Market.of(
    [[1, 1.2], [1, 4], [1, 5]],
    [6, 2],
    users=[EVIL, "vision 日本", "language-and-speech"],
    types=["K80", "<b>V100"],
    weight=[1, 1, 2],
)


#: What is asked about the pictures, in a frame of each width: for each its caption, how wide it stands there, the size
#: of its smallest letters, the texts that stand out of it, and those that lie upon each other.
ASK = """<!DOCTYPE html><meta charset="utf-8"><body><script>(async () => {
const out = [];
for (const width of [390, 1400]) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `border: 0; height: 900px; width: ${width}px`;
  frame.src = PAGE;
  await new Promise(done => { frame.onload = done; document.body.append(frame); });
  const shown = frame.contentDocument;
  for (const figure of shown.querySelectorAll("figure")) {
    const picture = figure.querySelector("svg"), box = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll("text")].filter(each => each.textContent.trim());
    const boxes = texts.map(each => each.getBoundingClientRect());
    const lies = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.3 * Math.min(a.height, b.height);
    out.push({
      width, scrolls: getComputedStyle(figure).overflowX === "auto", across: box.width, right: box.right,
      caption: figure.querySelector("figcaption").textContent,
      letters: Math.min(...boxes.map(each => each.height)),
      cut: texts.filter((_, i) => boxes[i].right > box.right + 1 || boxes[i].left < box.left - 1
        || boxes[i].bottom > box.bottom + 1 || boxes[i].top < box.top - 1).map(each => each.textContent),
      upon: texts.flatMap((one, i) => texts.slice(i + 1).filter((_, j) => lies(boxes[i], boxes[i + 1 + j]))
        .map(other => [one.textContent, other.textContent])),
    });
  }
  const bars = [...shown.querySelectorAll(".bar")].map(each => each.getBoundingClientRect());
  out.push({ width, bars: bars.length, right: Math.max(...bars.map(each => each.right)) });
  frame.remove();
}
document.body.textContent = "ANSWER" + JSON.stringify(out) + "END";
})();</script>"""


@pytest.fixture(scope="module")
def shown() -> str:
    rows = compare(MARKET, effort=Effort(evaluations=20)).rows
    return page(MARKET, rows, asked_properties(MARKET, None), "market.toml")


def pictured(shown: str, folder: Path) -> list[dict[str, Any]]:
    """Return what a browser finds out about the pictures of a page, on a phone and on a screen."""
    file = folder / "inner.html"
    file.write_text(shown, encoding="utf-8")
    outer = ASK.replace("PAGE", json.dumps(file.as_uri()))
    wide = ("--allow-file-access-from-files", "--window-size=1500,1000", "--virtual-time-budget=10000")
    found = re.search("ANSWER(.*)END</body>", browsed(outer, folder, *wide)[0], re.DOTALL)
    assert found is not None
    answer: list[dict[str, Any]] = json.loads(html.unescape(found[1]))
    return answer


def test_it_has_a_picture_of_each_graph_and_names_are_text(shown: str) -> None:
    for caption in ("Who envies whom", "A cycle of trades that hurts nobody"):
        assert re.search(f"<figcaption>{caption}", shown)
    assert shown.count('<div class="bar" role="img"') >= len(MARKET.types)
    assert not re.search(r"<script|<b>", shown)
    assert not re.search(r"(src|href)=.https?:|@import|url\([^#]", shown)


@in_a_browser
@pytest.mark.parametrize("options", EACH_SCREEN)
def test_a_browser_shows_it_to_everybody(shown: str, tmp_path: Path, options: list[str]) -> None:
    assert "CONSOLE" not in browsed(shown, tmp_path, *options)[1]
    said, _ = asked(shown, tmp_path, *options)
    assert said["contrast"][0] >= 4.5, said["contrast"]
    assert (said["dangling"], said["wide"]) == (0, False)


@pytest.fixture(scope="module")
def run_shown() -> str:
    setting = Setting(philly_cluster(), philly_trace(), length=300).as_(float)
    return page(setting, compare(setting, ["srtf"], [], rounds=30).rows, (), "philly")


@in_a_browser
@pytest.mark.parametrize("given", ["shown", "run_shown"])
def test_pictures_are_read_on_a_phone_and_on_a_screen(
    given: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A frame of 390 points is a phone; letters there are at least as high as those of small print.

    What is wider than a phone scrolls: on a page of a run letters were five points high.
    """
    found = pictured(request.getfixturevalue(given), tmp_path)
    assert {each["width"] for each in found} == {390, 1400}
    for each in found:
        if "bars" in each:
            assert (each["right"] or 0) <= each["width"], each
        else:
            assert each["right"] <= each["width"] or each["scrolls"], each
            assert each["letters"] >= 9, each
            assert (each["cut"], each["upon"]) == ([], []), each
    assert len(found) > 4
