"""Write fairopt/datasets/philly_venus_distributions.csv: ``python benchmarks/make_distributions.py TABLES``.

``TABLES`` is the folder with jobs_philly.csv.gz and jobs_venus.csv.gz, whose checksums stand in SOURCES.md.
"""

from __future__ import annotations

import csv
import gzip
import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path

#: Where Table 1 of ASTRAEA cuts run times, in seconds.
EDGES = (0, 600, 3600, 6 * 3600, 86_400, 6 * 86_400)
COLUMNS = ("trace", "gpus", "status", "at_least_s", "below_s", "jobs", "clipped", "gpu_seconds")
OUT = Path(__file__).parent.parent / "fairopt" / "datasets" / "philly_venus_distributions.csv"


def main() -> None:
    folder = Path(sys.argv[1])
    lines = []
    for trace in ("philly", "venus"):
        jobs: Counter[tuple[int, str, int]] = Counter()
        clipped: Counter[tuple[int, str, int]] = Counter()
        time: Counter[tuple[int, str, int]] = Counter()
        with gzip.open(folder / f"jobs_{trace}.csv.gz", "rt", encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream):
                gpus, seconds = int(row["gpus"]), int(row["duration_s"])
                key = gpus, row["status"], bisect_right(EDGES, seconds) - 1
                jobs[key] += 1
                clipped[key] += row.get("duration_censored") == "1"
                time[key] += gpus * seconds
        for key in sorted(jobs):
            gpus, status, part = key
            below = EDGES[part + 1] if part + 1 < len(EDGES) else ""
            lines.append((trace, gpus, status, EDGES[part], below, jobs[key], clipped[key], time[key]))
    with OUT.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([COLUMNS, *lines])


if __name__ == "__main__":
    main()
