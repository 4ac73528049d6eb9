"""Generators: a load that is stated and met, marginals of the real traces, the same trace for the same seed."""

from __future__ import annotations

import csv
import gzip
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from random import Random
from statistics import mean

import numpy as np
import pytest
from whole_data import whole

from fairopt import discovery
from fairopt.benchmarks.workloads.astraea import AstraeaPhilly, AstraeaVenus, Weights
from fairopt.benchmarks.workloads.fft import KINDS, LARGE, FftTraces
from fairopt.benchmarks.workloads.oef import Coming, OefTenants
from fairopt.datasets import astraea_venus_cluster, fft_cluster, oef_cluster, philly_cluster
from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace, read_trace, write_trace
from fairopt.problem.files.trace import trace_to_csv
from fairopt.testing.data_suites import workload_suite
from fairopt.testing.suite import Outcome
from fairopt.workloads import (
    Counted,
    OnOff,
    Poisson,
    Speeds,
    TraceDriven,
    load_of,
)
from fairopt.workloads.distributions import hours, marginals, tenants

#: Generators in a small form, each with the cluster that it is tried on.
SMALL = {
    "poisson": (Poisson(jobs=60, load=0.7), philly_cluster()),
    "on-off": (OnOff(jobs=60, load=1.3, like="venus"), philly_cluster()),
    "trace-driven": (TraceDriven(jobs=60, like="gavel", speeds=Speeds.DRAWN), fft_cluster()),
    "fft-traces": (FftTraces(which=2, jobs=60), fft_cluster()),
    "oef-tenants": (OefTenants(tenants=5, jobs=4, spread=2), oef_cluster()),
    "astraea-venus": (AstraeaVenus(jobs=60), astraea_venus_cluster()),
    "astraea-philly": (AstraeaPhilly(jobs=60, load=0.9), Cluster.uniform({"GPU": (10, 8)})),
}


def test_every_generator_is_tried_here_and_made_by_name() -> None:
    assert set(discovery.names(discovery.WORKLOADS)) == set(SMALL)
    for name, (made, _) in SMALL.items():
        assert type(discovery.workload(name)) is type(made)
        assert made.name == name
        assert made.source
        assert not made.home or made.home in discovery.names(discovery.DATASETS)


@pytest.mark.parametrize("name", SMALL)
def test_a_generator_conforms(name: str, conformance: Callable[[object], None]) -> None:
    made, cluster = SMALL[name]
    report = workload_suite(cluster).run([made])
    conformance(report)
    report.require_complete()


@pytest.mark.parametrize("name", SMALL)
def test_a_csv_file_gives_the_trace_back(name: str, tmp_path: Path) -> None:
    workload, cluster = SMALL[name]
    trace = workload.trace(7, cluster)
    write_trace(trace, tmp_path / "trace.csv")
    there = read_trace(tmp_path / "trace.csv", cluster.types).jobs
    for column in ("arrival", "work", "throughput", "gpus", "state_size", "weight"):
        assert np.array_equal(getattr(there, column), getattr(trace.jobs, column)), column
    assert there.names == trace.jobs.names
    assert dict(zip(there.tenants, there.tenant_weight, strict=True)) == dict(
        zip(trace.jobs.tenants, trace.jobs.tenant_weight, strict=True)
    )
    other = workload.trace(8, cluster).jobs
    assert np.array_equal(other.work, trace.jobs.work) == name.startswith("astraea")


def test_the_suite_catches_a_load_that_is_not_there_and_random_numbers_of_another_origin() -> None:
    random = Random()

    @dataclass(frozen=True)
    class Careless(Poisson):
        def trace(self, seed: int, cluster: Cluster) -> Trace:
            return replace(self, load=2 * self.load, jobs=random.randint(20, 1000)).trace_of(seed, cluster)

        def trace_of(self, seed: int, cluster: Cluster) -> Trace:
            return super().trace(seed, cluster)

    report = workload_suite(philly_cluster()).run([Careless()])
    failed = {row.check for row in report.of(Outcome.FAILED)}
    assert failed == {"depends on its seed only", "has a load"}


