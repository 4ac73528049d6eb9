"""Gavel over rounds: its objectives against solvers that know nothing of ours, and rounds that approach fractions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from random import Random

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt.backends import Highs, Session
from fairopt.backends.exact import Exact
from fairopt.errors import BadInput
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.fairness import FinishTimeFairness, LeastTotalTime
from fairopt.models.gavel.objectives import LeastCost, LeastMakespan, MaxMinShare, ShortestFirst, ThroughputByCost
from fairopt.models.gavel.partitions import Normaliser
from fairopt.models.gavel.rounds import GavelRounds, GavelState
from fairopt.policy import decide
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.simulation import run, snapshot_from, snapshot_text
from fairopt.simulation.engine import Engine
from fairopt.testing.round_samples import sample_settings

OBJECTIVES = (
    MaxMinShare(),
    MaxMinShare(Normaliser.EQUAL_TIME),
    ThroughputByCost(),
    LeastMakespan(),
    ShortestFirst(),
    LeastCost(cost={"a": 1, "b": 3}, least=F(1, 2)),
    LeastCost(cost={"a": 2, "b": 5}),
    FinishTimeFairness(),
    FinishTimeFairness(whole=True),
    LeastTotalTime(),
)


def exact():
    return Session(Exact())


def highs():
    return Session(Highs())


def table_1():
    """FFT Table 1: two jobs of 16 epochs, 8 a minute on the first GPU and 1 on the second."""
    cluster = Cluster.uniform({"GPU0": (1, 1), "GPU1": (1, 1)})
    jobs = Jobs.of(
        gpus=[1, 1],
        work=[16, 16],
        types=cluster.types,
        throughput=[[8, 1], [8, 1]],
        names=["I0", "I1"],
        tenant=["x"] * 2,
    )
    return cluster, jobs


def drawn_queue(seed, jobs=6):
    """Return a crowded queue whose jobs have waited for various times, some of them half done, with weights."""
    random = Random(seed)
    cluster = Cluster.uniform({"a": (1, 3), "b": (1, 2)})
    queue = Queue.fresh(
        Jobs.of(
            gpus=[random.choice([1, 1, 2, 3]) for _ in range(jobs)],
            work=[random.randint(5, 200) for _ in range(jobs)],
            types=cluster.types,
            throughput=[[random.randint(1, 3), random.choice([0, 2, 4, 7])] for _ in range(jobs)],
            arrival=[random.randint(0, 60) for _ in range(jobs)],
            weight=[random.choice([1, 1, 2]) for _ in range(jobs)],
        ),
        cluster,
        length=1,
        now=60,
    )
    part = np.array([F(random.randint(1, 4), 4) for _ in range(jobs)], dtype=object)
    object.__setattr__(queue, "remaining", queue.jobs.work * part)
    return queue


# -- worked numbers ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("objective", "value"),
    [
        (MaxMinShare(), 1),
        (LeastMakespan(), F(32, 9)),
        (LeastTotalTime(), F(64, 9)),  # the bound by Cauchy and Schwarz in FFT Sec. 2.3
        (FinishTimeFairness(), 1),
    ],
)
def test_fft_table_1(objective, value):
    cluster, jobs = table_1()
    market = JobMarket.of(Queue.fresh(jobs, cluster, length=1))
    _, answer = objective.shares(market, exact())
    assert (answer.objective, answer.bound) == (value, value)
    assert answer.values["share"].tolist() == [[F(1, 2)] * 2] * 2


def test_max_min_of_the_jobs_is_oefs_equation_3():
    cluster = Cluster.uniform({"GPU1": (1, 1), "GPU2": (1, 1)})
    jobs = Jobs.of(gpus=[1] * 3, work=[9] * 3, types=cluster.types, throughput=[[1, 2], [1, 3], [1, 4]])
    shares = MaxMinShare().shares(JobMarket.of(Queue.fresh(jobs, cluster, length=1)), exact())[1].values["share"]
    assert shares.tolist() == [[F(10, 11), F(1, 11)], [F(1, 11), F(5, 11)], [0, F(5, 11)]]


@pytest.mark.parametrize("count", counts(8, 20))
def test_the_least_cost_without_promises_is_the_best_pair_of_job_and_type(count):
    for seed in range(count):
        jobs = JobMarket.of(drawn_queue(seed))
        _, answer = LeastCost(cost={"a": 1, "b": 3}).shares(jobs, exact())
        worth = jobs.market.speedup / jobs.fastest()[:, None] * jobs.market.weight[:, None] / np.array([F(1), F(3)])
        assert answer.objective == worth.max()
        assert any(answer.values["share"].sum(axis=0) == jobs.market.capacity) or any(
            answer.values["share"].sum(axis=1) == jobs.market.limit
        )


def test_costs_must_be_of_types_and_positive():
    jobs = JobMarket.of(drawn_queue(1))
    with pytest.raises(BadInput, match="The types are a, b"):
        LeastCost(cost={"c": 1}).shares(jobs, exact())
    with pytest.raises(BadInput, match="positive cost"):
        LeastCost(cost={"a": 0}).shares(jobs, exact())


def test_shortest_first_serves_the_shorter_of_two_alike():
    cluster, _ = table_1()
    jobs = Jobs.of(gpus=[1, 1], work=[16, 8], types=cluster.types, throughput=[[8, 1], [8, 1]])
    _, answer = ShortestFirst().shares(JobMarket.of(Queue.fresh(jobs, cluster, length=1)), exact())
    assert answer.values["share"].tolist() == [[0, 1], [1, 0]]


# -- against others ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("count", counts(2, 6))
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_back_ends_agree_and_shares_are_possible(objective, count):
    for seed in range(count):
        jobs = JobMarket.of(drawn_queue(seed))
        _, exactly = objective.shares(jobs, exact())
        assert (exactly.values["share"].sum(axis=0) <= jobs.market.capacity).all()
        assert (exactly.values["share"].sum(axis=1) <= jobs.market.limit).all()
        assert (exactly.values["share"] >= 0).all()
        tolerance = float(getattr(objective, "tolerance", 1e-7))
        _, nearly = objective.shares(jobs.as_(float), highs())
        assert float(exactly.objective) == pytest.approx(float(nearly.objective), rel=2 * tolerance + 1e-7)
        if hasattr(objective, "tolerance"):
            assert 0 <= exactly.objective - exactly.bound <= objective.tolerance * exactly.objective
        else:
            assert exactly.objective == exactly.bound


def convex(jobs, objective):
    """Return the least value of ``objective(cvxpy, throughput)`` over all shares, by a solver for convex programs."""
    cvxpy = pytest.importorskip("cvxpy")
    market = jobs.as_(float).market
    share = cvxpy.Variable(market.shape, nonneg=True)
    speed = cvxpy.sum(cvxpy.multiply(market.speedup, share), axis=1)
    limits = [cvxpy.sum(share, axis=0) <= market.capacity, cvxpy.sum(share, axis=1) <= market.limit]
    return cvxpy.Problem(cvxpy.Minimize(objective(cvxpy, speed)), limits).solve(solver="CLARABEL")


@pytest.mark.parametrize("whole", [False, True])
def test_finish_time_fairness_is_that_of_a_convex_solver(whole):
    """As Gavel's own code states it, with the inverse of throughput; ours needs several linear programs here."""
    most = 0
    for seed in range(12):
        jobs = JobMarket.of(drawn_queue(seed))
        near = jobs.as_(float)
        alone = near.market.fair_utility()
        isolated = near.work / alone if whole else near.elapsed + near.remaining / alone
        elapsed, remaining = near.elapsed, near.remaining

        def largest(cvxpy, speed, isolated=isolated, elapsed=elapsed, remaining=remaining):
            times = elapsed + cvxpy.multiply(remaining, cvxpy.inv_pos(speed))
            return cvxpy.max(cvxpy.multiply(times, 1 / isolated))

        _, answer = FinishTimeFairness(whole=whole).shares(jobs, exact())
        most = max(most, answer.effort["programs"])
        assert float(answer.objective) == pytest.approx(convex(jobs, largest), rel=1e-5)
    assert 2 <= most <= 12


