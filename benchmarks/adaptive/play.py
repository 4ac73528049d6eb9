"""Plays the workloads of Pollux's and of Sia's artefacts and writes what comes out into docs/adaptive-jobs.md.

``python -m fairopt.benchmarks.adaptive.play --pollux ADAPTDL/simulator --sia ARTIFACTS/sia-simulator``, with checkouts
of github.com/petuum/adaptdl, branch osdi21-artifact, and github.com/siasosp23/artifacts. Either may be left out: its
rows stay as they are. A workload takes up to two minutes. ``--only TEXT`` plays the settings with that in their name.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from fairopt import discovery
from fairopt.importing import pollux, sia
from fairopt.models import GavelRounds, LeastAttainedService, Optimus, Pollux, Sia
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.objectives import ThroughputByCost
from fairopt.policy import Policy
from fairopt.problem import Cluster, Trace
from fairopt.problem.profile import Profile
from fairopt.program import Program
from fairopt.simulation import Mechanics
from fairopt.simulation.engine import Engine

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGE, OURS, PUBLISHED = ROOT / "docs" / "adaptive-jobs.md", HERE / "ours.csv", HERE / "published.csv"
ROUND = 60
FIGURES = {
    "mean": "mean completion time, h",
    "p99": "99th percentile, h",
    "makespan": "makespan, h",
    "gpu_hours": "GPU-hours a job",
}
#: Pollux's Tiresias puts a job into its second queue after 16 GPU-hours.
TIRESIAS = LeastAttainedService(thresholds=(16 * 3600,))
HOMOGENEOUS, HETEROGENEOUS = {"T4": 16}, {name: hosts for name, (_, _, hosts) in sia.TYPES.items()}


@dataclass(frozen=True)
class MostSteps(ThroughputByCost):
    """The most steps a second, whatever a step is worth, as Sia's authors play Gavel; ``of``: profiles by job."""

    of: Mapping[str, Profile | None] = field(default_factory=dict)

    def formulate(self, jobs: JobMarket) -> Program:
        """Return the program in steps instead of goodput."""
        market, gang = jobs.market, np.asarray(jobs.market.demand, dtype=float)
        steps = [(self.of[name] or Profile(())).throughput[0][3:] for name in market.users]
        speed = np.where(market.speedup > 0, np.array(steps, dtype=float) / gang[:, None], 0.0)
        return super().formulate(replace(jobs, market=replace(market, speedup=speed)))


@dataclass(frozen=True)
class Played:
    """What is played: a policy on the workloads of a folder, in a setting, and how they are read.

    ``change``: what differs from the published configuration, "" for nothing. ``backend`` solves programs.
    """

    setting: str
    policy: Policy
    folder: str
    read: Callable[[Path], Trace]
    cluster: Cluster
    artefact: str
    change: str = ""
    workloads: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)
    length: int = ROUND
    backend: str = "auto"

    @property
    def key(self) -> tuple[str, str, str]:
        """Its setting, policy and change."""
        return self.setting, self.policy.name, self.change


