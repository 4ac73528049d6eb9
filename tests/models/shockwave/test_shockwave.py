"""Shockwave: its window against every schedule of a tiny queue, targets by hand, lateness, idle GPUs."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import log

import numpy as np
import pytest

from fairopt.backends import Highs
from fairopt.errors import BadInput
from fairopt.models.shockwave.shockwave import FinishTarget, Shockwave, WindowPlan
from fairopt.models.shockwave.window import PlanningWindow, predicted
from fairopt.policy import decide
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.program import Array
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import run
from fairopt.testing.round_samples import played, sample_settings
from fairopt.testing.round_suite import round_suite

TWO = Cluster.uniform({"V100": (1, 2)})
#: Three jobs on two GPUs; a window of three rounds of 10.
JOBS = Jobs.of(gpus=[1, 2, 1], work=[20, 40, 15], types=["V100"])
LENGTH, ROUNDS = 10.0, 3


def planned(jobs: Jobs = JOBS, cluster: Cluster = TWO, rounds: int = ROUNDS, makespan: float = 0.01) -> PlanningWindow:
    return PlanningWindow.of(Queue.fresh(jobs, cluster, length=10).as_(float), rounds, makespan)


def chords(part: float, jobs: PlanningWindow) -> float:
    return float(np.interp(part, jobs.bases, jobs.logarithm))


@pytest.mark.parametrize("makespan", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("weight", [(1, 1, 1), (1, 9, 2)])
@pytest.mark.parametrize("slack", [None, (20, 20, 10)])
def test_the_window_is_the_best_of_all_schedules(
    makespan: float, weight: tuple[int, ...], slack: tuple[int, ...] | None
) -> None:
    jobs = planned(makespan=makespan)
    best = -float("inf")
    rounds = [each for each in product((0, 1), repeat=3) if np.dot(each, jobs.gpus) <= 2]
    for schedule in product(rounds, repeat=ROUNDS):
        left = np.maximum(jobs.left - LENGTH * np.sum(schedule, axis=0), 0)
        if slack is not None and (left > slack).any():
            continue
        parts = 1 - left / jobs.whole
        gained = [w * (chords(part, jobs) - log(1e-6)) for w, part in zip(weight, parts, strict=True)]
        best = max(best, sum(gained) / (3 * ROUNDS) + makespan * (jobs.left.max() - left.max()))
    program = jobs.program(np.array(weight), None if slack is None else np.array(slack))
    assert Highs().solve(program, gap=0.0).objective == pytest.approx(best)


def test_rounds_taken_together_are_a_relaxation_and_are_filled_as_far_as_gangs_fit() -> None:
    jobs = planned()
    ways: list[dict[str, bool]] = [{}, {"together": True}, {"together": True, "whole": False}]
    apart, together, linear = (Highs().solve(jobs.program(np.ones(3), **each), gap=0.0).objective for each in ways)
    assert linear >= together - 1e-9
    assert together >= apart - 1e-9
    # 2 + 2 + 1 rounds: the pair of GPUs, then both single ones; three rounds of the pair leave nothing to the others
    counts = jobs.filled(np.array([[2], [1], [1]]), np.ones(3))
    assert counts.sum(axis=2).tolist() == [[2], [1], [1]]
    assert jobs.filled(np.array([[1], [3], [1]]), np.ones(3)).sum(axis=2).tolist() == [*([0], [3], [0])]
    late = jobs.filled(np.array([[1], [1], [1]]), np.array([1.0, 1.0, 5.0]))
    assert late[2, 0].tolist() == [True, False, False]


@pytest.mark.parametrize("seed", range(4))
def test_most_of_a_plan_fits_its_rounds(seed: int) -> None:
    random = np.random.default_rng(seed)
    gpus = random.choice([1, 1, 2, 4], 12)
    given = Jobs.of(gpus=gpus.tolist(), work=random.integers(20, 400, 12).tolist(), types=["V100"])
    jobs = planned(given, Cluster.uniform({"V100": (2, 4)}), 10, 1e-3)
    program = jobs.program(np.ones(12), together=True)
    counts = np.rint(program.variable("x", Highs().solve(program, gap=1e-3).point)[:, :, 0]).astype(int)
    x = jobs.filled(counts, np.ones(12))
    assert ((x * gpus[:, None, None]).sum(axis=0) <= 8).all()
    assert (x.sum(axis=2) <= counts).all()
    assert (x.sum(axis=2) * gpus[:, None]).sum() >= 0.9 * (counts * gpus[:, None]).sum()


def test_the_order_puts_late_jobs_first() -> None:
    jobs = planned(Jobs.of(gpus=[1, 2, 1], work=[20, 40, 15], types=["V100"]))
    program = jobs.ranked(np.array([[1], [1], [1]]), np.array([1.0, 1.0, 5.0]))
    x: Array = program.variable("x", Highs().solve(program).point) > 1 / 2
    assert np.argwhere(x[:, 0, :]).tolist() == [[0, 0], [1, 1], [2, 0]]


def test_a_target_is_the_mean_of_the_estimates_over_the_rounds_that_they_held() -> None:
    target = FinishTarget(since=2, at=2, latest=100.0)
    assert target.mean(2, 0.9) == 100
    later = target.estimated(5, 200.0)
    assert later.mean(5, 0.9) == pytest.approx(0.9 * 100 + 0.1 * 200)
    assert later.mean(6, 1.0) == pytest.approx((3 * 100 + 200) / 4)


def test_targets_are_on_an_equal_share() -> None:
    # three jobs on two GPUs: each has 2/3, as the source counts it, and so needs 1.5 times its time
    schedule = decide(Shockwave(window=3), Queue.fresh(JOBS, TWO, length=10))
    assert {name: each.latest for name, each in schedule.state.targets.items()} == {"j1": 30, "j2": 60, "j3": 22.5}


def test_whoever_can_be_in_time_is() -> None:
    # alone, the one job finishes at its target; with the others there, none can by the window's end: weights decide
    alone = Jobs.of(gpus=[1], work=[200], types=["V100"])
    in_time = decide(Shockwave(window=3), Queue.fresh(alone, TWO, length=10))
    assert in_time.costs["in time"] == 1
    assert decide(Shockwave(window=3), Queue.fresh(JOBS, TWO, length=10)).costs["in time"] == 0


def test_a_plan_is_kept_until_somebody_comes_or_goes() -> None:
    jobs = Jobs.of(gpus=[1, 2, 1], work=[200, 400, 150], types=["V100"], arrival=[0, 0, 55])
    records = list(run(Shockwave(window=4), Trace(jobs), TWO, length=10, rounds=9))
    planned = ["objective" in record.costs for record in records]
    assert planned == [True, False, False, False, True, False, True, False, False]


def test_a_plan_is_made_again_after_so_many_rounds_and_keeps_its_targets() -> None:
    jobs = Trace(Jobs.of(gpus=[1, 2], work=[200, 400], types=["V100"]))
    records = list(run(Shockwave(window=4, again=2), jobs, TWO, length=10, rounds=6))
    assert ["objective" in record.costs for record in records] == [True, False] * 3
    first, *rest = (record.after.state.targets for record in records)
    assert all(each == first for each in rest)


def test_the_future_of_a_job_is_expected_from_its_past() -> None:
    # of 100 epochs 40 took 2 s each; now they take 1 s. Of each kind 50 were expected, and 40 and 0 were seen of 100:
    # of all 100 it expects 100 (50 + 40) / 140 and 100 (50 + 0) / 140, of which 40 of the first are over
    left, whole, gain = predicted(100.0, 40.0, ((40.0, 2.0),), 1.0)
    slow, fast = 100 * 90 / 140 - 40, 100 * 50 / 140
    assert left == pytest.approx(60 * (2 * slow + fast) / (slow + fast))
    assert whole == pytest.approx(80 + left)
    assert gain == pytest.approx(40 / 80 / 100)
    # nothing is known to change: what is left is left
    assert predicted(100.0, 40.0, (), 0.5) == pytest.approx((120, 200, 0.005))


def test_progress_counts_in_whole_epochs_where_that_is_asked() -> None:
    queue = replace(Queue.fresh(JOBS, TWO, length=10).as_(float), remaining=np.array([11.0, 40.0, 14.5]))
    exact, whole = (PlanningWindow.of(queue, ROUNDS, 0.01, epoch=each) for each in (0.0, 6.0))
    assert exact.left.tolist() == [11, 40, 14.5]
    assert whole.left.tolist() == [18, 42, 18]  # of 24, 42 and 18, with 1, 0 and 0 epochs done
    assert whole.part.tolist() == [1 / 4, 0, 0]
    assert whole.most.tolist() == pytest.approx([18, 42, 18])


def test_idle_gpus_go_to_the_longest_job_that_fits() -> None:
    jobs = Jobs.of(gpus=[2, 1, 1, 2], work=[90, 20, 30, 500], types=["V100"])
    queue = Queue.fresh(jobs, Cluster.uniform({"V100": (1, 3)}), length=10)
    plan = WindowPlan(({"j1": 0},), present=jobs.names, capacity=(3,))
    assert sorted(decide(Shockwave(), queue, state=plan).placements) == [0, 2]


@pytest.mark.parametrize(
    "option", [{"window": 0}, {"momentum": 2}, {"makespan": -1}, {"gap": -0.1}, {"most_whole": -1}]
)
def test_bad_options_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=f"shockwave, {next(iter(option))}"):
        Shockwave(**option)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        Shockwave(window=1),
        Shockwave(window=5, ranked=False, most_late=2.0),
        Shockwave(together=False),
    ],
    ids=repr,
)
def test_options_conform(policy: Shockwave) -> None:
    round_suite(judge, settings=2).run([policy]).require_complete()


def test_runs_end_where_rounds_need_not_be_whole() -> None:
    for setting in sample_settings(6, seed=3):
        records = list(played(Shockwave(most_whole=0), setting, rounds=300))
        done = {name for record in records for name in record.completed} | set(records[-1].unschedulable)
        assert done == set(setting.trace.jobs.names)
        assert not any(record.after.state.rounds and len(record.after.state.rounds) >= 20 for record in records)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("makespan", [0.0, 1e-3])
def test_prices_find_the_optimum_of_the_program(seed: int, makespan: float) -> None:
    random = np.random.default_rng(seed)
    n, k = 40, 1 + seed % 3
    throughput = np.where(random.random((n, k)) < 0.2, 0, random.integers(1, 5, (n, k)))
    throughput[:, 0] = np.maximum(throughput[:, 0], 1)
    cluster = Cluster.uniform({f"T{at}": (2 + at, 4) for at in range(k)})
    given = Jobs.of(
        gpus=random.integers(1, 7, n), work=random.integers(1, 400, n), types=cluster.types, throughput=throughput
    )
    queue = Queue.fresh(given, cluster, length=10).as_(float)
    queue = replace(queue, remaining=queue.remaining * random.choice([0.3, 0.99, 1], n))
    jobs = PlanningWindow.of(queue, 5, makespan)
    weight = random.choice([1.0, 7.0, 1e6], n) if seed % 2 else np.ones(n)
    program = jobs.program(weight, together=True, whole=False)
    solution = jobs.priced(program, weight, 1e-9)
    right = Highs().solve(program)
    assert solution is not None
    assert solution.bound is not None
    assert right.objective is not None
    assert not program.violations(solution.point, 1e-7)
    assert solution.objective == pytest.approx(right.objective, rel=1e-6)
    assert solution.bound >= float(solution.objective or 0) * (1 - 1e-12)
    assert solution.gap is not None
    assert solution.gap < 1e-8


def test_the_gap_of_prices_is_that_of_the_objective() -> None:
    """It was relative to the negative time of the longest job, beside which all that the others gain is little."""
    random = np.random.default_rng(1)
    work = [4_000_000, *random.integers(1, 400, 39).tolist()]
    jobs = Jobs.of(gpus=random.integers(1, 5, 40), work=work, types=["V100"])
    queue = Queue.fresh(jobs, Cluster.uniform({"V100": (3, 4)}), length=10).as_(float)
    window = PlanningWindow.of(queue, 5, 10.0)
    program = window.program(np.ones(40), together=True, whole=False)
    found, right = window.priced(program, np.ones(40), 1e-6), Highs().solve(program)
    assert found is not None
    assert found.gap is not None
    assert found.gap <= 1.1e-6
    assert found.objective == pytest.approx(right.objective, rel=2e-6)


def test_prices_that_find_nothing_leave_it_to_the_back_end() -> None:
    """Where the logarithm's chords are not concave, or many jobs may be the last to end."""
    alike = Jobs.of(gpus=[1] * 30, work=[400] * 30, types=["V100"])
    queue = Queue.fresh(alike, TWO, length=10).as_(float)
    for jobs in (PlanningWindow.of(queue, 3, 1.0), PlanningWindow.of(queue, 3, 0.0, (0.0, 0.5, 1.0), 0.5)):
        program = jobs.program(np.ones(30), together=True, whole=False)
        assert jobs.priced(program, np.ones(30), 1e-6) is None
    late = Queue.fresh(alike, TWO, length=10, now=5000).as_(float)
    named = [decide(Shockwave(most_whole=0, makespan=each), late).solution.backend for each in (0.0, 1.0)]
    assert named == ["prices", "highs"]