def test_nobody_has_waited_and_finish_time_fairness_is_one_exact_program():
    cluster = Cluster.uniform({"a": (1, 3), "b": (1, 2)})
    jobs = Jobs.of(gpus=[1, 2, 3], work=[5, 9, 30], types=cluster.types, throughput=[[1, 2], [1, 3], [2, 0]])
    _, answer = FinishTimeFairness().shares(JobMarket.of(Queue.fresh(jobs, cluster, length=1)), exact())
    assert (answer.effort["programs"], answer.objective) == (1, answer.bound)
    assert isinstance(answer.objective, F)


@pytest.mark.parametrize("count", counts(3, 8))
def test_the_least_total_time_is_that_of_a_convex_solver(count):
    for seed in range(count):
        jobs = JobMarket.of(drawn_queue(seed))
        weighted = (jobs.remaining * jobs.market.weight).astype(float)
        least = convex(jobs, lambda cvxpy, speed, cost=weighted: cvxpy.sum(cvxpy.multiply(cost, cvxpy.inv_pos(speed))))
        _, answer = LeastTotalTime().shares(jobs, exact())
        assert float(answer.bound) <= least * (1 + 1e-7)
        assert float(answer.objective) == pytest.approx(least, rel=1e-3)


@pytest.mark.parametrize("count", counts(3, 8))
def test_the_least_makespan_is_that_of_bisection(count):
    from scipy.optimize import linprog

    for seed in range(count):
        jobs = JobMarket.of(drawn_queue(seed))
        near = jobs.as_(float)
        n, k = near.market.shape
        within = np.vstack([np.tile(np.eye(k), n), np.repeat(np.eye(n), k, axis=1)])
        room = [*near.market.capacity, *near.market.limit]
        speed = np.zeros((n, n * k))
        for row in range(n):
            speed[row, row * k : (row + 1) * k] = near.market.speedup[row]
        low, high = 0.0, 1e6
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            found = linprog(np.zeros(n * k), np.vstack([within, -speed]), [*room, *(-near.remaining / middle)])
            low, high = (low, middle) if found.status == 0 else (middle, high)
        assert float(LeastMakespan().shares(jobs, exact())[1].objective) == pytest.approx(high, rel=1e-5)


