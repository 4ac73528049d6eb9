"""FFT: its program, its memory and its schedules, by hand, by other solvers and by an independent count."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from itertools import product
from random import Random

import numpy as np
import pytest

from fairopt.backends import Highs, Options
from fairopt.errors import BadInput, NotSolved
from fairopt.methods.gang_assignment import usable_gpus
from fairopt.models.fft.fft import FFT, FFTState
from fairopt.models.fft.program import choices, nothing, smaller_total
from fairopt.policy import decide
from fairopt.policy.schedule import refuse_broken
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.problem.trace import Outage
from fairopt.simulation import Mechanics, run, snapshot_from, snapshot_text


def two_types(**changed):
    """A (speed 2 and 4, gang of 1, 16 epochs) and B (1 and 3, gang of 2, 12 epochs, arrived at 0) at time 60."""
    jobs = Jobs.of(
        names=["A", "B"],
        types=["slow", "fast"],
        gpus=[1, 2],
        work=[16, 12],
        throughput=[["1/15", "2/15"], ["1/30", "1/10"]],
        arrival=[0, 0],
        state_size=[30, 60],
    )
    cluster = Cluster.uniform({"slow": (1, 2), "fast": (1, 2)}, bandwidth=1)
    return replace(Queue.fresh(jobs, cluster, length=30, now=60, index=2), **changed)


def random_queue(dice, *, most_jobs=6, exact=True):
    """A queue in the middle of things: jobs that ran, that wait, that are too large for memory or for the cluster."""
    types = ["a", "b", "c"][: dice.randint(1, 3)]
    cluster = Cluster.uniform(
        {name: (dice.randint(1, 3), dice.randint(1, 4)) for name in types},
        memory={name: dice.choice([8, 16, 32]) for name in types},
        bandwidth=dice.choice([None, 2]),
    )
    n = dice.randint(1, most_jobs)
    jobs = Jobs.of(
        types=types,
        gpus=[dice.choice([1, 1, 2, 3, 4]) for _ in range(n)],
        work=[dice.randint(1, 50) for _ in range(n)],
        throughput=[[dice.choice([0, 1, 1, 2, 3]) for _ in types] for _ in range(n)],
        arrival=[F(dice.randint(0, 8), 2) for _ in range(n)],
        memory=[dice.choice([0, 10, 20]) for _ in range(n)],
        state_size=[dice.randint(0, 5) for _ in range(n)],
    )
    last = tuple(((dice.randrange(len(cluster.hosts)), 1),) if dice.random() < 0.6 else () for _ in range(n))
    queue = replace(Queue.fresh(jobs, cluster, length=2, now=4, index=2), last=last)
    return queue if exact else queue.as_(float)


def random_state(dice, queue):
    owed = {name: F(dice.randint(0, 40), 4) for name in queue.jobs.names}
    state = FFT().refreshed(queue, FFTState())
    return replace(state, compensation={name: owed[name] for name in state.compensation})


def test_terms_by_hand():
    # theta per round of 30: A 2 and 4, B 1 and 3; both are two rounds old; A ran on the slow type last
    queue = two_types(last=(((0, 1),), ()), running=np.array([True, False]))
    state = replace(FFT().refreshed(queue, FFTState()), compensation={"A": F(3), "B": F(0)})
    got = FFT(restart=15).one_round(queue, state)
    assert got.age.tolist() == [[F(4, 16), F(8, 16)], [F(2, 12), F(6, 12)]]
    assert got.volume.tolist() == [[8, 4], [24, 8]]
    assert got.switching.tolist() == [[0, F(15 + 30, 30)], [0, 0]]
    assert got.compensation.tolist() == [[6, 12], [0, 0]]
    # any schedule, term by term: A on the fast host and B nowhere; both on one type each
    assert dict(FFT().one_round(queue, state).costs({0: ((1, 1),)})) == {
        "age": F(1, 2),
        "volume": 4,
        "switching": 1,
        "compensation": -12,
    }
    both = FFT().one_round(queue, state).costs({0: ((0, 1),), 1: ((1, 2),)})
    assert sum(both.values()) == F(1, 4) + 8 - 6 + F(1, 2) + 8


def test_readings_of_the_terms():
    queue = two_types(last=(((0, 1),), ()), remaining=two_types().remaining / 2)
    state = FFT().start(queue)
    assert FFT(remaining=True).one_round(queue, state).volume.tolist() == [[4, 2], [12, 4]]
    # A did not run in the last round: coming back is free, unless pauses count
    assert FFT().one_round(queue, state).switching.tolist()[0] == [0, 1]
    assert FFT(pauses=True).one_round(queue, state).switching.tolist()[0] == [1, 1]
    with pytest.raises(BadInput, match="restart"):
        FFT(restart=-1)


def test_the_unit_of_work_does_not_matter_where_compensation_is_in_rounds():
    def who(policy, factor):
        trace = small_trace(3, 14)
        jobs = replace(trace.jobs, work=trace.jobs.work * factor, throughput=trace.jobs.throughput * factor)
        records = run(policy, replace(trace, jobs=jobs), CLUSTER, length=2)
        return [{(ran.job, ran.types) for ran in record.ran} for record in records]

    assert who(FFT(in_rounds=True), 1) == who(FFT(in_rounds=True), 64)
    assert who(FFT(), 1) != who(FFT(), 64)
    queue = two_types()
    state = replace(FFT().refreshed(queue, FFTState()), compensation={"A": F(3), "B": F(2)})
    got = FFT(in_rounds=True).one_round(queue, state).compensation.tolist()
    assert got == [[F(3 * 2, 16), F(3 * 4, 16)], [F(2 * 1, 9), F(2 * 3, 9)]]


def test_memory_forbids_a_type():
    jobs = Jobs.of(types=["small", "large"], gpus=[1], work=[4], throughput=[[9, 1]], memory=[20])
    cluster = Cluster.uniform({"small": (1, 1), "large": (1, 1)}, memory={"small": 16, "large": 32})
    queue = Queue.fresh(jobs, cluster, length=1)
    for solve in (None, Highs()):
        assert decide(FFT(), queue, solve, state=FFTState()).placements == {0: ((1, 1),)}
    block = next(block for block in FFT().formulate(queue, FFTState()).row_blocks if block.name == "forbidden")
    assert block.size == 1
    assert block.source == "Sec. 4.4.1"


def test_tau_and_compensation_by_hand():
    # two jobs: half of 2 + 2 GPUs is one GPU each; A (gang of 1) is fully served, B (gang of 2) at half speed
    queue = two_types()
    state = FFT().refreshed(queue, FFTState())
    assert dict(state.fair_end) == {"A": 16 / F(2, 15), "B": 12 / (F(1, 10) / 2)}  # 120 and 240
    assert dict(state.compensation) == {"A": 0, "B": 0}
    # mu = 60/120 and 60/240; due a round 16 * 30/120 = 4 and 12 * 30/240 = 3/2; A runs on the slow type: 2 done
    after = FFT().advanced(queue, state, {0: ((0, 1),)})
    assert dict(after.coefficient) == {"A": F(1, 2), "B": F(1, 4)}
    assert dict(after.compensation) == {"A": F(1, 2) * (4 - 2), "B": F(1, 4) * F(3, 2)}
    # once more, on the fast type: what is done is what is due, then more than that, and never less than nothing
    again = FFT().advanced(queue, after, {0: ((1, 1),), 1: ((1, 2),)})
    assert dict(again.compensation) == {"A": 1, "B": F(3, 8) - F(1, 4) * F(3, 2)}
    small = replace(after, compensation={"A": F(0), "B": F(1, 4)})
    assert FFT().advanced(queue, small, {1: ((1, 2),)}).compensation["B"] == 0


def test_readings_of_tau():
    queue = two_types(remaining=np.array([F(8), F(3)], dtype=object))
    now = FFT(from_now=True).refreshed(queue, FFTState()).fair_end
    assert dict(now) == {"A": 60 + 8 / F(2, 15), "B": 60 + 3 / F(1, 20)}
    assert dict(FFT(whole_gpus=True).refreshed(queue, FFTState()).fair_end) == {"A": 120, "B": 240}
    # among five jobs a fluid fifth of two GPUs is 2/5 of one, and 1/5 of a gang of two; whole GPUs are one at least
    assert FFT().fair_end(queue, 5).tolist() == [16 / (F(2, 5) * F(2, 15)), 12 / (F(1, 5) * F(1, 10))]
    assert FFT(whole_gpus=True).fair_end(queue, 5).tolist() == [16 / F(2, 15), 12 / (F(1, 2) * F(1, 10))]


def test_loading_may_count_against_progress():
    queue = two_types()
    loading = FFT(served=Mechanics(launch=10))
    state = FFT().refreshed(queue, FFTState())
    after = loading.advanced(queue, state, {0: ((1, 1),)})
    assert after.compensation["A"] == F(1, 2) * (4 - F(8, 3))  # four a round, less a third for loading


def test_tau_changes_only_when_a_job_comes_or_goes():
    queue = two_types()
    state = FFT().refreshed(queue, FFTState())
    assert FFT(from_now=True).refreshed(replace(queue, now=F(90), index=3), state) is state
    alone = Queue.fresh(queue.jobs.take([1]), queue.cluster, length=30, now=90, index=3)
    later = FFT().refreshed(alone, replace(state, compensation={"A": F(1), "B": F(2)}))
    assert dict(later.fair_end) == {"B": 120}
    assert dict(later.compensation) == {"B": 2}


def test_a_fair_end_before_the_arrival_is_refused():
    queue = two_types()
    broken = FFTState(compensation={"A": F(0)}, coefficient={"A": F(0)}, fair_end={"A": F(0)})
    with pytest.raises(BadInput, match="tau"):
        FFT().advanced(queue, broken, {})


def test_compensation_rises_while_starved_and_falls_while_served():
    """The shape of Fig. 5: a large job against a stream of small ones on one GPU."""
    large, small = 20, 60
    jobs = Jobs.of(
        names=["large", *(f"s{n}" for n in range(small))],
        types=["T"],
        gpus=[1] * (small + 1),
        work=[large] + [1] * small,
        arrival=[0, *range(small)],
    )
    records = list(run(FFT(), Trace(jobs), Cluster.uniform({"T": (1, 1)}), length=1))
    owed = [r.after.state.compensation["large"] for r in records if "large" in r.after.state.compensation]
    served = [any(ran.job == "large" for ran in r.ran) for r in records][: len(owed)]
    assert any(served)
    assert not all(served)
    for before, after, runs in zip(owed, owed[1:], served[1:], strict=False):
        assert after <= before if runs else after > before


@pytest.mark.parametrize("exact", [True, False])
def test_own_algorithm_milp_and_brute_force_agree(exact):
    dice = Random(5 + exact)
    for _ in range(40):
        queue = random_queue(dice, exact=exact)
        state = random_state(dice, queue)
        if not exact:
            owed = {name: float(value) for name, value in state.compensation.items()}
            state = replace(state, compensation=owed)
        own = decide(FFT(), queue, state=state)
        other = decide(FFT(), queue, Highs(), state=state, options=Options(gap=0))
        best, most = brute_force(queue, FFT().one_round(queue, state).cost)
        for schedule in (own, other):
            refuse_broken(schedule)
            assert float(sum(schedule.costs.values())) == pytest.approx(float(best), abs=1e-6)
            assert float(schedule.solution.objective) == pytest.approx(float(best), abs=1e-6)
            assert schedule.solution.gap <= 1e-6
            assert sum(gpus for spots in schedule.placements.values() for _, gpus in spots) >= most
        assert own.evidence.lower <= own.evidence.objective


def brute_force(queue, cost):
    """Return the least cost among schedules that keep the most GPUs busy, and these GPUs, by trying all schedules."""
    n, k = cost.shape
    fits = []
    for choice in product(range(-1, k), repeat=n):
        used = [0] * k
        for row, gpu_type in enumerate(choice):
            if gpu_type >= 0:
                used[gpu_type] += int(queue.jobs.gpus[row])
        if all(gpu_type < 0 or queue.allowed[row, gpu_type] for row, gpu_type in enumerate(choice)) and all(
            use <= most for use, most in zip(used, queue.capacity, strict=True)
        ):
            fits.append((sum(used), sum(cost[row, gpu_type] for row, gpu_type in enumerate(choice) if gpu_type >= 0)))
    most = max(used for used, _ in fits)
    return min(total for used, total in fits if used == most), most


def test_demand_alone_is_no_work_conservation():
    # two gangs of 3 on two types of 2 + 3 GPUs: 5 GPUs, demand of 6, and 3 that can be busy
    jobs = Jobs.of(types=["a", "b"], gpus=[3, 3], work=[4, 4])
    queue = Queue.fresh(jobs, Cluster.uniform({"a": (1, 2), "b": (1, 3)}), length=1)
    allowed = choices(queue)
    assert smaller_total(jobs.gpus, allowed, queue.room) == 5
    assert usable_gpus(jobs.gpus, allowed, queue.room) == 3
    for solve in (None, Highs()):
        with pytest.raises(NotSolved):
            decide(FFT(usable=smaller_total), queue, solve, state=FFTState())
        assert len(decide(FFT(), queue, solve, state=FFTState()).placements) == 1
        # without the constraint nobody runs, since every job costs something
        assert not decide(FFT(usable=nothing), queue, solve, state=FFTState()).placements


def test_leases_are_kept_and_hosts_that_are_down_are_not_used():
    queue = two_types(
        last=(((1, 1),), ()),
        running=np.array([True, False]),
        lease=np.array([F(120), F(60)], dtype=object),
    )
    for solve in (None, Highs()):
        schedule = decide(FFT(), queue, solve, state=FFTState())
        # one GPU of the fast host is free, so that B goes to the slow one
        assert schedule.placements == {0: ((1, 1),), 1: ((0, 2),)}
        assert schedule.costs["volume"] == 4 + 24
    down = two_types(up=np.array([True, False]))
    schedule = decide(FFT(), down, state=FFTState())
    assert set(schedule.placements) == {1}  # the gang of two keeps both GPUs busy; one job of one would leave one idle


def small_trace(seed=1, jobs=25):
    dice = Random(seed)
    rows = Jobs.of(
        types=["a", "b"],
        gpus=[dice.choice([1, 1, 2, 4]) for _ in range(jobs - 1)] + [9],
        work=[dice.randint(1, 40) for _ in range(jobs)],
        throughput=[[1, dice.choice([0, 2, 3])] for _ in range(jobs)],
        arrival=sorted(F(dice.randint(0, 60), 2) for _ in range(jobs)),
        state_size=[dice.randint(0, 4) for _ in range(jobs)],
        tenant=[dice.choice("xyz") for _ in range(jobs)],
    )
    return Trace(rows, (Outage("b-1", F(7), F(12)),))


CLUSTER = Cluster.uniform({"a": (2, 2), "b": (2, 4)}, bandwidth=2)


def test_a_run_completes_reports_misfits_and_resumes():
    trace, mechanics = small_trace(), Mechanics(restart=F(1, 4))
    whole = list(run(FFT(), trace, CLUSTER, length=2, mechanics=mechanics))
    done = [job for record in whole for job in record.completed]
    lost = set(whole[-1].unschedulable)
    assert sorted(done) == sorted(set(trace.jobs.names) - lost)
    assert len(lost) == 1
    half = list(run(FFT(), trace, CLUSTER, length=2, mechanics=mechanics, rounds=6))
    assert half[-1].after.state.prices  # the multipliers that the next round starts from are kept as well
    again = snapshot_from(snapshot_text(half[-1].after), FFT.states)
    assert again == half[-1].after
    rest = list(run(FFT(), trace, CLUSTER, length=2, mechanics=mechanics, after=again))
    assert half + rest == whole
    for record in whole:  # the state forgets who has left
        present = {ran.job for ran in record.ran} | set(record.waiting) - set(record.unschedulable)
        assert record.after.state.compensation.keys() == present


def test_a_run_in_floats_and_one_by_highs():
    trace = small_trace(2, 12)
    exact = list(run(FFT(), trace, CLUSTER, length=2))
    floats = list(run(FFT(), trace.as_(float), CLUSTER, length=2))
    assert len(exact[-1].completed) == len(floats[-1].completed)
    by_highs = list(run(FFT(), trace, CLUSTER, length=2, backend=Highs()))
    assert sum(len(record.completed) for record in by_highs) == 11


def test_a_warm_start_finds_the_same_costs():
    dice = Random(9)
    for _ in range(20):
        queue = random_queue(dice)
        state = random_state(dice, queue)
        warm = FFT(warm_start=True)
        first = decide(warm, queue, state=state)
        assert first.state.prices or not first.placements
        kept = replace(state, prices=first.state.prices, reward=first.state.reward)
        again = decide(warm, queue, state=kept)
        assert again.evidence.objective == pytest.approx(first.evidence.objective, abs=1e-9)
        assert sum(again.costs.values()) == sum(first.costs.values())


def test_queues_in_which_nobody_fits():
    jobs = Jobs.of(types=["a"], gpus=[5, 6], work=[1, 1])
    queue = Queue.fresh(jobs, Cluster.uniform({"a": (1, 4)}), length=1)
    before = FFTState(compensation={"done": F(1)}, coefficient={"done": F(1)}, fair_end={"done": F(9)})
    for solve, state in product((None, Highs()), (FFTState(), before)):
        schedule = decide(FFT(), queue, solve, state=state)
        assert not schedule.placements
        assert not schedule.state.compensation
        assert sum(schedule.costs.values()) == 0
