"""Policies of rounds agree with rules that were written again from their papers, on small traces with many ties.

Where a policy solves a program, what it decides is compared with the best of all choices there are (`test_choices`).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import pytest
from oracle_servers import split_stride
from oracles import easy, karma, ltgf, pal, shortest_first, themis, users_of, virtual_clusters
from reference import Job, Scheduler, fifo, simulate
from test_reference import WEIGHTS, drawn

from fairopt import run
from fairopt.models import (
    PAL,
    AlloX,
    EasyBackfilling,
    GandivaFair,
    HiveD,
    Karma,
    LongTermGpuTimeFairness,
    SplitStride,
    Themis,
)
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace


class Setting(NamedTuple):
    """A small trace; ``hosts``: the GPUs of each host, ``speed`` its factor."""

    jobs: list[Job]
    hosts: list[int]
    quantum: Fraction
    speed: list[Fraction]
    random: Random


def setting(seed: int) -> Setting:
    jobs, gpus, quantum, hosts = drawn(seed)
    random = Random(seed + 1_000_000)
    speed = [random.choice([Fraction(1), Fraction(1, 2), Fraction(3, 4)]) for _ in range(hosts)]
    return Setting(jobs, [gpus] * hosts, quantum, speed, random)


def one_size(given: Setting) -> Setting:
    for job in given.jobs:
        job.gpus = 1
    return given


def small(given: Setting) -> Setting:
    """Several hosts of several sizes."""
    hosts = [given.random.choice([1, 2, 4]) for _ in range(given.random.randint(1, 4))]
    for job in given.jobs:
        job.gpus = min(job.gpus, sum(hosts))
    return given._replace(hosts=hosts, speed=[Fraction(1)] * len(hosts))


def a_host_each(given: Setting) -> Setting:
    """A host for each user, and jobs that fit on it: all virtual clusters are a host."""
    size = given.random.choice([2, 4, 3])
    for job in given.jobs:
        job.gpus = min(job.gpus, size)
    hosts = [size] * len(users_of(given.jobs))
    return given._replace(hosts=hosts, speed=[Fraction(1)] * len(hosts))


def same(given: Setting) -> Setting:
    return given


def karma_pair(given: Setting) -> tuple[Policy, Scheduler]:
    alpha, start = given.random.choice([Fraction(0), Fraction(1, 2), Fraction(1)]), given.random.choice([0, 5, 10**6])
    return Karma(alpha=alpha, credits=start), karma(users_of(given.jobs), WEIGHTS, alpha, start)


def themis_pair(given: Setting) -> tuple[Policy, Scheduler]:
    lease = given.quantum * given.random.choice([Fraction(1), Fraction(5, 2), Fraction(3)])
    return Themis(random_rest=False, lease=lease), themis(lease)


def pal_pair(given: Setting) -> tuple[Policy, Scheduler]:
    return PAL(), pal(given.hosts, given.speed, Fraction(3, 2))


#: By name: what becomes of a trace, whether weights count, and the policy and the rule on it.
PAIRS: dict[str, tuple[Callable[[Setting], Setting], bool, Callable[[Setting], tuple[Policy, Scheduler]]]] = {
    "easy-backfilling": (same, False, lambda given: (EasyBackfilling(), easy(given.quantum))),
    "allox": (one_size, False, lambda given: (AlloX(most=None), shortest_first)),
    "themis": (same, False, themis_pair),
    "karma": (same, True, karma_pair),
    "ltgf": (
        same,
        True,
        lambda given: (LongTermGpuTimeFairness(), ltgf(users_of(given.jobs), WEIGHTS, given.quantum)),
    ),
    "pal": (same, False, pal_pair),
    "hived": (
        a_host_each,
        False,
        lambda given: (
            HiveD(opportunistic=False),
            virtual_clusters(users_of(given.jobs), dict.fromkeys(users_of(given.jobs), given.hosts[0])),
        ),
    ),
    "split-stride": (
        small,
        True,
        lambda given: (SplitStride(), split_stride(users_of(given.jobs), WEIGHTS, given.hosts)),
    ),
    "gandiva-fair": (
        small,
        True,
        lambda given: (GandivaFair(), split_stride(users_of(given.jobs), WEIGHTS, given.hosts, Fraction(1, 10))),
    ),
}


def played(policy: Policy, given: Setting, weighted: bool) -> dict[str, tuple[Any, Any]]:
    """Return when each job first ran, and when it was done, by fairopt."""
    jobs, there = given.jobs, users_of(given.jobs)
    cluster = Cluster.of(["T"] * len(given.hosts), given.hosts, speed=given.speed)
    trace = Trace(
        Jobs.of(
            names=[job.name for job in jobs],
            types=cluster.types,
            arrival=[job.arrival for job in jobs],
            gpus=[job.gpus for job in jobs],
            work=[job.work for job in jobs],
            throughput=[[job.speed] for job in jobs],
            tenant=[job.user for job in jobs],
            tenant_weight={user: WEIGHTS[user] for user in there} if weighted else None,
        )
    )
    began: dict[str, Any] = {}
    ended: dict[str, Any] = {}
    for each in run(policy, trace, cluster, length=given.quantum, rounds=5000):
        for ran in each.ran:
            began.setdefault(ran.job, ran.begin)
            if ran.completed:
                ended[ran.job] = ran.end
    return {job.name: (began.get(job.name), ended.get(job.name)) for job in jobs}


def agree(name: str, seed: int, wrong: Callable[[Setting], Scheduler] | None = None) -> bool:
    """Return whether a policy and its rule play a trace alike; with a ``wrong`` rule in place of its own."""
    prepare, weighted, pair = PAIRS[name]
    given = prepare(setting(seed))
    if name != "pal":
        given = given._replace(speed=[Fraction(1)] * len(given.hosts))
    policy, rule = pair(given)
    found = played(policy, given, weighted)
    simulate(given.jobs, sum(given.hosts), given.quantum, wrong(given) if wrong else rule)
    return found == {job.name: (job.started, job.completed) for job in given.jobs}


#: By name: a rule with a fault, which the traces must show.
WRONG: dict[str, Callable[[Setting], Scheduler]] = {
    "easy-backfilling": lambda given: easy(given.quantum * 3),
    "allox": lambda given: fifo,
    "themis": lambda given: themis(given.quantum * 2),
    "karma": lambda given: karma(users_of(given.jobs), WEIGHTS, Fraction(1, 4), 3),
    "ltgf": lambda given: ltgf(users_of(given.jobs), dict.fromkeys(WEIGHTS, Fraction(1)), given.quantum),
    "pal": lambda given: pal(given.hosts, [Fraction(1)] * len(given.hosts), Fraction(3, 2)),
    "hived": lambda given: fifo,
    "split-stride": lambda given: split_stride(users_of(given.jobs), WEIGHTS, given.hosts, Fraction(0)),
    "gandiva-fair": lambda given: split_stride(users_of(given.jobs), WEIGHTS, given.hosts, Fraction(1, 2)),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_traces_show_a_fault(name: str) -> None:
    assert not all(agree(name, seed, WRONG[name]) for seed in range(40))


@pytest.mark.parametrize("name", PAIRS)
def test_agreement(name: str) -> None:
    assert [seed for seed in range(2) if not agree(name, seed)] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_agreement_on_500_traces(name: str) -> None:
    assert [seed for seed in range(2, 505) if not agree(name, seed)] == []
