"""Pollux: its dynamic program against every sharing, its cost by hand, hosts kept apart, growth, bad options."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as F
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest

from fairopt import decide, run
from fairopt.errors import BadInput
from fairopt.models import Pollux
from fairopt.models.common.schedulers import Adapted
from fairopt.models.pollux.pollux import LEAST, Sharing, cheapest
from fairopt.policy import Schedule
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.problem.profile import Profile
from fairopt.simulation import Mechanics

#: 500 traces, the first few in `make test`.
SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 500))]


def profile(random: Random, most: int = 4) -> Profile:
    """Return a profile with 1 to ``most`` GPUs, slower on several hosts, whose larger batch is worth more later."""
    rows = []
    for gpus in range(1, most + 1):
        for hosts in range(1, min(gpus, 2) + 1):
            speed = F(gpus * random.choice((8, 9, 10)), 10 * hosts)
            rows += [(gpus, hosts, 8, speed), (gpus, hosts, 64, speed * 3)]
    return Profile.of(rows, [(0, 64, F(random.randint(1, 4), 10)), (60, 64, F(1, 2))])


def drawn(seed: int, cluster: Cluster) -> Trace:
    random = Random(seed)
    count = random.randint(1, 5)
    return Trace(
        Jobs.of(
            types=cluster.types,
            gpus=[1] * count,
            work=[random.randint(20, 200) for _ in range(count)],
            arrival=[random.choice((0, 0, 7, 31, 60)) for _ in range(count)],
            profiles=[profile(random) if random.random() < 0.8 else None for _ in range(count)],
        )
    )


def heard(policy: Pollux, trace: Trace, cluster: Cluster, monkeypatch: Any) -> list[tuple[Schedule, Adapted]]:
    """Return what is decided in a run, each with the state before it."""
    found: list[tuple[Schedule, Adapted]] = []
    decided = Pollux.decide

    def listening(self: Pollux, problem: Queue, state: Adapted, solve: Any) -> Schedule:
        schedule = decided(self, problem, state, solve)
        found.append((schedule, state))
        return schedule

    monkeypatch.setattr(Pollux, "decide", listening)
    list(run(policy, trace, cluster, length=20, mechanics=Mechanics(restart=5, launch=5), rounds=60))  # type: ignore[arg-type]
    return found


def cost(queue: Queue, state: Adapted, row: int, spots: Any, policy: Pollux) -> float:
    """Return what a job costs, by the paper: goodput over that of a fair part on one host, times the restart factor."""
    jobs, total = queue.jobs, int(queue.room.sum())
    gpus, fair = sum(each for _, each in spots), -(-total // len(queue.able))
    done, own = jobs.work[row] - queue.remaining[row], jobs.profile(row)
    if own is None:
        speed = {1: [F(1)]}
        goodput = float(jobs.throughput[row, 0]) if gpus else 0.0
    else:
        speed = own.speeds(own.phase(done))
        goodput = float(own.speed(own.phase(done), gpus, len(spots))[0]) if gpus else 0.0
    base = float(speed[max(each for each in speed if each <= fair)][0]) if own else float(jobs.throughput[row, 0])
    speedup = goodput / base * int((queue.cluster.gpus > 0).sum()) / total
    age, pause = float(queue.now - jobs.arrival[row]), 30.0
    stays = spots == (queue.last[row] if queue.running[row] else ())
    moved = max(age - state.restarted.get(jobs.names[row], 0) * pause, 0) / (age + pause)
    return (speedup * (1 if stays else moved) + LEAST) ** policy.power


@pytest.mark.parametrize("seed", range(30))
def test_the_dynamic_program_finds_the_best_of_all_sharings(seed: int) -> None:
    random = np.random.default_rng(seed)
    tables = [random.integers(1, 50, size=random.integers(1, 6)).astype(float) for _ in range(random.integers(1, 5))]
    for table in tables:
        table[1:][random.random(len(table) - 1) < 0.2] = np.inf
    total = int(random.integers(0, 9))
    sizes = cheapest(tables, total)
    best = min(
        sum(table[each] for table, each in zip(tables, choice, strict=True))
        for choice in product(*(range(len(table)) for table in tables))
        if sum(choice) <= total
    )
    assert sum(sizes) <= total
    assert sum(table[each] for table, each in zip(tables, sizes, strict=True)) == best


@pytest.mark.parametrize("seed", SEEDS)
def test_on_one_host_a_decision_costs_as_little_as_any(seed: int, monkeypatch: Any) -> None:
    cluster = Cluster.uniform({"T4": (1, 5)})
    policy = Pollux(power=[-1.0, -0.5, -3.0][seed % 3], growth=[2, None][seed % 2])
    for schedule, state in heard(policy, drawn(seed, cluster), cluster, monkeypatch):
        queue = schedule.queue
        options = []
        for row in range(len(queue)):
            most = policy.growth * state.most.get(queue.jobs.names[row], 0) if policy.growth else 99
            options.append([0, *(each for each in queue.jobs.sizes(row) if each <= max(most, 1))])
        costs = [
            sum(cost(queue, state, row, ((0, gpus),) if gpus else (), policy) for row, gpus in enumerate(choice))
            for choice in product(*options)
            if sum(choice) <= 5
        ]
        assert schedule.costs["objective"] == pytest.approx(min(costs))
        got = sum(cost(queue, state, row, schedule.placements.get(row, ()), policy) for row in range(len(queue)))
        assert got == pytest.approx(min(costs))


@pytest.mark.parametrize("seed", SEEDS)
def test_on_several_hosts_nobody_alone_could_do_better(seed: int, monkeypatch: Any) -> None:
    cluster, policy = Cluster.uniform({"T4": (3, 2)}), Pollux()
    for schedule, state in heard(policy, drawn(seed, cluster), cluster, monkeypatch):
        queue, placed = schedule.queue, schedule.placements
        assert schedule.costs["objective"] == pytest.approx(
            sum(cost(queue, state, row, placed.get(row, ()), policy) for row in range(len(queue)))
        )
        across = [host for spots in placed.values() if len(spots) > 1 for host, _ in spots]
        assert len(across) == len({*across})
        for row in range(len(queue)):
            others = {other: spots for other, spots in placed.items() if other != row}
            free, now = queue.free(others), cost(queue, state, row, placed.get(row, ()), policy)
            most = max(2 * state.most.get(queue.jobs.names[row], 0), 1)
            taken = {host for spots in others.values() if len(spots) > 1 for host, _ in spots}
            for each in product(*(range(there + 1) for there in free)):
                spots = tuple((host, gpus) for host, gpus in enumerate(each) if gpus)
                hosts = {host for host, _ in spots}
                few = len(spots) < 2 or not (taken & hosts)
                # where GPUs lie matters by the number of hosts only
                if spots and few and sum(each) in queue.jobs.sizes(row) and sum(each) <= most and len(spots) < 3:
                    assert cost(queue, state, row, spots, policy) > now - 1e-6


def test_a_job_begins_with_one_gpu_and_doubles() -> None:
    linear = Profile.of([[gpus, 1, 1, gpus] for gpus in range(1, 9)])
    trace = Trace(Jobs.of(gpus=[1], work=[100_000], types=["T4"], profiles=[linear], arrival=[0]))
    cluster = Cluster.uniform({"T4": (1, 8)})
    records = list(run(Pollux(restart=0), trace, cluster, length=60, rounds=6))
    assert [sum(n for _, n in each.ran[0].spots) for each in records if each.ran][:4] == [1, 2, 4, 8]


def test_a_job_whose_larger_batches_are_not_worth_it_yet_gets_fewer_gpus() -> None:
    """Two jobs of one application: the one that is further is worth more GPUs."""
    grows = Profile.of([[gpus, 1, 8, 1] for gpus in range(1, 4)] + [[gpus, 1, 64, 4 * gpus] for gpus in range(1, 4)],
                       [[0, 64, "1/10"], [500, 64, 1]])  # fmt: skip
    jobs = Jobs.of(gpus=[1, 1], work=[1000, 1000], types=["T4"], profiles=[grows, grows])
    queue = Queue.fresh(jobs, Cluster.uniform({"T4": (1, 4)}), length=60, now=600)
    queue = replace(queue, remaining=np.array([F(1000), F(400)], dtype=object)).as_told()
    found = decide(Pollux(growth=None), queue).placements
    assert (sum(n for _, n in found[0]), sum(n for _, n in found[1])) == (1, 3)


def test_a_job_on_mixed_types_keeps_most_and_the_others_idle_as_long_as_it_runs() -> None:
    linear = Profile.of([[gpus, hosts, 1, gpus, gpus] for gpus in range(1, 9) for hosts in range(1, gpus + 1)])
    jobs = Jobs.of(gpus=[1], work=[1000], types=["T4", "A100"], profiles=[linear], arrival=[0])
    policy = Pollux(restart=0, growth=None, mixed=2)
    for hosts, kept in (({"T4": (1, 4), "A100": (1, 4)}, 1), ({"T4": (2, 2), "A100": (1, 2)}, 0)):
        cluster = Cluster.uniform(hosts)
        records = list(run(policy, Trace(jobs), cluster, length=60, rounds=4))
        assert [
            (cluster.gpu_type[cluster.hosts.index(host)], gpus)
            for each in records[1:]
            for host, gpus in each.ran[0].spots
        ] == ([(kept, 4)] * 3 if kept else [(kept, 2)] * 6)
        assert sum(gpus for _, gpus in records[1].ran[0].spots) == 4
        assert len({each.ran[0].spots for each in records[1:]}) == 1


def test_a_job_keeps_its_gpus_when_it_gets_more_or_fewer_where_types_mix() -> None:
    rows = [[gpus, hosts, 1, gpus] for gpus in range(1, 9) for hosts in range(1, gpus + 1)]
    jobs = Jobs.of(gpus=[1, 1], work=[10**6] * 2, types=["T4"], profiles=[Profile.of(rows)] * 2, arrival=[0, 600])
    cluster = Cluster.uniform({"T4": (4, 2)})
    for seed in range(10):
        records = list(run(Pollux(restart=0, mixed=2, seed=seed), Trace(jobs), cluster, length=60, rounds=15))
        spots = [each.ran[0].spots for each in records[1:]]
        for before, after in pairwise(spots):
            hosts = [{host for host, _ in each} for each in (before, after)]
            assert hosts[0] <= hosts[1] or hosts[1] <= hosts[0], (seed, before, after)
        assert len({*spots}) > 2


@pytest.mark.parametrize("seed", SEEDS)
def test_mixed_types_are_shared_as_one_and_repaired_by_the_rule_of_the_source(seed: int, monkeypatch: Any) -> None:
    cluster = Cluster.uniform({"T4": (2, 2), "A100": (1, 5)})
    trace = drawn(seed, Cluster.uniform({"T4": (1, 1)}))
    one = trace.jobs
    two = [own and Profile.of([(*row, row[3] * 2) for row in own.throughput], own.efficiency) for own in one.profiles]
    jobs = Jobs.of(types=cluster.types, gpus=one.gpus, work=one.work, arrival=one.arrival, profiles=two or None)
    shared: list[tuple[list[int], list[int], dict[int, Any]]] = []
    found = Sharing.found

    def listening(self: Sharing) -> Any:
        free = list(self.free)
        shared.append((self.whole, free, dict(found(self))))
        return dict(shared[-1][2])

    monkeypatch.setattr(Sharing, "found", listening)
    decided = heard(Pollux(mixed=2, seed=seed), Trace(jobs), cluster, monkeypatch)
    assert len(decided) == len(shared)
    for (schedule, _), (whole, free, placed) in zip(decided, shared, strict=True):
        assert (whole, free) == ([0, 1, 2, 2, 2], [2, 2, 2, 2, 1])
        assert all(
            sum(gpus for spots in placed.values() for at, gpus in spots if at == part) <= free[part]
            for part in range(5)
        )
        across = [part for spots in placed.values() if len(spots) > 1 for part, _ in spots]
        assert len(across) == len({*across})
        assert set(schedule.placements) == set(placed)
        for row, spots in placed.items():
            slow = sum(gpus for part, gpus in spots if part < 2)
            fast = sum(gpus for part, gpus in spots if part >= 2)
            kept = {(0, 1): slow, (2,): fast}
            own = (2,) if fast >= slow else (0, 1)
            assert sum(gpus for _, gpus in schedule.placements[row]) == kept[own]
            assert {host for host, _ in schedule.placements[row]} == {whole[part] for part, _ in spots} & {*own}


@pytest.mark.parametrize(
    "option", [{"power": 0.5}, {"power": 0}, {"restart": -1}, {"growth": 0}, {"mixed": 0}, {"seed": -1}]
)
def test_bad_options_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=f"pollux, {next(iter(option))}"):
        Pollux(**option)
