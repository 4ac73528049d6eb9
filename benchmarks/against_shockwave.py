"""fairopt beside Shockwave's published simulation: ``python benchmarks/against_shockwave.py FOLDER``.

``FOLDER`` holds what github.com/uw-mad-dash/shockwave (8a44f4a) publishes of its canonical result, 120 jobs on 32 GPUs
of one type in rounds of 120 s: ``trace`` (scheduler/traces/reproduce/120_....trace), and POLICY.pickle of
scheduler/reproduce/pickles/tacc_32gpus, without the rest of their names.

Its jobs change their batch sizes while they run, which makes some shorter than the trace says, and lose time when they
start; fairopt's jobs have one speed. So each is given the rounds that it held in the published simulation under AlloX.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

from fairopt import run
from fairopt.models import AlloX, GangAwareStride, GavelRounds, ShortestRemainingTimeFirst
from fairopt.models.gavel.fairness import FinishTimeFairness
from fairopt.models.gavel.objectives import LeastMakespan
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace

ROUND, GPUS = 120, 32
#: By the published name: ours.
POLICIES: dict[str, tuple[str, Policy]] = {
    "allox": ("allox, most=none", AlloX(most=None)),
    "max_min_fairness": ("gavel-rounds", GavelRounds()),
    "finish_time_fairness": ("gavel-rounds, finish-time fairness", GavelRounds(objective=FinishTimeFairness())),
    "min_total_duration": ("gavel-rounds, least makespan", GavelRounds(objective=LeastMakespan())),
    "gandiva_fair": ("stride", GangAwareStride()),
    "max_sum_throughput_perf": ("srtf (no counterpart)", ShortestRemainingTimeFirst()),
}


class _JobIdPair:
    """Gavel's number of a job: the keys of dictionaries in the pickles, of which nothing is used."""


class _Plain(pickle.Unpickler):
    """Reads numbers, containers and numbers of jobs, and makes no other object of a file from outside."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "JobIdPair":
            return _JobIdPair
        if (module, name) in {
            ("numpy.core.multiarray", "scalar"),
            ("numpy", "dtype"),
            ("collections", "OrderedDict"),
            ("builtins", "set"),
        }:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not read")


def published(folder: Path, policy: str) -> dict[str, Any]:
    with (folder / f"{policy}.pickle").open("rb") as stream:
        found: dict[str, Any] = _Plain(stream).load()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    rows = [line.rstrip("\n").split("\t") for line in (folder / "trace").read_text(encoding="utf-8").splitlines()]
    gpus = [int(row[6]) for row in rows]
    arrival = [float(row[11]) for row in rows]
    held = Counter(job for present in published(folder, "allox")["per_round_schedule"] for job in present)
    work = [ROUND * held[at] for at in range(len(rows))]
    listed = sum(float(row[10]) * count for row, count in zip(rows, gpus, strict=True))
    print(f"work: {sum(a * b for a, b in zip(work, gpus, strict=True)) / listed:.3f} of what the trace says")
    names = [str(at) for at in range(len(rows))]
    trace = Trace(
        Jobs.of(
            names=names, types=["V100"], arrival=arrival, gpus=gpus, work=work, tenant=[f"t{name}" for name in names]
        )
    ).as_(float)
    columns = "makespan | mean JCT | mean wait for the first round"
    print(f"| policy | published: {columns} | ours | {columns} | makespans' ratio | JCTs' ratio |")
    print("|" + "---|" * 10, flush=True)
    for name, (called, policy) in POLICIES.items():
        result = published(folder, name)
        span, mean = float(result["makespan"]), float(result["avg_jct"])
        first: dict[int, int] = {}
        for number, present in enumerate(result["per_round_schedule"]):
            first |= {job: number for job in present if job not in first}
        wait = sum(first[at] * ROUND - arrival[at] for at in range(len(rows))) / len(rows)
        cluster = Cluster.uniform({"V100": (GPUS // 4, 4)})
        ends: dict[str, float] = {}
        starts: dict[str, float] = {}
        for record in run(policy, trace, cluster, length=ROUND):
            starts = {each.job: record.begin for each in record.ran} | starts
            ends |= {each.job: each.end for each in record.ran if each.completed}
        ours = max(ends.values())
        own = sum(ends[job] - came for job, came in zip(names, arrival, strict=True)) / len(names)
        began = sum(starts[job] - came for job, came in zip(names, arrival, strict=True)) / len(names)
        theirs, found = f"{span:.0f} | {mean:.0f} | {wait:.0f}", f"{ours:.0f} | {own:.0f} | {began:.0f}"
        print(f"| {name} | {theirs} | {called} | {found} | {ours / span:.3f} | {own / mean:.3f} |", flush=True)


if __name__ == "__main__":
    main()
