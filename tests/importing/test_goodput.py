"""Workloads of Pollux and of Sia: speeds and efficiencies worked out again from an excerpt, what is refused."""

from __future__ import annotations

import csv
import itertools
import shutil
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from fairopt import run
from fairopt.errors import BadInput
from fairopt.importing import pollux, sia
from fairopt.models import Optimus, Pollux, Sia

HERE = Path(__file__).parent / "pollux"
WORKLOAD = HERE / "workloads" / "bert-6.csv"


def table(name: str) -> list[dict[str, float]]:
    with (HERE / "traces" / "bert" / name).open(encoding="utf-8") as stream:
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(stream)]


def between(rows: list[tuple[float, float]], at: float) -> float:
    rows.sort()
    for (low, one), (high, other) in itertools.pairwise(rows):
        if low <= at <= high:
            return one + (other - one) * (at - low) / (high - low)
    raise AssertionError(at)


def steps(placement: int, gpus: int, batch: int) -> float:
    """Return steps a second, from the table of placements: what does not fit 12 on a GPU is accumulated."""
    rows = [row for row in table("placements.csv") if row["placement"] == placement]
    most = max(row["local_bsz"] for row in table("placements.csv"))
    local = ceil(batch / gpus)
    more = max(ceil(local / most) - 1, 1 if gpus == 1 and batch > 12 else 0)
    atomic = ceil(local / (more + 1))
    step, sync = (
        between([(row["local_bsz"], row[name]) for row in rows], atomic) for name in ("step_time", "sync_time")
    )
    return 1 / (step + (step - sync) * more)


def gain(epoch: int, batch: int) -> float:
    run_ = table(f"validation-{batch}.csv")[epoch]
    return (run_["grad_var"] + run_["grad_sqr"]) / (run_["grad_var"] * 12 / batch + run_["grad_sqr"])


def test_the_excerpt_is_read_as_it_is() -> None:
    jobs = pollux.read(WORKLOAD).jobs
    with WORKLOAD.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert (len(jobs), jobs.types, jobs.names) == (15, ("T4",), tuple(row["name"] for row in rows))
    assert [float(each) for each in jobs.arrival] == [float(row["time"]) for row in rows]
    [profile] = jobs.distinct()
    last = min(table(f"validation-{batch}.csv")[1]["progress"] for batch in (12, 24, 48, 96, 192, 384))
    assert float(jobs.work[0]) == pytest.approx(last, rel=1e-5)
    first = min(table(f"validation-{batch}.csv")[0]["progress"] for batch in (12, 24, 48, 96, 192, 384))
    assert [float(each) for each in profile.marks] == pytest.approx([0, first], rel=1e-5)
    assert (profile.restart, profile.sizes[0], profile.sizes[-1]) == (30, 1, 64)
    known: dict[Any, float] = {(gpus, hosts, int(b)): float(x) for gpus, hosts, b, x in profile.throughput}
    for gpus, hosts, placement in ((1, 1, 1), (2, 1, 2), (2, 2, 11), (4, 1, 4), (8, 2, 44), (7, 2, 34), (16, 4, 4444)):
        for batch in (96, 192, 384) if gpus > 8 else (48, 96, 192):
            assert known[gpus, hosts, batch] == pytest.approx(steps(placement, gpus, batch), rel=1e-5)
    worth = {(float(after), int(b)): float(x) for after, b, x in profile.efficiency}
    for epoch, mark in enumerate([0.0, float(profile.marks[1])]):
        for batch in (12, 48, 384):
            assert worth[mark, batch] == pytest.approx(gain(epoch, batch), rel=1e-5)


