"""Traces of studies: seeds resample a file, or draw from a generator; estimates are wrong as asked."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from study_examples import spec_text

from fairopt.datasets import philly_trace
from fairopt.errors import BadInput
from fairopt.experiment.studies.playing import play
from fairopt.experiment.studies.traces import Place, Source, compress, drawn, origin, resample
from fairopt.models import ShortestRemainingTimeFirst
from fairopt.simulation import Mechanics
from fairopt.workloads import ErrorForm, WorkEstimates


def test_seed_0_is_the_trace_and_others_are_blocks_of_it() -> None:
    trace = philly_trace().as_(float)
    assert resample(trace, 0).jobs is trace.jobs
    drawn_ = resample(trace, 3, block=10)
    jobs, old = drawn_.jobs, trace.jobs
    assert len(jobs) == 1000
    assert len(set(jobs.names)) == 1000
    rows = [old.names.index(name.partition(".")[0]) for name in jobs.names]
    # blocks of ten follow each other in a circle, with the times between them
    for begin in range(0, 1000, 10):
        assert [(row - rows[begin]) % 1000 for row in rows[begin : begin + 10]] == list(range(10))
    gaps, before = np.diff(jobs.arrival), np.diff(old.arrival, prepend=np.nan)
    inner = [at for at in range(1, 1000) if at % 10 and rows[at]]
    assert np.allclose(gaps[[at - 1 for at in inner]], before[[rows[at] for at in inner]])
    assert jobs.work.tolist() == old.work[rows].tolist()
    assert resample(trace, 3, block=10).jobs.names == jobs.names
    assert resample(trace, 4, block=10).jobs.names != jobs.names


def test_a_load_is_a_rate_of_arrivals() -> None:
    trace = philly_trace()
    twice = compress(trace, 2)
    assert np.allclose(twice.jobs.arrival * 2, trace.as_(float).jobs.arrival)


def test_a_generator_is_named_and_draws_by_seed() -> None:
    source = Source("even", generator="study_examples:Evenly", parameters={"jobs": 7})
    place = Place("small", hosts={"T": (1, 4)})
    one, other = (drawn(source, place, 2.0, WorkEstimates(), seed) for seed in (0, 1))
    assert len(one.jobs) == 7
    assert one.jobs.arrival.max() <= 50
    assert not np.array_equal(one.jobs.arrival, other.jobs.arrival)
    assert drawn(source, place, 2.0, WorkEstimates(), 0) is one  # the policies of a process share it
    assert not source.resampled
    with pytest.raises(BadInput, match="unknown key 'job'"):
        Source("even", generator="study_examples:Evenly", parameters={"job": 7}).check()


def test_what_the_hash_of_the_code_does_not_cover_is_hashed_with_its_traces() -> None:
    assert origin("fairopt.workloads.poisson") == origin("fairopt.models.baselines.srtf") == ""
    file = Path(__file__).parents[2] / "benchmarks" / "workloads" / "fft.py"
    paper = Source("fft", generator="fft-traces", parameters={"which": 2, "jobs": 60})
    assert sha256(file.read_bytes()).hexdigest() in paper.content()


@pytest.mark.parametrize("name", ["subprocess:run", "fairopt.deadline:time_limit", "fairopt.experiment.spec:Entrant"])
def test_what_is_no_generator_is_not_made(name: str) -> None:
    """A specification may name any class; one of another kind is refused before its fields are taken from the file."""
    with pytest.raises(BadInput, match="is no generator"):
        Source("even", generator=name, parameters={"name": "small", "hosts": {}}).check()


def test_a_generator_that_draws_nothing_is_resampled_and_seen_on_a_grid() -> None:
    parameters = {"jobs": 40, "longest_hours": 1}
    source = Source("venus", generator="astraea-venus", parameters=parameters, block=8, grid=60)
    place = Place("small", hosts={"V100": (20, 8)})
    assert not source.resampled  # the draws count alike
    whole, draw = (drawn(source, place, None, WorkEstimates(), seed).jobs for seed in (0, 1))
    plain = drawn(replace(source, block=0, grid=0), place, None, WorkEstimates(), 0).jobs
    assert whole.names == plain.names
    assert not np.any(whole.arrival % 60)
    assert np.all((whole.arrival - plain.arrival >= 0) & (whole.arrival - plain.arrival < 60))
    assert {name.partition(".")[0] for name in draw.names} < set(plain.names)
    assert max(plain.work) == 3600
    assert replace(source, grid=0).content() != source.content() != replace(source, block=9).content()


def test_what_decides_a_trace_is_its_content(tmp_path: Path) -> None:
    spec_text(tmp_path)
    path = tmp_path / "trace.csv"
    before = Source("a", file=str(path)).content()
    assert Source("b", file=str(path)).content() == before
    copy = tmp_path / "copy.csv"
    copy.write_text(path.read_text())
    assert Source("a", file=str(copy)).content() == before
    copy2 = tmp_path / "other.csv"
    copy2.write_text(path.read_text().replace("j0,a,0,1,60", "j0,a,0,1,61"))
    assert Source("a", file=str(copy2)).content() != before


def test_policies_are_told_estimates_and_jobs_take_what_they_take() -> None:
    source, place = Source("p", file="@philly-trace", jobs=80), Place("c", file="@philly-cluster")
    truth = drawn(source, place, 4.0, WorkEstimates(), 0)
    told = drawn(source, place, 4.0, WorkEstimates(0.8, ErrorForm.FIXED), 0)
    other = drawn(source, place, 4.0, WorkEstimates(0.8, ErrorForm.FIXED), 1)
    ratio = told.jobs.estimate / told.jobs.work
    assert {round(each, 6) for each in ratio.tolist()} == {0.2, 1.8}
    assert told.jobs.work.tolist() == truth.jobs.work.tolist()
    assert not np.array_equal(other.jobs.estimate / other.jobs.work, ratio)
    seen = [
        play(ShortestRemainingTimeFirst(), each, place.made(), length=300, mechanics=Mechanics())
        for each in (truth, told)
    ]
    assert seen[0].measures["completed"] == seen[1].measures["completed"] == 80
    assert seen[0].measures["jct_mean"] != seen[1].measures["jct_mean"]
    with pytest.raises(BadInput, match="may be too small"):
        WorkEstimates(1.5)