def all_played() -> Iterator[Played]:
    """Yield all that is played."""
    for load in ("0.5", "1.0", "1.5", "2.0"):
        folder = "workloads" if load == "1.0" else f"workloads-{load}"
        for policy, how in (
            (Pollux(), {}),
            (Optimus(), {"batches": "fixed"}),
            (TIRESIAS, {"batches": "fixed", "sizes": "fixed"}),
        ):

            def read(path: Path, how: Mapping[str, str] = how) -> Trace:
                return pollux.read_workload(path, **how)

            one = Played(f"Pollux, load {load}", policy, folder, read, pollux.cluster(), "pollux")
            yield one
            if load == "1.0" and isinstance(policy, Pollux):
                for change, other in (("no growth limit", {"growth": None}), ("hosts shared", {"apart": False})):
                    yield replace(one, policy=replace(policy, **other), change=change)
    for setting, hosts, folder in (
        ("Sia, homogeneous", HOMOGENEOUS, "workloads/philly"),
        ("Sia, heterogeneous, Philly", HETEROGENEOUS, "workloads/philly"),
        ("Sia, heterogeneous, Helios", HETEROGENEOUS, "workloads/saturn"),
    ):
        several = len(hosts) > 1
        workloads = tuple(range(1, 11 if "saturn" in folder else 9))
        for policy_ in (Sia(gap=1e-4), Pollux(mixed=4 if several else None)):
            whole = isinstance(policy_, Sia)

            def read_sia(path: Path, hosts: Mapping[str, int] = hosts, whole: bool = whole) -> Trace:
                return sia.read_workload(path, hosts, whole=whole)

            one = Played(setting, policy_, folder, read_sia, sia.cluster(hosts), "sia", workloads=workloads)
            yield one
            if several and isinstance(policy_, Pollux):
                for change, mixed in (("on one type", None), ("hosts not divided", 8)):
                    yield replace(one, policy=replace(policy_, mixed=mixed), change=change)

        def read_fixed(path: Path, hosts: Mapping[str, int] = hosts) -> Trace:
            return sia.read_workload(path, hosts, fixed=True)

        gavel = GavelRounds(objective=MostSteps(), reset=False, head_start="1/2")
        # ECOS ends inside the set of optima, which gives a job parts of several types, and so decides what comes out
        one = Played(setting, gavel, folder, read_fixed, sia.cluster(hosts), "sia", "", workloads, 360, "ecos")
        yield one
        yield replace(one, backend="auto", change="optima at a vertex")


def play(one: Played, path: Path) -> list[tuple[float, float, float]]:
    """Return of each job of a workload when it came, how long it took, and its GPU-time, in hours."""
    trace = one.read(path).as_(float)
    policy = one.policy
    if isinstance(policy, GavelRounds):
        policy = replace(policy, objective=MostSteps(of=dict(zip(trace.jobs.names, trace.jobs.profiles, strict=True))))
    solver = discovery.solver(policy, one.backend)
    engine = Engine(policy, trace, one.cluster, length=one.length, mechanics=Mechanics(), backend=solver)
    ends: dict[int, float] = {}
    held = dict.fromkeys(range(len(trace.jobs)), 0.0)
    runs: dict[int, tuple[float, int]] = {}

    def stop(row: int, at: float) -> None:
        if row in runs:
            since, gpus = runs.pop(row)
            held[row] += (at - since) * gpus

    for changes in engine:
        for row in changes.stopped:
            stop(row, float(changes.begin))
        for placed in changes.placed:
            stop(placed.row, float(changes.begin))
            runs[placed.row] = float(changes.begin), sum(gpus for _, gpus in placed.spots)
        for row, end in changes.completed.items():
            stop(row, float(end))
            ends[row] = float(end)
    came = trace.jobs.arrival.tolist()
    return [(came[row] / 3600, (ends[row] - came[row]) / 3600, held[row] / 3600) for row in held]


def figures(workloads: list[list[tuple[float, float, float]]]) -> dict[str, float]:
    """Return the figures of several workloads, as the artefacts count them: percentiles over all jobs together."""
    taken = sorted(time for jobs in workloads for _, time, _ in jobs)
    makespans = [max(came + time for came, time, _ in jobs) for jobs in workloads]
    return {
        "mean": sum(taken) / len(taken),
        "p99": taken[int(0.99 * len(taken))],
        "makespan": sum(makespans) / len(makespans),
        "gpu_hours": sum(held for jobs in workloads for *_, held in jobs) / len(taken),
    }