def test_traces_of_a_seed_do_not_change() -> None:
    """As they were written on the first machine: a change of these is a change of everybody's experiments."""
    traces = {name: SMALL[name][0].trace(3, SMALL[name][1]) for name in ("on-off", "trace-driven", "fft-traces")}
    digests = {name: sha256(trace_to_csv(trace).encode()).hexdigest()[:12] for name, trace in traces.items()}
    assert digests == DIGESTS


DIGESTS = {"on-off": "8f12d9d781b0", "trace-driven": "11ad8afe450b", "fft-traces": "61cf573f2339"}


# -- load ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("load", [0.3, 1, 2.5])
@pytest.mark.parametrize("counted", Counted)
@pytest.mark.parametrize("kind", [Poisson, OnOff, TraceDriven])
def test_the_load_is_the_one_that_was_asked_for(kind: type[Poisson], counted: Counted, load: float) -> None:
    cluster = philly_cluster()
    trace = kind(jobs=150, load=load, counted=counted).trace(1, cluster)
    # by its definition, in other words
    jobs, total = trace.jobs, int(cluster.capacity.sum())
    needed = Fraction(0)
    for row in range(len(jobs)):
        speeds = jobs.throughput[row]
        at_mean = sum(int(gpus) * speed for gpus, speed in zip(cluster.capacity, speeds, strict=True)) / total
        needed += int(jobs.gpus[row]) * jobs.work[row] / (max(speeds) if counted is Counted.FASTEST else at_mean)
    realised = needed / (total * (jobs.arrival[-1] - jobs.arrival[0]))
    assert realised == load_of(trace, cluster, counted=counted)
    assert abs(float(realised) / load - 1) < 1e-6


@pytest.mark.parametrize(("which", "load"), [(1, 0.5), (2, 1), (6, 2), (7, 1.5), (9, 1)])
def test_the_load_of_ffts_traces_over_their_days(which: int, load: float) -> None:
    workload = FftTraces(which=which, jobs=200, load=load)
    trace = workload.trace(2, fft_cluster())
    wanted = load * (2 if which == 7 else 1)
    assert abs(float(workload.load_of(trace, fft_cluster())) / wanted - 1) < 1e-3
    assert (trace.jobs.arrival[0], trace.jobs.arrival[-1]) == (0, 43_200)  # two days for 800


@pytest.mark.parametrize("coming", Coming)
def test_the_load_of_oefs_tenants_over_three_days(coming: Coming) -> None:
    workload = OefTenants(coming=coming, load=0.6)
    trace = workload.trace(4, oef_cluster())
    assert abs(float(workload.load_of(trace, oef_cluster())) / 0.6 - 1) < 1e-6
    of_tenant = Counter(trace.jobs.tenant.tolist())
    assert len(of_tenant) == 50
    assert all(10 <= count <= 30 for count in of_tenant.values())
    assert 17 < mean(of_tenant.values()) < 23  # about 20
    together = {len(set(trace.jobs.arrival[trace.jobs.tenant == tenant].tolist())) for tenant in of_tenant}
    assert (max(together) == 1) == (coming is not Coming.BY_JOB)
    assert (max(trace.jobs.arrival) == 0) == (coming is Coming.AT_ONCE)
    # jobs of one type: a tenant has one speed-up, from 1.39 to 2.15
    for tenant in of_tenant:
        rows = {tuple(row) for row in trace.jobs.throughput[trace.jobs.tenant == tenant].tolist()}
        assert len(rows) == 1
        assert Fraction("1.39") <= max(*rows.pop()) <= Fraction("2.15")


def test_more_load_moves_arrivals_together_and_changes_nothing_else() -> None:
    half, full = (Poisson(jobs=80, load=load).trace(5, philly_cluster()).jobs for load in (0.5, 1))
    assert np.array_equal(half.work, full.work)
    assert np.array_equal(half.throughput, full.throughput)
    for one, other in zip(half.arrival, full.arrival, strict=True):
        assert abs(one - 2 * other) < Fraction(1, 100)


