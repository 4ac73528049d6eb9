"""Write the tables that `fairopt.workloads` draws from: ``python benchmarks/make_workload_tables.py TABLES``.

``TABLES`` is the folder with jobs_philly.csv.gz, jobs_venus.csv.gz, jobs_pai_sample.csv.gz, jobs_openb2023.csv.gz and
vc_quotas_venus.csv, whose checksums stand in SOURCES.md. Written into fairopt/datasets:

* workload_parts.csv: for each trace and gang size, run times in parts of about equally many jobs: how many jobs, their
  mean, and the half width of the widest interval around it that lies within the part. A job drawn evenly from there
  has the mean of the real jobs to a second, and their quantiles to the width of a part.
* workload_hours.csv: the jobs that came in each hour of two weeks. workload_tenants.csv: the jobs of each tenant,
  and where it is known its quota of GPUs (of the first day of Venus' weeks).
* venus_two_weeks.csv.gz: the jobs of Venus' first two weeks of September whose tenants are known.
"""

from __future__ import annotations

import csv
import gzip
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path

OUT = Path(__file__).parent.parent / "fairopt" / "datasets"
TRACES = {"philly": "jobs_philly", "venus": "jobs_venus", "pai": "jobs_pai_sample", "openb": "jobs_openb2023"}
#: Two weeks for which arrivals are kept, by the second from which they begin: README of the tables.
WEEKS = {"philly": 4_888_734, "venus": 14_414_301}
HOURS = 14 * 24
#: Parts of a gang size: fiftieths, the last of them cut finer, and none of fewer jobs than this.
CUTS = (*(at / 50 for at in range(1, 48)), 0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 0.998, 0.999, 1)
FEWEST = 20


def jobs_of(folder: Path, trace: str) -> Iterator[dict[str, str]]:
    """Yield the rows of jobs that held GPUs for some time."""
    with gzip.open(folder / f"{TRACES[trace]}.csv.gz", "rt", encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            if row["gpus"] != "0" and row["duration_s"] and float(row["duration_s"]) > 0:
                yield row


def parts(seconds: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (jobs, mean, half width) of the parts of run times; means are rounded to seconds."""
    ordered = sorted(seconds)
    begin = 0
    for cut in CUTS:
        end = round(cut * len(ordered))
        if end - begin < FEWEST and cut < 1:
            continue
        if begin and len(ordered) - end < FEWEST:  # the rest would be too few
            end = len(ordered)
        inside = ordered[begin:end]
        if inside:
            mean = round(sum(inside) / len(inside))
            yield len(inside), mean, min(mean - inside[0], inside[-1] - mean)
        begin = end


def gavel() -> Iterator[tuple[int, int, int, int]]:
    """Yield (GPUs, jobs, mean, half width) by the rule of Gavel's generator: minutes are 10^U(1.5, 3), or (3, 4)."""
    for gpus, share in ((1, 14), (2, 2), (4, 3), (8, 1)):  # of twenty
        for low, high, jobs in ((1.5, 3.0, 4), (3.0, 4.0, 1)):  # four of five jobs are short
            edges = [60 * 10 ** (low + (high - low) * at / 30) for at in range(31)]
            for begin, end in pairwise(edges):
                mean = round((end - begin) / math.log(end / begin))
                yield gpus, share * jobs, mean, int(min(mean - begin, end - mean))


def quotas(folder: Path) -> dict[str, str]:
    """Return the GPUs of each of Venus' tenants on the first day of its weeks."""
    with (folder / "vc_quotas_venus.csv").open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        return {row["vc"]: row["gpus"] for row in rows if int(row["submit_s_day_start"]) == WEEKS["venus"]}


def write(name: str, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    text = StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    content = text.getvalue().encode()
    # without a time, so that equal tables are equal files
    (OUT / name).write_bytes(gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def main() -> None:
    folder = Path(sys.argv[1])
    of_parts: list[tuple[object, ...]] = [("gavel", *row) for row in gavel()]
    of_hours: list[tuple[object, ...]] = []
    of_tenants: list[tuple[object, ...]] = []
    for trace in TRACES:
        jobs = list(jobs_of(folder, trace))
        sizes: dict[int, list[int]] = {}
        for row in jobs:
            sizes.setdefault(int(row["gpus"]), []).append(int(float(row["duration_s"])))
        for gpus in sorted(sizes):
            if len(sizes[gpus]) >= FEWEST:
                of_parts += [(trace, gpus, *part) for part in parts(sizes[gpus])]
        tenants = Counter(row["tenant"] for row in jobs if row["tenant"] not in ("", "unknown"))
        quota = quotas(folder) if trace == "venus" else {}
        of_tenants += [(trace, name, count, quota.get(name, "")) for name, count in sorted(tenants.items())]
        if trace in WEEKS:
            hours = Counter((int(row["submit_s"]) - WEEKS[trace]) // 3600 for row in jobs)
            of_hours += [(trace, hour, hours[hour]) for hour in range(HOURS)]
        if trace == "venus":
            begin = WEEKS[trace]
            known = [row for row in jobs if row["tenant"] and 0 <= int(row["submit_s"]) - begin < 3600 * HOURS]
            keys = ("job_id", "tenant", "duration_s", "gpus", "status")
            rows = [(str(int(row["submit_s"]) - begin), *(row[key] for key in keys)) for row in known]
            write("venus_two_weeks.csv.gz", ("submit_s", *keys), rows)
    write("workload_parts.csv", ("trace", "gpus", "jobs", "mean_s", "half_s"), of_parts)
    write("workload_hours.csv", ("trace", "hour", "jobs"), of_hours)
    write("workload_tenants.csv", ("trace", "tenant", "jobs", "quota"), of_tenants)


if __name__ == "__main__":
    main()
