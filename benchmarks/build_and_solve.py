"""What building and solving cost: three small tables, each measured side by side in one run. `make bench` runs it.

(a) one large program: converting the market to floats, writing the program down, HiGHS.
(b) the whole `allocate` call on a small market, for each policy, and the part of it that HiGHS takes.
(c) the same programs written directly in cvxpy and solved by ECOS, as OEF's authors did: constraint by constraint
    ("loops") and with whole arrays ("arrays"). Each runs once, in a process of its own, and is stopped after 60 s.

Times are wall-clock; milliseconds are medians over repetitions. Instances come from a fixed seed. Progress goes
to standard error; Ctrl-C ends the run and keeps what has been measured. ``--json FILE`` writes the figures to a file.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from fairopt import models
from fairopt.backends import Highs, Options
from fairopt.models import CooperativeOEF, NonCooperativeOEF
from fairopt.policy import Formulated, Policy, Solve, allocate
from fairopt.problem import Market

SEED = 2024
STOPPED_AFTER = 60  # seconds
REPETITIONS = 9
POLICIES = {policy.name: policy for policy in (NonCooperativeOEF(), CooperativeOEF())}
DIRECT = (
    ("oef-cooperative", 20, 4),
    ("oef-cooperative", 100, 4),
    ("oef-cooperative", 300, 4),
    ("oef-noncooperative", 1000, 10),
)


def instance(users: int, types: int) -> Market:
    """Users whose speedups grow from 1 on the slowest type, at different rates, and a cluster of 8 to 64 of each."""
    random = np.random.default_rng([SEED, users, types])
    growth = np.cumsum(random.uniform(0, 1, (users, types)), axis=1)
    speedup = np.round(1 + growth - growth[:, :1], 2)
    return Market.of(speedup.tolist(), random.integers(8, 65, types).tolist())


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = perf_counter()
    result = work()
    return perf_counter() - began, result


# -- (a) and (b) -------------------------------------------------------------------------------------------------
def large(users: int = 1000, types: int = 10) -> dict[str, Any]:
    market, policy, convert, build, solve = instance(users, types), NonCooperativeOEF(), [], [], []
    for _ in range(REPETITIONS):
        fresh = replace(market)  # a market keeps its floats once it has them
        seconds, floats = timed(lambda fresh=fresh: fresh.as_(float))
        convert.append(seconds)
        seconds, program = timed(lambda floats=floats: policy.formulate(floats, None))
        build.append(seconds)
        solve.append(Highs().solve(program).require_optimal().seconds)
    row: dict[str, Any] = {"instance": f"{policy.name} {users} x {types}", "convert_ms": 1e3 * median(convert)}
    row |= {"build_ms": 1e3 * median(build), "highs_ms": 1e3 * median(solve)}
    return row | {"build_per_highs": median(build) / median(solve)}


def whole_call(policy: Policy, market: Market) -> dict[str, Any]:
    allocate(policy, market)  # the first call imports what is needed
    wall = median(timed(lambda: allocate(policy, replace(market)))[0] for _ in range(REPETITIONS))
    row: dict[str, Any] = {"policy": policy.name, "allocate_ms": 1e3 * wall, "highs_ms": None, "per_highs": None}
    if not policy.own_algorithm:
        inside = []
        for _ in range(REPETITIONS):
            solve = Solve(Highs(), Options())
            policy.decide(market, policy.start(market), solve)
            inside.append(solve.seconds)
        row |= {"highs_ms": 1e3 * median(inside), "per_highs": wall / median(inside)}
    return row


# -- (c) ---------------------------------------------------------------------------------------------------------
def by_fairopt(policy: Formulated, market: Market) -> tuple[float, float, float]:
    build, program = timed(lambda: policy.formulate(replace(market).as_(float), None))
    return build, *timed(lambda: float(Highs().solve(program).require_optimal().objective))


def by_cvxpy(policy: Formulated, market: Market, arrays: bool) -> tuple[float, float, float]:
    """Return seconds to write the problem down and to compile and solve it, and the optimum."""
    import cvxpy as cp

    def build() -> Any:
        w, m, n = market.speedup.astype(float), market.capacity.astype(float), len(market.users)
        x = cp.Variable((n, len(m)), nonneg=True)
        constraints = [cp.sum(x, axis=0) <= m]
        own = cp.sum(cp.multiply(w, x), axis=1)
        if policy.name == NonCooperativeOEF.name:
            constraints += [own[1:] == own[0]] if arrays else [w[i] @ x[i] == w[0] @ x[0] for i in range(1, n)]
        elif arrays:
            constraints += [cp.reshape(own, (n, 1), order="C") @ np.ones((1, n)) >= w @ x.T]
        else:
            constraints += [w[i] @ x[i] >= w[i] @ x[l] for i in range(n) for l in range(n) if i != l]  # noqa: E741
        return cp.Problem(cp.Maximize(cp.sum(cp.multiply(w, x))), constraints)

    seconds, problem = timed(build)
    return seconds, *timed(lambda: problem.solve(solver="ECOS"))


WAYS = {
    "fairopt + HiGHS": by_fairopt,
    "cvxpy arrays + ECOS": lambda policy, market: by_cvxpy(policy, market, arrays=True),
    "cvxpy loops + ECOS": lambda policy, market: by_cvxpy(policy, market, arrays=False),
}


def _child(sender: Connection, way: str, policy: str, users: int, types: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    WAYS[way](POLICIES[policy], instance(3, 2))  # imports are not what is measured
    sender.send(WAYS[way](POLICIES[policy], instance(users, types)))


def direct(way: str, policy: str, users: int, types: int) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, way, policy, users, types), daemon=True)
    row: dict[str, Any] = {"instance": f"{policy} {users} x {types}", "way": way}
    row |= dict.fromkeys(("build_s", "compile_and_solve_s", "total_s", "objective"))
    process.start()
    sender.close()  # so that the end of a process that fails is seen at once
    try:
        if not receiver.poll(STOPPED_AFTER):
            return row | {"note": f"stopped after {STOPPED_AFTER} s"}
        build, solve, objective = receiver.recv()
    except EOFError:
        return row | {"note": "failed"}
    finally:
        process.kill()
        process.join()
    return row | dict(zip(list(row)[2:], (build, solve, build + solve, objective), strict=True), note="")


# -- the run -----------------------------------------------------------------------------------------------------
def measurements() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    yield "(a) building against solving", large
    small = instance(20, 4)
    for name in models.__all__:
        policy = getattr(models, name)()
        yield "(b) allocate, 20 users x 4 types", lambda policy=policy: whole_call(policy, small)
    for case in DIRECT:
        for way in WAYS:
            yield "(c) the same programs written in cvxpy", lambda way=way, case=case: direct(way, *case)


def text(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    cells = [list(rows[0]), *([text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    print(f"\n{title}")
    for line in cells:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def main() -> int:
    parser = argparse.ArgumentParser(description="What building and solving cost.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE as well")
    arguments = parser.parse_args()
    tables, status = dict[str, list[dict[str, Any]]](), 0
    try:
        for title, measure in measurements():
            row = measure()
            tables.setdefault(title, []).append(row)
            print(f"{title}: {' '.join(str(value) for value in list(row.values())[:2])}", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted; this is what was measured", file=sys.stderr)
        status = 130
    print(
        f"Python {platform.python_version()}, {platform.machine()}, seed {SEED}, medians of {REPETITIONS} where in ms"
    )
    for title, rows in tables.items():
        show(title, rows)
    if arguments.json:
        arguments.json.write_text(json.dumps({"schema": 1, "seed": SEED, "tables": tables}, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
