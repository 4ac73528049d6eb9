"""What a market that is near the last one costs: `follow` against `allocate`, side by side.

    .venv/bin/python benchmarks/resolves.py [--policy NAME ...] [--users 200 1000] [--steps 12] [--write FILE.md]

A market of the family oef-growing (10 types) goes through a sequence of steps: one user changes (a new row of
speedups), one comes, one goes, in turn. Each market is decided twice, by the function that `follow` gave, which has
seen all before it, and by `allocate`, which has seen none; who is first alternates. Where objectives differ by more
than 1e-7 of themselves, the script stops. Times are CPU seconds of this process, medians and the worst over the steps
of a kind.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np

from fairopt import allocate, discovery
from fairopt.benchmarks.instances.oef_growing import OefGrowing
from fairopt.experiment.bench.figures import put_into
from fairopt.policy import Allocation, Policy, follow
from fairopt.problem import Market

POLICIES = ("oef-cooperative", "oef-noncooperative", "max-min")
SEED, TYPES = 6, 10
#: The largest relative difference between two objectives.
TOLERANCE = 1e-7


@dataclass(frozen=True)
class Timed:
    """One step: its kind, and the seconds of the processor that the two took."""

    kind: str
    follows: float
    fresh: float


def changed(market: Market, random: np.random.Generator, step: int) -> Market:
    """Return the market with one user's row drawn again."""
    speedup = market.speedup.copy()
    speedup[random.integers(len(speedup))] = row(random)
    return arrays(market, speedup, market.users)


def come(market: Market, random: np.random.Generator, step: int) -> Market:
    """Return the market with one user more, last."""
    return arrays(market, np.vstack([market.speedup, row(random)]), (*market.users, f"new{step}"))


def gone(market: Market, random: np.random.Generator, step: int) -> Market:
    """Return the market without one of its users."""
    place = int(random.integers(len(market.users)))
    users = market.users[:place] + market.users[place + 1 :]
    return arrays(market, np.delete(market.speedup, place, axis=0), users)


KINDS: dict[str, Callable[[Market, np.random.Generator, int], Market]] = {
    "changes": changed,
    "comes": come,
    "goes": gone,
}


def row(random: np.random.Generator) -> np.ndarray:
    """Return speedups that grow from 1, as the family draws them."""
    growth = np.cumsum(random.uniform(0, 1, TYPES))
    return np.round(1 + growth - growth[0], 2)


def arrays(market: Market, speedup: np.ndarray, users: Sequence[str]) -> Market:
    return Market.of_arrays(speedup, market.capacity, users=users, types=market.types)


def steps(policy: Policy, users: int, count: int) -> Iterator[Timed]:
    """Yield each step's times, of so many steps of each kind."""
    random = np.random.default_rng([SEED, users])
    market = OefGrowing().draw(SEED, {"users": users, "types": TYPES}).problem
    again = follow(policy)
    again(market)
    allocate(policy, market)
    for step in range(count * len(KINDS)):
        kind = list(KINDS)[step % len(KINDS)]
        market = KINDS[kind](market, random, step)
        ways: dict[str, Callable[[], Allocation]] = {
            "follow": partial(again, market),
            "allocate": partial(allocate, policy, market),
        }
        took, found = dict[str, float](), dict[str, Allocation]()
        for name in list(ways)[:: 1 if step % 2 else -1]:
            begun = process_time()
            found[name] = ways[name]()
            took[name] = process_time() - begun
        _agree(found["follow"], found["allocate"])
        yield Timed(kind, took["follow"], took["allocate"])


def _agree(one: Allocation, other: Allocation) -> None:
    first, second = float(one.objective), float(other.objective)
    if abs(first - second) > TOLERANCE * max(abs(first), abs(second)):
        raise SystemExit(f"{one.policy}: follow found {first!r} and allocate {second!r} on the same market")


def table(names: Sequence[str], sizes: Sequence[int], count: int) -> Iterator[str]:
    """Yield the lines of the Markdown."""
    yield "| policy | users | one user | allocate, ms | follow, ms | follow / allocate: median | worst |"
    yield "|---|---:|---|---:|---:|---:|---:|"
    for name in names:
        policy = discovery.policy(name)
        for users in sizes:
            found = list(steps(policy, users, count))
            for kind in KINDS:
                of = [each for each in found if each.kind == kind]
                parts = [each.follows / max(each.fresh, 1e-9) for each in of]
                cells = [f"{1000 * median(each.fresh for each in of):.1f}"]
                cells += [f"{1000 * median(each.follows for each in of):.1f}", f"{median(parts):.2f}"]
                yield f"| {name} | {users:,} | {kind} | {' | '.join(cells)} | {max(parts):.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--policy", action="append", help="a policy's name; may be repeated")
    parser.add_argument("--users", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--steps", type=int, default=12, help="steps of each kind")
    parser.add_argument("--write", type=Path, help="a Markdown file with a place for the block")
    given = parser.parse_args()
    lines = []
    for line in table(given.policy or POLICIES, given.users, given.steps):
        print(line, flush=True)
        lines.append(line)
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    told = (
        f"CPU milliseconds, medians over {given.steps} steps of each kind, by `benchmarks/{' '.join(words)}` ({where})."
    )
    if given.write is not None:
        text = given.write.read_text(encoding="utf-8")
        block = "\n".join([told, "", *lines])
        given.write.write_text(put_into(text, "resolves", block, str(given.write)), encoding="utf-8")


if __name__ == "__main__":
    main()
