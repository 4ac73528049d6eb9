"""The numbers in a report's tables, cell by cell, from lines of JSON as a run writes them."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from fairopt.experiment.bench.page import report
from fairopt.experiment.bench.records import KINDS, Measurement, Record
from fairopt.experiment.bench.tables import means_told
from fairopt.experiment.journal import TrialStatus, line_of, record_in
from fairopt.experiment.machine import Environment

SPEC = """
schema = 1
name = "tiny"
task = "max-min"
time_limit = 100
shift = 1
contenders = [{ contender = "quick" }, { contender = "plain" }]
goals = [
  { text = "four times", contender = "quick", statistic = "ratio", against = "plain", limit = 4 },
  { text = "at most 3 s", contender = "quick", statistic = "seconds", limit = 3 },
]
[[instances]]
family = "random"
parameters = { users = [10, 20] }
"""
#: Seconds of build and of solve by contender, size and repeat; the reference job took 0.1 s, and twice that at 20.
SECONDS = {
    ("quick", 10): [(0.2, 0.8), (0.2, 0.8)],
    ("plain", 10): [(1.0, 3.0), (1.0, 3.0)],
    ("quick", 20): [(0.5, 1.5), (0.5, 2.5)],
    ("plain", 20): [(8.0, 40.0), (8.0, 40.0)],
}


class Cells(HTMLParser):
    """Read tables as rows of (text, class, links), by the first word of the caption and the first cell of the row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: dict[str, dict[str, list[tuple[str, str, list[str]]]]] = {}
        self.row: list[tuple[str, str, list[str]]] = []
        self.where = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "tr":
            self.row = []
        if tag in ("td", "th"):
            self.row.append(("", found.get("class") or "", []))
        if tag == "a" and self.row:
            self.row[-1][2].append(found.get("href") or "")
        self.where = tag if tag in ("caption", "td", "th") or self.where not in ("caption", "td", "th") else self.where

    def handle_data(self, data: str) -> None:
        if self.where == "caption":
            self.tables.setdefault(data.split()[0], {})
        elif self.where in ("td", "th") and self.row:
            said, class_, links = self.row[-1]
            self.row[-1] = (f"{said} {data}".strip().replace("\u00a0", " "), class_, links)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "caption"):
            self.where = ""
        if tag == "tr" and self.row:
            self.tables[list(self.tables)[-1]][self.row[0][0]] = self.row[1:]


def records(spec: str = SPEC) -> list[Record]:
    environment = Environment.of(
        **{"cpu": "A", "cores": 1, "memory_bytes": 1, "system": "S", "python": "3", "threads": {}, "libraries": {}},
        **{"commit": "", "dirty": False, "spec_text": spec, "command": ""},
    )
    lines = [line_of(environment)]
    for (contender, size), repeats in SECONDS.items():
        for repeat, (build, solve) in enumerate(repeats):
            line: dict[str, Any] = {
                "schema": 1,
                "kind": "measurement",
                "spec": "tiny",
                "task": "max-min",
                "contender": contender,
                "settings": {},
                "libraries": {},
                "instance": {"family": "random", "name": f"random {size}", "size": size, "seed": 0,
                             "parameters": {"users": size}, "digest": f"d{size}"},
                "repeat": repeat,
                "status": "solved",
                "message": "",
                "seconds": {"build": {"wall": build, "cpu": build}, "solve": {"wall": solve, "cpu": solve},
                            "certify": None},
                "peak_bytes": 10**8,
                "base_bytes": 10**7,
                "judgement": {"violation": 0.0, "gap": None, "objective": 1.0, "note": ""},
                "reference_job": {"wall": size / 100, "cpu": size / 100},
                "started": "2026-11-21T12:00:00+00:00",
                "environment": environment.digest,
                "time_limit": 100.0,
            }  # fmt: skip
            lines.append(json.dumps(line))
    return [record_in(line, KINDS) for line in lines]


@pytest.fixture(scope="module")
def tables() -> dict[str, dict[str, list[tuple[str, str, list[str]]]]]:
    return Cells(report(records())).tables


