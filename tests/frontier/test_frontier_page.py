"""The page of a frontier: all that it says, needing nothing else, and as a browser shows it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fairopt import Market, frontier
from fairopt.errors import BadInput, NotSolved
from fairopt.experiment.frontier_page import page
from fairopt.experiment.page import write_page
from fairopt.frontier import Frontier
from fairopt.program import number_text

pytest.importorskip("jinja2", reason="needs the extra bench")
pytest.importorskip("matplotlib", reason="needs the extra plot")
CHROMIUM = shutil.which("chromium")
EVIL = "<script>alert(1)</script>\"'&"
#: What a browser is asked to find out about a page; the answer becomes the text of the page.
ASK = """<script>(() => {
const light = colour => colour.match(/[0-9.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
document.querySelectorAll("details").forEach(each => { each.open = true; });
const texts = Array.from(document.querySelectorAll("main *")).filter(each => each.checkVisibility()
  && Array.from(each.childNodes).some(t => t.nodeType === 3 && t.textContent.trim()));
const ground = light(getComputedStyle(document.body).backgroundColor);
const apart = texts.map(each => Math.abs(ground
  - light(each.closest("svg") ? getComputedStyle(each).fill : getComputedStyle(each).color)));
const said = {
  ground, texts: texts.length, apart: Math.min(...apart), svg: document.querySelectorAll("figure svg").length,
  dangling: Array.from(document.querySelectorAll("a[href^='#']")).filter(e => !document.querySelector(e.hash)).length,
  wide: document.documentElement.scrollWidth > innerWidth,
};
document.body.textContent = "ANSWER" + JSON.stringify(said) + "END";
})();</script>"""


@pytest.fixture(scope="module")
def found() -> Frontier:
    market = Market.of([[1, 2], [1, 5]], [1, 1], users=[EVIL, "b"], types=["<b>T", "fast"])
    return frontier(market, ["total_efficiency", "least_gain"], ["envy_freeness"], policies=["max-min", "equal-split"])


@pytest.fixture(scope="module")
def html(found: Frontier) -> str:
    return page(replace(found, failed={("total_efficiency", "equal_throughput"): NotSolved("<i>no")}), "<h1>of.toml")


def test_it_says_what_the_frontier_says(found: Frontier, html: str) -> None:
    text = re.sub(r"<[^>]+>", " ", html)
    for curve in found.curves:
        for point in curve.points:
            assert f" {number_text(point.value)} " in text
    for each in found.policies:
        assert each.policy in text
        assert f"{float(each.values['total_efficiency']):.6g}" in text
    for landmark in ("<main>", "<nav aria-label", 'scope="row"', 'scope="col"', '<html lang="en">', 'role="img"'):
        assert landmark in html
    HTMLParser().feed(html)
    assert not re.search(r"(src|href)=.https?:|@import|url\([^#]", html)  # nothing comes from a network
    assert "default-src 'none'" in html


def test_who_is_left_out_is_told_with_the_reason(found: Frontier) -> None:
    section, contents = '<h2 id="failed">What is not here</h2>', '<a href="#failed">What is not here</a>'
    said = page(replace(found, left_out={"slow": "slow takes <long>"}))
    assert "<li>slow takes &lt;long&gt;</li>" in said.partition(section)[2]
    assert contents in said
    assert section not in page(found)
    assert contents not in page(found)


def test_names_from_files_are_text(html: str) -> None:
    assert "<script" not in html
    assert not re.search(r"<(b|i)>|<h1>of", html)


def test_a_place_that_cannot_be_written_is_named(found: Frontier, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        write_page(page(found), tmp_path / "nowhere" / "page.html")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
@pytest.mark.parametrize(
    "options",
    [
        ["--window-size=1200,900"],
        ["--window-size=500,900"],
        ["--window-size=1200,900", "--blink-settings=preferredColorScheme=0", "--force-dark-mode"],
    ],
    ids=["desktop", "phone", "dark"],
)
def test_a_browser_shows_it_to_everybody(html: str, tmp_path: Path, options: list[str]) -> None:
    assert CHROMIUM is not None
    file = tmp_path / "page.html"
    file.write_text(re.sub(r"<meta http-equiv[^>]+>", "", html).replace("</body>", f"{ASK}</body>"), encoding="utf-8")
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--enable-logging=stderr"]
    words += ["--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}", *options, "--dump-dom", f"file://{file}"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    said = json.loads(ran.stdout.partition("ANSWER")[2].partition("END")[0])
    assert "CONSOLE" not in ran.stderr
    assert (said["ground"] < 60) == ("--force-dark-mode" in options)
    assert said["apart"] > 60
    assert said["texts"] > 60
    assert (said["svg"], said["dangling"], said["wide"]) == (2, 0, False)
