"""ASTRAEA's two-phase selection, and what its metric says of sharing incentives (Algorithms 1-2, Sec. 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from random import Random

from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.models.ltgf.ltgf import LongTermGpuTimeFairness, new_jobs_first
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.queue import Queue
from fairopt.problem.trace import Trace
from fairopt.program import Number
from fairopt.proofs.claims.ltgf.literal import Degrees, allocate_job, replay
from fairopt.proofs.claims.ltgf.playing import GivenSchedule, degree, drawn, known, one_host, played, who, work
from fairopt.proofs.ledger.checking import found, require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.simulation import History, Mechanics
from fairopt.simulation.gpu_time import Window, gpu_time

LTGF = LongTermGpuTimeFairness()
REPLAYED, DRAWS = 20, 40


def two_phases() -> Finding:
    """Algorithms 1 and 2: the policy follows them; what they maximise, and whom they starve."""
    rounds = alike = 0
    for seed in range(REPLAYED):
        rng = Random(seed)
        jobs, cluster = drawn(rng, tenants="ABC")
        policy = LongTermGpuTimeFairness(lease=rng.choice([None, 20, 35]), adjusted=rng.random() < 0.5)
        for _, ours, theirs in replay(policy, Trace(jobs), cluster, 10):
            rounds += 1
            alike += sorted(ours) == sorted(theirs)
    require(alike == rounds, "the policy selects whom the algorithm does, written out")
    unchanged = sum(
        who(played(LongTermGpuTimeFairness(preferences=preferences), *drawn(Random(seed)))) == who(history)
        for seed in range(DRAWS)
        for history in [played(LTGF, *drawn(Random(seed)))]
        for preferences in [(new_jobs_first,)]
    )
    one = [_selection((a, b, c), "ABC", held, 4) for a, b, c in product((1, 2, 3, 4), repeat=3) for held in _past(3)]
    two = [_selection((a, b, c), "AAB", held, 4) for a, b, c in product((1, 2, 3, 4), repeat=3) for held in _past(2)]
    best_one, best_two = (sum(each.least == each.best for each in cases) for cases in (one, two))
    lost = found(next((each for each in two if each.least < each.best), None), "a selection that is not max-min")
    waits = {lease: _first_start_beside_staggered(lease) for lease in (None, 20)}
    return Finding(
        Ruling.QUALIFIED,
        f"The policy selects whom Algorithms 1 and 2 do, written out line by line over the bare record, in all "
        f"{rounds} rounds of {REPLAYED} random runs (leases of one, two and three and a half rounds; Eq. (8) and "
        f"(16)). As a max-min rule: the least rho of a tenant after selection is the largest that any set of fitting "
        f"jobs gives in {best_one} of {len(one)} cases with one pending job each (three tenants, 4 GPUs, jobs of 1 to "
        f"4), but in {best_two} of {len(two)} where one has two: {lost}. A tenant that is passed over waits for all "
        f"its GPUs at once, which nobody keeps free: a job of 2 GPUs on 2, beside a tenant whose two jobs of 1 take "
        f"leases of two rounds in alternate rounds, is selected first in every round, starts when the others are "
        f"done, at minute {waits[20]}, and with leases of one round at {waits[None]}. Sec. 5.1.2 says that all "
        f"resources are available in every round, which holds only where all leases end with it. That new jobs go "
        f"first (Sec. 5.2.1, 6.1.1) changes nothing in {unchanged} of {DRAWS} runs: their rho is 0, and no job that "
        f"ran has that.",
    )


@dataclass(frozen=True)
class Selected:
    """One selection: what was asked, the least rho of a tenant after it, and the largest that there could be."""

    sizes: tuple[int, ...]
    owners: str
    held: tuple[int, ...]
    chosen: tuple[str, ...]
    least: Number
    best: Number

    def __str__(self) -> str:
        asks = ", ".join(f"{owner} {size}" for owner, size in zip(self.owners, self.sizes, strict=True))
        return (
            f"on 4 GPUs, with jobs {asks} in that order of rho, and rho {' and '.join(map(str, self.held))}, "
            f"{' and '.join(self.chosen)} is selected, for a least rho of {self.least} where {self.best} can be had"
        )


def _past(tenants: int) -> list[tuple[int, ...]]:
    """Return what tenants held, each being due 1; one lease of one GPU adds 1."""
    return list(product(range(3), repeat=tenants))


def _selection(sizes: tuple[int, ...], owners: str, held: tuple[int, ...], gpus: int) -> Selected:
    names = [f"{owner}{number}" for number, owner in enumerate(owners, start=1)]
    jobs = work(sizes, [1] * len(sizes), list(owners), names=names)
    queue = Queue.fresh(jobs, one_host(gpus), length=1)
    ones: dict[str, Number] = dict.fromkeys(jobs.tenants, Fraction(1))
    past: dict[str, Number] = dict(zip(jobs.tenants, map(Fraction, held), strict=True))
    order: dict[str, Number] = {name: Fraction(number) for number, name in enumerate(names)}
    of_jobs = Degrees(order, dict.fromkeys(names, Fraction(1)), dict.fromkeys(names, Fraction(1)))
    chosen = allocate_job(queue, Degrees(past, ones, ones), of_jobs, Fraction(1))

    def least(rows: Sequence[int]) -> Number:
        after = dict(past)
        for row in rows:
            after[owners[row]] += sizes[row]
        return min(after.values())

    rows = range(len(sizes))
    fits = [some for count in range(len(sizes) + 1) for some in combinations(rows, count)]
    best = max(least(some) for some in fits if sum(sizes[row] for row in some) <= gpus)
    return Selected(sizes, owners, held, tuple(chosen), least([names.index(name) for name in chosen]), best)


def _first_start_beside_staggered(lease: int | None) -> Number:
    """Return when a job of 2 GPUs starts beside jobs of 1 GPU whose leases never end together."""
    jobs = work([1, 1, 2], [1000, 1000, 10], ["B", "B", "A"], [0, 10, 15], names=["b", "c", "A"])
    return known(played(LongTermGpuTimeFairness(lease=lease), jobs, one_host(2)).first_start["A"], "the start of A")


# -- sharing incentives ----------------------------------------------------------------------------------------------
def sharing_incentive() -> Finding:
    """Sec. 4.2: whether rho of at least 1 is what Definitions 1 and 2 ask for."""
    seen = enough = 0
    for seed in range(DRAWS):
        jobs, cluster = drawn(Random(seed))
        history = played(LTGF if seed % 2 else ShortestRemainingTimeFirst(), jobs, cluster)
        (of_jobs, _), whole = gpu_time(history, tenants=False), int(cluster.gpus.sum())
        for row, name in enumerate(jobs.names):
            seen += 1
            if degree(*of_jobs[name]) >= 1:
                enough += 1
                size = int(jobs.gpus[row])
                alone = size * jobs.work[row] / min(Fraction(size), Fraction(whole, len(jobs)))
                require(_took(history, name) <= alone, "no later than alone on M/N GPUs, N all jobs")
    jobs_hold = f"all {enough} jobs with rho >= 1 among {seen} in {DRAWS} random runs are done no later"
    growing = played(LTGF, work([2, 2], [20, 20], arrival=[0, 10], names=["1", "2"]), one_host(2))
    moving = played(
        LTGF, work([2, 2], [20, 20], names=["1", "2"]), one_host(2), mechanics=Mechanics(restart=Fraction(5))
    )
    types = Cluster.uniform({"slow": (1, 1), "fast": (1, 1)})
    mixed = played(
        LTGF,
        Jobs.of(gpus=[1, 1], work=[400, 40], throughput=[[1, 4], [1, 4]], types=types.types, names=["1", "2"]),
        types,
    )
    cases = [
        _case(growing, "1", Fraction(20), "N is counted when it comes (1; then 2)"),
        _case(moving, "1", Fraction(40), "a job that was preempted loads for 5 minutes, as GPU time is held meanwhile"),
        _case(mixed, "2", 40 / Fraction(5, 2), "one GPU is slow and one, 4 times as fast, is always the other job's"),
    ]
    require(all(case.rho >= 1 and case.took > case.alone for case in cases), "rho >= 1, and later than alone")
    shared, alone = _tenant_at_work()
    window = Window(0, 20)
    by_8, by_16 = (degree(*gpu_time(shared, window, demand_cap=cap)[1]["A"]) for cap in (True, False))
    got = shared_time(shared, window)
    own = shared_time(alone, window)
    require(by_8 >= 1 and got < own and by_16 < 1, "Eq. (8) is content with less than the tenant's own cluster gives")
    return Finding(
        Ruling.QUALIFIED,
        f"Jobs (Definition 1), whose gangs are taken to shrink to M/N GPUs when alone; as they are they could not run. "
        f"Where GPUs are of one type and preemption is free, rho >= 1 over a job's life means that it is done no later "
        f"than on M/N GPUs, N being all jobs of the trace: {jobs_hold}, and so it must be, as its GPU time is its work "
        f"and at least min(Demand, M/N) times the time that it took. Otherwise it may be later: "
        f"{'; '.join(map(str, cases))}. Tenants (Definition 2). By Eq. (16) rho >= 1 is GPU time of at least quota "
        f"times time, which is all that M/T GPUs have. By Eq. (8) it is not enough, since what a tenant asks for "
        f"depends on what it was given: with a quota of 2 and jobs of 1 GPU for 20, 10 and 10 minutes, the short ones "
        f"run first, its rho is {by_8} after 20 minutes ({by_16} by Eq. (16)), with {got} GPU-minutes where 2 GPUs of "
        f"its own, the long job run first, give {own}. That rho >= 1 can be reached is not said: see ltgf-eq1-5.",
    )


@dataclass(frozen=True)
class Selection:
    """A job with rho of at least 1 that is done later than alone."""

    rho: Number
    took: Number
    alone: Number
    why: str

    def __str__(self) -> str:
        return f"rho {self.rho}, {self.took} minutes for {self.alone}, where {self.why}"


def _case(history: History, name: str, alone: Number, why: str) -> Selection:
    rho = degree(*gpu_time(history, tenants=False)[0][name])
    return Selection(rho, _took(history, name), alone, why)


def _took(history: History, name: str) -> Number:
    done = known(history.completion[name], f"the completion of {name}")
    return done - history.arrival[name]


def _tenant_at_work() -> tuple[History, History]:
    """Return tenant A's jobs beside another tenant on 4 GPUs, and alone on 2, in other orders."""
    sizes, minutes, names = [1, 1, 1], [20, 10, 10], ["l", "s", "t"]
    beside = work([*sizes, 2], [*minutes, 100], ["A"] * 3 + ["B"], names=[*names, "B"])
    shared = played(GivenSchedule((("s", "t", "B"), ("l", "B"))), beside, one_host(4), rounds=3)
    alone = played(GivenSchedule((("l", "s"), ("l", "t"))), work(sizes, minutes, ["A"] * 3, names=names), one_host(2))
    return shared, alone


def shared_time(history: History, window: Window) -> Number:
    """Return the GPU time of tenant A."""
    return gpu_time(history, window)[1]["A"][0]
