"""fairopt beside the waits that are published with Philly: ``python benchmarks/against_philly_fifo.py ATTEMPTS``.

``ATTEMPTS`` is attempts_philly.csv.gz: 151,816 attempts of jobs, each with submission, run time, wait and GPUs. The
waits are not those of Philly's own scheduler. This script first shows what they are: those of strict first in, first
out on 2,490 GPUs, to the second. Then fairopt plays two days with a queue, from the state in which the cluster was. In
rounds of one second its FIFO must start every attempt at that second; FIFO and others follow in rounds of a minute.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import heapq
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

from fairopt.models import FifoQuota, LeastAttainedService, ShortestRemainingTimeFirst
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.simulation.engine import Engine

GPUS = 2_490
DAY = 86_400
#: 2017-10-11, in seconds of the table: a day on which attempts begin to wait.
BEGIN = 5_493_534 + DAY


class Attempt(NamedTuple):
    """An attempt of a job; times in seconds."""

    submit: int
    run: int
    wait: int
    gpus: int


def strict_fifo(attempts: list[Attempt]) -> int:
    """Return how many waits differ from those of strict first in, first out, event by event."""
    free, now, differ = GPUS, 0, 0
    running: list[tuple[int, int]] = []
    for each in attempts:
        now = max(now, each.submit)
        while running and (running[0][0] <= now or free < each.gpus):
            end, gpus = heapq.heappop(running)
            now, free = max(now, end), free + gpus
        free -= each.gpus
        heapq.heappush(running, (now + each.run, each.gpus))
        differ += now - each.submit != each.wait
    return differ


def window(attempts: list[Attempt], days: float) -> tuple[list[Attempt], int]:
    """Return the attempts of the days, and before them those that run when the days begin, with what is left of them.

    Those that run come first, submitted at 0; also how many they are. Nobody waits when the days begin.
    """
    there = [each for each in attempts if each.submit < BEGIN < each.submit + each.wait + each.run]
    assert all(each.submit + each.wait <= BEGIN for each in there)
    rest = [each._replace(submit=0, run=each.submit + each.wait + each.run - BEGIN, wait=0) for each in there]
    new = [each._replace(submit=each.submit - BEGIN) for each in attempts if 0 <= each.submit - BEGIN < days * DAY]
    return rest + new, len(rest)


def waits(policy: Policy, attempts: list[Attempt], length: int) -> tuple[list[float], float]:
    """Return how long each attempt waits for its first round, and CPU seconds."""
    trace = Trace(
        Jobs.of(
            types=["GPU"],
            gpus=[each.gpus for each in attempts],
            work=[each.run for each in attempts],
            arrival=[each.submit for each in attempts],
        )
    ).as_(float)
    begun, starts = process_time(), dict.fromkeys(range(len(attempts)), -1.0)
    missing = len(attempts)
    for changes in Engine(policy, trace, Cluster.uniform({"GPU": (1, GPUS)}), length=length):
        for placed in changes.placed:
            if starts[placed.row] < 0:
                starts[placed.row] = changes.begin
                missing -= 1
        if not missing:
            break
    return [starts[row] - each.submit for row, each in enumerate(attempts)], process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("attempts", type=Path)
    parser.add_argument("--days", type=float, default=2)
    given = parser.parse_args()
    with gzip.open(given.attempts, "rt", encoding="utf-8", newline="") as stream:
        names = ("submit_s", "run_s", "wait_s", "gpus")
        attempts = [Attempt(*(int(row[name]) for name in names)) for row in csv.DictReader(stream)]
    print(f"waits that are not those of strict FIFO: {strict_fifo(attempts)} of {len(attempts)}", flush=True)
    chosen, before = window(attempts, given.days)
    published = np.array([each.wait for each in chosen[before:]])
    print(f"{len(published)} attempts in {given.days:g} days, {before} before them", flush=True)
    print("| who | round, s | mean wait, s | median | 90% | largest | as published | CPU s |")
    print("|---|---|---|---|---|---|---|---|")

    def show(name: str, length: object, found: np.ndarray, seconds: object) -> None:
        middle, most = np.quantile(found, [0.5, 0.9])
        same = f"{(found == published).sum()} of {len(found)}"
        numbers = f"{found.mean():.1f} | {middle:.0f} | {most:.0f} | {found.max():.0f} | {same} | {seconds}"
        print(f"| {name} | {length} | {numbers} |", flush=True)

    show("published", "-", published, "-")
    plays: list[tuple[str, Policy, int]] = [
        ("fifo-quota", FifoQuota(), 60),
        ("srtf", ShortestRemainingTimeFirst(), 60),
        ("tiresias", LeastAttainedService(), 60),
        ("fifo-quota", FifoQuota(), 1),
    ]
    for name, policy, length in plays:
        found, seconds = waits(policy, chosen, length)
        show(name, length, np.array(found[before:]), f"{seconds:.0f}")


if __name__ == "__main__":
    main()
