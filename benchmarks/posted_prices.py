"""Posted prices: the fast search against the transcription, growth, and ratios to the optimum.

    .venv/bin/python benchmarks/posted_prices.py [PART ...] [--data DATA] [--write docs/schedules.md]

* speed: jobs are offered a place in one round of 128 slots, on 100 servers, at three loads, by both searches in the
  same state; what they find is compared. The reference takes seconds an offer, so that only a few are timed.
* growth: milliseconds an offer of the fast search as jobs, slots and servers are doubled, each on its own.
* ratio: total utility over the offline optimum, or over a bound on it that prices prove, at the paper's small sizes.
* baselines: total utilities of the policies that need no solver, at the paper's scale.

Workloads are `astraea_batches.astraea_workload`'s: of the whole table of Philly's jobs and 14 tenants with ``--data``,
else of the excerpt with 8. Times are CPU seconds of this process, so that what else the machine does counts less.
"""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean, median
from time import process_time
from typing import Any

import numpy as np

from fairopt.benchmarks.workloads.astraea_batches import astraea_small, astraea_workload
from fairopt.experiment.bench.figures import put_between
from fairopt.models.astraea.batch_private import BatchPrivate
from fairopt.models.astraea.fast_search import Fast
from fairopt.models.astraea.fcfs import FirstComeFirstServed
from fairopt.models.astraea.packing import CompactExponentialPacking, most_earned, revenue
from fairopt.models.astraea.posted_prices import PostedPricePacking, admissible_bases
from fairopt.models.astraea.reference import Reference
from fairopt.models.astraea.round_state import RoundState
from fairopt.policy import Admission, Plan, decide
from fairopt.problem.batch import Batch

SERVERS, USERS, SLOTS = 100, 14, 128
Workload = Callable[..., Batch]


def fresh(batch: Batch, slots: int = SLOTS) -> RoundState:
    """Return a round of so many slots in which nothing is used and everything shared."""
    workers, ps = admissible_bases(batch, range(len(batch.jobs)))
    state = RoundState.fresh(batch, 2 * slots, slots, np.asarray(workers), np.asarray(ps))
    state.share()
    return state


def fill(state: RoundState, jobs: Sequence[int]) -> None:
    """Admit the jobs that gain, one after the other."""
    for job in jobs:
        best = Fast().best(state, job)
        if best.schedule is not None and best.gain > 0:
            state.admit(best.schedule)


def timed(search: Any, state: RoundState, job: int, repeat: int = 1) -> tuple[float, Admission]:
    """Return the median seconds of an offer in a state of which nothing is kept from earlier offers, and its result."""
    times = []
    for _ in range(repeat):
        cold = replace(state)
        begun = process_time()
        found = search.best(cold, job)
        times.append(process_time() - begun)
    return median(times), found


def speed(workload: Workload, offers: int) -> Iterator[str]:
    """Yield the Markdown of the comparison with the reference."""
    batch = workload(jobs=200, servers=SERVERS, seed=0)
    users = len(batch.tenants)
    yield f"{SERVERS} servers, {users} users, one round of {SLOTS} slots; medians over {offers} offers at each load:\n"
    yield "| workers in use | reference, s | fast, ms | ratio: median | least | same result |"
    yield "|---:|---:|---:|---:|---:|---|"
    every: list[float] = []
    for before in (0, 25, 100):
        state = fresh(batch)
        fill(state, range(before))
        slow, quick, same = [], [], 0
        for job in range(len(batch.jobs) - offers, len(batch.jobs)):
            fast, ours = timed(Fast(), state, job, repeat=7)
            reference, theirs = timed(Reference(), state, job)
            same += ours == theirs
            slow.append(reference)
            quick.append(fast)
        ratios = [a / b for a, b in zip(slow, quick, strict=True)]
        every += ratios
        used = 1 - state.workers.free.sum() / (batch.workers.sum() * SLOTS)
        row = f"{used:.0%} | {median(slow):.2f} | {1000 * median(quick):.2f} | {median(ratios):.0f} | {min(ratios):.0f}"
        yield f"| {row} | {same} of {offers} |"
    yield f"\nOver all {len(every)} offers the median ratio is {median(every):.0f}."


def growth(workload: Workload) -> Iterator[str]:
    """Yield the Markdown of what an offer costs as jobs, slots and servers grow."""
    yield "A whole run of `posted-prices`, servers 100:\n"
    yield "| jobs | offers | s | ms a job | search: ms an offer | 90 % | most |"
    yield "|---:|---:|---:|---:|---:|---:|---:|"
    for jobs in (50, 100, 200, 400):
        batch = workload(jobs=jobs, servers=SERVERS, seed=0)
        search = _Clock()
        begun = process_time()
        decide(PostedPricePacking(search=search), batch)
        took = process_time() - begun
        offer = (mean(search.times), float(np.percentile(search.times, 90)), max(search.times))
        cells = [f"{took:.1f}", f"{1000 * took / jobs:.1f}", *(f"{1000 * each:.2f}" for each in offer)]
        yield f"| {jobs} | {len(search.times)} | {' | '.join(cells)} |"
    yield "\nOffers to 40 jobs after 40 others in one round, with nothing kept from the offer before:\n"
    yield "| slots (100 servers) | ms an offer | servers (128 slots) | ms an offer |"
    yield "|---:|---:|---:|---:|"
    for slots, servers in zip((32, 64, 128, 256, 512), (25, 50, 100, 200, 400), strict=True):
        both = [_offer(workload, SERVERS, slots), _offer(workload, servers, SLOTS)]
        yield f"| {slots} | {1000 * both[0]:.2f} | {servers} | {1000 * both[1]:.2f} |"


