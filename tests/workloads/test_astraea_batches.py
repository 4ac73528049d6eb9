"""Workloads over Philly's jobs: real where it says so, within the paper's ranges elsewhere, and the same again."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from fractions import Fraction
from math import ceil
from pathlib import Path

import pytest
from whole_data import whole

from fairopt.benchmarks.workloads.astraea_batches import DENSE, SMALL, Ranges, astraea_small, astraea_workload
from fairopt.datasets import astraea_example, dataset_path
from fairopt.errors import BadInput
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.policy import decide
from fairopt.problem.files.batch import batch_to_dict
from fairopt.problem.utilities import Linear, Power


def excerpt() -> dict[str, dict[str, str]]:
    with dataset_path("philly_1000.csv").open(encoding="utf-8", newline="") as stream:
        return {row["job_id"]: row for row in csv.DictReader(stream)}


def test_real_are_jobs_tenants_and_times() -> None:
    rows = excerpt()
    for seed in range(5):
        batch = astraea_workload(jobs=120, servers=30, seed=seed)
        jobs = batch.jobs
        assert len(set(jobs.names)) == len(jobs) == 120
        assert [batch.tenants[tenant] for tenant in jobs.tenant] == [rows[name]["tenant"] for name in jobs.names]
        times = [Fraction(rows[name]["submit_s"]) for name in jobs.names]
        assert times == sorted(times)
        assert jobs.arrival.tolist() == [ceil((time - times[0]) / 3600) for time in times]
        # consecutive: nothing between the first and the last was left out
        between = [name for name, row in rows.items() if times[0] < Fraction(row["submit_s"]) < times[-1]]
        assert set(between) <= set(jobs.names)


def test_drawn_is_the_rest_within_the_papers_ranges() -> None:
    seen: Counter[str] = Counter()
    for seed in range(4):
        for convex in (False, True):
            batch = astraea_workload(jobs=200, servers=20, seed=seed, convex=convex)
            jobs = batch.jobs
            assert 50 <= min(jobs.epochs) <= max(jobs.epochs) <= 100
            assert 20 <= min(jobs.chunks) <= max(jobs.chunks) <= 50
            assert 10 <= min(jobs.minibatches) <= max(jobs.minibatches) <= 50
            # hours; milliseconds of an hour's slot; megabytes in megabits
            assert all(Fraction("0.001") <= time <= Fraction("0.05") for time in jobs.minibatch_time.ravel())
            assert all(Fraction(10, 3_600_000) <= time <= Fraction(100, 3_600_000) for time in jobs.update_time.ravel())
            assert all(30 * 8 <= size <= 575 * 8 for size in jobs.gradient)
            # Mbps and Gbps in megabits an hour, 1,024 Mbps in a Gbps
            assert 100 * 3600 <= batch.worker_bandwidth[0] <= 5 * 1024 * 3600
            assert 5 * 1024 * 3600 <= batch.ps_bandwidth[0] <= 20 * 1024 * 3600
            for utility in jobs.utility:
                seen[type(utility).__name__] += 1
                if isinstance(utility, Linear):
                    assert -2 <= utility.slope <= Fraction("-0.1")
                    assert 100 <= utility.height <= 1000
                if isinstance(utility, Power):
                    assert 100 <= utility.scale <= 1000
                    assert 1 <= utility.exponent <= 2
            # every range is used from end to end
            assert min(jobs.chunks) < 24
            assert max(jobs.chunks) > 46
    assert seen == {"Linear": 800, "Power": 800}


def test_communication_of_a_mini_batch_by_hand() -> None:
    batch = astraea_workload(jobs=1, servers=8, seed=3)
    jobs = batch.jobs
    apart = batch.slots_per_minibatch(0, together=False) - batch.slots_per_minibatch(0, together=True)
    megabytes, megabits_a_second = jobs.gradient[0] / 8, batch.worker_bandwidth[0] / 3600
    assert apart == 2 * megabytes * 8 / megabits_a_second / 3600  # hours


def test_servers_are_phillys_machines_and_dealt_out_whole() -> None:
    for servers in (8, 20, 100, 552):
        batch = astraea_workload(jobs=10, servers=servers)
        gpus = Counter(batch.workers.ravel().tolist())
        assert set(gpus) <= {2, 8}
        assert abs(gpus[2] - Fraction(servers * 321, 552)) < 1
        assert batch.ps.ravel().tolist() == [1] * servers
        # a tenant's PS are its servers, each with two or eight workers
        for workers, ps in zip(batch.worker_quota[:, 0], batch.ps_quota[:, 0], strict=True):
            assert ps >= 1
            assert 2 * ps <= workers <= 8 * ps
    assert Counter(astraea_workload(jobs=1, servers=552).workers.ravel().tolist()) == {2: 321, 8: 231}


def test_shares_follow_gpu_time() -> None:
    used: Counter[str] = Counter()
    for row in excerpt().values():
        used[row["tenant"]] += int(row["gpus"]) * Fraction(row["duration_s"])  # type: ignore[assignment]
    batch = astraea_workload(jobs=10, servers=500)
    total = sum(used.values())
    for name, ps in zip(batch.tenants, batch.ps_quota[:, 0], strict=True):
        assert abs(ps - 1 - (500 - 8) * used[name] / total) < 1


def test_the_same_again_and_another_by_seed() -> None:
    one = batch_to_dict(astraea_workload(jobs=40, servers=20, seed=7))
    assert one == batch_to_dict(astraea_workload(jobs=40, servers=20, seed=7))
    other = batch_to_dict(astraea_workload(jobs=40, servers=20, seed=8))
    assert one["job"] != other["job"]
    assert one["server"] != other["server"]
    # more servers, the same jobs
    assert one["job"] == batch_to_dict(astraea_workload(jobs=40, servers=50, seed=7))["job"]


def test_gpus_as_demands() -> None:
    rows = excerpt()
    drawn, asked = (astraea_workload(jobs=300, servers=20, seed=1, chunks_are_gpus=own) for own in (False, True))
    assert asked.jobs.chunks.tolist() == [int(rows[name]["gpus"]) for name in asked.jobs.names]
    for job in range(300):
        less, more = drawn.minibatches(job), asked.minibatches(job)
        assert less <= more < less + int(asked.jobs.epochs[job] * asked.jobs.chunks[job])


def test_users_are_those_with_the_most_jobs() -> None:
    batch = astraea_workload(jobs=50, servers=10, users=2)
    assert batch.tenants == ("6214e9", "11cb48")
    assert astraea_workload(jobs=5, servers=8).tenants[:2] == batch.tenants


def test_small_ones_are_of_the_papers_sizes() -> None:
    for jobs, servers in ((5, 5), (15, 45)):
        batch = astraea_small(jobs=jobs, servers=servers)
        assert (len(batch.jobs), len(batch.servers), len(batch.tenants)) == (jobs, servers, 2)
        assert 2 <= min(batch.jobs.chunks) <= max(batch.jobs.chunks) <= 5
        assert decide(PostedPricePacking(), batch).schedules
    assert SMALL.minibatches == Ranges().minibatches


def test_the_example_is_shipped() -> None:
    assert len(astraea_example().jobs) == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"jobs": 0}, "jobs: got 0"),
        ({"jobs": 1001}, "1001 jobs, and the tenants have 1000 there"),
        ({"jobs": 800, "users": 1}, "800 jobs, and the tenants have 551 there"),
        ({"users": 9}, "9 users, and 8 tenants have jobs there"),
        ({"users": 0}, "users: got 0"),
        ({"servers": 7}, "servers: got 7. Give a whole number from 8"),
        ({"servers": 2.5}, "servers: got 2.5"),
        ({"data": "/nowhere"}, "/nowhere/jobs_philly.csv.gz: cannot be read"),
        ({"ranges": Ranges(epochs=("3", "2", "1"))}, "ranges: got"),
        ({"ranges": Ranges(epochs=("1", "2", "0"))}, "step positive"),
    ],
)
def test_what_cannot_be_made(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput) as caught:
        astraea_workload(**arguments)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_tables_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "jobs_philly.csv.gz"
    for data in (b"no gzip", gzip.compress(b"job_id,tenant\na,b\n"), gzip.compress(b"job_id\n")[:-5]):
        path.write_bytes(data)
        with pytest.raises(BadInput) as caught:
            astraea_workload(data=tmp_path)
        assert str(path) in str(caught.value)
    rows = "".join(
        f"{name},{tenant},{DENSE + at},7,2\n" for name, tenant, at in (("a", "t", 5), ("b", "u", 4000), ("c", "", 1))
    )
    path.write_bytes(gzip.compress(f"job_id,tenant,submit_s,duration_s,gpus\nz,t,{DENSE - 1},7,2\n{rows}".encode()))
    batch = astraea_workload(jobs=2, servers=2, data=tmp_path)
    assert batch.jobs.names == ("a", "b")
    assert batch.jobs.arrival.tolist() == [0, 2]


@pytest.mark.slow
def test_the_papers_fourteen_users() -> None:
    batch = astraea_workload(jobs=100, servers=100, users=14, data=whole("jobs_philly.csv.gz").parent)
    assert len(batch.tenants) == 14
    assert "unknown" not in batch.tenants
