"""What `fairopt compare` takes exactly and with `--floats`: processor seconds, without and with the search for lies.

    .venv/bin/python benchmarks/compare_floats.py [--users 30] [--types 10] [--markets 2]

Every policy of shares and every property, on random markets, one core. The factors are those of one run: exact over
floats.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy comes: one core, and no threads for small matrices
os.environ.setdefault("OMP_NUM_THREADS", "1")

from time import process_time

from fairopt import compare, discovery
from fairopt.benchmarks.misreports import random_market
from fairopt.problem import Market
from fairopt.properties import AllocationProperty, MechanismProperty, Property


def seconds(market: Market, asked: list[Property], *, exact: bool) -> float:
    """Return the processor seconds of a comparison under every policy."""
    begun = process_time()
    rows = compare(market, None, asked, exact=exact).rows
    spent = process_time() - begun
    assert all(row.error is None for row in rows)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("users", 30), ("types", 10), ("markets", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    known = discovery.properties(Market)
    of_allocations = [each for each in known if isinstance(each, AllocationProperty)]
    searched = [each for each in known if isinstance(each, MechanismProperty)]
    seconds(random_market(3, 2, 0), known, exact=True)  # what is imported on demand is counted for nobody
    print(f"{given.users} users, {given.types} types, every policy; processor seconds")
    for seed in range(given.markets):
        market = random_market(given.users, given.types, seed)
        for what, asked in (("without the search", of_allocations), ("with it", [*of_allocations, *searched])):
            exact, floats = (seconds(market, asked, exact=each) for each in (True, False))
            print(f"market {seed}, {what:18}: exact {exact:6.2f}, floats {floats:6.2f}, factor {exact / floats:.1f}")


if __name__ == "__main__":
    main()
