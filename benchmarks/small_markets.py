"""What `allocate` takes on small markets, proof included, beside bare calls of GLOP and HiGHS on the same program.

    .venv/bin/python benchmarks/small_markets.py [--policy NAME] [--repeats 15] [--write FILE.md]

Milliseconds of processor time, the least of several repeats, one core. A user's time is that of `Market.of` on lists,
or of `Market.of_arrays` on arrays, and of `allocate`; a solver's that of making its matrix, loading and solving. The
solvers take turns with `allocate` in one run, GLOP in a process of its own, since two HiGHS do not load into one.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy comes: one core, and no threads for small matrices
os.environ.setdefault("OMP_NUM_THREADS", "1")

import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from fairopt import allocate
from fairopt.benchmarks.peers.plain import Peer
from fairopt.errors import NotInstalled
from fairopt.experiment.bench import kinds
from fairopt.experiment.bench.figures import put_into
from fairopt.problem import Market

#: The policies of shares that decide by speedups alone.
POLICIES = (
    "oef-noncooperative", "oef-cooperative", "max-min", "max-efficiency", "water-filling", "nash-welfare",
    "partial-allocation", "second-price-trading", "equal-split",
)  # fmt: skip
SIZES = ((20, 5), (50, 5), (100, 8), (200, 10))
PEERS = ("highs", "ortools-glop")
#: Who takes more seconds is asked twice only.
LONG = 0.1


def numbers(users: int, types: int) -> tuple[Any, Any]:
    """Return speedups (n, k) that grow from type to type, to three decimals, and capacities (k,)."""
    random = np.random.default_rng([users, types])
    return np.round(np.cumsum(random.uniform(0.1, 2, (users, types)), axis=1), 3), random.integers(1, 21, types)


def least(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Return the least processor time of each call in milliseconds; they take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats):
        for each, spent in zip(calls, times, strict=True):
            if len(spent) < 2 or min(spent) < LONG:
                begun = process_time()
                each()
                spent.append(process_time() - begun)
    return [min(spent) * 1e3 for spent in times]


def bare(policy: str, market: Market, name: str) -> Callable[[], object] | None:
    """Return a call of a solver on the policy's program, from arrays to shares; None where there is none of it."""
    peer = kinds.contender(name, {})
    if policy not in peer.tasks or not isinstance(peer, Peer) or peer.missing() is not None:
        return None
    prepared = peer.prepare(policy, market)
    return lambda: peer.solve(peer.build(policy, prepared, time_limit=600.0, threads=1))


def alone(policy: str, size: tuple[int, int], name: str, repeats: int) -> float | None:
    """Return the milliseconds of a solver in this process, None where it is not installed."""
    speedup, capacity = numbers(*size)
    try:
        call = bare(policy, Market.of_arrays(speedup, capacity), name)
    except NotInstalled:
        return None
    return None if call is None else least(repeats, call)[0]


def measured(policy: str, size: tuple[int, int], repeats: int, other: ProcessPoolExecutor) -> list[float | None]:
    """Return milliseconds: from lists, from arrays, of `allocate` alone, of HiGHS and of GLOP."""
    speedup, capacity = numbers(*size)
    lists = speedup.tolist(), capacity.tolist()
    market = Market.of_arrays(speedup, capacity)
    calls: list[Callable[[], object]] = [
        lambda: allocate(policy, Market.of(*lists)),
        lambda: allocate(policy, Market.of_arrays(speedup, capacity)),
        lambda: allocate(policy, market),
    ]
    highs = bare(policy, market, PEERS[0])
    found: list[float | None] = [*least(repeats, *calls, *([] if highs is None else [highs]))]
    found += [] if highs is not None else [None]
    return [*found, other.submit(alone, policy, size, PEERS[1], repeats).result()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", action="append", choices=POLICIES, help="a policy's name; all, if none is given")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--write", type=Path, help="a Markdown file with a place for the block")
    given = parser.parse_args()
    heads = ("lists", "arrays", "allocate", "HiGHS", "GLOP")
    lines = []
    print(f"{'policy':22} {'users x types':>13} " + " ".join(f"{each:>9}" for each in heads) + "  of the fastest")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
        for policy in given.policy or POLICIES:
            for size in SIZES:
                times = measured(policy, size, given.repeats, other)
                shown = ["" if each is None else f"{each:.2f}" for each in times]
                peers = [each for each in times[3:] if each is not None]
                factor = f"{times[1] / min(peers):.2f}" if peers and times[1] is not None else ""
                users, types = size
                print(f"{policy:22} {f'{users} x {types}':>13} " + " ".join(f"{each:>9}" for each in shown), factor)
                lines.append(f"| {policy} | {users} x {types} | {' | '.join(shown)} | {factor} |")
    if given.write is not None:
        where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        block = [
            f"Milliseconds of processor time, the least of {given.repeats}, by `benchmarks/small_markets.py --write "
            f"{given.write}` ({where}).",
            "",
            "| policy | users x types | from lists | from arrays | `allocate` alone | HiGHS | GLOP | of the fastest |",
            "|---|---|---:|---:|---:|---:|---:|---:|",
            *lines,
        ]
        text = given.write.read_text(encoding="utf-8")
        given.write.write_text(put_into(text, "small", "\n".join(block), str(given.write)), encoding="utf-8")


if __name__ == "__main__":
    main()
