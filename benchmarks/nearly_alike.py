"""Cooperative OEF on users whose speedups are nearly in proportion: how many are decided, how well, how fast.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/nearly_alike.py --markets 80 --seed 2

Markets of seven shapes, 41 to 99 users and 2 to 8 types, differ from proportion by a part of 1e-4 to 1e-12.5. Each is
given ten seconds. What is decided goes to the independent verifier. Printed: the largest proven gap, and seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter

import numpy as np

from fairopt import Market, allocate
from fairopt.errors import FairoptError
from fairopt.models import CooperativeOEF
from fairopt.proofs.verify import verify

SHAPES = ("uniform", "clustered", "ordered", "weights apart", "one type", "capacities apart", "ties")


def market_of(shape: str, random: np.random.Generator, least: float, most: float) -> Market:
    """Return a random market whose users differ from proportion by a part of 10 to the minus ``least`` to ``most``."""
    n, k = int(random.integers(41, 100)), int(random.integers(2, 9))
    noise, differ = 10.0 ** -random.uniform(least, most), random.uniform(-1, 1, (n, k))
    if shape == "clustered":
        differ = random.uniform(-1, 1, (4, k))[random.integers(0, 4, n)]
    if shape == "ordered":
        differ = np.outer(random.uniform(0, 1, n), np.sort(random.uniform(-1, 1, k)))
    if shape == "one type":
        differ[:, 1:] = 0
    if shape == "ties":
        differ = np.round(differ)
    weight = random.lognormal(0, 2, n) if shape == "weights apart" else random.uniform(0.5, 3, n)
    apart = shape == "capacities apart"
    capacity = 10.0 ** random.uniform(-6, 6, k) if apart else random.integers(1, 50, k).astype(float)
    speedup = np.outer(random.lognormal(0, 1, n), random.lognormal(0, 0.5, k)) * (1 + noise * differ)
    return Market.of_arrays(speedup, capacity, weight=weight)


def main() -> None:
    """Decide the markets, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markets", type=int, default=80)
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--digits", type=float, nargs=2, default=(4, 12.5), help="how nearly: 10 to the minus these")
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    undecided, gaps, seconds = Counter[str](), [0.0], [0.0]
    for _ in range(asked.markets):
        shape = str(random.choice(SHAPES))
        market, begun = market_of(shape, random, *asked.digits), time.process_time()
        try:
            decision = allocate("oef-cooperative", market, time_limit=10)
        except FairoptError as error:
            undecided[shape] += 1
            print(f"{shape}, {len(market.users)} users, {len(market.types)} types: {error}")
            continue
        seconds.append(time.process_time() - begun)
        assert decision.solution is not None
        gaps.append(decision.solution.gap or 0.0)
        assert verify(json.loads(json.dumps(CooperativeOEF().certify(decision).to_json())))
    print(f"{asked.markets} markets, not decided: {sum(undecided.values())} {dict(undecided)}")
    print(f"largest gap {max(gaps):.1e}; CPU seconds: {max(seconds):.2f}, middle {np.median(seconds):.2f}")


if __name__ == "__main__":
    main()
