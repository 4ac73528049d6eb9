"""Sia and Shockwave decide as well as the best of all choices: their programs again, from the papers, by enumeration.

Small traces are played; what each round decides is compared with every choice that there is, from the same queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from math import inf, log
from random import Random
from typing import Any, ClassVar

import pytest

from fairopt.backends import Session
from fairopt.models import Shockwave, Sia
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.problem.profile import Profile
from fairopt.simulation import Mechanics, run


@dataclass(frozen=True)
class HeardSia(Sia):
    """Sia, and what it decided."""

    decided: ClassVar[list[Schedule]] = []

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        self.decided.append(super().decide(problem, state, solve))
        return self.decided[-1]


@dataclass(frozen=True)
class HeardShockwave(Shockwave):
    """Shockwave, and what it decided."""

    decided: ClassVar[list[Schedule]] = []

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        self.decided.append(super().decide(problem, state, solve))
        return self.decided[-1]


# -- Sia -----------------------------------------------------------------------------------------------------------
POWER, IDLE, RESTART = -0.5, 1.1, 30.0


def sia_trace(random: Random) -> tuple[Trace, Cluster, Fraction]:
    count = random.randint(1, 4)
    cluster = Cluster.uniform({"A": (random.randint(1, 2), 2), "B": (1, random.choice([2, 4]))})
    speed = [random.choice([[1, 2], [2, 1], [1, 3], [3, 0], [1, 1]]) for _ in range(count)]
    gpus = [random.choice([1, 1, 2]) for _ in range(count)]
    profiles = [
        Profile.scaled(
            own,
            speeds,
            {each: Fraction(each, own) * Fraction(random.choice([7, 8, 9]), 10) for each in {1, 2, 4} - {own}},
        )
        if random.random() < 0.6
        else None
        for own, speeds in zip(gpus, speed, strict=True)
    ]
    jobs = Jobs.of(
        types=cluster.types,
        gpus=gpus,
        throughput=speed,
        profiles=profiles,
        work=[random.randint(60, 900) for _ in range(count)],
        arrival=[random.choice([0, 0, 60, 100]) for _ in range(count)],
    )
    return Trace(jobs), cluster, Fraction(60)


def sia_choices(queue: Queue, row: int, restarts: int, most: int) -> Iterator[tuple[float, int, int]]:
    """Yield what a job may run with: its cost, the type, and the GPUs."""
    rates = [
        (speed, kind, gpus)
        for gpus, speeds in queue.jobs.speeds(row, 0).items()
        if gpus <= max(2 * most, min(queue.jobs.sizes(row)))
        for kind, speed in enumerate(speeds)
        if speed and gpus <= queue.room[kind]
    ]
    if not rates:
        return
    # of the slowest, the one on the first type, then with the fewest GPUs, counts as many as it has GPUs
    slowest, _, least = min(rates)
    now: tuple[int, int] | None = None
    age, factor = float(queue.now - queue.jobs.arrival[row]), 1.0
    if queue.running[row]:
        spots = queue.last[row]
        now = int(queue.cluster.gpu_type[spots[0][0]]), sum(count for _, count in spots)
        if age >= RESTART:
            factor = max(age - restarts * RESTART, 0) / (age + RESTART)
    for rate, kind, gpus in rates:
        goodput = float(rate / slowest) * least * (1 if (kind, gpus) == now else factor)
        yield min(goodput**POWER if goodput else inf, 3000.0), kind, gpus


def check_sia(seed: int) -> int:
    trace, cluster, length = sia_trace(Random(seed))
    HeardSia.decided.clear()
    list(run(HeardSia(), trace, cluster, length=length, mechanics=Mechanics(restart=10), rounds=40))
    restarts: dict[str, int] = {}
    most: dict[str, int] = {}
    for schedule in HeardSia.decided:
        queue, names = schedule.queue, schedule.queue.jobs.names
        options = [
            list(sia_choices(queue, row, restarts.get(name, 0), most.get(name, 0))) for row, name in enumerate(names)
        ]
        best = inf
        for each in product(*([(IDLE, -1, 0), *own] for own in options)):
            used = [sum(gpus for _, at, gpus in each if at == kind) for kind in range(len(cluster.types))]
            # who loads is left where it is
            stays = all(
                (kind, gpus) == (queue.gpu_types(spots)[0], sum(count for _, count in spots))
                for (_, kind, gpus), spots, runs, setup in zip(
                    each, queue.last, queue.running, queue.setup, strict=True
                )
                if runs and setup > 0
            )
            if stays and all(have <= room for have, room in zip(used, queue.room, strict=True)):
                best = min(best, sum(cost for cost, *_ in each))
        got = 0.0
        for row, own in enumerate(options):
            spots = schedule.placements.get(row, ())
            placed = (queue.gpu_types(spots)[0], sum(count for _, count in spots)) if spots else None
            got += next((cost for cost, *where in own if tuple(where) == placed), IDLE)
        assert got == pytest.approx(best), f"seed {seed}, round {queue.index}"
        for row, spots in schedule.placements.items():
            again = bool(queue.last[row]) and not (queue.running[row] and spots == queue.last[row])
            restarts[names[row]] = restarts.get(names[row], 0) + again
            most[names[row]] = max(most.get(names[row], 0), sum(count for _, count in spots))
    return len(HeardSia.decided)


# -- Shockwave -----------------------------------------------------------------------------------------------------
WINDOW, AGAIN, LENGTH, PENALTY = 3, 2, 10.0, 0.01


def shockwave_trace(random: Random) -> Trace:
    count = random.randint(1, 4)
    work = [random.randint(5, 90) for _ in range(count)]
    marks = [(random.randint(1, each - 1), random.choice([2, 4])) if random.random() < 0.5 else None for each in work]
    gpus = [random.choice([1, 1, 2]) for _ in range(count)]
    profiles = [
        None if mark is None else Profile.of([[own, 1, 1, 1]], [[mark[0], 1, mark[1]]])
        for own, mark in zip(gpus, marks, strict=True)
    ]
    arrival = [random.choice([0, 0, 15, 40]) for _ in range(count)]
    return Trace(Jobs.of(types=["V100"], gpus=gpus, work=work, profiles=profiles, arrival=arrival))


class Belief:
    """What a job is expected to need: by the paper's predictor, in epochs of one unit of progress."""

    def __init__(self, queue: Queue, row: int) -> None:
        jobs = queue.jobs
        whole, done = float(jobs.work[row]), float(jobs.work[row] - queue.remaining[row])
        profile = jobs.profile(row)
        later = () if profile is None else ((after, factor) for after, _, factor in profile.efficiency)
        marks = [(0.0, 1.0), *((float(a), float(b)) for a, b in later)]
        now = [factor for mark, factor in marks if mark <= done][-1]
        seconds = {factor: now / factor / float(jobs.throughput[row, 0]) for _, factor in marks}
        ends = [mark for mark, _ in marks[1:]] + [whole]
        seen = dict.fromkeys(seconds, 0.0)
        for (begin, factor), end in zip(marks, ends, strict=True):
            seen[factor] += max(min(end, done) - begin, 0.0)
        prior = whole / len(seconds)
        weight = sum(prior + seen[each] for each in seconds)
        expected = {each: max(whole * (prior + seen[each]) / weight - seen[each], 0.0) for each in seconds}
        mean = sum(expected[each] * seconds[each] for each in seconds) / sum(expected.values())
        past = sum(seen[each] * seconds[each] for each in seconds)
        self.part, self.left, self.whole = done / whole, (whole - done) * mean, (whole - done) * mean + past
        self.epoch = past / done if done else seconds[now]
        self.epochs = whole


