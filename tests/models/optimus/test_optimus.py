"""Optimus: each decision against the rule written plainly, with time left by small steps of work."""

from __future__ import annotations

from fractions import Fraction as F
from random import Random
from typing import Any

import pytest

from fairopt import run
from fairopt.models import Optimus, Pollux, Sia
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.problem.profile import Profile
from fairopt.simulation import Mechanics

#: 500 traces, the first few in `make test`.
SEEDS = [*range(40), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(40, 500))]


def drawn(seed: int) -> tuple[Trace, Cluster]:
    random = Random(seed)
    count = random.randint(1, 6)
    profiles = []
    for _ in range(count):
        sizes = sorted({1, *random.sample(range(2, 7), random.randint(0, 3))})
        rows = [(gpus, 1, 1, F(random.randint(4, 4 + 3 * gpus), 4)) for gpus in sizes]
        profiles.append(
            Profile.of(rows, [(random.randint(1, 150), 1, F(random.randint(1, 8), 4))])
            if random.random() < 0.8
            else None
        )
    jobs = Jobs.of(
        types=["T4"],
        gpus=[1] * count,
        work=[random.randint(20, 300) for _ in range(count)],
        arrival=[random.choice((0, 0, 15, 40)) for _ in range(count)],
        profiles=profiles,
    )
    return Trace(jobs), Cluster.uniform({"T4": (random.randint(1, 3), random.choice((1, 2, 4)))})


def seconds(queue: Queue, row: int, gpus: int) -> F:
    """Return the time that is left, a phase at a time, from the rows of the profile."""
    jobs, profile = queue.jobs, queue.jobs.profile(row)
    done, work = jobs.work[row] - queue.remaining[row], jobs.work[row]
    if profile is None:
        return F(work - done)
    [speed] = [speed for size, _, _, speed in profile.throughput if size == gpus]
    [(mark, _, factor)] = profile.efficiency
    before, after = max(min(mark, work) - done, 0), work - max(done, min(mark, work))
    return F(before) / speed + F(after) / (speed * factor)


def plain(queue: Queue) -> dict[int, int]:
    """Return how many GPUs each job gets: one each in turn, then where it shortens the time left most, for each GPU."""
    left, got = int(queue.capacity.sum()), dict[int, int]()
    for row in range(len(queue)):
        if left:
            got[row], left = 1, left - 1
    offers = True
    while offers:
        best: tuple[F, int, int] | None = None
        for row in got:
            larger = [each for each in queue.jobs.sizes(row) if each > got[row]]
            if larger:
                more = larger[0]
                gain = (seconds(queue, row, got[row]) - seconds(queue, row, more)) / (more - got[row])
                if gain > 0 and more - got[row] <= left and (best is None or gain > best[0]):
                    best = gain, row, more
        offers = best is not None
        if best is not None:
            left -= best[2] - got[best[1]]
            got[best[1]] = best[2]
    return got


@pytest.mark.parametrize("seed", SEEDS)
def test_each_decision_is_that_of_the_plain_rule(seed: int, monkeypatch: Any) -> None:
    trace, cluster = drawn(seed)
    found: list[Schedule] = []
    decided = Optimus.decide

    def listening(self: Optimus, problem: Queue, state: None, solve: Any) -> Schedule:
        found.append(decided(self, problem, state, solve))
        return found[-1]

    monkeypatch.setattr(Optimus, "decide", listening)
    list(run(Optimus(), trace, cluster, length=20, mechanics=Mechanics(), rounds=80))
    for schedule in found:
        queue, placed = schedule.queue, schedule.placements
        assert {row: sum(gpus for _, gpus in spots) for row, spots in placed.items()} == plain(queue)
        for row, spots in placed.items():  # who keeps its number stays
            before = queue.last[row]
            if queue.running[row] and sum(n for _, n in spots) == sum(n for _, n in before):
                assert spots == before


@pytest.mark.parametrize("policy", [Optimus(), Pollux(), Pollux(growth=None, apart=False), Sia()])
@pytest.mark.parametrize("seed", range(12))
def test_nobody_gets_gpus_on_which_it_has_no_speed(policy: Any, seed: int) -> None:
    """Two types; a job has some numbers of GPUs on one of them only."""
    random = Random(seed)
    profiles = []
    for _ in range(5):
        rows = [[1, 1, 1, 1, 2]]
        for gpus in random.sample(range(2, 7), 3):
            rows.append([gpus, 1, 1, *random.choice(((gpus, 0), (0, gpus), (gpus, 2 * gpus)))])
        profiles.append(Profile.of(rows, [(50, 1, random.randint(1, 3))]))
    jobs = Jobs.of(types=["A", "B"], gpus=[1] * 5, work=[300] * 5, arrival=[0, 0, 9, 30, 60], profiles=profiles)
    cluster = Cluster.uniform({"A": (2, 4), "B": (3, 2)})
    *_, last = run(policy, Trace(jobs).as_(float), cluster, length=10)  # an engine refuses a broken schedule
    assert not last.after.present
