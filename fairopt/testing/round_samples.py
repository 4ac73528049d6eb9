"""Seeded settings for policies of rounds: small clusters with traces that hold everything that can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np

from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Outage, Pattern, Queue, Spots, Trace
from fairopt.program import INFINITY, Number, fractions, objects
from fairopt.simulation import History, Mechanics, Round, Setting, run
from fairopt.simulation.document import document

#: The length of a round. No job loads that long, so a job that runs for a whole round makes progress.
LENGTH = Fraction(60)


def sample_settings(
    count: int,
    *,
    seed: int = 0,
    jobs: tuple[int, int] = (5, 25),
    types: tuple[int, int] = (1, 3),
    hosts: tuple[int, int] = (2, 6),
    most: int = 8,
    outages: bool = True,
    ties: bool = True,
) -> Iterator[Setting]:
    """Yield ``count`` exact settings, the same ones in every run for a ``seed``.

    Among them: gangs of up to ``most`` GPUs, larger than any host; jobs that fit no type (too many GPUs, too much
    memory, no throughput); types without throughput; jobs that arrive together, and long after the others are done;
    tenants of different weights; states and datasets to move; hosts that fail at boundaries and between them, and for
    good where everybody can do without. Without ``ties`` no two numbers are alike by accident, which is what makes
    the choice of a policy the same in floats. Every job that fits is done in the end if it is run often enough.
    """
    for number in range(count):
        random = Random(f"{seed}/{number}")
        cluster = sample_cluster(random, types, hosts)
        yield Setting(
            cluster,
            sample_trace(random, cluster, jobs, most, outages=outages, ties=ties),
            Mechanics(
                restart=Fraction(random.choice([0, 2, 5])),
                launch=Fraction(random.choice([0, 1, 3])),
                spread=random.choice([Fraction(1), Fraction(4, 5), Fraction(1, 2)]),
                local_data=random.random() < 0.5,
            ),
            LENGTH,
        )


def sample_cluster(random: Random, types: tuple[int, int], hosts: tuple[int, int]) -> Cluster:
    """Return a cluster in which each type has a host, and memory and bandwidth bind on some."""
    count = random.randint(*hosts)
    names = [f"T{number}" for number in range(min(count, random.randint(*types)))]
    gpu_type = [*names, *random.choices(names, k=count - len(names))]
    random.shuffle(gpu_type)
    return Cluster.of(
        gpu_type,
        [random.choice([1, 2, 4, 4, 8]) for _ in gpu_type],
        types=names,
        memory={name: random.choice([12, 16, 40, None]) for name in names},
        bandwidth=[random.choice([1, 2, Fraction(5, 2), None]) for _ in gpu_type],
        hosts=[f"host-{number}" for number in range(len(gpu_type))],
    )


def sample_trace(
    random: Random, cluster: Cluster, jobs: tuple[int, int], most: int = 8, *, outages: bool = True, ties: bool = True
) -> Trace:
    """Return a trace on a cluster; see `sample_settings`."""
    drawn = sample_jobs(random, cluster, random.randint(*jobs), most, ties)
    return Trace(drawn, _outages(random, cluster, drawn) if outages else ())


def sample_queue(random: Random) -> Queue:
    """Return a queue in the middle of a run: some jobs ran, some hold leases, hosts may be down."""
    cluster = sample_cluster(random, (1, 3), (1, 5))
    jobs, now = sample_jobs(random, cluster, random.randint(1, 6), 8, True), LENGTH * random.randint(0, 5)
    count = len(jobs)
    jobs = replace(jobs, arrival=objects(min(each, now) for each in jobs.arrival))
    fresh = Queue.fresh(jobs, cluster, length=LENGTH, now=now, index=int(now / LENGTH))
    fresh = replace(fresh, up=np.array([random.random() < 0.75 for _ in cluster.hosts], dtype=bool))
    running = sample_placements(random, fresh)
    before = sample_placements(random, replace(fresh, up=np.ones(len(cluster.hosts), dtype=bool)))
    last = tuple(running.get(row, before.get(row, ())) for row in range(count))
    extra = [Fraction(each) for each in ("0", "0", "1", "3/2", "8")]
    lease = [now + random.choice(extra) if row in running else now for row in range(count)]
    return replace(
        fresh,
        remaining=jobs.work * objects(random.choice([Fraction(1), Fraction(1, 2), Fraction(1, 10)]) for _ in last),
        attained=fractions([random.choice([0, 1, Fraction(7, 4), 12]) if spots else 0 for spots in last]),
        setup=fractions([random.choice([0, Fraction(1, 3), 5]) if row in running else 0 for row in range(count)]),
        last=last,
        running=np.array([row in running for row in range(count)], dtype=bool),
        lease=fractions(lease),
        started=tuple(now / 2 if spots else None for spots in last),
    )


def sample_placements(random: Random, queue: Queue) -> dict[int, Spots]:
    """Return, for some jobs of a queue, GPUs of one type that are free and that they can run on."""
    left, out, rows = queue.free(), dict[int, Spots](), list(range(len(queue)))
    random.shuffle(rows)
    for row in rows:
        spots, missing = [], int(queue.jobs.gpus[row])
        suited = np.flatnonzero(queue.suits[row]).tolist()
        gpu_types = [each for each in suited if left[list(queue.cluster.of_type(each))].sum() >= missing]
        if not gpu_types or random.random() < 0.5:
            continue
        for host in queue.cluster.of_type(random.choice(gpu_types)):
            here = min(missing, int(left[host]))
            if here:
                spots.append((host, here))
                left[host] -= here
                missing -= here
        out[row] = tuple(spots)
    return out


def sample_jobs(random: Random, cluster: Cluster, count: int, most: int, ties: bool) -> Jobs:
    """Return jobs that arrive over some ten rounds and take about as long; some fit no type."""
    names = [f"tenant-{number}" for number in range(random.randint(1, 4))]
    tenant = [random.choice(names) for _ in range(count)]
    pattern = [random.choice(list(Pattern)) for _ in range(count)]
    return Jobs.of(
        gpus=[random.choice([1, 1, 2, 2, 4, random.randint(1, most)]) for _ in range(count)],
        work=[_number(random, 20, 600, ties) for _ in range(count)],
        types=cluster.types,
        throughput=[_speeds(random, len(cluster.types), ties) for _ in range(count)],
        arrival=_arrivals(random, count, ties),
        tenant=tenant,
        tenant_weight={name: _number(random, 1, 3, ties) for name in dict.fromkeys(tenant)},
        memory=[random.choice([0, 0, 8, 14, 20]) for _ in range(count)],
        state_size=[random.choice([0, _number(random, 1, 10, ties)]) for _ in range(count)],
        pattern=pattern,
        dataset=[random.choice(["", "images", "words"]) for _ in range(count)],
        dataset_size=[random.randint(0, 20) for _ in range(count)],
        weight=[_number(random, 1, 3, ties) for _ in range(count)],
        priority=[random.randint(0, 2) for _ in range(count)],
        names=[f"job-{number:03}" for number in range(count)],
    )


def _number(random: Random, least: int, most: int, ties: bool) -> Fraction:
    """Return a number of the range; without ties, one whose denominator is a large prime."""
    if ties:
        return Fraction(random.randint(least, most))
    return least + Fraction(random.randrange(1, 10_007 * (most - least)), 10_007)


def _speeds(random: Random, count: int, ties: bool) -> list[Fraction]:
    if random.random() < 0.04:
        return [Fraction(0)] * count
    speeds = [_number(random, 1, 4, ties) for _ in range(count)]
    return [Fraction(0) if random.random() < 0.12 else speed for speed in speeds]


def _arrivals(random: Random, count: int, ties: bool) -> list[Fraction]:
    late = 40 * LENGTH if random.random() < 0.3 else Fraction(0)
    out, now = [], Fraction(0)
    for row in range(count):
        if random.random() < 0.6:
            now += _number(random, 1, 90, ties) if random.random() < 0.7 else LENGTH
        out.append(now + (late if row >= count - 2 else 0))
    return out


def _outages(random: Random, cluster: Cluster, jobs: Jobs) -> tuple[Outage, ...]:
    out: list[Outage] = []
    for host in random.choices(cluster.hosts, k=random.choice([0, 1, 1, 2, 3])):
        begin = random.choice([LENGTH * random.randint(0, 8), Fraction(random.randint(0, 500))])
        end: Number = begin + random.choice([Fraction(random.randint(1, 200)), LENGTH])
        if random.random() < 0.25 and not out and _spare(cluster, jobs, host):
            end = INFINITY
        out.append(Outage(host, begin, end))
    return tuple(out)


def _spare(cluster: Cluster, jobs: Jobs, host: str) -> bool:
    """Whether every job that fits the cluster also fits it without ``host``."""
    at = cluster.hosts.index(host)
    rest = cluster.capacity.copy()
    rest[cluster.gpu_type[at]] -= cluster.gpus[at]
    able = (jobs.throughput > 0) & (jobs.memory[:, None] <= cluster.memory)
    fits, fitted = ((able & (jobs.gpus[:, None] <= there)).any(axis=1) for there in (rest, cluster.capacity))
    return bool((fits | ~fitted).all())


def played(policy: Policy, setting: Setting, **how: Any) -> Iterator[Round]:
    """Yield the records of a run over a setting; see `fairopt.simulation.run`."""
    mechanics, length = setting.mechanics, setting.length
    return run(policy, setting.trace, setting.cluster, length=length, mechanics=mechanics, **how)


def documented(policy: Policy, setting: Setting, rounds: int | None = None) -> dict[str, Any]:
    """Return the document of a run."""
    history = History.of(setting.trace, setting.cluster, played(policy, setting, rounds=rounds))
    return document(history, setting.mechanics, setting.length, policy.name)


def by_hand() -> Setting:
    """Return a setting with a gang on two hosts, a unschedulable job, a failure, data and state to move."""
    cluster = Cluster.of(
        ["old", "old", "new"], [2, 2, 2], memory={"old": 12}, bandwidth=[1, 2, None], hosts=["a", "b", "c"]
    )
    jobs = Jobs.of(
        gpus=[4, 2, 1, 9],
        work=[150, 60, 20, 10],
        types=cluster.types,
        throughput=[[1, 2], [1, "3/2"], [2, 0], [1, 1]],
        arrival=[0, 0, 130, 70],
        tenant=["X", "Y", "X", "Y"],
        tenant_weight={"Y": "5/2"},
        memory=[8, 16, 0, 0],
        state_size=[10, 4, 1, 1],
        dataset=["images", "", "words", ""],
        dataset_size=[6, 0, 8, 0],
    )
    outages = (Outage("b", Fraction(90), Fraction(125)),)
    return Setting(cluster, Trace(jobs, outages), Mechanics(Fraction(5), Fraction(1), Fraction(1, 2), True), LENGTH)