def chord(part: float) -> float:
    """Return the logarithm of progress on its chords, less that of no progress."""
    bases = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    values = [log(max(each, 1e-6)) - log(1e-6) for each in bases]
    at = min(int(part / 0.2 + 1e-12), 4)
    return values[at] + (values[at + 1] - values[at]) * (part - bases[at]) / 0.2


def best_window(beliefs: Sequence[Belief], gpus: Sequence[int], weight: Sequence[float], slack: Any) -> float:
    """Return the largest objective of a window on two GPUs; minus infinity where nobody can keep to ``slack``."""
    rounds = [x for x in product((0, 1), repeat=len(gpus)) if sum(a * b for a, b in zip(x, gpus, strict=True)) <= 2]
    counts = {tuple(sum(each) for each in zip(*plan, strict=True)) for plan in product(rounds, repeat=WINDOW)}
    best = -inf
    for count in counts:
        planned = [min(n * LENGTH, (1 - b.part) * b.epochs * b.epoch) for n, b in zip(count, beliefs, strict=True)]
        left = [max(b.left - each, 0.0) for b, each in zip(beliefs, planned, strict=True)]
        if slack is not None and any(rest > most + 1e-7 for rest, most in zip(left, slack, strict=True)):
            continue
        gained = [
            w * chord(min(b.part + each / b.epoch / b.epochs, 1.0))
            for w, b, each in zip(weight, beliefs, planned, strict=True)
        ]
        found = sum(gained) / len(gpus) / WINDOW + PENALTY * (max(b.left for b in beliefs) - max(left))
        best = max(best, found)
    return best


