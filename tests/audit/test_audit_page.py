"""The page of an audit, as a browser shows it: contents, no errors, keyboard, contrast, and text from files escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import CHROMIUM, EACH_SCREEN, asked, browsed
from clusters import GANGS, cluster

from fairopt.audit import audit
from fairopt.audit.page import page
from fairopt.errors import BadInput
from fairopt.experiment.page import write_page
from fairopt.importing.imported import Imported
from fairopt.importing.unplaced import UNPLACED
from fairopt.problem import Entitlements, Gangs, Market

pytest.importorskip("jinja2", reason="needs the extra bench")
EVIL = "<script>alert(1)</script>\"'&"


@pytest.fixture(scope="module")
def html() -> str:
    gangs = [*GANGS[:-1], ("physics-1", "physics", 24, "A100", None)]
    return page(
        audit(Imported(cluster(gangs), (UNPLACED.of(place="spec.x", value=EVIL, why="why"),)), policies=[]),
        ["now.json"],
    )


def test_it_says_what_the_audit_says(html: str) -> None:
    found = audit(cluster(), policies=[])
    text = re.sub(r"<[^>]+>", " ", html)
    for words in (*map(str, found.guarantees), *map(str, found.mends), str(found.reasons["train"])):
        assert words in text.replace("&#39;", "'")
    for landmark in ("<header>", "<nav aria-label", "<main id", 'scope="row"', 'scope="col"', '<html lang="en">'):
        assert landmark in html
    HTMLParser().feed(html)
    assert not re.search(r"(src|href)=.https?:|@import|url\(", html)  # nothing comes from a network


def test_every_colour_that_the_style_uses_has_a_value(html: str) -> None:
    style = html[html.index("<style>") : html.index("</style>")]
    used, given = (re.findall(pattern, style) for pattern in (r"var\((--\w+)", r"(--\w+):"))
    assert "--c0" in used
    for name in used:
        assert given.count(name) >= 2, name  # on a light ground and on a dark one


def test_names_from_files_are_text(tmp_path: Path) -> None:
    gangs = Gangs.of([EVIL], [2], users=[EVIL], types=["<b>T"], names=["</td><img src=x>"])
    owed = Entitlements.of([EVIL], ["<b>T"], group={EVIL: "<i>g"}, guarantee={EVIL: [4]}, gangs=gangs)
    market = Market.of([[1]], [4], users=[EVIL], types=["<b>T"], entitlements=owed)
    said = Imported(market, (UNPLACED.of(place="<u>", value=EVIL, why="<u>"),), {EVIL: {"<s>": "<s>"}})
    html = page(audit(said, policies=[]), ["<h1>.json"])
    assert html.count("<script>") == 1
    assert not re.search(r"<(img|b|i|u|s)[ >]|<h1>\.json", html)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
@pytest.mark.parametrize("options", EACH_SCREEN)
def test_a_browser_shows_it_to_everybody(html: str, tmp_path: Path, options: list[str]) -> None:
    whole, log = browsed(html, tmp_path, *options)
    assert "CONSOLE" not in log
    assert "of 11 lines" in whole  # its script ran
    said, log = asked(html, tmp_path, *options)
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
        write_page(page(audit(cluster(), policies=[])), tmp_path / "nowhere" / "page.html")
