"""The sentences that `CONTRIBUTING.md` holds up as examples stand where it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SENTENCES = re.findall(
    r"^\| (.+) \| (.+) \| ([\w/.-]+) \|$",
    (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Twenty sentences")[2],
    re.M,
)[1:]


def test_there_are_twenty() -> None:
    assert len(SENTENCES) == 20


@pytest.mark.parametrize(("before", "now", "where"), SENTENCES, ids=range(len(SENTENCES)))
def test_a_sentence_stands_where_it_is_said(before: str, now: str, where: str) -> None:
    text = " ".join((ROOT / where).read_text(encoding="utf-8").split())
    assert now in text
    assert before.startswith(now.rstrip(".")) or before not in text
