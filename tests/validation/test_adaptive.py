"""Figures of jobs that adapt: the page is what the tables say, what is off is named, and how figures are counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairopt import run
from fairopt.benchmarks.adaptive import play
from fairopt.importing import pollux
from fairopt.models import Pollux
from fairopt.simulation import Mechanics

HERE = Path(__file__).parent.parent / "importing" / "pollux" / "workloads"


def test_the_page_is_what_the_tables_say() -> None:
    page = play.PAGE.read_text(encoding="utf-8")
    assert play.into(page, play.block(play.table(play.OURS))) == page


def test_published_figures_are_within_a_tenth_or_named() -> None:
    ours = {(row["setting"], row["policy"]): row for row in play.table(play.OURS) if not row["change"]}
    off = set()
    for row in play.table(play.PUBLISHED):
        own = ours.get((row["setting"], row["policy"]))
        if own and abs(float(own[row["figure"]]) / float(row["value"]) - 1) > 0.1:
            off.add((row["setting"], row["policy"], row["figure"]))
    assert off == set(play.CAUSES)


def test_figures_are_those_of_whole_records() -> None:
    one = next(each for each in play.all_played() if isinstance(each.policy, Pollux))
    found = play.play(one, HERE / "bert-6.csv")
    trace = pollux.read(HERE / "bert-6.csv").as_(float)
    records = list(run(Pollux(), trace, one.cluster, length=play.ROUND, mechanics=Mechanics()))
    held, ends = dict.fromkeys(trace.jobs.names, 0.0), {}
    for ran in (each for record in records for each in record.ran):
        held[ran.job] += ran.gpus * (ran.end - ran.begin) / 3600
        ends[ran.job] = ran.end / 3600
    came = [each / 3600 for each in trace.jobs.arrival]
    assert [at for at, _, _ in found] == came
    assert [time for _, time, _ in found] == pytest.approx(
        [ends[name] - at for name, at in zip(held, came, strict=True)]
    )
    assert [gpu for *_, gpu in found] == pytest.approx(list(held.values()))
    told = play.figures([found, found])
    assert told["makespan"] == pytest.approx(max(ends.values()))
    assert told["gpu_hours"] == pytest.approx(sum(held.values()) / len(held))
