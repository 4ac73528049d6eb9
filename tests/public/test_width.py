"""Pages in a browser: nothing is wider than a phone or a screen, and what is longer than its box scrolls or wraps."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from ran_command import Ran

CHROMIUM = shutil.which("chromium")
#: In points: a phone, and a screen.
WIDTHS = (390, 1400)
DATA = files("fairopt.datasets")
COMMANDS = {
    "solve": ("solve", DATA / "gavel.toml", "--policy", "max-min"),
    "compare": ("compare", DATA / "oef_example.toml", "--evaluations", "20"),
    "run": (
        *("run", DATA / "philly_1000.csv", "--cluster", DATA / "philly_cluster.toml"),
        *("--policy", "srtf", "--rounds", "40", "--floats"),
    ),
    "compare-runs": (
        *("compare", DATA / "philly_1000.csv", "--cluster", DATA / "philly_cluster.toml"),
        *("--policy", "srtf", "--policy", "fft", "--rounds", "10", "--floats"),
    ),
    "frontier": ("frontier", DATA / "oef_example.toml", "--goal", "total_efficiency", "--policy", "max-min"),
    "audit": ("audit", DATA / "clusters" / "kueue" / "cluster.json"),
}
SITE = Path(__file__).parents[2] / "build" / "docs"
PAGES = ("index", "comparison", "findings", "benchmarks", "tutorials/first-market", "howto/graphs", "reference/api")
#: Shows each page in a frame of each width, and finds out how wide it is, and what is cut or stands out of it.
ASK = """<!DOCTYPE html><meta charset="utf-8"><body><script>(async () => {
const out = [];
for (const [page, width] of JOBS) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `border: 0; height: 900px; width: ${width}px`;
  frame.src = page;
  await new Promise(done => { frame.onload = done; document.body.append(frame); });
  await new Promise(done => setTimeout(done, 300));
  const [shown, style] = [frame.contentDocument, frame.contentWindow.getComputedStyle];
  const scrolls = e => e.parentElement && e !== shown.body
    && (/auto|scroll|hidden/.test(style(e).overflowX) || scrolls(e.parentElement));
  const said = "p, h1, li, table, pre, img, svg, caption span".split(", ").map(name => "main " + name).join();
  const bad = [...shown.querySelectorAll(said)]
    .filter(e => e.checkVisibility() && !e.closest("svg:not(:scope), .prev-next-area")).filter(e =>
      e.getBoundingClientRect().right > width + 1 && !scrolls(e.parentElement)
      || e.tagName === "PRE" && e.scrollWidth > e.clientWidth + 1 && !scrolls(e)
      || e.matches("caption span") && e.getBoundingClientRect().right > width + 1);
  const words = bad.map(e => `${e.tagName}: ${e.textContent.trim().slice(0, 60)}`);
  out.push([page, width, shown.documentElement.scrollWidth, words]);
  frame.remove();
}
document.body.textContent = "ANSWER" + JSON.stringify(out) + "END";
})();</script>"""


def measured(pages: list[Path], folder: Path) -> list[Any]:
    """Return for each page and width: its address, the width, that of the document, and what is cut."""
    assert CHROMIUM is not None
    jobs = [(page.resolve().as_uri(), width) for page in pages for width in WIDTHS]
    outer = folder / "outer.html"
    outer.write_text(ASK.replace("JOBS", json.dumps(jobs)), encoding="utf-8")
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    words += ["--allow-file-access-from-files", "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}"]
    words += ["--window-size=1500,1000", f"--virtual-time-budget={5000 + 1000 * len(jobs)}", "--dump-dom"]
    ran = subprocess.run([*words, outer.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = re.search("ANSWER(.*)END</body>", ran.stdout, re.DOTALL)
    assert found is not None, ran.stdout[-500:]
    answer: list[Any] = json.loads(html.unescape(found[1]))
    assert len(answer) == len(jobs)
    return answer


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
def test_pages_of_commands_fit_a_phone_and_a_screen(fairopt: Callable[..., Ran], tmp_path: Path) -> None:
    pages = [tmp_path / f"{name}.html" for name in COMMANDS]
    for words, page in zip(COMMANDS.values(), pages, strict=True):
        ran = fairopt(*words, "--html", page)
        assert page.exists(), ran.err
    for address, width, wide, cut in measured(pages, tmp_path):  # in one browser, whose start takes longest
        assert (wide <= width, cut) == (True, []), (address, width, wide)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
@pytest.mark.skipif(not (SITE / "index.html").exists(), reason="the site is not built here: make docs")
def test_pages_of_the_site_fit_a_phone_and_a_screen(tmp_path: Path) -> None:
    for address, width, wide, cut in measured([SITE / f"{page}.html" for page in PAGES], tmp_path):
        assert (wide <= width, cut) == (True, []), (address, width, wide)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
def test_a_page_that_is_too_wide_is_found(tmp_path: Path) -> None:
    page = tmp_path / "wide.html"
    long = "a" * 90
    page.write_text(f"<main><p>{long}</p><pre style='overflow: visible'>{long * 4}</pre></main>", encoding="utf-8")
    (_, _, narrow, cut), (_, _, _, on_screen) = measured([page], tmp_path)
    assert narrow > WIDTHS[0]
    assert cut
    assert on_screen
