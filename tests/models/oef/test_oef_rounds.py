"""OEF over rounds: rounding with memory, its bounds, gangs across types, and what starves whom."""

from __future__ import annotations

from fractions import Fraction as F
from random import Random

import numpy as np
import pytest

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.errors import NotCapable
from fairopt.models import CooperativeOEF, EqualSplit, MaxMin, NonCooperativeOEF, SecondPriceTrading
from fairopt.models.common.shares_of_queue import asked_by_tenants, market_of
from fairopt.models.oef.rounding import carried, to_the_nearest, whole_gpus
from fairopt.models.oef.rounds import OEFRounds
from fairopt.policy import decide
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.simulation import run, snapshot_from, snapshot_text
from fairopt.testing.round_samples import sample_settings


def harmonic(n):
    return sum((F(1, k) for k in range(1, n + 1)), F(0))


def column(values):
    return [[F(value)] for value in values]


def drawn_ideals(random, users, capacity):
    """Return ideals of one type that add up to at most capacity, some of them 0."""
    parts = [random.choice([0, 0, 1, 2, 3, 7]) for _ in range(users)]
    total = sum(parts) or 1
    lost = random.choice([1, 1, F(2, 3)])
    return [F(part * capacity, total) * lost for part in parts]


# -- rounding ------------------------------------------------------------------------------------------------------
def test_the_printed_rounding_gives_out_more_than_there_is():
    target = column(["2/3"] * 3)
    assert sum(row[0] for row in to_the_nearest(target)) == 3
    assert whole_gpus(target, [2]) == ((1,), (1,), (0,))


def test_thirds_take_turns():
    ideal, deviation, seen = column(["1/3"] * 3), column([0] * 3), []
    for _ in range(6):
        target = [[one[0] + other[0]] for one, other in zip(ideal, deviation, strict=True)]
        real = whole_gpus(target, [1])
        deviation = carried(target, real)
        seen.append([row[0] for row in real])
    assert seen == [[1, 0, 0], [0, 1, 0], [0, 0, 1]] * 2
    assert list(deviation) == [(0,), (0,), (0,)]


def test_where_the_printed_rounding_is_possible_it_is_what_is_done():
    random, met = Random(1), 0
    for _ in range(2000):
        n, capacity = random.randint(1, 5), random.randint(1, 6)
        target = [[F(random.randint(-7, 30), 10)] for _ in range(n)]
        nearest = to_the_nearest(target)
        halves = any((2 * row[0]).denominator == 1 and row[0].denominator == 2 for row in target)
        if halves or min(row[0] for row in nearest) < 0 or sum(row[0] for row in nearest) != capacity:
            continue
        met += 1
        assert whole_gpus(target, [capacity]) == nearest
    assert met > 100


def test_deviations_stay_within_their_bound_whatever_the_ideals_are():
    for seed in range(30):
        random = Random(seed)
        n, k = random.randint(1, 7), random.randint(1, 3)
        deviation = [[F(0)] * k for _ in range(n)]
        for _ in range(60):
            capacity = [random.randint(0, 9) for _ in range(k)]
            ideal = [list(row) for row in zip(*[drawn_ideals(random, n, c) for c in capacity], strict=True)]
            target = [
                [one + other for one, other in zip(*rows, strict=True)] for rows in zip(ideal, deviation, strict=True)
            ]
            real = whole_gpus(target, capacity)
            deviation = [list(row) for row in carried(target, real)]
            assert all(sum(row[gpu_type] for row in real) <= capacity[gpu_type] for gpu_type in range(k))
            assert all(gpus >= 0 for row in real for gpus in row)
            assert all(-1 < value <= harmonic(n) - 1 for row in deviation for value in row)
            for gpu_type in range(k):  # nobody is behind while a GPU stays idle
                if sum(row[gpu_type] for row in real) < capacity[gpu_type]:
                    assert max(row[gpu_type] for row in deviation) <= 0


@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_an_adversary_reaches_the_bound(n):
    deviation, among = [F(0)] * n, list(range(n))
    while len(among) > 1:
        target = [[old + (F(1, len(among)) if at in among else 0)] for at, old in enumerate(deviation)]
        real = whole_gpus(target, [1])
        deviation = [row[0] for row in carried(target, real)]
        among.remove(next(at for at in range(n) if real[at][0]))
    assert deviation[among[0]] == harmonic(n) - 1