def check_shockwave(seed: int) -> int:
    trace, cluster = shockwave_trace(Random(seed)), Cluster.uniform({"V100": (1, 2)})
    HeardShockwave.decided.clear()
    policy = HeardShockwave(window=WINDOW, again=AGAIN, makespan=PENALTY, power=3.0, together=False, gap=0.0)
    list(run(policy, trace, cluster, length=LENGTH, rounds=60))
    estimates: dict[str, list[tuple[int, float]]] = {}
    present: tuple[str, ...] = ()
    since, planned = 0, 0
    for schedule in HeardShockwave.decided:
        queue, names = schedule.queue, schedule.queue.jobs.names
        changed = names != present
        due = changed or queue.index - since == AGAIN
        assert ("objective" in schedule.costs) is due, f"seed {seed}, round {queue.index}"
        if not due:
            continue
        since, present, planned = queue.index, names, planned + 1
        beliefs = [Belief(queue, row) for row in range(len(queue))]
        now, share = float(queue.now), min(1.0, 2 / len(queue))
        if changed:
            for name, belief, arrival in zip(names, beliefs, queue.jobs.arrival, strict=True):
                estimates.setdefault(name, []).append((queue.index, float(arrival) + belief.whole / share))
        targets = []
        for name in names:
            held = [*estimates[name], (queue.index, 0.0)]
            spans = [(after - at) * each for (at, each), (after, _) in pairwise(held)]
            last, seen = held[-2][1], queue.index - held[0][0]
            targets.append(0.9 * sum(spans) / seen + 0.1 * last if seen else last)
        gpus = queue.jobs.gpus.tolist()
        slack = [(target - now - WINDOW * LENGTH) * share for target in targets]
        best = best_window(beliefs, gpus, [1.0] * len(gpus), slack)
        in_time = best > -inf
        if not in_time:
            late = [(now + belief.left / share) / target for belief, target in zip(beliefs, targets, strict=True)]
            powers = [100 if belief.left < LENGTH else 3 for belief in beliefs]
            weight = [min(each**power, 1e6) if each > 1 else 1.0 for each, power in zip(late, powers, strict=True)]
            best = best_window(beliefs, gpus, weight, None)
        assert schedule.costs["in time"] == in_time, f"seed {seed}, round {queue.index}"
        assert schedule.costs["objective"] == pytest.approx(best, rel=1e-6), f"seed {seed}, round {queue.index}"
    return planned


CHECKS = {"sia": check_sia, "shockwave": check_shockwave}


@pytest.mark.parametrize("name", CHECKS)
def test_every_decision_is_the_best_there_is(name: str) -> None:
    assert sum(CHECKS[name](seed) for seed in range(10)) > 30


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_every_decision_on_500_traces_is_the_best_there_is(name: str) -> None:
    assert sum(CHECKS[name](seed) for seed in range(10, 510)) > 2500
