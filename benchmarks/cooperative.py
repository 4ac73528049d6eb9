"""Cooperative OEF where demands bind for most users: seconds of processor and proven gap, on one core.

OMP_NUM_THREADS=1 python benchmarks/cooperative.py --users 400 --seeds 3
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from fairopt import allocate
from fairopt.benchmarks.float_samples import even, rising, sparse
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.program import Array


def near_rank_one(random: np.random.Generator, users: int, types: int) -> Array:
    """Return outer products of lognormal numbers, with 5 % noise."""
    rows = np.outer(random.lognormal(0, 1, users), random.lognormal(0, 0.5, types))
    return rows * random.uniform(0.95, 1.05, rows.shape)


def lognormal(random: np.random.Generator, users: int, types: int) -> Array:
    """Return lognormal speedups."""
    return random.lognormal(0, 1, (users, types))


def tied(random: np.random.Generator, users: int, types: int) -> Array:
    """Return whole numbers from 1 to 8."""
    return random.integers(1, 9, (users, types)).astype(float)


def ordered(random: np.random.Generator, users: int, types: int) -> Array:
    """Return powers a^b: b orders the users."""
    return np.asarray(np.linspace(1, 4, types) ** random.uniform(0.2, 2, users)[:, None])


SPEEDUPS = (even, rising, near_rank_one, lognormal, tied, sparse, ordered)
DEMANDS = {
    "uniform": lambda random, users: random.uniform(0.1, 2, users),
    "of four sizes": lambda random, users: random.choice([0.25, 0.5, 1, 2], users),
    "mixed": lambda random, users: np.where(random.random(users) < 0.3, 100, random.uniform(0.05, 1.5, users)),
    "none": lambda random, users: np.full(users, np.inf),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=400)
    parser.add_argument("--types", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="", help="a part of the names of speedups and demands")
    arguments = parser.parse_args()
    for speedups in SPEEDUPS:
        for demands, draw in DEMANDS.items():
            name = f"{speedups.__name__}, demands {demands}"
            if arguments.only not in name:
                continue
            for seed in range(arguments.seeds):
                random = np.random.default_rng([seed, arguments.users])
                rows = speedups(random, arguments.users, arguments.types)
                capacity = (arguments.users * 10 ** random.uniform(-1.5, 0, arguments.types)).round() + 1
                demand = draw(random, arguments.users) * capacity.sum() / arguments.users
                market = Market.of_arrays(rows, capacity, demand=demand)
                began = time.process_time()
                solution = allocate(CooperativeOEF(), market).solution
                took = time.process_time() - began
                by = "interior points" if solution.effort["rounds"] == 1 else "generated rows"
                print(f"{name}, seed {seed}: {took:.2f} s, gap {solution.gap:.1e}, {by}", flush=True)


if __name__ == "__main__":
    main()