def test_users_who_come_and_go_leave_nobody_further_behind_than_the_harmonic_number():
    for seed in range(40):
        random, n = Random(seed), 4
        deviation = [F(0)] * n
        for _ in range(80):
            ideal = drawn_ideals(random, n, 3)
            target = [[one + other] for one, other in zip(ideal, deviation, strict=True)]
            deviation = [row[0] for row in carried(target, whole_gpus(target, [3]))]
            # the one furthest ahead goes, and a new user takes its place: the worst for those who stay
            if random.random() < 0.7:
                deviation[deviation.index(min(deviation))] = F(0)
            assert max(deviation) <= harmonic(n)


def test_the_minimum_is_met_or_nothing_is_given_and_nobody_starves():
    for seed in range(40):
        random = Random(seed)
        n, capacity = random.randint(1, 5), random.randint(1, 8)
        least = [random.randint(1, capacity) for _ in range(n)]
        minima = [[size] for size in least]
        parts = [random.randint(1, 6) for _ in range(n)]
        ideal = [F(part * capacity, sum(parts)) for part in parts]
        deviation, waited, served = [F(0)] * n, [0] * n, [0] * n
        for _ in range(200):
            target = [[one + other] for one, other in zip(ideal, deviation, strict=True)]
            real = [row[0] for row in whole_gpus(target, [capacity], minima)]
            deviation = [goal[0] - got for goal, got in zip(target, real, strict=True)]
            assert sum(real) <= capacity
            assert all(got == 0 or got >= size for got, size in zip(real, least, strict=True))
            assert all(-1 < value < n * capacity + n - 1 for value in deviation)
            waited = [0 if got else before + 1 for got, before in zip(real, waited, strict=True)]
            served = [before + got for got, before in zip(real, served, strict=True)]
            # who waits is owed more each round, and cannot be owed more than the bound
            assert all(time * due < n * (capacity + 1) + 1 for time, due in zip(waited, ideal, strict=True))
        for got, due in zip(served, ideal, strict=True):
            assert abs(F(got, 200) - due) < F(n * (capacity + 1), 200)


def test_all_who_need_everything_take_turns_instead_of_blocking_each_other():
    minima = [[4]] * 4
    deviation, seen = [F(0)] * 4, []
    for _ in range(11):
        target = [[1 + old] for old in deviation]
        real = whole_gpus(target, [4], minima)
        deviation = [row[0] for row in carried(target, real)]
        seen.append([row[0] for row in real].index(4) if any(row[0] for row in real) else None)
    assert seen == [None, None, None, 0, 1, 2, 3, 0, 1, 2, 3]


def test_gpus_of_several_types_count_together():
    least = [[3, 3], [1, 1]]
    assert whole_gpus([[F(1), F(2)], [F(1), F(0)]], [2, 2], least, together=True) == ((1, 2), (1, 0))
    assert whole_gpus([[F(1), F(1)], [F(1), F(1)]], [2, 2], least, together=True) == ((0, 0), (1, 1))


def test_what_is_held_stays_held():
    held = [[2], [0]]
    assert whole_gpus(column([0, 2]), [3], held=held) == ((2,), (1,))


# -- the queue as a market -----------------------------------------------------------------------------------------
def queue_of(cluster, length=1, **jobs):
    return Queue.fresh(Jobs.of(types=cluster.types, **jobs), cluster, length=length)


def test_virtual_users_of_section_4_2_4():
    """The second example of the section: u1 trains two types of jobs, u2 one; gangs of 2 count by their worker."""
    cluster = Cluster.uniform({"GPU1": (1, 1), "GPU2": (1, 4)})
    queue = queue_of(
        cluster,
        gpus=[1, 1, 1, 1],
        work=[9] * 4,
        throughput=[[1, 2], [10, 30], [1, 5], [2, 10]],
        tenant=["u1", "u1", "u2", "u2"],
    )
    market = market_of(asked_by_tenants(queue), cluster.types)
    assert market.speedup.tolist() == [[1, 2], [1, 3], [1, 5]]
    assert market.owner == ("u1", "u1", "u2")
    assert market.weight.tolist() == [F(1, 2), F(1, 2), 1]
    raw = market_of(asked_by_tenants(queue, common_units=False, demand=True), cluster.types, common_units=False)
    assert raw.speedup.tolist() == [[1, 2], [10, 30], [1, 5], [2, 10]]
    assert raw.demand.tolist() == [1, 1, 1, 1]


