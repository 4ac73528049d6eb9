"""The page of a what-if: what changed, what changes with it, and how a browser shows it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from browser import CHROMIUM, EACH_SCREEN, asked, browsed
from clusters import cluster

from fairopt.audit import whatif
from fairopt.audit.page import page
from fairopt.errors import BadInput
from fairopt.experiment.page import write_page
from fairopt.problem import Entitlements, Gangs, Market

pytest.importorskip("jinja2", reason="needs the extra bench")
EVIL = "<script>alert(1)</script>\"'&"
CHANGES = ["train.H100.quota=4", "batch.H100.quota=8", "physics.A100.cap=16"]


@pytest.fixture(scope="module")
def html() -> str:
    return page(whatif(cluster(), CHANGES, policies=["kueue"]), ["now.json"])


def words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html.partition("<body>")[2])).replace("&#39;", "'")


def test_it_says_what_changes(html: str) -> None:
    found, text = whatif(cluster(), CHANGES, policies=["kueue"]), words(html)
    assert len(found.verdicts) == 3
    assert len(found.given) == 1
    for said in (*map(str, found.settings), *found.implied, *found.mended, *found.broken, *found.verdicts):
        assert said in text
    for before, after in found.reasons.values():
        assert f"before: {before}. after: {after}." in text
    assert "train STARVED → then WITHIN H100 4 8 → then 4 – 4 4 → then 0 0 " in text
    assert "cap_kept not asked no -8 take 8 A100 from physics, which holds 24 and may hold 16" in text
    assert "kueue What kueue gives, before and after, where that differs user H100 A100 train 8 → then 4" in text
    for landmark in ("<header>", "<nav aria-label", "<main id", 'scope="row"', 'scope="col"', '<html lang="en">'):
        assert landmark in html
    HTMLParser().feed(html)
    assert "<script" not in html
    assert not re.search(r"(src|href)=.https?:|@import|url\(", html)  # nothing comes from a network


def test_two_files_and_nothing_that_changes() -> None:
    text = words(page(whatif(cluster(), after=cluster(), policies=[]), ["old.json", "new.json"]))
    for said in (
        "From old.json to new.json",
        "No guarantee and no cap is newly broken, and none is mended.",
        "No status changes.",
        "No verdict changes.",
        "Nobody waits for another reason.",
        "No policy was asked.",
    ):
        assert said in text
    fewer = Market.of(
        [[1]], [4], users=["b"], types=["T"], entitlements=Entitlements.of(["b"], ["T"], guarantee={"b": [4]})
    )
    more = words(page(whatif(cluster(), after=fewer, policies=["max-min"])))
    assert "b IDLE → then " not in more  # it holds nothing before and after
    assert "train STARVED → then IDLE" in more
    assert "max-min" in more


def test_names_from_files_are_text() -> None:
    gangs = Gangs.of([EVIL], [2], users=[EVIL], types=["<b>T"], names=["</td><img src=x>"])
    owed = Entitlements.of([EVIL], ["<b>T"], group={EVIL: "<i>g"}, guarantee={EVIL: [4]}, gangs=gangs)
    market = Market.of([[1]], [4], users=[EVIL], types=["<b>T"], entitlements=owed)
    html = page(whatif(market, [f"{EVIL}.<b>T.quota=1"], policies=["max-min", "kueue"]), ["<h1>.json"])
    assert not re.search(r"<(script|img|b|i)[ >]|<h1>\.json", html)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
@pytest.mark.parametrize("options", EACH_SCREEN)
def test_a_browser_shows_it_to_everybody(html: str, tmp_path: Path, options: list[str]) -> None:
    assert "CONSOLE" not in browsed(html, tmp_path, *options)[1]
    said, log = asked(html, tmp_path, *options)
    assert "CONSOLE" not in log
    assert said["contrast"][0] >= 4.5, said["contrast"]
    assert said["texts"] > 80
    assert ("0, 0, 0" in said["ground"] or "20, 24, 29" in said["ground"]) == ("--force-dark-mode" in options)
    assert {"A", "DIV"} == set(said["keys"])
    assert (said["unnamed"], said["dangling"], said["wide"]) == (0, 0, False)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nowhere"):
        write_page(page(whatif(cluster(), CHANGES, policies=[])), tmp_path / "nowhere" / "page.html")