def test_seconds_by_size(tables: dict[str, Any]) -> None:
    quick, plain = tables["Wall"]["quick"], tables["Wall"]["plain"]
    assert [said for said, _, _ in quick] == [
        "1.00 s 200 ms + 800 ms 100 MB",
        "2.50 s 500 ms + 2.00 s 100 MB",  # the medians of 2 and 3 s, of 1.5 and 2.5 s
    ]
    assert [said.split(" s ")[0] for said, _, _ in plain] == ["4.00", "48.0"]
    assert [class_ for _, class_, _ in quick] == ["n best", "n best"]
    assert [class_ for _, class_, _ in plain] == ["n", "n"]
    # each leads to its first measurement: the environment is record 1
    assert [links for _, _, links in quick + plain] == [["#r2"], ["#r6"], ["#r4"], ["#r8"]]


def test_means_and_ratios(tables: dict[str, Any]) -> None:
    quick, plain = tables["Shifted"]["quick"], tables["Shifted"]["plain"]
    said = [text for text, _, _ in quick]
    assert said[0] == "2 of 2"
    assert said[1] == "1.65 s"  # sqrt(2 * 3.5) - 1
    assert said[2] == "1.73 s"  # with the other usual shift, 10 s: sqrt(11 * 12.5) - 10
    assert said[3] == "1.32 s"  # sqrt(1.8 * 3) - 1
    assert said[4] == "1.68 s"  # corrected: 1.5 s and 1.875 s, the median of the reference job being 0.15 s
    assert said[5].split()[0] == "8.76×"  # sqrt(4 * 19.2): how many times as fast as the one the goal names
    assert said[6] == "4.00× to 19.2×"
    assert said[7] == "2"
    assert [text for text, _, _ in plain][5:] == ["the baseline"]


def test_means_with_the_shifts_that_the_field_uses() -> None:
    found = records(SPEC.replace("shift = 1\n", "shift = 0.5\n"))
    table = Cells(report(found)).tables["Shifted"]
    heads = [text for text, _, _ in table["contender"]]
    assert heads[1:4] == ["to the answer shift 500 ms", "to the answer shift 1.00 s", "to the answer shift 10.0 s"]
    # 4 and 48 s: sqrt(4.5 * 48.5) - 0.5, sqrt(5 * 49) - 1, sqrt(14 * 58) - 10
    assert [text for text, _, _ in table["plain"]][1:4] == ["14.3 s", "14.7 s", "18.5 s"]
    plain = next(each for each in means_told(found) if each["contender"] == "plain")
    told = {each["shift"]: each["seconds"] for each in plain["shifted_geometric_means"]}
    assert told == pytest.approx({0.5: 14.2733, 1.0: 14.6525, 10.0: 18.4956}, abs=1e-4)


def test_the_worst_instance_decides_a_goal(tables: dict[str, Any]) -> None:
    goals = {name: [text for text, _, _ in row] for name, row in tables["Goals:"].items()}
    assert goals["four times"][2] == "4.00×"
    assert goals["four times"][4] == "reached"
    assert goals["at most 3 s"][2] == "2.50 s"
    assert goals["four times"][3].endswith("worst: random 10")
    assert goals["at most 3 s"][3].endswith("worst: random 20")


def test_a_goal_missed_by_little_is_missed() -> None:
    found = Cells(report(records(SPEC.replace("limit = 4 ", "limit = 4.001 ").replace("limit = 3 ", "limit = 2.499 "))))
    assert [row[-1][0] for name, row in found.tables["Goals:"].items() if name != "goal"] == ["not reached"] * 2


def test_the_machine_and_every_measurement(tables: dict[str, Any]) -> None:
    steady = [text for text, _, _ in tables["The"]["tiny"]]
    assert steady == ["A, 1 core, S", "8", "150 ms", "100 ms to 200 ms", "66.7 %", "2.00×", "1"]
    listed = [text for text, _, _ in tables["Every"]["7"]]
    assert listed[:8] == ["quick", "random 20", "solved", "1", "500 ms", "2.50 s", "–", "3.00 s"]
    assert listed[8:13] == ["100 MB", "90.0 MB", "0", "–", "200 ms"]


def test_what_was_never_tried_is_told_apart_from_what_failed() -> None:
    lines = records()
    changed = [
        replace(each, status=TrialStatus.SKIPPED, message="above 10")
        if isinstance(each, Measurement) and (each.contender, each.instance.size) == ("plain", 20)
        else each
        for each in lines
    ]
    found = Cells(report(changed)).tables["Shifted"]
    assert found["plain"][0][0] == "1 of 2 1 not tried"
    assert found["quick"][0][0] == "2 of 2"
