"""The page of an audit, as a browser shows it: contents, no errors, keyboard, contrast, and text from files escaped."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from clusters import GANGS, cluster

from fairopt.audit import audit
from fairopt.audit.page import page, write_page
from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, Unplaced
from fairopt.problem import Entitlements, Gangs, Market

pytest.importorskip("jinja2", reason="needs the extra bench")
CHROMIUM = shutil.which("chromium")
BROWSER = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
EVIL = "<script>alert(1)</script>\"'&"
#: What a browser is asked to find out about a page; the answer becomes the text of the page.
ASK = """<script>(() => {
const luminance = colour => {
  const [r, g, b] = colour.match(/[0-9.]+/g).slice(0, 3).map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = element => {
  for (let each = element; each; each = each.parentElement) {
    const colour = getComputedStyle(each).backgroundColor;
    if (!/rgba\\(.*, 0\\)|transparent/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
const texts = Array.from(document.querySelectorAll("body *")).filter(e => e.checkVisibility()
  && Array.from(e.childNodes).some(t => t.nodeType === 3 && t.textContent.trim()));
const contrasts = texts.map(e => {
  const [a, b] = [luminance(getComputedStyle(e).color), luminance(ground(e))].sort((x, y) => y - x);
  return [(a + 0.05) / (b + 0.05), e.tagName + " " + e.textContent.trim().slice(0, 40)];
}).sort((x, y) => x[0] - y[0]);
const find = document.getElementById("find");
find.value = "batch"; find.dispatchEvent(new Event("input"));
const said = {
  contrast: contrasts[0], ground: ground(document.body), texts: texts.length,
  keys: Array.from(document.querySelectorAll("a[href], input, select, summary, [tabindex]"))
    .filter(e => e.tabIndex === 0 && e.checkVisibility()).map(e => e.tagName),
  told: document.getElementById("told").textContent,
  unnamed: Array.from(document.querySelectorAll("input, select")).filter(e => !e.labels.length).length,
  dangling: Array.from(document.querySelectorAll("a[href^='#']")).filter(e => !document.querySelector(e.hash)).length,
  wide: document.documentElement.scrollWidth > innerWidth,
};
document.body.textContent = "ANSWER" + JSON.stringify(said) + "END";
})();</script>"""


def browsed(html: str, folder: Path, *options: str) -> tuple[str, str]:
    """Return the page as a browser has it, and what it logged."""
    assert CHROMIUM is not None
    file = folder / "page.html"
    file.write_text(html, encoding="utf-8")
    words = [CHROMIUM, *BROWSER, f"--user-data-dir={folder / 'profile'}", *options, "--dump-dom", f"file://{file}"]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
    return ran.stdout, ran.stderr


@pytest.fixture(scope="module")
def html() -> str:
    gangs = [*GANGS[:-1], ("physics-1", "physics", 24, "A100", None)]
    return page(audit(Imported(cluster(gangs), (Unplaced("spec.x", EVIL, "why"),)), policies=[]), ["now.json"])


def test_it_says_what_the_audit_says(html: str) -> None:
    found = audit(cluster(), policies=[])
    text = re.sub(r"<[^>]+>", " ", html)
    for words in (*map(str, found.guarantees), *map(str, found.mends), str(found.reasons["train"])):
        assert words in text.replace("&#39;", "'")
    for landmark in ("<header>", "<nav aria-label", "<main id", 'scope="row"', 'scope="col"', '<html lang="en">'):
        assert landmark in html
    HTMLParser().feed(html)
    assert not re.search(r"(src|href)=.https?:|@import|url\(", html)  # nothing comes from a network


def test_names_from_files_are_text(tmp_path: Path) -> None:
    gangs = Gangs.of([EVIL], [2], users=[EVIL], types=["<b>T"], names=["</td><img src=x>"])
    owed = Entitlements.of([EVIL], ["<b>T"], group={EVIL: "<i>g"}, guarantee={EVIL: [4]}, gangs=gangs)
    market = Market.of([[1]], [4], users=[EVIL], types=["<b>T"], entitlements=owed)
    said = Imported(market, (Unplaced("<u>", EVIL, "<u>"),), {EVIL: {"<s>": "<s>"}})
    html = page(audit(said, policies=[]), ["<h1>.json"])
    assert html.count("<script>") == 1
    assert not re.search(r"<(img|b|i|u|s)[ >]|<h1>\.json", html)


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
    whole, log = browsed(html, tmp_path, *options)
    assert "CONSOLE" not in log
    assert "of 11 lines" in whole  # its script ran
    free = re.sub(r"<meta http-equiv[^>]+>", "", html).replace("</body>", f"{ASK}</body>")
    answered, log = browsed(free, tmp_path, *options)
    said = json.loads(answered.partition("ANSWER")[2].partition("END")[0].replace("&lt;", "<").replace("&amp;", "&"))
    assert "CONSOLE" not in log
    assert said["contrast"][0] >= 4.5, said["contrast"]
    assert said["texts"] > 100
    assert ("0, 0, 0" in said["ground"] or "20, 24, 29" in said["ground"]) == ("--force-dark-mode" in options)
    assert said["told"] == "2 of 11 lines"  # H100 and A100
    assert {"A", "INPUT", "SELECT", "SUMMARY", "DIV"} == set(said["keys"])
    assert (said["unnamed"], said["dangling"], said["wide"]) == (0, 0, False)


def test_a_script_of_others_would_not_run(html: str) -> None:
    assert "script-src 'sha256-" in html


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        write_page(audit(cluster(), policies=[]), tmp_path / "nowhere" / "page.html")
