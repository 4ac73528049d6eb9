"""The page of an explanation: what it says, its pictures, and how a browser shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import CHROMIUM, EACH_SCREEN, asked, browsed

from fairopt.audit import explain
from fairopt.audit.page import page
from fairopt.problem import Entitlements, Gangs, Market

pytest.importorskip("jinja2", reason="needs the extra bench")
pytest.importorskip("matplotlib", reason="needs the extra plot")
USERS, TYPES = ["train", "batch", "chem <&>"], ["H100", "A100"]


@pytest.fixture(scope="module")
def html() -> str:
    gangs = Gangs.of(
        ["train", "batch", "train"],
        [4, 6, 6],
        users=USERS,
        types=TYPES,
        names=["a", "b", "c"],
        on=[None, "H100", "A100"],
    )
    group = {"train": "ml", "batch": "ml", "chem <&>": "science"}
    guarantee = {"train": [4, 2], "batch": [2, 6], "chem <&>": [2, 0]}
    owed = Entitlements.of(USERS, TYPES, group=group, guarantee=guarantee, gangs=gangs)
    market = Market.of([[3, 1], [1, 1], [2, 1]], [8, 8], users=USERS, types=TYPES, entitlements=owed)
    return page(explain(market, "train", policies=["kueue"]), ["now.toml"])


def test_it_says_how_the_user_stands_and_shows_it(html: str) -> None:
    for said in (
        "<h1>train in now.toml</h1>",
        "A user, in ml",
        "a (4 GPUs) waits",
        "The groups around train, with the GPUs that each holds of those that it is guaranteed.",
        "<desc>train to batch: 12",  # six H100 are worth 18 to it, and it gets 6
        "6 of 2 H100",
    ):
        assert said in html
    assert html.count('class="graph"') == 3  # the groups, who envies whom, and idle GPUs that hurt nobody
    assert "http" not in html.replace("http-equiv", "")
    assert "<script" not in html


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here")
@pytest.mark.parametrize("options", EACH_SCREEN)
def test_a_browser_shows_it_to_everybody(html: str, tmp_path: Path, options: list[str]) -> None:
    assert "CONSOLE" not in browsed(html, tmp_path, *options)[1]
    said, _ = asked(html, tmp_path, *options)
    assert said["contrast"][0] >= 4.5, said["contrast"]
    assert (said["dangling"], said["wide"]) == (0, False)
