"""The offline optimum of a batch, in four ways that share little: (3), (5) written out, (5) searched, and by hand."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt.backends import Highs
from fairopt.backends.solution import Solution
from fairopt.errors import BadInput
from fairopt.evidence import certify_solution
from fairopt.methods.columns.columns import Times, columns
from fairopt.methods.columns.pricing import PackingEvidence, Prices, weak_duality
from fairopt.models.astraea.offline_optimum import OfflineOptimum
from fairopt.models.astraea.packing import CompactExponentialPacking, most_earned, revenue
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.policy import decide
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps
from fairopt.program import Program


def any_utility(r: random.Random) -> CompletionUtility:
    return r.choice(
        [
            Linear(Fraction(-r.randint(1, 4)), Fraction(r.randint(5, 20))),
            Power(Fraction(r.randint(2, 12)), Fraction(r.choice([1, 2]))),
            Steps(tuple(Fraction(each) for each in sorted((r.randint(-2, 15) for _ in range(6)), reverse=True))),
        ]
    )


def small(seed: int, most: int = 3) -> Batch:
    """A random batch: some with several types, scarce bandwidth, late arrivals, uneven quotas, servers without PS."""
    r = random.Random(seed)
    types, kinds = r.choice([1, 1, 2]), r.choice([1, 1, 2])
    hosts, jobs, tenants = r.choice([1, 2, 2, most]), r.choice([1, 2, most, most]), ["a", "b"][: r.choice([1, 2])]
    workers = [[r.randint(0, 3) for _ in range(types)] for _ in range(hosts)]
    ps = [[r.choice([0, 1, 1, 2]) for _ in range(kinds)] for _ in range(hosts)]

    def quotas(table: list[list[int]]) -> dict[str, object]:
        left = [sum(column) for column in zip(*table, strict=True)]
        first = [r.randint(0, each) for each in left] if len(tenants) == 2 else left
        return dict(zip(tenants, [first, [a - b for a, b in zip(left, first, strict=True)]], strict=False))

    return Batch.of(
        workers=workers,
        ps=ps,
        worker_quota=quotas(workers),
        ps_quota=quotas(ps),
        worker_types=[f"w{each}" for each in range(types)],
        ps_types=[f"p{each}" for each in range(kinds)],
        worker_bandwidth=[r.randint(1, 3) for _ in range(types)] if types > 1 else r.randint(1, 3),
        ps_bandwidth=[r.randint(1, 3) for _ in range(kinds)] if kinds > 1 else r.randint(1, 3),
        tenant=[r.choice(tenants) for _ in range(jobs)],
        arrival=[r.randint(0, 3) for _ in range(jobs)],
        epochs=[1] * jobs,
        chunks=[r.randint(1, 4) for _ in range(jobs)],
        minibatches=[r.randint(1, 3) for _ in range(jobs)],
        minibatch_time=[[Fraction(r.randint(1, 4), 2) for _ in range(types)] for _ in range(jobs)],
        update_time=[[Fraction(r.randint(0, 2), 4) for _ in range(kinds)] for _ in range(jobs)],
        gradient=[Fraction(r.randint(0, 3), 4) for _ in range(jobs)],
        utility=[any_utility(r) for _ in range(jobs)],
    )


def example() -> Batch:
    """The example of Sec. 4.2: n = 1 on one server, else 1/2."""
    return Batch.of(
        workers=[2] * 4, ps=[1] * 4, worker_quota={"u1": 4, "u2": 4}, ps_quota={"u1": 2, "u2": 2},
        tenant=["u1", "u1", "u2", "u2"], names=["j11", "j12", "j21", "j22"], arrival=[3] * 4,
        epochs=[2] * 4, chunks=[2, 3, 2, 30], minibatches=[1] * 4, minibatch_time=[1] * 4, update_time=[0] * 4,
        gradient=[Fraction(1, 2)] * 4, utility=[Linear(Fraction(-2), Fraction(106))] * 4,
    )  # fmt: skip


SLOTS = 7


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 64), marks=pytest.mark.slow)], ids=str)
def test_problem_3_and_problem_5_have_the_same_optimum(seeds: range) -> None:
    for seed in seeds:
        batch = small(seed)
        three = decide(OfflineOptimum(slots=SLOTS), batch)
        five = decide(CompactExponentialPacking(slots=SLOTS), batch)
        searched = decide(CompactExponentialPacking(slots=SLOTS, most_columns=0), batch)
        assert three.revenue == five.revenue == searched.revenue, seed
        for plan in (five, searched):
            proof: PackingEvidence = plan.evidence
            assert proof.optimal
            assert proof.by_prices == (plan.revenue == proof.bound)
            times = Times.of(batch, SLOTS)
            assert plan.revenue <= proof.bound == times.rounded(weak_duality(batch, proof.prices, times))
        for plan in (three, five, searched):
            refuse_infeasible(batch, plan.schedules, SLOTS)


@pytest.mark.parametrize("count", counts(14, 40))
def test_larger_batches_agree_where_the_relaxation_has_a_gap(count: int) -> None:
    gaps = 0
    for seed in range(100, 100 + count):
        batch = small(seed, most=5)
        five = decide(CompactExponentialPacking(slots=5), batch)
        searched = decide(CompactExponentialPacking(slots=5, most_columns=0), batch)
        assert five.revenue == searched.revenue, seed
        assert searched.evidence.optimal
        gaps += searched.evidence.proof.startswith("search")
        refuse_infeasible(batch, searched.schedules, 5)
    assert gaps, "the seeds no longer exercise the search"


def refuse_infeasible(batch: Batch, schedules: tuple[JobSchedule, ...], slots: int) -> None:
    """Judge schedules by (3c)-(3l) slot by slot."""
    workers = np.zeros((*batch.workers.shape, slots + 1), dtype=int)
    ps = np.zeros((*batch.ps.shape, slots + 1), dtype=int)
    assert len({each.job for each in schedules}) == len(schedules)
    for each in schedules:
        assert feasible_alone(batch, each)
        for server, count in each.workers:
            workers[server, each.worker_type, each.first : each.last + 1] += count
        for server, count in each.ps:
            ps[server, each.ps_type, each.first : each.last + 1] += count
        assert each.last <= slots
    assert (workers <= batch.workers[..., None]).all()
    assert (ps <= batch.ps[..., None]).all()


def feasible_alone(batch: Batch, each: JobSchedule) -> bool:
    """(3e), (3g), (3i), (3j), (3k), (3l) of one schedule, by their bare words."""
    job = each.job
    y, z = dict(each.workers), dict(each.ps)
    total = sum(y.values())
    speed = batch.speed(job, len({*y, *z}) == 1, each.worker_type, each.ps_type)
    b_w, b_p = batch.worker_bandwidth[each.worker_type], batch.ps_bandwidth[each.ps_type]
    return (
        1 <= total <= batch.jobs.chunks[job]
        and sum(z.values()) >= 1
        and all((total - y.get(server, 0)) * b_w <= count * b_p for server, count in z.items())
        and total * each.duration * speed >= batch.minibatches(job)
        and each.first > batch.jobs.arrival[job]
    )


def by_hand(batch: Batch, slots: int) -> Fraction:
    """The optimum by trying every window, every number of workers and of PS on every server, for every job."""
    jobs = batch.jobs
    options: list[list[tuple[Fraction, np.ndarray, np.ndarray]]] = []
    for job in range(len(jobs)):
        mine: dict[tuple[int, ...], tuple[Fraction, np.ndarray, np.ndarray]] = {}
        kinds = product(range(batch.workers.shape[1]), range(batch.ps.shape[1]))
        for worker, kind in kinds:
            for y in product(*(range(int(each) + 1) for each in batch.workers[:, worker])):
                for z in product(*(range(int(each) + 1) for each in batch.ps[:, kind])):
                    spots = tuple((s, n) for s, n in enumerate(y) if n), tuple((s, n) for s, n in enumerate(z) if n)
                    for first in range(1, slots + 1):
                        for last in range(first, slots + 1):
                            if feasible_alone(batch, JobSchedule(job, first, last, *spots, worker, kind)):
                                use, give = (
                                    np.zeros((*batch.workers.shape, slots)),
                                    np.zeros((*batch.ps.shape, slots)),
                                )
                                use[:, worker, first - 1 : last] = np.array(y)[:, None]
                                give[:, kind, first - 1 : last] = np.array(z)[:, None]
                                value = Fraction(jobs.utility[job].value(Fraction(last - int(jobs.arrival[job]))))
                                mine[worker, kind, first, last, *y, *z] = value, use, give
        options.append(sorted(mine.values(), key=lambda each: -each[0]))
    best = Fraction(0)
    tops = [max([Fraction(0), *(value for value, _, _ in each)]) for each in options]

    def go_on(job: int, value: Fraction, free: np.ndarray, free_ps: np.ndarray) -> None:
        nonlocal best
        best = max(best, value)
        if job == len(options) or value + sum(tops[job:]) <= best:
            return
        for worth, use, give in options[job]:
            if value + worth + sum(tops[job + 1 :]) <= best:
                break
            if (use <= free).all() and (give <= free_ps).all():
                go_on(job + 1, value + worth, free - use, free_ps - give)
        go_on(job + 1, value, free, free_ps)

    wide = [np.repeat(table[..., None], slots, axis=-1) for table in (batch.workers, batch.ps)]
    go_on(0, Fraction(0), *wide)
    return best


@pytest.mark.parametrize("count", counts(36, 90))
def test_the_optimum_is_that_of_trying_everything(count: int) -> None:
    tried = 0
    for seed in range(200, 200 + count):
        batch = small(seed)
        if batch.workers.size > 4 or batch.workers.sum() + batch.ps.sum() > 8:
            continue
        tried += 1
        assert by_hand(batch, 4) == decide(CompactExponentialPacking(slots=4), batch).revenue, seed
        if tried % 4 == 0:
            assert by_hand(batch, 4) == decide(OfflineOptimum(slots=4), batch).revenue, seed
    assert tried >= count / 3


@pytest.mark.parametrize("count", counts(10, 30))
@pytest.mark.parametrize("large", [1, 10**30])
def test_prices_bound_by_the_best_of_all_columns(large: int, count: int) -> None:
    """With numbers that do not fit into 64 bits, too."""
    for seed in range(300, 300 + count):
        batch, r = small(seed), random.Random(seed)
        times = Times.of(batch, 6)
        workers, ps = (
            np.array([Fraction(r.choice([0, 0, 1, 2, 5]), r.choice([1, 3, 7])) * large for _ in range(table.size * 6)],
                     dtype=object).reshape(*table.shape, 6)
            for table in (batch.workers, batch.ps)
        )  # fmt: skip
        workers[..., r.randint(2, 6) :] = 0
        ps[..., r.randint(2, 6) :] = 0
        total = (workers * batch.workers[..., None]).sum() + (ps * batch.ps[..., None]).sum()
        for job in range(len(batch.jobs)):
            gains = [Fraction(0)]
            for each in columns(batch, job, times):
                span = slice(each.first - 1, each.last)
                cost = sum(n * workers[s, each.worker_type, span].sum() for s, n in each.workers)
                cost += sum(n * ps[s, each.ps_type, span].sum() for s, n in each.ps)
                gains.append(Fraction(times.worth[job][each.last - 1]) - cost)
            total += max(gains)
        assert weak_duality(batch, Prices(workers, ps), times) == total, seed
        best = decide(CompactExponentialPacking(slots=6), batch)
        assert best.revenue <= times.rounded(weak_duality(batch, Prices(workers, ps), times)) <= total


def test_the_papers_example_by_hand() -> None:
    """Each job where it is best alone: j11 and j21 in 2 slots, j12 in 3, j22 in 30, on one server each."""
    batch = example()
    best = decide(CompactExponentialPacking(), batch)
    assert best.revenue == (106 - 2 * 2) * 2 + (106 - 2 * 3) + (106 - 2 * 30)
    assert best.evidence.by_prices
    online = decide(PostedPricePacking(), batch)
    most = most_earned(batch, online)
    assert most.lower == most.upper == best.revenue >= revenue(online) > 0


def test_every_constraint_bears_its_letter() -> None:
    blocks = [block.name for block in OfflineOptimum(slots=4).formulate(small(11)).row_blocks]
    for letter in ("3a", "3b", "3c", "3d", "3e", "3f", "3g", "3h", "3i", "3j", "3k", "3l", "3m", "3mn", "4a"):
        assert any(name.startswith(f"{letter}_") for name in blocks), letter


def test_bandwidth_decides_where_workers_may_be() -> None:
    """Three workers, two on each server and one PS: b_w = b_p lets one be elsewhere; b_w = 2 b_p none."""

    def revenue(worker_bandwidth: int) -> Fraction:
        batch = Batch.of(
            workers=[2, 2], ps=[1, 1], worker_quota={"a": 4}, ps_quota={"a": 2}, tenant=["a"], epochs=[1], chunks=[3],
            minibatches=[2], minibatch_time=[1], update_time=[0], gradient=[0], worker_bandwidth=worker_bandwidth,
            utility=[Linear(Fraction(-1), Fraction(10))],
        )  # fmt: skip
        plans = [decide(each(slots=8), batch) for each in (OfflineOptimum, CompactExponentialPacking)]
        assert plans[0].revenue == plans[1].revenue
        return Fraction(plans[0].revenue)

    assert revenue(1) == 10 - 2  # 6 mini-batches, 3 workers
    assert revenue(2) == 10 - 3  # 2 workers on one server


def test_quotas_do_not_restrict_the_optimum() -> None:
    """(3a) and (3b) add up to capacity: who owns what plays no part in the optimum of all together."""
    for seed in range(20):
        batch = small(seed)
        if len(batch.tenants) == 2:
            other = replace(batch, worker_quota=batch.worker_quota[::-1].copy(), ps_quota=batch.ps_quota[::-1].copy())
            plans = [decide(OfflineOptimum(slots=5), each) for each in (batch, other)]
            assert plans[0].revenue == plans[1].revenue


def test_slots_that_are_needed_suffice() -> None:
    for seed in range(400, 405):
        batch = small(seed)
        enough = Times.of(batch).slots
        best = decide(CompactExponentialPacking(), batch)
        assert best.evidence.slots == enough
        assert best.revenue == decide(CompactExponentialPacking(slots=enough + 9), batch).revenue


def test_utilities_that_are_not_rational() -> None:
    for seed in range(500, 506):
        batch = small(seed)
        roots = tuple(Power(Fraction(3 + job), Fraction(1, 2)) for job in range(len(batch.jobs)))
        batch = replace(batch, jobs=replace(batch.jobs, utility=roots))
        three = decide(OfflineOptimum(slots=5), batch)
        for most in (0, 5_000):
            five = decide(CompactExponentialPacking(slots=5, most_columns=most), batch)
            assert float(five.revenue) == pytest.approx(float(three.revenue), abs=1e-6)
            assert five.evidence.optimal
            most_ = most_earned(batch, five, slots=5)
            assert revenue(five) == most_.lower == most_.upper <= five.evidence.bound


def test_a_job_runs_after_the_slot_of_its_arrival_unless_asked() -> None:
    batch = Batch.of(
        workers=[1], ps=[1], worker_quota={"a": 1}, ps_quota={"a": 1}, tenant=["a"], epochs=[1], chunks=[1],
        minibatches=[1], minibatch_time=[1], update_time=[0], gradient=[0], arrival=[2],
        utility=[Linear(Fraction(-1), Fraction(5))],
    )  # fmt: skip
    for policy in (OfflineOptimum, CompactExponentialPacking):
        assert decide(policy(), batch).schedules == (JobSchedule(0, 3, 3, ((0, 1),), ((0, 1),)),)
        early = decide(policy(in_slot_of_arrival=True), batch)
        assert (early.schedules[0].first, early.revenue) == (2, 5)
    with pytest.raises(BadInput, match="in_slot_of_arrival"):
        most_earned(batch, early)
    endless = replace(batch, jobs=replace(batch.jobs, utility=(Power(Fraction(1), Fraction(1)),)))
    with pytest.raises(BadInput, match="infinite"):
        decide(CompactExponentialPacking(in_slot_of_arrival=True), endless)


@pytest.mark.parametrize("count", counts(12, 30))
def test_a_bound_stands_in_where_the_search_is_cut_short(count: int) -> None:
    found = 0
    for seed in range(130 - count, 130):
        batch = small(seed, most=5)
        short = CompactExponentialPacking(slots=5, most_columns=0, most_cuts=0)
        plan = decide(short, batch)
        whole = decide(CompactExponentialPacking(slots=5), batch)
        most = most_earned(batch, plan, packing=short)
        assert most.lower == revenue(plan) <= whole.revenue <= most.upper
        assert (most.lower == most.upper) == plan.evidence.optimal
        found += most.lower < most.upper
    assert found, "no seed stops short; the bound is not exercised"


def test_the_program_can_be_certified() -> None:
    plan = decide(OfflineOptimum(slots=5), small(27))
    assert plan.program is not None
    assert plan.solution is not None
    rounded = replace(plan.solution, x=np.rint(plan.solution.point))
    bound = certify_solution(plan.program, rounded)
    assert bound.value == plan.revenue <= bound.bound  # type: ignore[union-attr]


def test_bad_options_and_prices_are_refused() -> None:
    batch = small(3)
    for options in ({"slots": 0}, {"slots": 1.5}):
        with pytest.raises(BadInput, match="option slots"):
            decide(CompactExponentialPacking(**options), batch)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="most_cuts"):
        CompactExponentialPacking(most_cuts=-1)
    times = Times.of(batch, 3)
    tables = [np.full((*table.shape, 3), Fraction(-1)) for table in (batch.workers, batch.ps)]
    with pytest.raises(BadInput, match="negative"):
        weak_duality(batch, Prices(*tables), times)
    with pytest.raises(BadInput, match="shape"):
        weak_duality(batch, Prices(-tables[0][..., :2], -tables[1]), times)


@pytest.mark.parametrize(("bound", "said"), [(325.9999999999986, "bound 326"), (Fraction(1, 3), "bound 0.333333333")])
def test_the_bound_is_said_without_the_noise_of_floats(bound: Fraction | float, said: str) -> None:
    """Guards against a bound that reads as less than what the plan earns."""

    class Noisy:
        backend = Highs()

        def __call__(self, program: Program) -> Solution:
            return replace(self.backend.solve(program), bound=bound)

    batch = small(1)
    plan = OfflineOptimum().decide(batch, None, Noisy())  # type: ignore[arg-type]
    assert plan.proven == f"highs: optimal; {said}"
