"""AlloX: its matching against brute force and known optima, and what its runs must show."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from random import Random

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt.errors import BadInput, NotInstalled
from fairopt.models.baselines.allox import AlloX, _MachinePosition, matched, places, ready_times, starts
from fairopt.models.common.schedulers import Tally
from fairopt.policy import decide
from fairopt.problem import Cluster, Jobs, Outage, Trace
from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import Round, run
from fairopt.testing.round_suite import round_suite

Times = Sequence[Sequence[Number | None]]


def total(times: Times, ready: Sequence[Sequence[Number]]) -> Number:
    """Return the sum of completion times of the sequences that the matching makes."""
    matching = matched(times, ready)
    begin = starts(times, matching)
    ends = [
        now + (times[job][place.gpu_type] or 0) for job, (now, place) in enumerate(zip(begin, matching, strict=True))
    ]
    return sum(ends)


def least_total(times: Times, ready: Sequence[Sequence[Number]]) -> Number:
    """Return the least sum of completion times, by trying every assignment and every order."""
    machines = [(gpu_type, when) for gpu_type, each in enumerate(ready) for when in each]
    best: Number | None = None
    for choice in product(range(len(machines)), repeat=len(times)):
        if any(times[job][machines[at][0]] is None for job, at in enumerate(choice)):
            continue
        cost: Number = 0
        for at, (gpu_type, when) in enumerate(machines):
            here = [times[job][gpu_type] or 0 for job, one in enumerate(choice) if one == at]
            cost += min(_in_order(order, when) for order in permutations(here))
        best = cost if best is None else min(best, cost)
    assert best is not None
    return best


def _in_order(lengths: Sequence[Number], when: Number) -> Number:
    out: Number = 0
    for length in lengths:
        when += length
        out += when
    return out


def sample(random: Random, most_jobs: int, most_machines: int) -> tuple[Times, list[list[Number]]]:
    gpu_types = random.randint(1, 2)
    ready: list[list[Number]] = [
        sorted(Fraction(random.choice([0, 0, random.randint(1, 9)])) for _ in range(random.randint(1, most_machines)))
        for _ in range(gpu_types)
    ]
    times: list[list[Number | None]] = []
    for _ in range(random.randint(1, most_jobs)):
        row: list[Number | None] = [
            None if random.random() < 0.2 else Fraction(random.randint(1, 9), random.randint(1, 3))
            for _ in range(gpu_types)
        ]
        times.append(row if any(row) else [Fraction(3)] * gpu_types)
    return times, ready


def test_the_matching_is_the_best_of_all_sequences() -> None:
    random = Random(5)
    for _ in range(150):
        times, ready = sample(random, 4, 2)
        assert total(times, ready) == least_total(times, ready)


def test_on_identical_machines_it_is_shortest_first() -> None:
    random = Random(6)
    for _ in range(40):
        machines = random.randint(1, 5)
        lengths = [Fraction(random.randint(1, 50)) for _ in range(random.randint(1, 30))]
        longest_first = sorted(lengths, reverse=True)
        known = sum((at // machines + 1) * length for at, length in enumerate(longest_first))
        assert total([[length] for length in lengths], [[0] * machines]) == known


def test_leaving_places_out_costs_nothing() -> None:
    # every place of every machine, and every edge, against those that are kept
    from scipy.optimize import linear_sum_assignment

    random = Random(7)
    left_out = 0
    for _ in range(25):
        times, ready = sample(random, 30, 6)
        count = len(times)
        kept = [place for gpu_type, each in enumerate(ready) for place in places(gpu_type, each, count)]
        whole = [
            (gpu_type, when, from_end)
            for gpu_type, each in enumerate(ready)
            for when in each
            for from_end in range(1, count + 1)
        ]
        left_out += len(whole) - len(kept)
        cost = np.array(
            [
                [
                    1e6 if row[gpu_type] is None else float(when + from_end * row[gpu_type])  # type: ignore[operator]
                    for gpu_type, when, from_end in whole
                ]
                for row in times
            ]
        )
        rows, columns = linear_sum_assignment(cost)
        assert float(total(times, ready)) == pytest.approx(cost[rows, columns].sum(), rel=1e-12)
    assert left_out > 1000


def test_what_places_are_kept() -> None:
    # two machines free at once: two jobs never have use for a second place
    assert [(each.machine, each.from_end) for each in places(0, [0, 0], 2)] == [(0, 1), (1, 1)]
    assert [(each.machine, each.from_end) for each in places(0, [0, 9], 2)] == [(0, 1), (0, 2), (1, 1)]


def test_of_jobs_that_may_change_places_the_shortest_begins_first() -> None:
    times = [[Fraction(7)], [Fraction(4)]]
    either = [_MachinePosition(0, 0, 0, 1), _MachinePosition(0, 1, 5, 1)]
    assert starts(times, either) == starts(times, either[::-1]) == [5, 0]


def test_machines_are_gpus_in_the_order_in_which_they_become_free() -> None:
    assert ready_times([(2, 30), (2, 10)], 6, 2) == [0, 10, 30]
    assert ready_times([(1, 30), (1, 10)], 5, 2) == [0, 10]  # 0 0 | 0 10 | 30 makes none
    assert ready_times([], 3, 4) == []


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(NotInstalled, match=r"fairopt\[rounds\]"):
        matched([[Fraction(1)]], [[0]])


# ---------------------------------------------------------------- in rounds


def played(policy: AlloX, jobs: Jobs, cluster: Cluster, length: int = 1, **more: object) -> list[Round]:
    outages = more.pop("outages", ())
    return list(run(policy, Trace(jobs, outages), cluster, length=length, **more))  # type: ignore[arg-type]


def ends(rounds: Sequence[Round]) -> dict[str, Number]:
    return {ran.job: ran.end for record in rounds for ran in record.ran if ran.completed}


def test_two_jobs_wait_for_the_fast_gpu_and_leave_the_slow_one_idle() -> None:
    # FFT, Table 1: 16 epochs at 8 or 1 a minute; in turn on the fast GPU they end at 2 and 4, on both at 2 and 16
    jobs = Jobs.of(gpus=[1, 1], work=[16, 16], types=["GPU0", "GPU1"], throughput=[[8, 1]] * 2)
    rounds = played(AlloX(), jobs, Cluster.uniform({"GPU0": (1, 1), "GPU1": (1, 1)}))
    assert ends(rounds) == {"j1": 2, "j2": 4}
    assert {ran.types for record in rounds for ran in record.ran} == {("GPU0",)}


def test_a_run_of_jobs_that_come_together_has_the_least_total() -> None:
    random = Random(8)
    for _ in range(25):
        count = random.randint(1, 5)
        # lengths that end with rounds, so that nothing is lost at boundaries
        table = [[random.choice([1, 2, 4]), random.choice([1, 2, 4])] for _ in range(count)]
        work = [4 * random.randint(1, 4) for _ in range(count)]
        jobs = Jobs.of(gpus=[2] * count, work=work, types=["A", "B"], throughput=table)
        rounds = played(AlloX(), jobs, Cluster.uniform({"A": (1, 2), "B": (1, random.choice([2, 4]))}))
        machines = [[0], [0] * (int(rounds[0].usable) // 2 - 1)]
        times = [[Fraction(todo, one) for one in row] for todo, row in zip(work, table, strict=True)]
        assert sum(ends(rounds).values()) == least_total(times, machines)


def test_nobody_is_stopped_for_a_shorter_job() -> None:
    jobs = Jobs.of(gpus=[1, 1, 1], work=[50, 9, 1], types=["V100"], arrival=[0, 5, 5])
    rounds = played(AlloX(), jobs, Cluster.uniform({"V100": (1, 1)}), length=10)
    # those who wait are matched anew, the shortest first
    assert ends(rounds) == {"j1": 50, "j2": 69, "j3": 51}


def test_a_job_whose_host_fails_is_matched_again() -> None:
    jobs = Jobs.of(gpus=[1], work=[40], types=["V100"])
    fails = (Outage("V100-1", Fraction(20), Fraction(30)),)
    assert ends(played(AlloX(), jobs, Cluster.uniform({"V100": (2, 1)}), length=10, outages=fails)) == {"j1": 40}


def test_gangs_count_as_their_gpu_time_on_one_slot() -> None:
    # 40, 12 and 14 GPU-seconds on four slots: all are first on one, and who is done soonest on it takes GPUs first
    jobs = Jobs.of(gpus=[4, 1, 2], work=[10, 12, 7], types=["V100"])
    rounds = played(AlloX(), jobs, Cluster.uniform({"V100": (1, 4)}), length=1)
    assert ends(rounds) == {"j2": 12, "j3": 7, "j1": 22}


def test_tenants_of_least_progress_are_matched_first() -> None:
    jobs = Jobs.of(gpus=[1] * 4, work=[4, 5, 9, 9], types=["V100"], tenant=list("AABB"))
    one = Cluster.uniform({"V100": (1, 1)})
    assert list(ends(played(AlloX(), jobs, one))) == ["j1", "j2", "j3", "j4"]
    # A has had 4 when j1 ends, and B nothing; then B 9
    rounds = played(AlloX(alpha=Fraction(1, 2)), jobs, one)
    assert list(ends(rounds)) == ["j1", "j3", "j2", "j4"]
    assert rounds[-1].after.state == Tally({"A": 9, "B": 18})
    # weights count: A's 9 of weight 3 is as little as 3
    heavy = Jobs.of(
        gpus=[1] * 4, work=[4, 5, 9, 9], types=["V100"], tenant=list("AABB"), tenant_weight={"A": 3, "B": 1}
    )
    assert list(ends(played(AlloX(alpha=Fraction(1, 2)), heavy, one))) == ["j1", "j3", "j2", "j4"]


def test_what_the_first_tenants_leave_idle_the_others_get() -> None:
    jobs = Jobs.of(gpus=[1] * 3, work=[9, 4, 4], types=["V100"], tenant=list("ABB"))
    rounds = played(AlloX(alpha=Fraction(1, 3)), jobs, Cluster.uniform({"V100": (1, 2)}))
    assert {ran.job for ran in rounds[0].ran} == {"j1", "j2"}


def test_jobs_are_matched_in_portions_until_nothing_idles() -> None:
    # the first two took their GPUs, and the others stayed idle until the next round
    jobs = Jobs.of(gpus=[1] * 5, work=[5, 4, 3, 2, 1], types=["V100"])
    cluster = Cluster.uniform({"V100": (1, 4)})
    for most in (1, 2, None):
        assert {ran.job for ran in played(AlloX(most=most), jobs, cluster)[0].ran} == {"j2", "j3", "j4", "j5"}
    # four jobs alone would all wait for the GPU that is five times as fast; the others find it taken by these
    two = Cluster.uniform({"fast": (1, 1), "slow": (1, 1)})
    jobs = Jobs.of(gpus=[1] * 9, work=[10] * 9, types=["fast", "slow"], throughput=[[5, 1]] * 9)
    assert {ran.types for ran in played(AlloX(most=4), jobs, two)[0].ran} == {("fast",), ("slow",)}


def test_what_would_be_decided_again_stands() -> None:
    jobs = Jobs.of(gpus=[1, 2, 2], work=[9, 9, 9], types=["V100"])
    queue = Queue.fresh(jobs, Cluster.uniform({"V100": (1, 3)}), length=1)
    assert decide(AlloX(), queue).stands == float("inf")
    assert decide(AlloX(alpha="1/2"), queue).stands is None  # progress is counted in every round
    waits = Jobs.of(gpus=[1, 1], work=[16, 16], types=["GPU0", "GPU1"], throughput=[[8, 1]] * 2)
    queue = Queue.fresh(waits, Cluster.uniform({"GPU0": (1, 1), "GPU1": (1, 1)}), length=1)
    assert decide(AlloX(), queue).stands is None  # the slow GPU may be taken later


@pytest.mark.parametrize("settings", counts(1, 3))
@pytest.mark.parametrize("policy", [AlloX(alpha=Fraction(1, 4), most=4), AlloX(most=1)], ids=repr)
def test_the_other_readings_conform(policy: AlloX, settings: int) -> None:
    round_suite(judge, settings=settings).run([policy]).require_complete()


@pytest.mark.parametrize("options", [{"alpha": 0}, {"alpha": 2}, {"most": 0}])
def test_options_that_cannot_be_meant(options: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="allox"):
        AlloX(**options)  # type: ignore[arg-type]
