"""Make the whole traces of Philly and Venus, and their clusters, as `fairopt run` and `fairopt bench rounds` read them.

    .venv/bin/python benchmarks/make_whole_traces.py DATA FOLDER

It writes philly.csv, philly-cluster.toml, venus.csv and venus-cluster.toml. What is real: jobs, tenants (Philly's),
submissions, running times, GPUs, and Philly's machines. What is assigned: each job of Philly is of one of ten kinds,
and a kind's speed on the newer GPUs (24 GB) is drawn once between 1 and 4 times that on the older (12 GB). Venus has
no tenants in its table, and 133 hosts of 8 GPUs of one type.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections.abc import Iterable
from pathlib import Path
from random import Random

from fairopt.problem.files.storage import write_text

KINDS = 10
HOST = '[[host]]\ntype = "{}"\ngpus = {}\ncount = {}\n'
#: Philly's 552 machines as listed, the older first; Venus's 133.
PHILLY = 'schema = 1\ntypes = ["12 GB", "24 GB"]\n' + HOST.format("12 GB", 2, 321) + HOST.format("24 GB", 8, 231)
VENUS = "schema = 1\n" + HOST.format("GPU", 8, 133)


def jobs(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table in the order of submission."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        return sorted(csv.DictReader(stream), key=lambda row: int(row["submit_s"]))


def written(path: Path, header: str, rows: Iterable[str]) -> None:
    """Write a table."""
    write_text(path, "\n".join(["job_id,tenant,submit_s,duration_s,gpus" + header, *rows]) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of jobs_philly.csv.gz and jobs_venus.csv.gz")
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    # random() is the one method whose sequence Python promises to keep
    random = Random(0)
    speeds = [f"{1 + 3 * random.random():.4f}" for _ in range(KINDS)]
    real = ("job_id", "tenant", "submit_s", "duration_s", "gpus")
    philly = (
        ",".join([*(row[name] for name in real), "1", speeds[int(random.random() * KINDS)]])
        for row in jobs(given.data / "jobs_philly.csv.gz")
    )
    written(given.out / "philly.csv", ",throughput 12 GB,throughput 24 GB", philly)
    venus = (
        ",".join([row["job_id"], "all", *(row[name] for name in real[2:])])
        for row in jobs(given.data / "jobs_venus.csv.gz")
    )
    written(given.out / "venus.csv", "", venus)
    write_text(given.out / "philly-cluster.toml", PHILLY)
    write_text(given.out / "venus-cluster.toml", VENUS)


if __name__ == "__main__":
    main()
