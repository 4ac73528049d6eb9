"""What exactness costs: HiGHS in floats and the exact backend on the same program, side by side in one run.

Both are timed from the program as the policy writes it (exact numbers) to the answer, conversions included. Times are
those of the processor, the least of repetitions in turn. ``--json FILE`` writes the figures to a file; ``--quick``
leaves out what takes more than a few seconds.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/exact.py
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from fairopt.backends import Highs, Options
from fairopt.backends.exact import Exact
from fairopt.backends.exact.bound import exact_bound
from fairopt.backends.highs import instance as empty
from fairopt.backends.highs import load, run
from fairopt.backends.scaling import scaled
from fairopt.backends.solution import Solution
from fairopt.datasets.gavel import gavel_market, gavel_throughputs
from fairopt.models import CooperativeOEF, NonCooperativeOEF
from fairopt.numbers import RATIONALS
from fairopt.problem import Market
from fairopt.program import INFINITY, Formulation, Program, fractions

SEED = 2024
REPEATED = 2.0  # seconds for which a program is repeated, twice at least
QUICK = 250_000  # non-zeros up to which a program is quick
PATIENCE = 60  # seconds for HiGHS


def gavel(users: int) -> Market:
    """Users who train Gavel's jobs, drawn at random, with every digit of the measured speedups."""
    random = np.random.default_rng([SEED, users])
    jobs = [job for job in gavel_throughputs() if all(job.steps_per_s.values())]
    drawn = {f"u{i}": jobs[int(random.integers(len(jobs)))] for i in range(users)}
    chosen = {user: (job.model, job.batch_size) for user, job in drawn.items()}
    return gavel_market(chosen, {"K80": 4 * users, "P100": 2 * users, "V100": users}, digits=None)


def cooperative(market: Market) -> Program:
    return CooperativeOEF().formulate(market, None)


def promised(users: int, types: int) -> Program:
    """Infeasible: the first user is promised half of everything, which others must envy."""
    market = instance(users, types)
    program = cooperative(market)
    lower = program.lower.copy()
    lower[:types] = market.capacity / 2
    return replace(program, lower=lower)


def overbooked(users: int, types: int) -> Program:
    """Infeasible, and each user has a part in it: everybody is promised twice the worth of equal shares."""
    market = instance(users, types)
    p = Formulation("overbooked")
    share = p.variable("share", (users, types), lower=0)
    worth = (market.speedup * share).sum(axis=1)
    p.maximize(worth.sum())
    p.constrain("capacity", share.sum(axis=0) <= market.capacity)
    p.constrain("promise", worth >= 2 * (market.speedup * market.capacity).sum(axis=1) / users)
    return p.program()


def endless(users: int, types: int) -> Program:
    """Unbounded: one type has no capacity."""
    program = cooperative(instance(users, types))
    upper = program.rows.upper.copy()
    upper[program.row_block("capacity").first] = INFINITY
    return replace(program, rows=replace(program.rows, upper=upper))


PROGRAMS: dict[str, Callable[[], Program]] = {
    **{
        f"oef-cooperative {n} x {k}": lambda n=n, k=k: cooperative(instance(n, k))  # type: ignore[misc]
        for n, k in ((20, 4), (40, 10), (100, 10), (200, 10))
    },
    "oef-cooperative 60 x 3, Gavel's digits": lambda: cooperative(gavel(60)),
    "oef-cooperative 150 x 3, Gavel's digits": lambda: cooperative(gavel(150)),
    "oef-noncooperative 1000 x 10": lambda: NonCooperativeOEF().formulate(instance(1000, 10), None),
    "infeasible 12 x 4": lambda: promised(12, 4),
    "infeasible 100 x 10": lambda: promised(100, 10),
    "infeasible for all, 1000 x 10": lambda: overbooked(1000, 10),
    "unbounded 12 x 4": lambda: endless(12, 4),
    "unbounded 40 x 10": lambda: endless(40, 10),
}


def instance(users: int, types: int) -> Market:
    """Users whose speedups grow from 1 on the slowest type, at different rates, and a cluster of 8 to 64 of each."""
    random = np.random.default_rng([SEED, users, types])
    growth = np.cumsum(random.uniform(0, 1, (users, types)), axis=1)
    speedup = np.round(1 + growth - growth[:, :1], 2)
    return Market.of(speedup.tolist(), random.integers(8, 65, types).tolist())


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = process_time()
    result = work()
    return process_time() - began, result


def digits(solution: Solution) -> int | None:
    """Return the digits of the largest denominator in the point."""
    return None if solution.x is None else max(len(str(value.denominator)) for value in solution.x)


def in_floats(program: Program) -> Solution:
    """Return HiGHS's answer without a conflict, the search for which has no end on some infeasible programs."""
    ordinary = scaled(program.as_(float))
    highs = empty(Options())
    load(highs, ordinary.program)
    return ordinary.back(run(highs, ordinary.program, PATIENCE, thorough=False))


def measure(name: str, program: Program) -> dict[str, Any]:
    floats, exacts = list[float](), list[float]()
    while len(floats) < 2 or sum(floats) + sum(exacts) < REPEATED:
        seconds, rough = timed(lambda: in_floats(program))
        floats.append(seconds)
        seconds, found = timed(lambda: Exact().solve(program))
        exacts.append(seconds)
    row: dict[str, Any] = {"program": name, "rows": len(program.rows), "nonzeros": len(program.rows.value)}
    row |= {"highs_s": min(floats), "highs": rough.status.value, "exact_s": min(exacts)}
    return row | {"ratio": min(exacts) / min(floats), "exact": found.raw_status, "digits": digits(found)}


def bounds(name: str, program: Program) -> dict[str, Any]:
    """Judge HiGHS's float point and multipliers, without solving anything exactly."""
    rough = Highs().solve(program)
    exact, point = program.as_(RATIONALS), fractions(rough.point)
    seconds, proved = timed(lambda: exact_bound(program, rough.dual))
    broken = exact.violations(point)
    row = {"program": name, "exact_bound_s": seconds, "broken": len(broken)}
    row["most"] = float(max(broken.values(), default=0))
    return row | {"gap": None if proved is None else float(abs(proved[0] - exact.value(point)))}


def measurements(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    Exact().solve(cooperative(instance(2, 2)))  # imports are not what is measured
    for name, write in PROGRAMS.items():
        program = write()
        if quick and len(program.rows.value) > QUICK:
            continue
        yield "(a) HiGHS and the exact backend", measure(name, program)
        if name.startswith("oef"):
            yield "(b) what HiGHS's own answer is worth, exactly", bounds(name, program)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    cells = [list(rows[0]), *([text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n{title}")
    for line in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def text(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def main() -> int:
    parser = argparse.ArgumentParser(description="What exactness costs.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    parser.add_argument("--quick", action="store_true", help=f"only programs with up to {QUICK:,} non-zeros")
    arguments = parser.parse_args()
    tables, status = dict[str, list[dict[str, Any]]](), 0
    try:
        for title, row in measurements(arguments.quick):
            tables.setdefault(title, []).append(row)
            print(f"{title}: {row['program']}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted; this is what was measured", file=sys.stderr)
        status = 130
    print(f"Python {platform.python_version()}, {platform.machine()}, seed {SEED}")
    for title, rows in tables.items():
        show(title, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"schema": 1, "seed": SEED, "tables": tables}, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
