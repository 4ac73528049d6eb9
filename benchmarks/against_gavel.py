"""fairopt beside Gavel's own simulator: ``python benchmarks/against_gavel.py CHECKOUT [--jobs N]``.

``CHECKOUT`` is a copy of github.com/stanford-futuredata/gavel (commit c4fa4009 was used). Nothing in it is changed:
modules that its simulator imports and does not use (gRPC, matrix completion) are stood in for. Both play the same jobs
with the same throughputs (Gavel's simulation table), in rounds of 360 s, and every completion is compared.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import sys
import warnings
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from fairopt import run
from fairopt.models import AlloX, GavelRounds
from fairopt.models.gavel.fairness import FinishTimeFairness
from fairopt.models.gavel.objectives import LeastMakespan
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace

ROUND = 360
TYPES = ("k80", "p100", "v100")
#: By Gavel's name: ours.
POLICIES: dict[str, Policy] = {
    "max_min_fairness_perf": GavelRounds(),
    "finish_time_fairness_perf": GavelRounds(objective=FinishTimeFairness()),
    "min_total_duration_perf": GavelRounds(objective=LeastMakespan()),
    "allox": AlloX(most=None),
}


class Setup(NamedTuple):
    """GPUs of each type, gangs with how often each comes, and the mean seconds between arrivals."""

    name: str
    gpus: int
    gangs: tuple[int, ...]
    gap: float


SETUPS = (
    Setup("one GPU each, 4 + 4 + 4 GPUs", 4, (1,), 1500),
    Setup("one GPU each, 4 + 4 + 4 GPUs, busier", 4, (1,), 1000),
    Setup("gangs of 1, 2 and 4, 8 + 8 + 8 GPUs", 8, (1,) * 14 + (2,) * 2 + (4,) * 4, 1500),
)


class Drawn(NamedTuple):
    """A job as both take it: the model, GPUs, arrival, run time on a V100, and steps per second on each type."""

    model: str
    gpus: int
    arrival: float
    seconds: float
    speeds: tuple[float, ...]


def load(checkout: Path) -> tuple[Any, Any, Any]:
    """Return Gavel's modules scheduler, utils and job."""
    for name in ("matrix_completion", "runtime", "runtime.rpc", "runtime.rpc.scheduler_server"):
        sys.modules[name] = ModuleType(name)
    rpc: Any = sys.modules["runtime.rpc"]
    rpc.scheduler_server, rpc.scheduler_client = (ModuleType(name) for name in ("server", "client"))
    sys.path[:0] = [str(checkout / "scheduler"), str(checkout / "scheduler" / "policies")]
    import job  # type: ignore[import-not-found]
    import scheduler  # type: ignore[import-not-found]
    import utils  # type: ignore[import-not-found]

    return scheduler, utils, job


def drawn(setup: Setup, count: int, seed: int, table: Any) -> list[Drawn]:
    """Return jobs by the rule of Gavel's generator: minutes on a V100 are 10^U(1.5, 3), for one in five 10^U(3, 4).

    The latter are cut at 10^3.3 minutes, so that a run of few jobs is not all tail.
    """
    random, jobs, now = Random(seed), list[Drawn](), 0.0
    while len(jobs) < count:
        gpus = random.choice(setup.gangs)
        models = [
            key for key in table["v100"] if key[1] == gpus and all(table[name][key]["null"] > 0 for name in TYPES)
        ]
        key = random.choice(sorted(models))
        long = random.random() >= 0.8
        seconds = float(round(60 * 10 ** (random.uniform(3, 3.3) if long else random.uniform(1.5, 3))))
        jobs.append(Drawn(key[0], gpus, now, seconds, tuple(table[name][key]["null"] for name in TYPES)))
        now += round(random.expovariate(1 / setup.gap))
    return jobs


def by_gavel(
    modules: tuple[Any, Any, Any], name: str, setup: Setup, jobs: list[Drawn], file: Path, wait: int
) -> list[float]:
    """Return completion times (from arrival) as Gavel's simulator has them; ``wait``: seconds between allocations."""
    scheduler, utils, job = modules
    theirs = [
        job.Job(None, each.model, "", "", "-n", max(1, int(each.seconds * each.speeds[-1])), each.seconds, each.gpus)
        for each in jobs
    ]
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = scheduler.Scheduler(
            utils.get_policy(name, solver=None, seed=0),
            throughputs_file=str(file),
            simulate=True,
            seed=0,
            time_per_iteration=ROUND,
            minimum_time_between_allocation_resets=wait,
        )
        made.simulate(dict.fromkeys(TYPES, setup.gpus), arrival_times=[each.arrival for each in jobs], jobs=theirs)
    logging.disable(logging.NOTSET)
    ends = {int(str(job_id)): seconds for job_id, seconds in made._job_completion_times.items()}
    return [float(ends[at]) for at in range(len(jobs))]


def by_fairopt(policy: Policy, setup: Setup, jobs: list[Drawn]) -> list[float]:
    """Return completion times (from arrival) as fairopt has them."""
    trace = Trace(
        Jobs.of(
            names=[str(at) for at in range(len(jobs))],
            types=TYPES,
            arrival=[each.arrival for each in jobs],
            gpus=[each.gpus for each in jobs],
            work=[max(1, int(each.seconds * each.speeds[-1])) for each in jobs],
            throughput=[each.speeds for each in jobs],
        )
    ).as_(float)
    cluster = Cluster.uniform(dict.fromkeys(TYPES, (1, setup.gpus)))
    ends = {ran.job: ran.end for each in run(policy, trace, cluster, length=ROUND) for ran in each.ran if ran.completed}
    return [float(ends[str(at)]) - each.arrival for at, each in enumerate(jobs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    modules = load(given.checkout)
    file = given.checkout / "scheduler" / "simulation_throughputs.json"
    table = modules[1].read_all_throughputs_json_v2(str(file))
    print("| set-up | seed | policy | Gavel, mean h | ours, mean h | ours / Gavel | correlation | makespans' ratio |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for setup in SETUPS:
        for seed in range(given.seeds):
            jobs = drawn(setup, given.jobs, seed, table)
            for name, policy in POLICIES.items():
                if name == "allox" and len(set(setup.gangs)) > 1:
                    continue  # for jobs of one size only
                theirs = np.array(by_gavel(modules, name, setup, jobs, file, wait=0))
                ours = np.array(by_fairopt(policy, setup, jobs))
                arrival = np.array([each.arrival for each in jobs])
                spans = [(arrival + each).max() for each in (ours, theirs)]
                means = f"{theirs.mean() / 3600:.2f} | {ours.mean() / 3600:.2f} | {ours.mean() / theirs.mean():.3f}"
                alike = f"{np.corrcoef(theirs, ours)[0, 1]:.3f} | {spans[0] / spans[1]:.3f}"
                print(f"| {setup.name} | {seed} | {name} | {means} | {alike} |", flush=True)


if __name__ == "__main__":
    main()
