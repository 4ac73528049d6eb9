"""User CPU seconds of a plain loop over events beside `whole_traces.py`: a measure of the machine.

    .venv/bin/python benchmarks/plain_loop.py philly.csv philly-cluster.toml

Shortest remaining time first in continuous time, gangs whole: when a job comes or ends, those with the least left run,
and who does not fit is passed over. Types are one, hosts and restarts are nobody's, and nothing is recorded: what any
simulator of these jobs does at least.
"""

from __future__ import annotations

import argparse
import resource
from bisect import insort
from collections.abc import Sequence
from heapq import heappop, heappush

from fairopt.benchmarks.whole_traces import setting_of


def ends(arrival: Sequence[float], work: Sequence[float], gpus: Sequence[int], capacity: int) -> list[float]:
    """Return when each job is done; arrivals rise, and no job is larger than the ``capacity``.

    >>> ends([0, 3.5], [10, 2], [1, 1], 1)
    [12.0, 5.5]
    """
    end, free = [0.0] * len(work), capacity
    left = list(work)
    running: dict[int, float] = {}  # when each began
    finishing: list[tuple[float, int]] = []
    waiting: list[tuple[float, int]] = []  # by what is left
    at, now = 0, 0.0
    while at < len(arrival) or finishing:
        while finishing and running.get(finishing[0][1], -1.0) + left[finishing[0][1]] != finishing[0][0]:
            heappop(finishing)  # was stopped
        if finishing and (at == len(arrival) or finishing[0][0] <= arrival[at]):
            now, row = heappop(finishing)
            end[row], free = now, free + gpus[row]
            del running[row]
        elif at < len(arrival):
            now = arrival[at]
            insort(waiting, (left[at], at))
            at += 1
        else:
            break
        if not waiting:
            continue
        if gpus[waiting[-1][1]] > free or len(waiting) > 1:  # somebody may have to stop
            for row in [row for row, since in running.items() if since + left[row] - now > waiting[0][0]]:
                left[row] -= now - running.pop(row)
                insort(waiting, (left[row], row))
                free += gpus[row]
        kept = []
        for rest, row in waiting:
            if gpus[row] <= free:
                free -= gpus[row]
                running[row] = now
                heappush(finishing, (now + rest, row))
            else:
                kept.append((rest, row))
        waiting = kept
    return end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("cluster")
    parser.add_argument("--jobs", type=int, default=100_000)
    given = parser.parse_args()
    setting = setting_of(given.trace, given.cluster, given.jobs, 1)
    jobs, capacity = setting.trace.jobs, int(setting.cluster.capacity.sum())
    columns = jobs.arrival.tolist(), (jobs.work / jobs.throughput.max(axis=1)).tolist(), jobs.gpus.tolist()
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    ends(*columns, capacity)
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_utime - begun:.2f} s of processor for {len(jobs):,} jobs")


if __name__ == "__main__":
    main()