# -- rounds --------------------------------------------------------------------------------------------------------
def test_fft_figure_3_the_jobs_alternate():
    cluster, _ = table_1()
    endless = Jobs.of(gpus=[1, 1], work=[10**6] * 2, types=cluster.types, throughput=[[8, 1]] * 2, names=["I0", "I1"])
    records = list(run(GavelRounds(LeastMakespan()), Trace(endless), cluster, length=1, rounds=8, backend=Exact()))
    fast = [ran.job for record in records for ran in record.ran if ran.types == ("GPU0",)]
    assert fast == ["I0", "I1"] * 4
    assert all(len(record.ran) == 2 for record in records)
    assert records[0].costs == {"objective": F(2 * 10**6, 9), "bound": F(2 * 10**6, 9), "programs": 1}
    assert all(record.costs["programs"] == 0 for record in records[1:])


def test_rounds_approach_the_fractions():
    """Single GPUs, nobody comes or goes: after 300 rounds each job has its fraction on each type, within 3%."""
    random = Random(5)
    cluster = Cluster.uniform({"a": (1, 3), "b": (1, 2)})
    jobs = Jobs.of(
        gpus=[1] * 8,
        work=[10**7] * 8,
        types=cluster.types,
        throughput=[[1, random.choice([1, 2, 3, 4])] for _ in range(8)],
        weight=[random.choice([1, 2]) for _ in range(8)],
    )
    records = list(run(GavelRounds(backfill=False), Trace(jobs), cluster, length=1, rounds=300, backend=Exact()))
    state = records[-1].after.state
    assert state.jobs == jobs.names
    assert state.seen == (300,) * 8
    for parts, had in zip(state.fraction, state.rounds, strict=True):
        for part, got in zip(parts, had, strict=True):
            assert abs(F(got, 300) - part) < F(3, 100)


