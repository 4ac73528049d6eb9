"""Theorem 4.1: how many jobs FFT leaves unfinished, and how its fractional completion times compare with the best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, takewhile
from math import ceil, log

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack

from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.models.fft.fft import FFT
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.program import Array
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed
from fairopt.simulation import Round, run
from fairopt.simulation.engine import Engine

#: Jobs that wait for the long one; rounds that it takes are their square.
CROWDS = (4, 8, 16, 32)
#: GPUs of the streams, all of one type, and the loads that are offered.
GPUS, LOADS = 4, (0.8, 1.0, 1.2)
#: Lengths of the streams. Above the load of 1 each round is a program of thousands of jobs: that stops earlier.
LENGTHS, OVERLOADED = (100, 1_000, 10_000, 100_000), 10_000
#: Jobs, and instances of each, for which the relaxation is solved.
RELAXED, SEEDS = (10, 30, 100), 10


def unfinished() -> Finding:
    """Theorem 4.1: a gang that fills the cluster keeps all others waiting; without gangs the load decides."""
    crowds = {size: Crowd.played(size) for size in CROWDS}
    for size, crowd in crowds.items():
        require(crowd.waiting == size, "while the long job runs, nobody else does")
    ratios = [crowd.ratio for crowd in crowds.values()]
    require(ratios == sorted(ratios) and ratios[-1] > 2 * ratios[-2] - 1, "the ratio grows with the number of jobs")
    lengths = {load: [each for each in LENGTHS if load <= 1 or each <= OVERLOADED] for load in LOADS}
    left = {load: [_most(FFT(), length, load) for length in lengths[load]] for load in LOADS}
    srtf = {load: [_most(ShortestRemainingTimeFirst(), length, load) for length in lengths[load]] for load in LOADS}
    growth = {
        load: log(counts[-1] / counts[0]) / log(lengths[load][-1] / lengths[load][0]) for load, counts in left.items()
    }
    require(growth[0.8] < 0.25 < growth[1.0] < 0.75 < growth[1.2], "what grows how fast depends on the load")
    streams = "; ".join(
        f"at load {load}: {listed(map(str, left[load]))} (SRTF {listed(map(str, srtf[load]))}), "
        f"which grows like N^{growth[load]:.2f}"
        for load in LOADS
    )
    relaxed = {jobs: [_above_relaxation(jobs, seed) for seed in range(SEEDS)] for jobs in RELAXED}
    return Finding(
        Ruling.REFUTED,
        "Both parts fail where jobs are gangs, as the paper's are. On 3 GPUs of one type, at time 0: one job of 3 GPUs "
        "that takes m^2 rounds, and m jobs of 2 GPUs that take one. While the long job can run, K(t) of Eq. (7) is 3, "
        "and no schedule with a short job reaches that, whatever it is owed: all N = m + 1 jobs are unfinished for m^2 "
        "rounds, where short jobs first leave one of them after m. So unfinished jobs are not O(sqrt N), at any time "
        "and beside a better schedule, and the fractional completion times are at least "
        f"{listed(f'{float(each.ratio):.2f}' for each in crowds.values())} times the completion times of that schedule "
        f"for m = {listed(map(str, crowds))}: no constant. Nor does 'unfinished at any time' hold of any policy: of N "
        "jobs of one round that come at once to one GPU, N - 1 are unfinished after the first round. "
        f"Without gangs, the load decides. Most jobs present at once among N = {listed(map(str, LENGTHS))} jobs of one "
        f"GPU and 1 to 7 rounds in a Poisson stream to {GPUS} GPUs (one stream of each length and load, above load 1 "
        f"up to {OVERLOADED}): {streams}. That is any policy's growth, not FFT's merit. Fractional completion times on "
        f"4 GPUs of two types, jobs of one GPU that come within a third of the time they take, {SEEDS} instances for "
        "each N, over an exact lower bound (multipliers of the time-indexed relaxation, made feasible in fractions): "
        + listed(f"{min(values):.2f} to {max(values):.2f} (N = {jobs})" for jobs, values in relaxed.items())
        + ". A constant is not refuted there.",
    )


# -- a gang that fills the cluster ---------------------------------------------------------------------------------
@dataclass(frozen=True)
class Crowd:
    """FFT on a long job of all GPUs beside short jobs that leave one idle.

    ``waiting``: short jobs that are unfinished when the long one is done. ``ratio``: the sum of the fractional
    completion times, of the short jobs alone, over that of the completion times where short jobs go first.
    """

    waiting: int
    ratio: Fraction

    @classmethod
    def played(cls, size: int) -> Crowd:
        """Play ``size`` short jobs and a long one of its square."""
        rounds = size * size
        jobs = Jobs.of(types=["T"], gpus=[3] + [2] * size, work=[rounds] + [1] * size)
        trace, cluster = Trace(jobs), Cluster.uniform({"T": (1, 3)})
        records = list(run(FFT(), trace, cluster, length=1))
        done = next(record for record in records if jobs.names[0] in record.completed)
        fractional = fractional_times(trace, records)
        short = sum((fractional[name] for name in jobs.names[1:]), Fraction(0))
        better = sum(range(1, size + 1)) + size + rounds  # short jobs one after another, then the long one
        return cls(len(done.after.present), short / better)


def fractional_times(trace: Trace, records: Sequence[Round]) -> Mapping[str, Fraction]:
    """Return the fractional completion time of each job, in rounds of length 1. Source: FFT Eq. (2)."""
    jobs = trace.jobs
    start = dict(zip(jobs.names, zip(jobs.arrival, jobs.work, strict=True), strict=True))
    times = dict.fromkeys(jobs.names, Fraction(0))
    for record in records:
        for ran in record.ran:
            arrival, work = start[ran.job]
            times[ran.job] += (record.begin - arrival) * ran.progress / work
    return times


# -- streams of jobs of one GPU ------------------------------------------------------------------------------------
def _most(policy: Policy, length: int, load: float) -> int:
    """Return the most jobs that are unfinished at the end of a round, until the last of ``length`` jobs arrives."""
    draws = np.random.default_rng(length)
    work = draws.integers(1, 8, size=length)
    # in thousandths of a round, so that they are the same numbers everywhere
    gaps = np.round(draws.exponential(1000 * work.mean() / (GPUS * load), size=length)).astype(int)
    arrival = np.cumsum(gaps) / 1000
    jobs = Jobs.of(types=["T"], gpus=[1] * length, work=work.tolist(), arrival=arrival.tolist())
    engine = Engine(policy, Trace(jobs).as_(float), Cluster.uniform({"T": (1, GPUS)}), length=1)
    in_time = takewhile(lambda changes: changes.begin < arrival[-1], engine)
    return max(accumulate(len(changes.arrived) - len(changes.completed) for changes in in_time))


# -- the relaxation ------------------------------------------------------------------------------------------------
def _above_relaxation(count: int, seed: int) -> float:
    """Return FFT's fractional completion times, summed, over a lower bound on those of any schedule."""
    draws = np.random.default_rng((count, seed))
    work = draws.integers(1, 17, size=count)
    speed = np.stack([np.ones(count, dtype=int), draws.integers(1, 4, size=count)], axis=1)
    arrival = np.sort(draws.integers(0, 1 + int((work / speed.mean(axis=1)).sum() / 12), size=count))
    jobs = Jobs.of(
        types=["A", "B"], gpus=[1] * count, work=work.tolist(), throughput=speed.tolist(), arrival=arrival.tolist()
    )
    trace, cluster = Trace(jobs), Cluster.uniform({"A": (1, 2), "B": (1, 2)})
    records = list(run(FFT(), trace, cluster, length=1))
    return float(sum(fractional_times(trace, records).values()) / lower_bound(trace, cluster, records[-1].index + 1))


