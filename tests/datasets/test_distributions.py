"""The counts of the Philly and Venus traces, against the traces where they are at hand."""

from __future__ import annotations

import csv
import gzip

import pytest
from whole_data import whole

from fairopt.proofs.claims.ltgf.traces import job_counts, jobs_in


def test_counts_make_up_the_traces() -> None:
    philly, venus = job_counts("philly"), job_counts("venus")
    assert (jobs_in(philly), jobs_in(venus), job_counts("saturn")) == (111_874, 125_303, ())
    assert {count.at_least_s for count in philly} == {0, 600, 3600, 21_600, 86_400, 518_400}
    for count in (*philly, *venus):
        assert 0 <= count.clipped <= count.jobs
        least = count.gpus * count.at_least_s * count.jobs
        assert least <= count.gpu_seconds
        assert count.below_s is None or count.gpu_seconds < count.gpus * count.below_s * count.jobs
        # clipped at two days
        assert not count.clipped or (count.trace, count.at_least_s) == ("venus", 86_400)
    keys = [(count.trace, count.gpus, count.status, count.at_least_s) for count in (*philly, *venus)]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("trace", ["philly", "venus"])
def test_counts_are_those_of_the_trace(trace: str) -> None:
    with gzip.open(whole(f"jobs_{trace}.csv.gz"), "rt", encoding="utf-8", newline="") as stream:
        rows = [
            (int(row["gpus"]), row["status"], int(row["duration_s"]), row.get("duration_censored") == "1")
            for row in csv.DictReader(stream)
        ]
    counts = job_counts(trace)
    assert jobs_in(counts) == len(rows)
    by_kind: dict[tuple[int, str], list[tuple[int, bool]]] = {}
    for gpus, status, seconds, clipped in rows:
        by_kind.setdefault((gpus, status), []).append((seconds, clipped))
    assert {(count.gpus, count.status) for count in counts} == by_kind.keys()
    for count in counts:
        here = [
            each
            for each in by_kind[count.gpus, count.status]
            if count.at_least_s <= each[0] and (count.below_s is None or each[0] < count.below_s)
        ]
        assert (count.jobs, count.clipped) == (len(here), sum(clipped for _, clipped in here))
        assert count.gpu_seconds == count.gpus * sum(seconds for seconds, _ in here)