def test_newcomers_overtake_where_counts_are_kept():
    """FFT Sec. 2.4: with an arrival in every round an old job is passed over for as long as they go on.

    So it is where rounds are counted from arrival on; where counts begin anew, what is owed to the old breaks the tie.
    """
    cluster = Cluster.uniform({"gpu": (1, 1)})
    jobs = Jobs.of(gpus=[1] * 21, work=[1000] * 21, types=cluster.types, arrival=range(21))
    kept, anew = (
        [record.ran[0].job for record in run(policy, Trace(jobs), cluster, length=1, rounds=21, backend=Exact())]
        for policy in (GavelRounds(reset=False), GavelRounds())
    )
    assert kept == [f"j{number}" for number in range(1, 22)]
    assert anew.count("j1") > 1


def test_what_was_owed_breaks_ties_after_a_reset():
    cluster = Cluster.uniform({"gpu": (1, 1)})
    jobs = Jobs.of(gpus=[1] * 3, work=[1000] * 3, types=cluster.types, arrival=[0, 0, 1])
    records = list(run(GavelRounds(), Trace(jobs), cluster, length=1, rounds=2, backend=Exact()))
    assert [record.ran[0].job for record in records] == ["j1", "j2"]
    state = records[1].after.state
    assert (state.jobs, state.owed) == (("j1", "j2", "j3"), ((F(-1, 2), F(1, 2), 0),))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_runs_end_under_every_objective_and_resume(objective):
    own = LeastCost(least=F(1, 2)) if isinstance(objective, LeastCost) else objective
    policy = GavelRounds(own)
    for setting in sample_settings(3, seed=9, jobs=(5, 12)):
        whole = list(run(policy, setting.trace, setting.cluster, length=setting.length, mechanics=setting.mechanics))
        for record in whole:
            assert sum(ran.gpus for ran in record.ran) <= record.usable
            assert all(len(ran.types) == 1 for ran in record.ran)
        left = {setting.trace.jobs.names[row] for row in whole[-1].after.present}
        assert left <= whole[-1].unschedulable.keys()
        stop = len(whole) // 2
        snapshot = snapshot_from(snapshot_text(whole[stop - 1].after), policy.states)
        rest = run(
            policy, setting.trace, setting.cluster, length=setting.length, mechanics=setting.mechanics, after=snapshot
        )
        assert list(rest) == whole[stop:]


def test_without_a_back_end_max_min_is_found_by_prices_and_other_objectives_by_highs():
    cluster, jobs = table_1()
    queue = Queue.fresh(jobs, cluster, length=1)
    assert decide(GavelRounds(), queue).backend == "auto"
    assert decide(GavelRounds(LeastMakespan()), queue).backend == "highs"


def test_a_tenants_weight_is_divided_among_its_jobs():
    # on one type the max-min shares are proportional to weights: A has 2 in all, 3:1 among its jobs, and B has 1
    cluster = Cluster.uniform({"GPU": (1, 2)})
    jobs = Jobs.of(
        gpus=[1] * 3, work=[99] * 3, types=["GPU"], tenant=["A", "A", "B"], tenant_weight={"A": 2}, weight=[3, 1, 5]
    )
    queue = Queue.fresh(jobs, cluster, length=1)
    market = JobMarket.of(queue, by_tenant=True)
    assert market.market.weight.tolist() == [F(3, 2), F(1, 2), 1]
    schedule = decide(GavelRounds(by_tenant=True), queue, Exact())
    assert (schedule.state.jobs, schedule.state.fraction) == (jobs.names, ((1, F(1, 3), F(2, 3)),))


def test_a_tenant_gains_nothing_by_more_jobs():
    cluster = Cluster.uniform({"GPU": (1, 1)})
    held = {}
    for own in (False, True):
        jobs = Jobs.of(gpus=[1] * 4, work=[999] * 4, types=["GPU"], tenant=["A", "A", "A", "B"])
        records = run(GavelRounds(by_tenant=own), Trace(jobs), cluster, length=1, rounds=120)
        held[own] = sum(ran.job == "j4" for record in records for ran in record.ran)
    assert held == {False: 30, True: 60}


