"""docs/validation.md says what is played now on Shockwave's traces, which are those of the published results."""

from __future__ import annotations

import pytest

from fairopt.benchmarks import validation
from fairopt.benchmarks.shockwave.jobs import CLUSTERS, cluster, rows, table, trace
from fairopt.benchmarks.shockwave.policies import policies
from fairopt.problem.profile import takes
from fairopt.simulation import run

OURS = validation.known(validation.OURS)
ALL = list(validation.cells(CLUSTERS))
#: Played in every run of the tests; all others are slow.
QUICK = [(120, "gandiva_fair", ""), (120, "allox", "")]


def test_the_page_has_the_tables() -> None:
    page = validation.PAGE.read_text(encoding="utf-8")
    assert page == validation.into(page, validation.block(OURS)), "run make validation"


@pytest.mark.parametrize("name", sorted({name for _, name, _ in ALL} - {"shockwave"}))
def test_the_first_rounds_of_every_policy_are_played(name: str) -> None:
    jobs = rows(120)
    played = list(run(policies(120, jobs)[name], trace(jobs), cluster(120), length=validation.ROUND, rounds=12))
    assert len(played) == 12
    assert any(each.ran for each in played)


@pytest.mark.slow
def test_everything_is_played() -> None:
    assert set(OURS) == {cell for cell in ALL if changes_something(*cell)}


def changes_something(count: int, name: str, change: str) -> bool:
    jobs = rows(count)
    return validation.changed(change, jobs, policies(count, jobs)[name]) is not None


@pytest.mark.parametrize(
    "cell",
    [*QUICK, *(pytest.param(cell, marks=pytest.mark.slow) for cell in ALL if cell not in QUICK and cell[0] == 120)],
)
def test_what_is_played_now_is_what_the_page_says(cell: tuple[int, str, str]) -> None:
    assert validation.play(*cell) == OURS.get(cell), "run make validation"


@pytest.mark.slow
@pytest.mark.parametrize("cell", [cell for cell in ALL if cell[0] != 120])
def test_what_is_played_on_the_larger_traces_is_what_the_page_says(cell: tuple[int, str, str]) -> None:
    assert validation.play(*cell) == OURS[cell], "run make validation"


def test_the_work_of_the_trace_is_that_of_the_published_runs() -> None:
    """Utilisation times makespan is work: of each published run, and of the trace here."""
    work = validation.busy(trace(rows(120)))
    for each in table("published"):
        assert float(each["utilisation"]) * float(each["makespan"]) * 32 == pytest.approx(work, rel=0.005)


def test_all_published_figures_are_within_a_tenth_or_have_a_cause() -> None:
    off = set()
    for each in table("published"):
        own = OURS.get((120, each["policy"], ""))
        for figure in validation.FIGURES if own else ():
            if abs(float(own[figure]) / float(each[figure]) - 1) > 0.1:  # type: ignore[index]
                off.add((each["policy"], figure))
    assert off == set(validation.CAUSES)


@pytest.mark.parametrize("count", [pytest.param(each, marks=[pytest.mark.slow] * (each > 250)) for each in CLUSTERS])
def test_the_work_of_jobs_is_their_epochs_and_takes_as_long(count: int) -> None:
    jobs, told = rows(count), trace(rows(count)).jobs
    assert told.work.tolist() == pytest.approx([float(job.epochs) for job in jobs])
    for job, work, profile in zip(jobs, told.work.tolist(), told.profiles, strict=True):
        seconds = sum(float(epochs / pace) for epochs, pace in job.course())
        course = [] if profile is None else [(0.0, 1.0), *profile.factors(job.gpus, 0)]
        assert (takes(course, 0.0, work) if course else work) / float(job.pace(job.batch)) == pytest.approx(seconds)
    assert sum(map(bool, told.profiles)) > count / 3