def published_of(folder: Path) -> Iterator[dict[str, str]]:
    """Yield the figures of the results that lie in Pollux's artefact."""
    for load in ("0.5", "1.0", "1.5", "2.0"):
        rows = folder / ("workloads" if load == "1.0" else f"workloads-{load}")
        for theirs, ours in (("pollux", "pollux"), ("optimus", "optimus"), ("tiresias", "tiresias")):
            text = (folder / "results-jobload" / f"{theirs}-{load}" / "summary.json").read_text(encoding="utf-8")
            workloads = []
            for name, taken in json.loads(text)["jcts"].items():
                with (rows / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
                    came = {row["name"]: float(row["time"]) for row in csv.DictReader(stream)}
                workloads.append([(came[job] / 3600, time / 3600, 0.0) for job, time in taken.items()])
            found = figures(workloads)
            where = f"results-jobload/{theirs}-{load}"
            for figure in ("mean", "p99", "makespan"):
                value = f"{found[figure]:.4g}"
                yield {
                    "setting": f"Pollux, load {load}",
                    "policy": ours,
                    "figure": figure,
                    "value": value,
                    "where": where,
                }


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table; none where it is not there."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    beside = path.with_suffix(".part")
    with beside.open("w", encoding="utf-8", newline="") as stream:
        out = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows(rows)
    beside.replace(path)


#: What is known of why a figure is off by more than 10%.
CAUSES: Mapping[tuple[str, str, str], str] = {
    ("Sia, heterogeneous, Philly", "pollux", "gpu_hours"): (
        "in part restarts: weighed at 30 s each, as there, and free on hosts alike, it is 4.88 (mean 0.965, percentile "
        "14.5, makespan 25.0); the rest is not shown: fitted speeds, the search"
    )
}
MARKS = "<!-- played: written by benchmarks/adaptive/play.py -->", "<!-- played: end -->"


def block(ours: list[dict[str, str]]) -> str:
    """Return the tables of the page."""
    theirs = {(row["setting"], row["policy"], row["figure"]): row["value"] for row in table(PUBLISHED)}
    lines = ["| setting | policy | figure | published | ours | ratio | cause |", "|---|---|---|---|---|---|---|"]
    plain = {(row["setting"], row["policy"]): row for row in ours if not row["change"]}
    for (setting, policy, figure), value in theirs.items():
        if own := plain.get((setting, policy)):
            ratio = float(own[figure]) / float(value)
            why = CAUSES.get((setting, policy, figure), "") if abs(ratio - 1) > 0.1 else ""
            lines.append(
                f"| {setting} | `{policy}` | {FIGURES[figure]} | {value} | {own[figure]} | {ratio:.2f} | {why} |"
            )
    changed = ["", f"| changed | setting | policy | {' | '.join(FIGURES.values())} |", "|---|---|---|" + "---|" * 4]
    lines += changed if any(row["change"] for row in ours) else []
    for row in ours:
        before = plain.get((row["setting"], row["policy"]))
        if row["change"] and before:
            ratios = " | ".join(f"{float(row[each]) / float(before[each]):.2f}" for each in FIGURES)
            lines.append(f"| {row['change']} | {row['setting']} | `{row['policy']}` | {ratios} |")
    lines += ["", "| paper | table or figure | here |", "|---|---|---|"]
    lines += [f"| {' | '.join(row.values())} |" for row in table(HERE / "papers.csv")]
    return "\n".join(lines)


def into(page: str, tables: str) -> str:
    """Return the page with these tables."""
    before, rest = page.split(MARKS[0])
    return f"{before}{MARKS[0]}\n\n{tables}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pollux", type=Path)
    parser.add_argument("--sia", type=Path)
    parser.add_argument("--only", default="")
    asked = parser.parse_args(argv)
    ours = {(row["setting"], row["policy"], row["change"]): row for row in table(OURS)}
    if asked.pollux:
        kept = [row for row in table(PUBLISHED) if not row["setting"].startswith("Pollux")]
        write(PUBLISHED, [*published_of(asked.pollux), *kept])
    for one in all_played():
        checkout = asked.pollux if one.artefact == "pollux" else asked.sia
        if checkout is None or asked.only not in ", ".join(one.key):
            continue
        found = []
        for number in one.workloads:
            found.append(play(one, checkout / one.folder / f"workload-{number}.csv"))
            print(f"{', '.join(one.key)}: workload {number}", figures(found[-1:]), file=sys.stderr, flush=True)
        row = dict(zip(("setting", "policy", "change"), one.key, strict=True))
        ours[one.key] = row | {name: f"{value:.4g}" for name, value in figures(found).items()}
        order = [each.key for each in all_played()]
        write(OURS, [ours[key] for key in order if key in ours])
    PAGE.write_text(into(PAGE.read_text(encoding="utf-8"), block(table(OURS))), encoding="utf-8")


if __name__ == "__main__":
    main()
