"""A headless browser that shows pages to tests, and what it is asked about them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
BROWSER = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-logging=stderr"),
)
#: How a page is shown: on a wide screen, on a phone, and where the reader likes it dark.
SCREENS = {
    "desktop": ["--window-size=1200,900"],
    "phone": ["--window-size=500,900"],
    "dark": ["--window-size=1200,900", "--blink-settings=preferredColorScheme=0", "--force-dark-mode"],
}
#: The same as parameters of a test; what a desktop shows, the dark one shows as wide.
EACH_SCREEN = [
    pytest.param(options, id=name, marks=[pytest.mark.slow] if name == "desktop" else [])
    for name, options in SCREENS.items()
]
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
if (find) { find.value = "batch"; find.dispatchEvent(new Event("input")); }
const said = {
  contrast: contrasts[0], ground: ground(document.body), texts: texts.length,
  keys: Array.from(document.querySelectorAll("a[href], input, select, summary, [tabindex]"))
    .filter(e => e.tabIndex === 0 && e.checkVisibility()).map(e => e.tagName),
  told: find && document.getElementById("told").textContent,
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


def asked(html: str, folder: Path, *options: str) -> tuple[Any, str]:
    """Return what a browser found out about the page, and what it logged."""
    free = re.sub(r"<meta http-equiv[^>]+>", "", html).replace("</body>", f"{ASK}</body>")
    answered, log = browsed(free, folder, *options)
    text = answered.partition("ANSWER")[2].partition("END")[0].replace("&lt;", "<").replace("&amp;", "&")
    return json.loads(text), log
