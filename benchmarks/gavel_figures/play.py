"""Plays the traces of Gavel's figures and writes what comes out into docs/adaptive-jobs.md.

``python -m fairopt.benchmarks.gavel_figures.play CHECKOUT``, with a checkout of github.com/stanford-futuredata/gavel
(commit c4fa4009), whose own generator draws the jobs. Each point takes some minutes; what ``ours.csv`` has is not
played again, so that an interrupted command goes on. ``--only TEXT`` plays the points with that in their name.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fairopt.benchmarks.against_gavel import ROUND, TYPES, load
from fairopt.benchmarks.shockwave.policies import Given
from fairopt.models import AlloX, GavelRounds
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.fairness import FinishTimeFairness
from fairopt.models.gavel.objectives import LeastMakespan, MaxMinShare
from fairopt.models.gavel.partitions import Normaliser, isolated
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.program import Array
from fairopt.simulation.engine import Engine

HERE = Path(__file__).resolve().parent
PAGE, OURS, PUBLISHED = HERE.parent.parent / "docs" / "adaptive-jobs.md", HERE / "ours.csv", HERE / "published.csv"
GPUS = 36
#: Completion times are those of these jobs; more come until they are done.
WINDOW, MORE = range(4000, 5000), 1500
#: A makespan is the mean of those with these seeds; of the rest, which are of seed 0 as printed.
SEEDS = (0, 1, 2)
#: Gavel's scheduler renews time fractions after so many seconds at the earliest, and gives every job half a round.
GAVEL: dict[str, Any] = {"interval": 1920, "head_start": "1/2"}


@dataclass(frozen=True)
class EqualParts(Given):
    """Every job its part of every type (isolated.py), with which finish times are compared."""

    def rule(self, jobs: JobMarket) -> Array:
        """Return the shares (n, k)."""
        return isolated(jobs.market)


@dataclass(frozen=True)
class InOrder(Given):
    """The jobs by arrival, each on its fastest type with room, until one finds none (fifo.py, with throughputs)."""

    def rule(self, jobs: JobMarket) -> Array:
        """Return the shares (n, k)."""
        speed, left = np.asarray(jobs.market.speedup, dtype=float), np.array(jobs.market.capacity, dtype=float)
        share = np.zeros(speed.shape)
        for row, gpus in enumerate(np.asarray(jobs.market.demand, dtype=float).tolist()):
            fits = (left >= gpus) & (speed[row] > 0)
            if not fits.any():
                break
            best = int(np.argmax(np.where(fits, speed[row], -1.0)))
            share[row, best], left[best] = gpus, left[best] - gpus
        return share


POLICIES: Mapping[str, Policy] = {
    "max_min_fairness_perf": GavelRounds(objective=MaxMinShare(Normaliser.EQUAL_TIME), **GAVEL),
    "finish_time_fairness_perf": GavelRounds(objective=FinishTimeFairness(normaliser=Normaliser.ISOLATED), **GAVEL),
    "fifo_perf": GavelRounds(objective=InOrder(), backfill=False, **GAVEL),
    "allox": AlloX(most=None),
    "min_total_duration_perf": GavelRounds(objective=LeastMakespan(), **GAVEL),
}
ISOLATED = GavelRounds(objective=EqualParts(), **GAVEL)


class Point(NamedTuple):
    """A point of a figure: jobs of one GPU or several, the policy, and jobs an hour (or all jobs, of a makespan)."""

    figure: str
    policy: str
    at: str

    @property
    def gangs(self) -> bool:
        """Whether jobs have several GPUs."""
        return "single" not in self.figure


def drawn(modules: tuple[Any, Any, Any], rate: float, count: int, gangs: bool, seed: int) -> Trace:
    """Return so many jobs as Gavel's scheduler draws them (`_initialize_seeds`, `simulate`); all at once for rate 0."""
    _, utils, _ = modules
    table = utils.read_all_throughputs_json_v2(str(Path(utils.__file__).parent / "simulation_throughputs.json"))
    jobs, gaps, now, rows = Random(seed + 2), Random(seed + 3), 0.0, []
    for _ in range(count):
        job = utils.generate_job(throughputs=table, rng=jobs, generate_multi_gpu_jobs=gangs)
        speeds = [table[name][job.job_type, job.scale_factor]["null"] for name in TYPES]
        rows.append((now, job.scale_factor, job.total_steps, speeds))
        now += -log(1 - gaps.random()) * 3600 / rate if rate else 0
    arrival, gpus, work, speed = zip(*rows, strict=True)
    names = [str(at) for at in range(count)]
    return Trace(Jobs.of(names=names, types=TYPES, arrival=arrival, gpus=gpus, work=work, throughput=speed)).as_(float)


