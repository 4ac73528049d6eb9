"""Make the 1,000-job excerpt of the Philly trace that `fairopt.datasets.philly_trace` reads.

    .venv/bin/python benchmarks/make_philly_excerpt.py DATA fairopt/datasets/philly_1000.csv

What is real: which jobs, their tenants, when they were submitted (from the window's beginning), how long they ran, how
many GPUs they held, how they ended. What is assigned, since the trace names neither models nor types of GPUs: the
model, drawn for each job among those that Gavel measured on as many GPUs on one server; with it the throughputs,
relative to the P100, to four digits; the size of the training state, drawn among the model sizes that Tiresias lists.

The rule of selection: the first 1,000 jobs from the day on which the trace becomes dense that held 1, 2, 4 or 8 GPUs
(what Gavel measured) for at most half a day (half of the window that they then fill).
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from fairopt.datasets import gavel_throughputs

#: 2017-10-03, from which on the trace is dense, in seconds from its first job.
BEGIN = 4_888_734
JOBS = 1_000
LONGEST = 12 * 3600
TYPES = ("K80", "P100", "V100")
#: The type on which a job takes the time that the trace has; every measured gang fits on it.
REFERENCE = "P100"
HEADER = (
    *("job_id", "tenant", "submit_s", "duration_s", "gpus", "status", "model", "state_size"),
    *(f"throughput {name}" for name in TYPES),
)


def measured() -> dict[int, list[tuple[str, list[str]]]]:
    """Return, for each gang, the models with their throughputs relative to the reference, as text."""
    found = {}
    for gang in (1, 2, 4, 8):
        rows = []
        for job in gavel_throughputs(scale_factor=gang):
            speeds = [job.steps_per_s[name] for name in TYPES]
            unit = job.steps_per_s[REFERENCE]
            if unit and None not in speeds:
                rows.append((job.name, [f"{float(speed / unit):.4g}" for speed in speeds if speed is not None]))
        found[gang] = rows
    return found


def state_sizes(folder: Path) -> list[str]:
    """Return the model sizes that Tiresias lists, in gigabytes."""
    with (folder / "checkpoint_costs.csv").open(encoding="utf-8", newline="") as stream:
        return [
            f"{float(row['value']) / 1000:.4g}" for row in csv.DictReader(stream) if row["quantity"] == "model_size_mb"
        ]


def chosen(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the jobs of the excerpt, as the trace has them."""
    count = 0
    with gzip.open(folder / "jobs_philly.csv.gz", "rt", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            fits = int(row["gpus"]) in (1, 2, 4, 8) and 0 < int(row["duration_s"]) <= LONGEST
            if int(row["submit_s"]) >= BEGIN and fits and count < JOBS:
                count += 1
                yield row


def excerpt(folder: Path, seed: int = 0) -> Iterable[tuple[str, ...]]:
    """Return the rows of the file, its header first."""
    models, sizes, random = measured(), state_sizes(folder), Random(seed)
    rows: list[tuple[str, ...]] = [HEADER]
    for row in chosen(folder):
        choices = models[int(row["gpus"])]
        # random() is the one method whose sequence Python promises to keep
        name, speeds = choices[int(random.random() * len(choices))]
        size = sizes[int(random.random() * len(sizes))]
        submit = str(int(row["submit_s"]) - BEGIN)
        real = (row["job_id"], row["tenant"], submit, row["duration_s"], row["gpus"], row["status"])
        rows.append((*real, name, size, *speeds))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of jobs_philly.csv.gz and checkpoint_costs.csv")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    with given.out.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(excerpt(given.data))


if __name__ == "__main__":
    main()