# -- arrivals --------------------------------------------------------------------------------------------------------
def test_poisson_arrivals_have_exponential_gaps_and_bursts_have_wider_ones() -> None:
    def variation(workload: Poisson | OnOff) -> float:
        gaps = np.diff(workload.trace(6, philly_cluster()).jobs.arrival.astype(float))
        return float(gaps.std() / gaps.mean())

    assert 0.9 < variation(Poisson(jobs=2000)) < 1.1
    assert variation(OnOff(jobs=2000, burst=50)) > 1.3


def test_trace_driven_arrivals_follow_the_hours() -> None:
    arrival = TraceDriven(jobs=5000, arrivals="venus").trace(1, philly_cluster()).jobs.arrival.astype(float)
    days = np.histogram(arrival, bins=14)[0] / 5000
    counts = np.array(hours("venus")).reshape(14, 24).sum(axis=1)
    assert np.abs(days - counts / counts.sum()).max() < 0.02


# -- marginals -------------------------------------------------------------------------------------------------------
def test_jobs_are_like_those_of_the_trace() -> None:
    for like in ("philly", "venus", "openb", "gavel"):
        table = marginals(like)
        gpus, seconds = table.draw(np.random.Generator(np.random.PCG64(0)), 40_000)
        ones = float(table.jobs[table.gpus == 1].sum() / table.jobs.sum())
        assert abs(float((gpus == 1).mean()) - ones) < 0.01, like
        assert seconds.min() >= 1
        assert abs(seconds.mean() / table.seconds - 1) < 0.1, like
    of_gavel = marginals("gavel").draw(np.random.Generator(np.random.PCG64(1)), 20_000)[1] / 60
    assert 10**1.5 <= of_gavel.min() <= of_gavel.max() <= 10**4
    assert abs(float((of_gavel < 1000).mean()) - 0.8) < 0.02  # four of five are short, in its generator


@pytest.mark.parametrize("like", ["philly", "venus"])
def test_tables_are_those_of_the_trace(like: str) -> None:
    with gzip.open(whole(f"jobs_{like}.csv.gz"), "rt", encoding="utf-8", newline="") as stream:
        rows = [(int(row["gpus"]), int(row["duration_s"]), row["tenant"]) for row in csv.DictReader(stream)]
    table = marginals(like)
    for gpus in set(table.gpus.tolist()):
        own = np.sort([seconds for size, seconds, _ in rows if size == gpus])
        here = table.gpus == gpus
        assert table.jobs[here].sum() == len(own)
        assert abs((table.jobs[here] * table.mean[here]).sum() / len(own) - own.mean()) < 1  # means are whole seconds
        drawn = table.of_size(gpus).draw(np.random.Generator(np.random.PCG64(2)), 20_000)[1]
        if len(own) > 2000:  # quantiles, to the width of a part
            middle = np.searchsorted(own, np.median(drawn)) / len(own)
            assert abs(middle - 0.5) < 0.03
    assert Counter(name for _, _, name in rows if name not in ("", "unknown")) == Counter(tenants(like))


