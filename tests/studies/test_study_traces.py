"""Traces of studies: seeds resample a file, or draw from a generator; estimates are wrong as asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from study_examples import spec_text

from fairopt import run
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.errors import BadInput
from fairopt.models import FFT, LeastAttainedService, ShortestRemainingTimeFirst
from fairopt.studies.estimates import ErrorKind, EstimationError, Misjudging
from fairopt.studies.traces import Place, Source, compress, drawn, resample


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
    one, other = (drawn(source, place, 2.0, seed) for seed in (0, 1))
    assert len(one.jobs) == 7
    assert one.jobs.arrival.max() <= 50
    assert not np.array_equal(one.jobs.arrival, other.jobs.arrival)
    assert drawn(source, place, 2.0, 0) is one  # the policies of a process share it
    assert not source.resampled
    with pytest.raises(BadInput, match="unknown key 'job'"):
        Source("even", generator="study_examples:Evenly", parameters={"job": 7}).check()


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


@pytest.mark.parametrize("policy", [ShortestRemainingTimeFirst(), LeastAttainedService(), FFT()])
def test_estimates_without_error_change_nothing_and_jobs_take_what_they_take(policy: object) -> None:
    trace = compress(philly_trace(), 4)
    cluster = philly_cluster().as_(float)
    plain = [record.ran for record in run(policy, trace, cluster, length=300, rounds=25)]  # type: ignore[arg-type]
    unerring = Misjudging(policy, EstimationError(size=0.0), 1)  # type: ignore[arg-type]
    assert [record.ran for record in run(unerring, trace, cluster, length=300, rounds=25)] == plain
    wrong = Misjudging(policy, EstimationError(size=0.8, kind=ErrorKind.EITHER), 1)  # type: ignore[arg-type]
    done = {ran.job: ran for record in run(wrong, trace, cluster, length=300) for ran in record.ran if ran.completed}
    assert len(done) == 1000
    assert all(ran.remaining == 0 for ran in done.values())


def test_an_error_changes_what_a_policy_that_looks_at_work_decides() -> None:
    trace = compress(philly_trace(), 4)
    cluster = philly_cluster().as_(float)
    found = []
    for size in (0.0, 0.8):
        policy = Misjudging(ShortestRemainingTimeFirst(), EstimationError(size=size, kind=ErrorKind.EITHER), 1)
        found.append([[ran.job for ran in record.ran] for record in run(policy, trace, cluster, length=300, rounds=40)])
    assert found[0] != found[1]


def test_factors_are_as_their_kind_says() -> None:
    factors = {kind: [EstimationError("", 0.3, kind).factor(5, f"j{n}") for n in range(2000)] for kind in ErrorKind}
    assert set(factors[ErrorKind.OVER]) == {1.3}
    assert set(factors[ErrorKind.UNDER]) == {0.7}
    assert set(factors[ErrorKind.EITHER]) == {1.3, 0.7}
    assert 0.7 <= min(factors[ErrorKind.UNIFORM]) < 0.71
    assert 1.29 < max(factors[ErrorKind.UNIFORM]) <= 1.3
    assert abs(np.log(factors[ErrorKind.LOGNORMAL]).std() - 0.3) < 0.02
    assert EstimationError("", 0.3).factor(5, "j1") != EstimationError("", 0.3).factor(6, "j1")
