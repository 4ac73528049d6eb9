"""What the search for misreports costs: misreports a second, end to end, for each policy on random markets, one core.

    .venv/bin/python benchmarks/misreports.py [--users 20] [--types 4] [--markets 5] [--evaluations 3000]
                                              [--write FILE.md]

Every market has other speedups and capacities. The time is that of the whole public search: setting up, all three
kinds of misreport, confirming the best ones and deciding them exactly. Beside it stands what one decision at a time
makes, as `fairopt.allocate` does it. ``--write`` puts the figures of processor time into a document.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy comes: one core, and no threads for small matrices
os.environ.setdefault("OMP_NUM_THREADS", "1")

import platform
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from fairopt import allocate, discovery
from fairopt.experiment.bench.figures import put_into
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.properties import Effort, StrategyProofness
from fairopt.properties.misreports.reports import Reports

#: Policies that are decided one at a time look at fewer misreports.
FEW = 300


def random_market(users: int, types: int, seed: int) -> Market:
    """Return a market whose users all speed up on faster types, each in its own measure, to three decimals."""
    random = np.random.default_rng(seed)
    speedup = np.round(np.cumsum(random.uniform(0.1, 2, (users, types)), axis=1), 3)
    return Market.of(speedup.tolist(), random.integers(1, 21, types).tolist())


def one_by_one(policy: Policy, market: Market, count: int = 40) -> float:
    """Return how many misreports are decided one at a time in a second of processor time."""
    market, random = market.as_(float), np.random.default_rng(0)
    begun = process_time()
    for number in range(count):
        user = number % len(market.users)
        allocate(
            policy, market.misreport(user, market.speedup[user] * np.exp(random.normal(0, 0.4, len(market.types))))
        )
    return count / (process_time() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("users", 20), ("types", 4), ("markets", 5), ("evaluations", 3000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--policy", action="append", help="a policy's name; all that are refuted, if none is given")
    parser.add_argument("--write", type=Path, help="a Markdown file with a place for the block")
    given = parser.parse_args()
    lines = []
    names = given.policy or [
        "oef-noncooperative", "max-efficiency", "max-min", "oef-cooperative", "water-filling", "second-price-trading",
        "nash-welfare",
    ]  # fmt: skip
    print(f"{given.users} users, {given.types} types, {given.markets} random markets; misreports a second, end to end")
    heads = f"{'least':>8} {'median':>8} {'most':>8} {'of CPU':>8} {'one by one':>11}"
    print(f"{'policy':22} {heads}  answers: larger, smaller, any; ~ not exact")
    for name in names:
        policy = discovery.policy(name)
        rates, cpu, single, answers = [], [], [], []
        for seed in range(given.markets):
            market = random_market(given.users, given.types, seed)
            single.append(one_by_one(policy, market))
            together = Reports(policy, market).screened
            count = given.evaluations if together else min(given.evaluations, FEW)
            begun, spent = perf_counter(), process_time()
            verdict = StrategyProofness().search(policy, market, effort=Effort(evaluations=count))
            tried = int(verdict.effort.split()[0])
            rates.append(tried / (perf_counter() - begun))
            cpu.append(tried / (process_time() - spent))
            answers.append(
                " ".join(f"{each.answer.value}{'' if each.exact else '~'}" for each in verdict.by_misreport.values())
            )
        shown = ", ".join(f"{answers.count(each)}x {each}" for each in sorted(set(answers)))
        print(
            f"{name:22} {min(rates):8.0f} {np.median(rates):8.0f} {max(rates):8.0f} {np.median(cpu):8.0f} "
            f"{np.median(single):11.0f}  {shown}",
            flush=True,
        )
        lines.append(f"| {name} | {min(cpu):,.0f} | {np.median(cpu):,.0f} | {np.median(single):,.0f} |")
    if given.write is not None:
        made_by = f"`benchmarks/misreports.py --write {given.write}`"
        where = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        block = [
            f"Misreports a second of processor time, {given.users} users, {given.types} types, {given.markets} random "
            f"markets, {given.evaluations:,} misreports each, by {made_by} ({where}).",
            "",
            "| policy | least | median | one by one |",
            "|---|---:|---:|---:|",
            *lines,
        ]
        text = given.write.read_text(encoding="utf-8")
        given.write.write_text(put_into(text, "misreports", "\n".join(block), str(given.write)), encoding="utf-8")


if __name__ == "__main__":
    main()