def lower_bound(trace: Trace, cluster: Cluster, rounds: int) -> Fraction:
    """Return what no schedule in rounds of length 1 goes below, summed over jobs; proven in fractions.

    The relaxation lets jobs of one GPU run for parts of a round. For any prices p (rounds, k) of GPUs and any worth v
    of a job's completion, its cost is at least ``v - sum_t max(0, max_i ((v - age) theta / W - p))``, and together they
    cost that less what all GPUs are worth. Prices and worths are the multipliers that HiGHS gives, rounded.
    """
    jobs = trace.jobs
    theta = jobs.throughput / jobs.work[:, None]
    prices, worth = _multipliers(jobs.arrival.astype(int), theta.astype(float), cluster.capacity, rounds)
    total = -sum(
        (price * int(gpus) for row in prices for price, gpus in zip(row, cluster.capacity, strict=True)), Fraction(0)
    )
    nothing = [Fraction(0)] * len(cluster.types)
    for arrival, speeds, value in zip(jobs.arrival, theta.tolist(), worth, strict=True):
        total += value
        for now in range(ceil(arrival), max(rounds, ceil(arrival + value)) + 1):
            at = prices[now] if now < rounds else nothing
            saved = max((value - (now - arrival)) * speed - price for speed, price in zip(speeds, at, strict=True))
            total -= max(Fraction(0), saved)
    require(total > 0, "the bound says something")
    return total


def _multipliers(
    arrival: Array, theta: Array, capacity: Array, rounds: int
) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Return prices (rounds, k), not negative, and the worth (n,) of completions, near the relaxation's best."""
    count, kinds = theta.shape
    job, now, kind = (each.ravel() for each in np.indices((count, rounds, kinds)))
    there = now >= arrival[job]
    job, now, kind = job[there], now[there], kind[there]
    column, rate = np.arange(len(job)), theta[job, kind]
    whole = coo_array((rate, (job, column)), shape=(count, len(job)))
    gpus = coo_array((np.ones(len(job)), (now * kinds + kind, column)), shape=(rounds * kinds, len(job)))
    once = coo_array((np.ones(len(job)), (job * rounds + now, column)), shape=(count * rounds, len(job)))
    limits = np.concatenate([np.tile(capacity.astype(float), rounds), np.ones(count * rounds)])
    found = linprog(
        (now - arrival[job]) * rate, A_ub=vstack([gpus, once]), b_ub=limits, A_eq=whole, b_eq=np.ones(count)
    )
    require(found.status == 0, "the relaxation has an optimum")
    prices = np.maximum(-found.ineqlin.marginals[: rounds * kinds].reshape(rounds, kinds), 0)
    grain = 10**9
    return (
        [[Fraction(round(value * grain), grain) for value in row] for row in prices.tolist()],
        [Fraction(round(value * grain), grain) for value in found.eqlin.marginals.tolist()],
    )
