"""The fast search on Philly-like workloads and at the edges of its number formats: always what the reference finds."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fairopt.benchmarks.workloads.astraea_batches import Ranges, astraea_small, astraea_workload
from fairopt.datasets import astraea_example
from fairopt.models.astraea.fast_search import Fast
from fairopt.models.astraea.posted_prices import PostedPricePacking, admissible_bases, own_use
from fairopt.models.astraea.reference import Reference
from fairopt.models.astraea.round_state import RoundState, least_over, longest_stretches
from fairopt.policy import decide
from fairopt.problem.batch import Batch


def test_windows_are_least_over_slots() -> None:
    draw = np.random.default_rng(0)
    for slots in (1, 2, 3, 7, 8, 9, 31):
        table = draw.integers(-5, 5, (2, 3, slots))
        windows = [table]
        for length in range(1, slots + 1):
            brute = np.stack([table[..., at : at + length].min(axis=-1) for at in range(slots - length + 1)], axis=-1)
            assert (least_over(windows, length) == brute).all()


def test_stretches_are_the_longest_at_or_above_a_level() -> None:
    draw = np.random.default_rng(1)
    for slots in [1, 2, 3, 8, 31] * 10:
        row = draw.integers(0, 6, slots)
        levels = np.arange(1, row.max() + 2)
        runs = ["".join("x" if each >= level else " " for each in row).split() for level in levels]
        assert longest_stretches(row)[1:].tolist() == [max(map(len, each), default=0) for each in runs]
    assert longest_stretches(np.array([5, 5, 5, 0, 1]))[1] == 3  # not the 1 where the level is 1


@pytest.mark.parametrize("convex", [False, True])
def test_whole_runs_are_the_same(convex: bool) -> None:
    for seed in range(3):
        batch = astraea_small(jobs=15, servers=6, seed=seed, convex=convex)
        for enough in (True, False):
            fast, slow = (
                decide(PostedPricePacking(search=search), batch) for search in (Fast(enough), Reference(enough))
            )
            assert fast.admissions == slow.admissions
            assert fast.payments == slow.payments


def test_offers_in_a_busy_round_are_the_same() -> None:
    # the paper's parameters, on fewer servers, chunks and slots than its scale, so that the reference ends
    ranges = Ranges(epochs=("2", "4", "1"), chunks=("10", "30", "1"))
    batch = astraea_workload(jobs=60, servers=24, seed=5, ranges=ranges)
    workers, ps = admissible_bases(batch, range(60))
    state = RoundState.fresh(batch, 32, 16, np.asarray(workers), np.asarray(ps))
    found = 0
    for job in range(60):
        if job == 10:
            state.share()
        best = Fast().best(state, job)
        if job % 4 == 0:
            assert best == Reference().best(replace(state), job)
        if best.schedule is not None and best.gain > 0:
            found += 1
            state.admit(best.schedule)
    assert found > 8


def with_bandwidths(batch: Batch, worker: Fraction, ps: Fraction) -> Batch:
    one, other = np.array([worker], dtype=object), np.array([ps], dtype=object)
    return replace(batch, worker_bandwidth=one, ps_bandwidth=other)


def test_bandwidths_of_many_digits_do_not_overflow() -> None:
    near = Fraction(10**25 + 1, 10**25)
    draw = random.Random(0)
    schedules = set()
    for worker, ps in ((near, Fraction(1)), (Fraction(1), near), (Fraction(10**29), Fraction(1, 10**29))):
        batch = with_bandwidths(astraea_example(), worker, ps)
        state = RoundState.fresh(batch, 8, 16, np.array([16.0]), np.array([16.0]))
        state.share()
        for job in draw.sample(range(4), 4):
            best = Fast().best(state, job)
            assert best == Reference().best(replace(state), job)
            if best.schedule is not None:
                schedules.add(best.schedule.count())
                state.admit(best.schedule)
    # 1 PS carries one worker elsewhere where b_p >= b_w, and none where b_w is larger by one part in 10^25
    assert schedules >= {(2, 1)}


def test_use_of_own_shares_is_that_of_the_admissions() -> None:
    batch = astraea_workload(jobs=40, servers=12, seed=2)
    plan = decide(PostedPricePacking(), batch)
    used = own_use(batch, plan.admissions)
    taken = [each for each in plan.admissions if each.admitted and each.own and each.schedule is not None]
    assert taken
    for slot in {1, *used, 10**6}:
        for tenant in range(len(batch.tenants)):
            running = [
                each.schedule.count()
                for each in taken
                if each.schedule is not None
                and each.schedule.first <= slot <= each.schedule.last
                and batch.jobs.tenant[each.job] == tenant
            ]
            expected = tuple(map(sum, zip(*running, strict=True))) or (0, 0)
            found = (used[slot][0][tenant, 0], used[slot][1][tenant, 0]) if slot in used else (0, 0)
            assert found == expected
