"""FFT's program of one round: our algorithm against HiGHS on the plain program. Run it by hand; it takes minutes.

Instances are modelled on FFT's Sec. 6: gangs of 1, 2, 4, 8 GPUs as often as in Philly (86.6, 2.3, 4.9, 6.2 %),
throughputs random around a speed for each type, log-normal work, exponential ages, switching penalties, compensation
for half the jobs, and 15 % of jobs too large for the memory of a third of the types; K is what can be kept busy,
exactly. Harder ones: as many large gangs as small ones, gangs that do not divide each other, and costs rounded so that
most are tied. The warm start solves once more after one job in a hundred has new costs, from the old multipliers.

Each instance has a process of its own, whose peak memory is given (the instance itself and Python included). Times are
wall-clock: the median of ``--repeat`` solves, each with K, validation and grouping. HiGHS runs once, with gap 0, where
marked (``--highs SECONDS`` limits every solve, ours too; HiGHS looks at the clock now and then only and overruns it).
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter

import numpy as np

from fairopt.backends import Highs
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs, usable_gpus

PHILLY = ((1, 2, 4, 8), (0.866, 0.023, 0.049, 0.062))
EVEN = ((1, 2, 4, 8), (0.25, 0.25, 0.25, 0.25))
COPRIME = ((3, 5, 7), (0.4, 0.3, 0.3))
AWKWARD = ((4, 6, 9), (0.4, 0.3, 0.3))
LARGE = ((8, 16, 32), (0.5, 0.3, 0.2))


@dataclass(frozen=True)
class Case:
    """One instance: its size, gang mix (sizes, frequencies), seed, what costs are rounded to; plain: HiGHS as well."""

    name: str
    jobs: int
    gpus: int
    mix: tuple[tuple[int, ...], tuple[float, ...]] = PHILLY
    seed: int = 0
    rounded: float = 0.0
    plain: bool = False
    types: int = 8

    def instance(self) -> GangAssignment:
        """Return the instance, always the same."""
        n, k = self.jobs, self.types
        random = np.random.default_rng([self.seed, n, k, self.gpus])
        gangs = random.choice(self.mix[0], n, p=self.mix[1]).astype(np.int64)
        throughput = np.sort(random.uniform(1, 10, k)) * random.lognormal(0, 0.4, (n, k))  # epochs a round
        work, age = random.lognormal(5, 1.5, n)[:, None], random.exponential(50, n)[:, None]
        compensation = np.maximum(0, random.normal(0, 1, n))[:, None] * work / throughput.mean(axis=1)[:, None] / 50
        last = random.integers(-1, k, n)[:, None]
        switching = np.where((last >= 0) & (last != np.arange(k)), random.uniform(0.05, 0.5, n)[:, None], 0.0)
        cost = age * throughput / work + gangs[:, None] * work / throughput + switching - compensation * throughput
        if self.rounded:
            cost = np.round(cost / self.rounded)
        allowed = np.ones((n, k), dtype=bool)
        allowed[random.random(n) < 0.15, : k // 3] = False
        capacity = random.multinomial(self.gpus, np.ones(k) / k).astype(np.int64)
        return GangAssignment(cost, gangs, capacity, usable_gpus(gangs, allowed, capacity), allowed)


CASES = (
    *(Case("Philly", 4_000, 1_000, seed=seed, plain=True) for seed in range(3)),
    *(Case("Philly", 4_000, 1_000, seed=seed) for seed in range(3, 12)),
    Case("even gangs", 4_000, 1_000, EVEN, plain=True),
    Case("Philly", 100_000, 25_000),
    Case("Philly", 100_000, 1_000),
    Case("even gangs", 100_000, 25_000, EVEN),
    Case("Philly", 1_000_000, 250_000),
    Case("Philly", 1_000_000, 1_000),
    Case("even gangs", 1_000_000, 250_000, EVEN),
    Case("gangs 3, 5, 7", 4_000, 1_000, COPRIME),
    Case("gangs 8, 16, 32", 4_000, 1_000, LARGE),
    Case("gangs 4, 6, 9", 4_000, 1_000, AWKWARD),
    Case("gangs 4, 6, 9, few jobs", 400, 300, AWKWARD, seed=1, plain=True),
    Case("costs rounded to 1", 4_000, 1_000, rounded=1.0, seed=1),
    Case("costs rounded to 5", 4_000, 1_000, rounded=5.0, seed=1, plain=True),
    *(Case("costs rounded to 5", 100_000, 10_000, rounded=5.0, seed=seed) for seed in range(6)),
)


def measure(case: Case, repeat: int, limit: float) -> str:
    problem = case.instance()
    solve_gangs(replace(problem, least=0), time_limit=1.0)  # the first call imports what is needed
    times = []
    for _ in range(repeat):
        began = perf_counter()
        usable = usable_gpus(problem.gangs, problem.allowed, problem.capacity)
        given = (problem.cost, problem.gangs, problem.capacity, usable, problem.allowed)
        solution = solve_gangs(GangAssignment(*given), time_limit=limit)
        times.append(perf_counter() - began)
        if sum(times) > limit:
            break
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ours = median(times)
    gap = "none" if "type_of" not in solution.values else f"{solution.gap:.0e}"
    line = f"{case.name:24}{case.jobs:>9,}{case.gpus:>9,}{case.seed:>5}{ours:9.3f}{max(times):9.3f}"
    line += f"{solution.status.value:>9}{gap:>7}{solution.effort.get('columns', 0):>8.0f}{memory:7.2f}"
    random = np.random.default_rng(1)
    some = random.random(case.jobs) < 0.01
    cost = problem.cost.copy()
    cost[some] = cost[some][random.permutation(int(some.sum()))]
    changed = replace(problem, cost=cost)
    starts = {"cold": None, "warm": solution.warm_start}
    again: dict[str, list[float]] = {name: [] for name in starts}
    for _ in range(repeat if ours * repeat * 3 < limit else 1):
        for name, start in starts.items():
            began = perf_counter()
            solve_gangs(changed, start=start, time_limit=limit)
            again[name].append(perf_counter() - began)
    line += f"{median(again['cold']):9.3f}{median(again['warm']):9.3f}"
    if case.plain and limit > 0:
        program = problem.program()
        began = perf_counter()
        plain = Highs().solve(program, gap=0.0, time_limit=limit)
        seconds = perf_counter() - began
        better = (plain.objective or np.inf) - (solution.objective or np.inf) if plain.x is not None else np.inf
        line += f"{seconds:9.1f}{plain.status.value:>9}{seconds / ours:8.0f}x{better:+11.2e}"
    return line


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument(
        "--highs", type=float, default=60.0, metavar="SECONDS", help="limit of a solve, ours and HiGHS's"
    )
    parser.add_argument("--repeat", type=int, default=5, help="solves of each instance")
    parser.add_argument("--most", type=int, default=1_000_000, metavar="JOBS", help="leave larger instances out")
    arguments = parser.parse_args()
    print(f"8 types, times in seconds, memory in GiB, {sys.version.split()[0]}; HiGHS: on the plain program")
    head = (
        f"{'instance':24}{'jobs':>9}{'GPUs':>9}{'seed':>5}{'median':>9}{'most':>9}{'status':>9}{'gap':>7}{'moves':>8}"
    )
    print(
        f"{head}{'peak':>7}{'1% cold':>9}{'1% warm':>9}{'HiGHS':>9}{'status':>9}{'ratio':>9}{'its - ours':>11}",
        flush=True,
    )
    context = multiprocessing.get_context("spawn")
    try:
        for case in CASES:
            if case.jobs <= arguments.most:
                with context.Pool(1) as pool:  # a process of its own, so that the peak is that of one instance
                    print(pool.apply(measure, (case, arguments.repeat, arguments.highs)), flush=True)
    except KeyboardInterrupt:
        print("interrupted; this is what was measured", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