def _offer(workload: Workload, servers: int, slots: int) -> float:
    batch = workload(jobs=80, servers=servers, seed=0)
    state = fresh(batch, slots)
    fill(state, range(40))
    return mean(timed(Fast(), state, job, repeat=3)[0] for job in range(40, 80))


class _Clock:
    """The fast search, with its times."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def best(self, state: RoundState, job: int) -> Admission:
        begun = process_time()
        found = Fast().best(state, job)
        self.times.append(process_time() - begun)
        return found


#: The forms of utility, and whether they are convex.
FORMS = {"linear": False, "convex": True}


def ratio(batch: Batch, plan: Plan, packing: CompactExponentialPacking | None = None) -> tuple[float, bool]:
    """Return the total utility of a plan over the most that can be earned, and whether this is known exactly."""
    most = most_earned(batch, plan, packing=packing)
    return float(revenue(plan) / most.upper) if most.upper else 1.0, most.lower == most.upper


def ratios(trials: int) -> Iterator[str]:
    """Yield the Markdown of the ratios to the offline optimum."""
    yield f"Total utility of `posted-prices` over that of the optimum, {trials} trials each: mean (least); * where some"
    yield "optima were not reached and a bound proved by prices stands for them.\n"
    jobs = (5, 10, 15)
    yield "| servers | " + " | ".join(f"{form}, {n} jobs" for form in FORMS for n in jobs) + " |"
    yield "|---:|" + "---:|" * (len(jobs) * len(FORMS))
    for servers in (5, 15, 25, 35, 45):
        cells = []
        for convex in FORMS.values():
            for n in jobs:
                found = []
                for seed in range(trials):
                    batch = astraea_small(jobs=n, servers=servers, seed=seed, convex=convex)
                    found.append(ratio(batch, decide(PostedPricePacking(), batch)))
                values = [value for value, _ in found]
                mark = "" if all(exact for _, exact in found) else "*"
                cells.append(f"{mean(values):.3f} ({min(values):.3f}){mark}")
        yield f"| {servers} | {' | '.join(cells)} |"


def baselines(workload: Workload, trials: int) -> Iterator[str]:
    """Yield the Markdown of total utilities by policy."""
    policies = (PostedPricePacking(), BatchPrivate(), FirstComeFirstServed(), FirstComeFirstServed(shared=True))
    names = ("posted-prices", "batch-private", "fcfs", "fcfs, shared=true")
    yield f"Total utility on {SERVERS} servers, mean of {trials} trials (seeds 0, 1, ...), and jobs that run:\n"
    yield f"| jobs, utility | {' | '.join(names)} |"
    yield f"|---|{'---:|' * len(names)}"
    for form, convex in FORMS.items():
        for jobs in (50, 100, 200):
            batches = [workload(jobs=jobs, servers=SERVERS, seed=seed, convex=convex) for seed in range(trials)]
            cells = []
            for policy in policies:
                plans = [decide(policy, batch) for batch in batches]
                run = mean(len(plan.schedules) for plan in plans)
                cells.append(f"{mean(float(plan.revenue) for plan in plans):.0f} ({run:.0f})")
            yield f"| {jobs}, {form} | {' | '.join(cells)} |"


def larger() -> Iterator[str]:
    """Yield the Markdown of ratios at larger sizes, certified by prices where the optimum is out of reach."""
    yield "| jobs | servers | utilities | ratio | against | s |"
    yield "|---:|---:|---|---:|---|---:|"
    for jobs, servers in ((30, 25), (60, 50)):
        for form, convex in FORMS.items():
            batch = astraea_small(jobs=jobs, servers=servers, seed=0, convex=convex)
            plan = decide(PostedPricePacking(), batch)
            begun = process_time()
            value, exact = ratio(batch, plan, packing=CompactExponentialPacking(time_limit=20, most_cuts=3))
            against = "the optimum" if exact else "a bound by prices"
            spent = process_time() - begun
            yield f"| {jobs} | {servers} | {form} | {value:.3f} | {against} | {spent:.0f} |"


PARTS = ("speed", "growth", "ratio", "larger", "baselines")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], help="what to measure; all by default")
    parser.add_argument("--data", type=Path, help="the folder with the whole table of Philly's jobs")
    parser.add_argument("--offers", type=int, default=5, help="offers that the reference is timed on, at each load")
    parser.add_argument("--trials", type=int, default=5, help="batches for each ratio and baseline")
    parser.add_argument("--write", type=Path, help="a Markdown file with markers for each part")
    given = parser.parse_args()
    users = None if given.data is None else USERS
    workload = partial(astraea_workload, users=users, data=given.data)
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "speed": lambda: speed(workload, given.offers),
        "growth": lambda: growth(workload),
        "ratio": lambda: ratios(given.trials),
        "larger": larger,
        "baselines": lambda: baselines(workload, given.trials),
    }
    for name in given.part or PARTS:
        lines = []
        for line in parts[name]():
            print(line, flush=True)
            lines.append(line)
        where = f"Measured on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}."
        if given.write is not None:
            begin, end = f"<!-- {name}: written by benchmarks/posted_prices.py -->", f"<!-- {name}: end -->"
            text = given.write.read_text(encoding="utf-8")
            block = "\n".join([*lines, "", where])
            given.write.write_text(put_between(text, begin, end, block, str(given.write)), encoding="utf-8")


if __name__ == "__main__":
    main()