def test_the_printed_shares_of_section_4_2_4():
    cluster = Cluster.uniform({"GPU1": (1, 1), "GPU2": (1, 1)})
    queue = queue_of(
        cluster, gpus=[1] * 3, work=[9] * 3, throughput=[[1, 2], [1, 3], [1, 5]], tenant=["u1", "u1", "u2"]
    )
    schedule = decide(OEFRounds(shares=NonCooperativeOEF()), queue, exact())
    u1, u2 = (schedule.state.ideal[name] for name in ("u1", "u2"))
    assert u1 == (1, F(4, 37) + F(15, 37))  # printed 0.11 + 0.41
    assert u2 == (0, F(18, 37))  # printed 0.24 + 0.24
    assert schedule.state.deviation == {"u1": (0, F(-18, 37)), "u2": (0, F(18, 37))}


# -- rounds --------------------------------------------------------------------------------------------------------
def exact():
    return Exact()


def long_run(policy, trace, cluster, rounds, backend=None):
    return list(run(policy, trace, cluster, length=1, rounds=rounds, backend=backend))


def test_equation_6_over_rounds():
    """Eq. (6): u1 holds (1, 1/4), u2 (0, 3/4); over 8 rounds u2 has the fast GPU in 6."""
    cluster = Cluster.uniform({"slow": (1, 1), "fast": (1, 1)})
    trace = Trace(
        Jobs.of(
            gpus=[1] * 3,
            work=[10**6] * 3,
            types=cluster.types,
            throughput=[[1, 2], [1, 2], [1, 5]],
            tenant=["u1", "u1", "u2"],
            names=["a", "b", "c"],
        )
    )
    records = long_run(OEFRounds(), trace, cluster, 8, Exact())
    fast = ["".join(ran.job for ran in record.ran if ran.types == ("fast",)) for record in records]
    assert fast.count("c") == 6
    assert all(len(record.ran) == 2 for record in records)
    assert records[-1].after.state.deviation == {"u1": (0, 0), "u2": (0, 0)}


def starving():
    """A market whose cooperative optimum gives A the two slow GPUs and nothing else; A's one job needs four."""
    cluster = Cluster.uniform({"slow": (1, 2), "fast": (1, 4)})
    jobs = Jobs.of(
        gpus=[4, 2, 2],
        work=[10**6] * 3,
        types=cluster.types,
        throughput=[[4, 4], [2, 6], [2, 6]],
        tenant=["A", "B", "C"],
    )
    return cluster, Trace(jobs)


def test_a_tenant_starves_whose_types_cannot_hold_its_job():
    cluster, trace = starving()
    records = long_run(OEFRounds(left_over=False), trace, cluster, 50, Exact())
    assert records[0].after.state.ideal == {"A": (2, 0), "B": (0, 2), "C": (0, 2)}
    assert all("j1" in record.waiting for record in records)
    assert records[-1].after.state.deviation["A"] == (100, 0)


def test_nobody_starves_who_asks_only_for_types_that_can_hold_its_job():
    cluster, trace = starving()
    records = long_run(OEFRounds(left_over=False, cross_type=False), trace, cluster, 50, Exact())
    assert records[0].after.state.ideal["A"] == (0, F(4, 3))
    ran = [ran.job for record in records for ran in record.ran if ran.types == ("fast",)]
    assert 15 <= ran.count("j1") <= 17


def test_left_overs_are_no_cure_while_others_need_the_gpus():
    cluster, trace = starving()
    records = long_run(OEFRounds(), trace, cluster, 50, Exact())
    assert all("j1" in record.waiting for record in records)
    assert all(record.costs["left_over_gpus"] == 0 for record in records)


def test_gangs_across_types_are_counted():
    cluster = Cluster.uniform({"old": (1, 2), "new": (1, 2)})
    queue = queue_of(cluster, gpus=[4, 1], work=[8, 8], throughput=[[4, 8], [1, 0]], tenant=["A", "B"])
    assert queue.unschedulable.keys() == {0}
    queue = queue_of(cluster, gpus=[2, 2], work=[8, 8], throughput=[[4, 8], [4, 8]], tenant=["A", "B"])
    schedule = decide(OEFRounds(shares=EqualSplit()), queue)
    assert schedule.placements == {0: ((0, 1), (1, 1)), 1: ((0, 1), (1, 1))}
    counted = {name: schedule.costs[name] for name in ("cross_type_jobs", "cross_type_workers", "workers_that_wait")}
    assert counted == {"cross_type_jobs": 2, "cross_type_workers": 4, "workers_that_wait": 2}
    alone = OEFRounds(shares=EqualSplit(), cross_type=False, left_over=False)
    schedule = decide(alone, queue)
    assert not schedule.placements
    assert schedule.state.deviation == {"A": (1, 1), "B": (1, 1)}


