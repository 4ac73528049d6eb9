"""Stride and lotteries for gangs, on one pool and split over servers: Table 2, Fig. 3, and what no quantum may do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction as F
from random import Random

import pytest
from drawn_seeds import counts

from fairopt.backends import Highs
from fairopt.errors import NotCapable
from fairopt.models.gandiva_fair.gandiva_fair import GandivaFair
from fairopt.models.gandiva_fair.lottery import (
    GangAwareLottery,
    LotteryWithBackfilling,
    _Lots,
    backfilled,
    gang_aware,
)
from fairopt.models.gandiva_fair.split_stride import SplitStride
from fairopt.models.gandiva_fair.stride import GangAwareStride, Strides, fastest
from fairopt.models.gandiva_fair.stride import gang_aware as algorithm_1
from fairopt.models.gandiva_fair.tickets import UNIT
from fairopt.policy import Policy, Schedule, decide
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.queue import Queue
from fairopt.problem.trace import Outage, Trace
from fairopt.proofs.claims.gandiva_fair.rounds import backfilling_exactly
from fairopt.proofs.claims.gandiva_fair.stride import (
    delay,
    gang_aware_service,
    gpu_by_gpu,
    one_at_a_time,
    without_overtaking,
)
from fairopt.simulation import Change, Round, run, snapshot_from, snapshot_text
from fairopt.testing.round_samples import sample_settings

POLICIES = (GangAwareStride(), LotteryWithBackfilling(), GangAwareLottery(), SplitStride(), GandivaFair())
SERVER = Cluster.uniform({"V100": (1, 4)})
ENDLESS = 10**6


def table_2() -> Trace:
    return Trace(
        Jobs.of(
            gpus=[1, 1, 2, 2, 4, 4], work=[ENDLESS] * 6, types=["V100"], tenant=list("AABBCC"), names=list("abcdef")
        )
    )


def times(policy: Policy, trace: Trace, cluster: Cluster, rounds: int) -> Counter[str]:
    """Return in how many rounds each job ran."""
    return Counter(one.job for record in run(policy, trace, cluster, length=1, rounds=rounds) for one in record.ran)


# -- Algorithm 1 -------------------------------------------------------------------------------------------------------
def test_table_2_within_six_quanta_quantum_by_quantum():
    ran = [[one.job for one in record.ran] for record in run(GangAwareStride(), table_2(), SERVER, length=1, rounds=6)]
    assert ran == [["a", "b", "c"], ["a", "b", "d"], ["e"], ["f"], ["a", "b", "c"], ["a", "b", "d"]]
    for policy in (GangAwareStride(by_weight=True), GangAwareStride(readjust=False), SplitStride(), GandivaFair()):
        assert times(policy, table_2(), SERVER, 6) == Counter(a=4, b=4, c=2, d=2, e=1, f=1)


def test_strides_that_ignore_size_do_not_give_table_2():
    assert times(GangAwareStride(by_size=False), table_2(), SERVER, 14) == Counter(dict.fromkeys("abcdef", 4))


def test_who_does_not_fit_keeps_its_pass_and_order_is_natural():
    assert algorithm_1([F(1), F(0), F(0)], [1, 4, 1], 4) == [1]
    assert algorithm_1([F(0), F(0), F(0)], [1, 4, 2], 4) == [0, 2]
    assert algorithm_1([], [], 4) == []


def test_a_new_job_enters_at_the_least_pass():
    jobs = Jobs.of(gpus=[1, 1, 1], work=[ENDLESS] * 3, types=["V100"], arrival=[0, 0, 5], names=["x", "y", "z"])
    for policy, less in ((GangAwareStride(), 0), (SplitStride(), 6)):  # split stride's are less one for each quantum
        *_, last = run(policy, Trace(jobs), Cluster.uniform({"V100": (1, 1)}), length=1, rounds=6)
        passes = last.after.state.passes
        # after five quanta x ran three times and y twice, at stride 2 each; z enters level with y, and y is first
        before = {"x": F(6), "y": F(4), "z": F(4)}
        risen = {name: F(passes[name], UNIT) + less - before[name] for name in "xyz"}
        assert risen == {"x": 0, "y": 3, "z": 0}, policy.name


@pytest.mark.parametrize("policy", [GangAwareStride(), SplitStride()], ids=lambda each: each.name)
def test_passes_that_differ_by_rounding_alone_are_equal(policy):
    """Two jobs of a drawn trace had the same pass but for 41 of its 10^23, in floats otherwise than in fractions."""
    jobs = Jobs.of(gpus=[1, 1], work=[ENDLESS] * 2, types=["V100"], names=["x", "y"])
    queue, home = Queue.fresh(jobs, Cluster.uniform({"V100": (1, 1)}), length=1), (("V100-1", 1),)
    for more, first in ((41, 0), (-41, 0), (UNIT // 10**6, 1)):
        passes = {"x": 47 * UNIT // 3 + more, "y": 47 * UNIT // 3}
        state = Strides(passes, {"x": "V100", "y": "V100"}, {"x": home, "y": home}, {"V100-1": 0})
        assert set(decide(policy, queue, state=state).placements) == {first}, more


@pytest.mark.parametrize(("policy", "stride"), [(GangAwareStride(), 3), (SplitStride(), 0)])
def test_where_all_run_one_state_is_that_of_many_rounds(policy, stride):
    jobs = Jobs.of(gpus=[1, 2, 1], work=[ENDLESS] * 3, types=["V100"], arrival=[0, 0, 5], names=["x", "y", "z"])
    rounds = list(run(policy, Trace(jobs), SERVER, length=1, rounds=10))
    states = [each.after.state for each in rounds]
    assert all(state is states[0] for state in states[:5])
    assert states[5] is not states[4]
    assert all(state is states[5] for state in states[5:])
    # tickets per GPU are 1/3, or the 1 that is taken off where they are GPUs that are used; five quanta are over
    passes = getattr(states[0].before(5), "passes", states[0].before(5))
    assert {name: F(passes[name], UNIT) for name in "xy"} == {"x": 5 * stride, "y": 5 * stride}


def test_tickets_of_small_users_go_to_the_others():
    # C can use 1 of 4 GPUs only: its pass is raised as if it had a quarter of all tickets
    jobs = Jobs.of(gpus=[4, 4, 1], work=[ENDLESS] * 3, types=["V100"], tenant=list("ABC"), names=list("abc"))
    one = next(run(GangAwareStride(), Trace(jobs), SERVER, length=1))
    assert one.after.state.passes == {"a": F(4) / F(9, 8) * UNIT, "b": 0, "c": 0}
    plain = next(run(GangAwareStride(readjust=False), Trace(jobs), SERVER, length=1))
    assert plain.after.state.passes == {"a": 4 * UNIT, "b": 0, "c": 0}


def test_types_are_pools_of_their_own():
    cluster = Cluster.uniform({"K80": (1, 2), "V100": (1, 2)})

    def gpu_types(policy: Policy, slow: int, fast: int) -> str:
        jobs = Jobs.of(gpus=[1] * 4, work=[ENDLESS] * 4, types=cluster.types, throughput=[[slow, fast]] * 4)
        record = next(run(policy, Trace(jobs), cluster, length=1))
        assigned = record.after.state.gpu_types
        assert all(one.types == (assigned[one.job],) for one in record.ran)
        return "".join(assigned[f"j{job}"][0] for job in range(1, 5))

    # at 2 to 3, sharing two V100 among three is no faster than a K80; at 1 to 3 sharing them among four still is
    assert gpu_types(GangAwareStride(), 2, 3) == "VVKK"
    assert gpu_types(GangAwareStride(), 1, 3) == "VVVV"
    assert gpu_types(GangAwareStride(assign=fastest), 2, 3) == "VVVV"


def test_never_later_than_one_at_a_time_or_without_overtaking():
    dice = Random(1)
    for _ in range(60):
        gpus = dice.choice([2, 4, 8])
        mix = tuple((dice.randint(1, gpus), dice.randint(1, 5)) for _ in range(dice.randint(1, 6)))
        own = gang_aware_service(mix, gpus, 30)
        assert delay(own, one_at_a_time(mix, gpus, 30)).quanta <= 0
        assert delay(own, without_overtaking(mix, gpus, 30)).quanta <= 0


def test_a_gang_is_later_than_its_gpus_one_by_one():
    # with a GPU by itself the large job takes what the small one leaves, half of it in each quantum
    mix = ((1, 1), (2, 1))
    assert gang_aware_service(mix, 2, 9) == [[1, 3, 4, 6, 7, 9], [2, 5, 8]]
    assert gpu_by_gpu(mix, 2, 9) == [list(range(1, 10)), [2, 4, 6, 8]]


# -- lotteries ---------------------------------------------------------------------------------------------------------
def test_backfilling_fills_the_server_and_never_takes_a_job_twice():
    for seed in range(200):
        chosen = backfilled(Random(seed), [4, 4, 2, 2, 1, 1], [1, 1, 2, 2, 4, 4], 4)
        assert len(chosen) == len(set(chosen))
        assert sum([1, 1, 2, 2, 4, 4][job] for job in chosen) == 4


def test_backfilling_by_hand():
    # the job of 3 GPUs is drawn first at 1/5, else it does not fit any more; the others then fill the server
    assert backfilling_exactly([F(2), F(2), F(1)], [1, 2, 3], 3) == [F(4, 5), F(4, 5), F(1, 5)]
    # two of three single GPUs: the one with half the tickets of the others is in at 1/5 + 4/5 * 1/3
    assert backfilling_exactly([F(2), F(2), F(1)], [1, 1, 1], 2) == [F(23, 30), F(23, 30), F(7, 15)]


def test_gang_aware_lottery_serves_who_waits_first():
    chosen, queue = gang_aware(Random(0), [1, 1, 1], [1, 4, 4], 4, [2, 1, 2])
    assert chosen == [2]
    assert queue == [1, 2]


def test_every_win_is_served_once():
    dice, waiting, wins, served = Random(5), [], Counter(), Counter()
    sizes = [1, 1, 2, 2, 4, 4]
    for _ in range(400):
        before = Counter(waiting)
        chosen, waiting = gang_aware(dice, [4, 4, 2, 2, 1, 1], sizes, 4, waiting)
        assert sum(sizes[job] for job in chosen) == 4
        served.update(chosen)
        wins.update(Counter(chosen) + Counter(waiting) - before)
    assert wins == served + Counter(waiting)
    assert len(waiting) < 100


def test_waiting_wins_are_bounded():
    # fair shares would leave GPUs idle: the large job cannot run beside a small one that always does
    waiting: list[int] = []
    for seed in range(300):
        _, waiting = gang_aware(Random(seed), [100, 1, 100, 100, 100], [3, 1, 3, 3, 3], 4, waiting, longest=50)
        assert len(waiting) <= 50


def test_lotteries_depend_on_seed_and_round_only():
    first, again, other = (
        [
            [one.job for one in record.ran]
            for record in run(GangAwareLottery(seed=s), table_2(), SERVER, length=1, rounds=50)
        ]
        for s in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.slow
def test_lottery_is_fair_in_the_long_run_and_backfilling_is_not():
    fair, unfair = (times(policy, table_2(), SERVER, 2000) for policy in (GangAwareLottery(), LotteryWithBackfilling()))
    for job, part in zip("abcdef", [F(2, 3)] * 2 + [F(1, 3)] * 2 + [F(1, 6)] * 2, strict=True):
        assert abs(fair[job] / 2000 - part) < 0.04
    assert unfair["a"] / 2000 > 0.75
    assert unfair["e"] / 2000 < 0.1


def test_lots_are_drawn_in_proportion_to_tickets_and_those_taken_away_are_not_drawn():
    dice, lots = Random(2), _Lots([5, 0, 3, 2, 7])
    lots.drop(4)
    drawn = Counter(lots.draw(dice) for _ in range(5000))
    assert lots.total == 10
    assert drawn.keys() == {0, 2, 3}
    assert all(abs(drawn[job] / 5000 - part / 10) < 0.03 for job, part in ((0, 5), (2, 3), (3, 2)))


@pytest.mark.parametrize("traces", counts(4, 12))
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_ties_of_tickets_are_decided_alike_in_floats(policy, traces):
    """Tenths and thirds, which floats round, of users who come and go: jobs of equal passes keep their order."""
    tenths = [
        (replace(trace.jobs, tenant_weight=trace.jobs.tenant_weight * F(1, 10)), cluster, 1)
        for trace, cluster in map(random_trace, range(traces))
    ]
    *_, setting = sample_settings(26, seed=11, outages=False)  # in floats, stride took other jobs in round 5
    for jobs, cluster, length in [*tenths, (setting.trace.jobs, setting.cluster, setting.length)]:
        exactly = list(run(policy, Trace(jobs), cluster, length=length, rounds=40))
        nearly = list(run(policy, Trace(jobs).as_(float), cluster, length=length, rounds=40))
        assert [_places(record) for record in exactly] == [_places(record) for record in nearly]


def _places(record: Round) -> list[tuple[str, object]]:
    return [(one.job, one.spots) for one in record.ran]


# -- split stride ------------------------------------------------------------------------------------------------------
def figure_3(small: int, large: int) -> Trace:
    """Two servers of 4 GPUs, each with four small jobs, and one job of 8 GPUs."""
    return Trace(
        Jobs.of(
            gpus=[1] * 8 + [8],
            work=[ENDLESS] * 9,
            types=["V100"],
            tenant=["small"] * 8 + ["large"],
            tenant_weight={"small": small, "large": large},
        )
    )


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize(("small", "part"), [(200, F(2, 3)), (400, F(4, 5))])
def test_servers_turns(small, part, whole):
    count = times(SplitStride(whole=whole), figure_3(small, 100), Cluster.uniform({"V100": (2, 4)}), 30)
    assert count["j9"] == 30 * (1 - part)
    assert all(count[f"j{job}"] == 30 * part for job in range(1, 9))


def test_small_jobs_stay_on_one_server_and_pauses_are_no_migrations():
    jobs = Jobs.of(gpus=[8, 2, 2, 1, 1, 1, 1, 3, 4], work=[ENDLESS] * 9, types=["V100"], tenant=list("ABBCCCCDD"))
    changes = set()
    homes: dict[str, set[tuple[tuple[str, int], ...]]] = {}
    for record in run(SplitStride(), Trace(jobs), Cluster.uniform({"V100": (2, 4)}), length=1, rounds=40):
        for one in record.ran:
            changes.add(one.change)
            homes.setdefault(one.job, set()).add(one.spots)
    assert changes == {Change.START, Change.STAY, Change.RESUME}
    assert all(len(spots) == 1 for spots in homes.values())
    assert len(homes) == 9


def test_small_jobs_use_what_a_large_one_leaves_free():
    jobs = Jobs.of(gpus=[6, 2], work=[ENDLESS] * 2, types=["V100"], tenant=["A", "B"])
    cluster = Cluster.uniform({"V100": (2, 4)})
    assert times(SplitStride(), Trace(jobs), cluster, 12) == Counter(j1=12, j2=12)
    apart = times(SplitStride(shared=False), Trace(jobs), cluster, 12)
    assert apart["j1"] + apart["j2"] == 12


# -- all of them -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_no_program(policy):
    queue = Queue.fresh(table_2().jobs, SERVER, length=1)
    with pytest.raises(NotCapable):
        decide(policy, queue, Highs())


class Leasing(Policy):
    """Whatever another policy decides, with leases of several rounds for some of those who run."""

    problem = Queue
    name = "leasing"

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def start(self, problem):
        return self.policy.start(problem)

    def decide(self, problem, state, solve) -> Schedule:
        schedule = decide(self.policy, problem, state=state)
        dice = Random(problem.index)
        longer = {
            row: problem.now + dice.randint(1, 4) * problem.length for row in schedule.placements if dice.random() < 0.3
        }
        kept = {row: problem.lease[row] for row in problem.leased}
        return replace(schedule, leases=longer | kept)


def random_trace(seed: int) -> tuple[Trace, Cluster]:
    """Jobs that come and go, some that fit nowhere, unequal hosts that fail, and unequal tickets."""
    dice = Random(seed)
    gpu_types = ["old", "new"][: dice.randint(1, 2)]
    gpu_type = [dice.choice(gpu_types) for _ in range(dice.randint(2, 5))]
    cluster = Cluster.of(gpu_type, [dice.choice([2, 4, 4]) for _ in gpu_type], memory=dict.fromkeys(gpu_type, 16))
    count = dice.randint(1, 14)
    jobs = Jobs.of(
        gpus=[dice.choice([1, 1, 1, 2, 3, 4, 6, 8, 40]) for _ in range(count)],
        work=[dice.randint(1, 6) for _ in range(count)],
        types=cluster.types,
        throughput=[[dice.choice([0, 1, 1, 2]) for _ in cluster.types] for _ in range(count)],
        arrival=[F(dice.randint(0, 20), 2) for _ in range(count)],
        tenant=["A", *(dice.choice("ABC") for _ in range(count - 1))],
        tenant_weight={"A": dice.randint(1, 3)},
        memory=[dice.choice([0, 8, 32]) if dice.random() < 0.3 else 0 for _ in range(count)],
    )
    begin = dice.randint(1, 6)
    outages = (Outage(cluster.hosts[0], F(begin), F(begin + dice.randint(1, 4))),) if dice.random() < 0.5 else ()
    return Trace(jobs, outages), cluster


@pytest.mark.parametrize("traces", counts(8, 20))
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_random_traces_run_to_their_end(policy, traces):
    """`run` refuses schedules that break gangs, hosts, types or leases; everybody who fits is completed."""
    for seed in range(traces):
        trace, cluster = random_trace(seed)
        for each in (trace, trace.as_(float)):
            records = list(run(Leasing(policy) if seed % 2 else policy, each, cluster, length=1))
            done = {job for record in records for job in record.completed}
            unschedulable = {job for record in records for job in record.unschedulable}
            assert done | unschedulable == set(trace.jobs.names)
            assert not done & unschedulable


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_stopped_and_resumed(policy):
    for seed in range(8):
        trace, cluster = random_trace(100 + seed)
        whole = list(run(policy, trace, cluster, length=1))
        first = list(run(policy, trace, cluster, length=1, rounds=3))
        snapshot = snapshot_from(snapshot_text(first[-1].after), policy.states)
        assert snapshot == first[-1].after
        assert first + list(run(policy, trace, cluster, length=1, after=snapshot)) == whole


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_states_forget_who_is_gone(policy):
    trace, cluster = random_trace(7)
    *_, last = run(policy, trace, cluster, length=1)
    names = set(trace.jobs.names) - set(last.waiting) - {one.job for one in last.ran}
    assert not [name for name in names if f'"{name}"' in snapshot_text(last.after)]