# -- the papers' set-ups ---------------------------------------------------------------------------------------------
def test_ffts_traces_are_as_it_says() -> None:
    cluster = fft_cluster()
    assert cluster.capacity.tolist() == [12, 12, 12]
    assert set(cluster.gpus.tolist()) == {4}
    assert set(cluster.bandwidth.tolist()) == {Fraction(5, 4)}  # 10 Gb/s
    first = FftTraces().trace(0, cluster).jobs
    assert (len(first), set(first.gpus.tolist())) == (800, {4})
    assert first.arrival[-1] - first.arrival[0] == 2 * 86_400
    second = FftTraces(which=2).trace(0, cluster).jobs
    assert (len(second), set(second.gpus.tolist())) == (800, {1, 2, 3, 4, 8})
    assert {kind.jobs for which, kind in KINDS.items() if which > 2} == {20_000}
    sixth = FftTraces(which=6, jobs=2000).trace(0, cluster).jobs
    large = {Fraction(model.parameters) * 16 for model in LARGE}
    part = mean(size in large for size in sixth.state_size)
    assert 0.47 < part < 0.53  # "Approximately 50%"
    assert all(gpus >= 4 for gpus, size in zip(sixth.gpus, sixth.state_size, strict=True) if size in large)
    ninth = FftTraces(which=9, jobs=2000).trace(0, cluster).jobs
    assert 2.95 < max(ninth.work) / min(ninth.work) <= 3.01
    speedups = first.throughput[:, -1]
    assert Fraction("1.6") <= min(speedups) <= max(speedups) <= Fraction("2.71")


def test_astraeas_windows_are_real_jobs_with_their_tenants() -> None:
    cluster = astraea_venus_cluster()
    assert (len(cluster.hosts), int(cluster.capacity.sum())) == (100, 800)
    trace = AstraeaVenus().trace(0, cluster)
    assert len(trace.jobs) == 11_304  # the paper's
    jobs = trace.jobs
    weights = dict(zip(jobs.tenants, jobs.tenant_weight, strict=True))
    assert weights["vcJsw"] == 200
    asked = AstraeaVenus(jobs=1000, weights=Weights.REQUESTED).trace(0, cluster).jobs
    first = asked.tenants[0]
    assert asked.tenant_weight[0] == asked.gpus[asked.tenant == 0].sum(), first
    assert set(AstraeaVenus(jobs=1000, weights=Weights.EQUAL).trace(0, cluster).jobs.tenant_weight) == {1}


def test_astraeas_window_of_the_whole_trace_is_the_excerpt() -> None:
    path, cluster = whole("jobs_venus.csv.gz"), astraea_venus_cluster()
    jobs = AstraeaVenus(data=str(path), begin_s=14_414_301, jobs=None).trace(0, cluster).jobs
    assert len(jobs) == 12_801  # of two weeks from 2020-09-01, with tenants
    excerpt = AstraeaVenus(jobs=None).trace(0, cluster).jobs
    assert (jobs.names, jobs.work.tolist()) == (excerpt.names, excerpt.work.tolist())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Poisson(load=0), "load: got 0. Give a number above 0 and at most 1000"),
        (lambda: Poisson(jobs=1), "jobs: got 1"),
        (lambda: Poisson(like="phily"), "Did you mean 'philly'"),
        (lambda: OnOff(burst=1), "burst: got 1"),
        (lambda: TraceDriven(arrivals="pai"), "Give philly or venus"),
        (lambda: FftTraces(which=10), "which: got 10"),
        (lambda: OefTenants(jobs=5, spread=5), "spread: got 5. Give a whole number from 0 to 4"),
        (lambda: Poisson(jobs=10).trace(-1, philly_cluster()), "seed: got -1"),
        (lambda: Poisson(jobs=10).trace(0, fft_cluster()), "T4 was not measured. Say speeds=drawn"),
        (lambda: Poisson(longest_hours=0.0001).trace(0, philly_cluster()), "longest_hours: got 0.0001"),
        (lambda: AstraeaVenus(begin_s=10**9).trace(0, fft_cluster()), "0 jobs from second 1000000000 on"),
        (lambda: AstraeaVenus(data="none.csv").trace(0, fft_cluster()), "none.csv: data: cannot be read"),
        (lambda: AstraeaPhilly(weights=Weights.QUOTA).trace(0, fft_cluster()), "quota of '103959' is not known"),
        (lambda: FftTraces(which=6).trace(0, Cluster.uniform({"T4": (1, 2)})), "no type has more than 2 GPUs"),
    ],
)
def test_mistakes_are_named(make: object, words: str) -> None:
    with pytest.raises(BadInput, match=re.escape(words)):
        make()  # type: ignore[operator]