def test_prices_give_the_level_of_the_program_and_go_on_from_the_last_round():
    policy = GavelRounds()
    for setting in sample_settings(6, seed=5, ties=False):
        for record in run(policy, setting.trace, setting.cluster, length=setting.length, rounds=6):
            state = record.after.state
            assert not state.fraction or len(state.prices) == len(setting.cluster.types)
        queue = Queue.fresh(setting.trace.jobs, setting.cluster, length=setting.length)
        by_program, by_prices = (decide(policy, queue, solver).costs["objective"] for solver in (Highs(), None))
        assert float(by_prices) == pytest.approx(float(by_program), rel=1e-7)
        again = decide(policy, queue, state=GavelState(prices=decide(policy, queue).state.prices, value=by_prices))
        assert float(again.costs["objective"]) == pytest.approx(float(by_program), rel=1e-7)


def test_fractions_are_renewed_at_the_earliest_after_an_interval():
    jobs = Trace(Jobs.of(types=["T"], gpus=[1] * 4, work=[900] * 4, arrival=[0, 100, 110, 150]))
    two = Cluster.uniform({"T": (1, 4)})
    ran = [len(record.ran) for record in run(GavelRounds(interval=100), jobs, two, length=50, rounds=7)]
    assert ran == [1, 1, 2, 2, 4, 4, 4]  # renewed at 0, at 100 and at 200: who comes in between waits beside idle GPUs
    assert [len(record.ran) for record in run(GavelRounds(), jobs, two, length=50, rounds=4)] == [1, 1, 2, 4]


def test_with_a_head_start_a_newcomer_does_not_come_before_all_others():
    jobs = Jobs.of(types=["T"], gpus=[1, 1], work=[900, 900])
    queue = Queue.fresh(jobs, Cluster.uniform({"T": (1, 1)}), length=10)
    state = GavelState(jobs.names, ((F(9, 10), F(1, 10)),), ((1, 0),), ((F(0), F(0)),), seen=(1, 1), capacity=(1,))
    assert list(decide(GavelRounds(), queue, state=state).placements) == [1]
    assert list(decide(GavelRounds(head_start="1/2"), queue, state=state).placements) == [0]


@pytest.mark.parametrize("option", [{"interval": -1}, {"head_start": "-1/2"}, {"interval": "x"}])
def test_intervals_and_head_starts_that_cannot_be_are_refused(option):
    with pytest.raises(BadInput):
        GavelRounds(**option)


def test_where_each_has_its_type_for_itself_one_decision_is_that_of_many_rounds():
    cluster, random = Cluster.uniform({"a": (2, 4), "b": (2, 4)}), Random(3)
    jobs = Jobs.of(
        arrival=sorted(random.randrange(60) for _ in range(12)),
        gpus=[random.choice([1, 2]) for _ in range(12)],
        work=[random.randrange(3, 40) for _ in range(12)],
        types=cluster.types,
        throughput=[random.choice([[1, 2], [2, 1], [1, 3]]) for _ in range(12)],
    )
    asked, told, states = [], [], []
    for ask in (True, False):
        engine = Engine(GavelRounds(), Trace(jobs).as_(float), cluster, length=1, ask=ask)
        told.append([replace(each, seconds=0.0) for each in engine if each.anything])
        asked.append(len(list(Engine(GavelRounds(), Trace(jobs).as_(float), cluster, length=1, ask=ask).rounds())))
        states.append([])
        for rounds in range(5, 50, 3):
            part = Engine(GavelRounds(), Trace(jobs).as_(float), cluster, length=1, ask=ask, rounds=rounds)
            list(part)
            states[-1].append(replace(part.snapshot().state.before(part.index), index=0))
    assert told[0] == told[1]
    assert states[0] == states[1]
    assert asked[1] < 0.6 * asked[0]


def test_who_comes_as_another_is_done_has_an_account_of_its_own():
    jobs = Jobs.of(names=["x", "y"], gpus=[1, 1], work=[5, 5], arrival=[0, 5], types=["T"])
    rounds = list(run(GavelRounds(), Trace(jobs).as_(float), Cluster.uniform({"T": (1, 4)}), length=1, rounds=7))
    assert [each.after.state.jobs for each in rounds] == [("x",)] * 5 + [("y",)] * 2