def test_a_batch_or_a_gang_may_be_kept() -> None:
    told = pollux.read_workload(WORKLOAD, batches="fixed").jobs
    assert {len({row[2] for row in each.throughput}) for each in told.distinct()} == {1}
    both = pollux.read_workload(WORKLOAD, batches="fixed", sizes="fixed").jobs
    with WORKLOAD.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert both.gpus.tolist() == [int(row["num_replicas"]) for row in rows]
    assert [each.throughput[0][2] for each in both.profiles] == [int(row["batch_size"]) for row in rows]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A checkout as Sia's is: the same tables for each type, where an A100 takes half the time."""
    root = tmp_path_factory.mktemp("sia")
    shutil.copytree(HERE / "workloads", root / "workloads" / "philly")
    shutil.copytree(HERE / "traces", root / "traces")
    for name in ("placements", "scalability"):
        for suffix, factor in (("-aws", 1), ("-rtx", 1), ("-dgx-ext", 0.5)):
            with (root / "traces" / "bert" / f"{name}.csv").open(encoding="utf-8") as stream:
                rows = list(csv.DictReader(stream))
            for row in rows:
                row |= {key: str(float(row[key]) * factor) for key in ("step_time", "sync_time")}
                if name == "placements" and suffix != "-aws":  # eight GPUs on a host
                    row["placement"] = {"44": "8", "4444": "88"}.get(row["placement"], row["placement"])
            with (root / "traces" / "bert" / f"{name}{suffix}.csv").open("w", encoding="utf-8") as stream:
                out = csv.DictWriter(stream, list(rows[0]))
                out.writeheader()
                out.writerows(rows)
    return root


def test_sias_jobs_run_on_three_types_with_sizes_of_each(checkout: Path) -> None:
    jobs = sia.read(checkout / "workloads" / "philly" / "bert-6.csv").jobs
    [profile] = jobs.distinct()
    assert (jobs.types, profile.restart) == (("T4", "RTX2080Ti", "A100"), 120)
    alone = pollux.read(WORKLOAD).jobs.profiles[0]
    assert alone is not None
    at = profile.speed(0, 4, 1)
    assert float(at[0]) == pytest.approx(float(alone.speed(0, 4, 1)[0]) / 1.2, rel=1e-5)
    assert float(at[2]) == pytest.approx(2 * float(at[0]), rel=1e-5)
    runs = {
        name: [gpus for gpus, each in profile.speeds(0).items() if each[kind]] for kind, name in enumerate(jobs.types)
    }
    assert runs["T4"] == [1, 2, 4, 8, 12, 16, 20, 24]
    assert runs["A100"] == [1, 2, 4, 8, 16]


def test_sias_jobs_may_keep_their_gangs_and_batches(checkout: Path) -> None:
    path = checkout / "workloads" / "philly" / "bert-6.csv"
    jobs = sia.read_workload(path, {"T4": 6, "A100": 2}, fixed=True).jobs
    with path.open(encoding="utf-8") as stream:
        rows = [(int(row["num_replicas"]), int(row["batch_size"])) for row in csv.DictReader(stream)]
    assert jobs.gpus.tolist() == [gpus for gpus, _ in rows]
    told = [({gpus for gpus, *_ in each.throughput}, {each[2] for each in each.throughput}) for each in jobs.profiles]
    assert told == [({gpus}, {batch}) for gpus, batch in rows]
    free = sia.read_workload(path, {"T4": 6, "A100": 2}).jobs
    assert jobs.work.tolist() == free.work.tolist()


@pytest.mark.parametrize("policy", [Sia(), Pollux(), Optimus()])
def test_they_can_be_played(policy: Any, checkout: Path) -> None:
    trace = sia.read(checkout / "workloads" / "philly" / "bert-6.csv").as_(float)
    hosts = {name: count for name, (_, _, count) in sia.TYPES.items()}
    *_, last = run(policy, trace, sia.cluster(hosts), length=600)
    assert not last.after.present


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (",bert,", ",gpt,", "line 2, application: got 'gpt'; The applications are bert"),
        (",time,", ",when,", "line 2: no value in time"),
        (",bert,", ",bert,four", "line 2, num_replicas: got 'four"),
    ],
)
def test_what_is_not_as_it_must_be_is_named(old: str, new: str, says: str, tmp_path: Path) -> None:
    shutil.copytree(HERE, tmp_path / "copy")
    path = tmp_path / "copy" / "workloads" / "bert-6.csv"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(BadInput) as found:
        pollux.read(path)
    assert all(each in str(found.value).replace("\n", " ") for each in says.split("; "))
    alone = tmp_path / "alone.csv"
    shutil.copy(WORKLOAD, alone)
    with pytest.raises(BadInput, match="no folder traces"):
        pollux.read(alone)