def taken(policy: Policy, trace: Trace, wanted: range) -> list[float]:
    """Return the completion times of the ``wanted`` jobs, in hours."""
    cluster = Cluster.uniform(dict.fromkeys(TYPES, (1, GPUS)))
    ends: dict[int, float] = {}
    missing = set(wanted)
    for changes in Engine(policy, trace, cluster, length=ROUND):
        ends |= {job: float(end) for job, end in changes.completed.items()}
        missing -= changes.completed.keys()
        if not missing:
            break
    return [float(ends[at] - trace.jobs.arrival[at]) / 3600 for at in wanted]


def play(modules: tuple[Any, Any, Any], point: Point, change: str = "") -> float:
    """Return our value of a point."""
    policy = POLICIES[point.policy]
    if change == "renewed at once" and isinstance(policy, GavelRounds):
        policy = replace(policy, interval=0)
    if point.figure == "makespan":
        count = int(point.at)
        spans = [max(taken(policy, drawn(modules, 0, count, True, seed), range(count))) for seed in SEEDS]
        return sum(spans) / len(spans)
    trace = drawn(modules, float(point.at), WINDOW.stop + MORE, point.gangs, 0)
    found = taken(policy, trace, WINDOW)
    if point.figure.startswith("rho"):
        alone = taken(ISOLATED, trace, WINDOW)
        return sum(one / other for one, other in zip(found, alone, strict=True)) / len(found)
    return sum(found) / len(found)


# -- the page ----------------------------------------------------------------------------------------------------------
def table(path: Path) -> dict[Point, str]:
    """Return the values of a table; none where it is not there."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as stream:
        return {Point(row["figure"], row["policy"], row["at"]): row["value"] for row in csv.DictReader(stream)}


def written(path: Path, found: Mapping[Point, str]) -> None:
    beside = path.with_suffix(".part")
    with beside.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow([*Point._fields, "value"])
        out.writerows([*point, value] for point, value in found.items())
    beside.replace(path)


#: What each figure shows.
TITLES = {
    "las-single": "Figure 8: mean completion time, h; jobs of one GPU",
    "las-multi": "Figure 9: the same; gangs",
    "ftf-multi": "Figure 10: the same; gangs",
    "rho-single": "mean finish-time fairness; jobs of one GPU",
    "rho-multi": "the same; gangs",
    "makespan": "makespan, h; gangs, so many jobs at once",
}
#: Why the points of a curve are off by more than 10%, by figure and policy.
CAUSES: Mapping[tuple[str, str], str] = dict.fromkeys(
    [("las-multi", "max_min_fairness_perf"), ("las-multi", "fifo_perf"), ("ftf-multi", "finish_time_fairness_perf")],
    "other jobs: at 0.2 an hour, where nobody waits, 16.91 h are published for `fifo_perf`, and these jobs take 15.92 "
    "at best; those of one GPU 15.31 (at 0.4) and 15.34",
)
MARKS = "<!-- gavel: written by benchmarks/gavel_figures/play.py -->", "<!-- gavel: end -->"


def block(ours: Mapping[Point, str], theirs: Mapping[Point, str]) -> str:
    """Return the table of the page: a row for each curve, with published / ours (ratio) by load."""
    lines = ["| figure | policy | at: published, ours, ratio | cause |", "|---|---|---|---|"]
    for figure, title in TITLES.items():
        for policy in dict.fromkeys(point.policy for point in theirs if point.figure == figure):
            shown = [
                f"{point.at}: {value}, {ours[point]}, {float(ours[point]) / float(value):.2f}"
                for point, value in theirs.items()
                if point[:2] == (figure, policy) and point in ours
            ]
            if shown:
                why = CAUSES.get((figure, policy), "")
                lines.append(f"| {title} | `{policy}` | {'; '.join(shown)} | {why} |")
    return "\n".join(lines)


def into(page: str, tables: str) -> str:
    """Return the page with this table."""
    before, rest = page.split(MARKS[0])
    return f"{before}{MARKS[0]}\n\n{tables}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def points(theirs: Mapping[Point, str], only: str) -> Iterator[Point]:
    yield from (point for point in theirs if only in ", ".join(point))


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="")
    asked = parser.parse_args(argv)
    modules, ours, theirs = load(asked.checkout), table(OURS), table(PUBLISHED)
    for point in points(theirs, asked.only):
        if point not in ours:
            ours[point] = f"{play(modules, point):.2f}"
            print(f"{', '.join(point)}: published {theirs[point]}, ours {ours[point]}", file=sys.stderr, flush=True)
            written(OURS, {each: ours[each] for each in theirs if each in ours})
    PAGE.write_text(into(PAGE.read_text(encoding="utf-8"), block(ours, theirs)), encoding="utf-8")


if __name__ == "__main__":
    main()