def test_larger_jobs_come_first_and_whole_onto_one_host():
    cluster = Cluster.uniform({"gpu": (2, 4)})
    queue = queue_of(cluster, gpus=[1, 4, 2, 1], work=[9] * 4)
    policy = OEFRounds(shares=EqualSplit())
    placements = decide(policy, queue).placements
    assert len(placements[1]) == 1 == len(placements[2])
    assert sorted(placements) == [0, 1, 2, 3]


def test_a_tenants_jobs_take_turns_and_the_one_that_starved_longest_is_next():
    """Sec. 6.1.3; larger jobs came first in every round, so that a job of one GPU waited until they were done."""
    cluster = Cluster.uniform({"gpu": (1, 4)})
    jobs = Jobs.of(gpus=[4, 4, 1, 2], work=[10**6] * 4, types=cluster.types, names=list("abcd"), arrival=[0, 0, 0, 1])
    records = long_run(OEFRounds(), Trace(jobs), cluster, 8)
    ran = ["".join(sorted(one.job for one in record.ran)) for record in records]
    assert ran == ["a", "b", "cd", "a", "b", "cd", "a", "b"]
    two = Jobs.of(gpus=[2] * 3, work=[10**6] * 3, types=cluster.types, names=list("abc"))
    ran = ["".join(sorted(one.job for one in record.ran)) for record in long_run(OEFRounds(), Trace(two), cluster, 6)]
    assert ran == ["ab", "ac", "bc"] * 2


@pytest.mark.parametrize("shares", [CooperativeOEF(), NonCooperativeOEF(), MaxMin(), SecondPriceTrading()])
@pytest.mark.parametrize("cross_type", [True, False])
@pytest.mark.parametrize("settings", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_runs_end_and_capacity_and_minima_hold_in_every_round(shares, cross_type, settings):
    policy = OEFRounds(shares=shares, cross_type=cross_type)
    for setting in sample_settings(settings, seed=7):
        for record in run(policy, setting.trace, setting.cluster, length=setting.length, mechanics=setting.mechanics):
            gpus = sum(ran.gpus for ran in record.ran)
            assert gpus <= record.usable
            assert gpus == record.costs["used_by_share"] + record.costs["left_over_gpus"]
            assert record.costs["used_by_share"] <= record.costs["given_by_share"] <= record.usable
        assert not record.after.present.keys() - {
            row for row, name in enumerate(setting.trace.jobs.names) if name in record.unschedulable
        }


def test_a_run_stopped_and_resumed_is_the_same():
    setting = next(sample_settings(1, seed=11))
    policy = OEFRounds()
    whole = list(run(policy, setting.trace, setting.cluster, length=setting.length))
    for stop in (1, len(whole) // 2):
        snapshot = snapshot_from(snapshot_text(whole[stop - 1].after), policy.states)
        rest = list(run(policy, setting.trace, setting.cluster, length=setting.length, after=snapshot))
        assert rest == whole[stop:]


def test_shares_are_computed_only_when_what_is_asked_for_changes():
    cluster = Cluster.uniform({"slow": (1, 2), "fast": (1, 2)})
    queue = queue_of(cluster, gpus=[1, 1], work=[9, 9], throughput=[[1, 2], [1, 3]], tenant=["A", "B"])
    policy = OEFRounds()
    first = decide(policy, queue, exact())
    second = decide(policy, queue, exact(), state=first.state)
    assert first.solution is not None
    assert second.solution is None
    assert second.state.ideal == first.state.ideal


def test_a_share_policy_without_program_takes_no_back_end():
    queue = queue_of(Cluster.uniform({"gpu": (1, 2)}), gpus=[1], work=[9])
    policy = OEFRounds(shares=SecondPriceTrading())
    assert not policy.has_program
    assert OEFRounds().has_program
    with pytest.raises(NotCapable, match="oef-rounds is an algorithm of its own"):
        decide(policy, queue, Highs())


def test_floats_follow_their_ideal_shares_too():
    cluster = Cluster.uniform({"slow": (2, 4), "fast": (1, 4)})
    speeds = [[1, 2], [1, 3], [1, 4], [1, 2]]
    trace = Trace(
        Jobs.of(
            gpus=[1] * 12,
            work=[10**9] * 12,
            types=cluster.types,
            throughput=[speeds[row % 4] for row in range(12)],
            tenant=[f"t{row % 4}" for row in range(12)],
        )
    )
    records = long_run(OEFRounds(), trace.as_(float), cluster, 60)
    deviation = np.array(list(records[-1].after.state.deviation.values()))
    assert (deviation > -1 - 1e-6).all()
    assert (deviation <= float(harmonic(4)) - 1 + 1e-6).all()
