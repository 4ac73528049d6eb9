"""fairopt's policies agree exactly with schedulers that were written from the papers alone, in another simulator."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest
from drawn_seeds import seeds
from reference import Job, Scheduler, fifo, gang_stride, las, simulate, srtf

from fairopt import run
from fairopt.models import FifoQuota, GangAwareStride, LeastAttainedService, ShortestRemainingTimeFirst
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Trace

WEIGHTS = {"a": Fraction(1), "b": Fraction(2), "c": Fraction(1, 3)}
#: By name: the policy in the setting of the reference, and the reference.
PAIRS: dict[str, tuple[Policy, Callable[[], Scheduler]]] = {
    # one tenant has all GPUs as its quota
    "fifo": (FifoQuota(), lambda: fifo),
    "srtf": (ShortestRemainingTimeFirst(), lambda: srtf),
    "las": (LeastAttainedService(thresholds=(900, 3600)), lambda: las([Fraction(900), Fraction(3600)])),
    "las-one-queue": (LeastAttainedService(thresholds=()), lambda: las([])),
    # effective tickets are a matter of Sec. 3.2, not of Algorithm 1
    "stride": (GangAwareStride(readjust=False), lambda: gang_stride(WEIGHTS)),
}


def drawn(seed: int) -> tuple[list[Job], int, Fraction, int]:
    """Return jobs, GPUs of a host, the quantum, and how many hosts; many arrivals, works and sizes are tied."""
    random = Random(seed)
    gpus, hosts = random.choice([(2, 1), (4, 1), (8, 1), (4, 2), (2, 4)])
    quantum = random.choice([Fraction(300), Fraction(60), Fraction(1000, 7)])
    jobs = []
    for number in range(random.randint(2, 14)):
        jobs.append(
            Job(
                name=f"j{number}",
                user=random.choice("abc"),
                arrival=random.choice(
                    [Fraction(0), quantum * random.randint(0, 8), Fraction(random.randint(0, 9000), 7)]
                ),
                gpus=min(random.choice([1, 1, 1, 2, 2, 4, 8]), gpus * hosts),
                work=random.choice([quantum * random.randint(1, 6), Fraction(random.randint(1, 50_000), 11)]),
                speed=random.choice([Fraction(1), Fraction(1), Fraction(3, 2), Fraction(1, 3)]),
            )
        )
    return jobs, gpus, quantum, hosts


def played(policy: Policy, jobs: list[Job], cluster: Cluster, quantum: Fraction, tenants: bool) -> dict[str, object]:
    """Return when each job first ran and when it was done, by fairopt."""
    there = {job.user for job in jobs}
    trace = Trace(
        Jobs.of(
            names=[job.name for job in jobs],
            types=cluster.types,
            arrival=[job.arrival for job in jobs],
            gpus=[job.gpus for job in jobs],
            work=[job.work for job in jobs],
            throughput=[[job.speed] for job in jobs],
            tenant=[job.user for job in jobs] if tenants else None,
            tenant_weight={user: weight for user, weight in WEIGHTS.items() if user in there} if tenants else None,
        )
    )
    began: dict[str, Fraction] = {}
    ended: dict[str, Fraction] = {}
    for each in run(policy, trace, cluster, length=quantum):
        for ran in each.ran:
            began.setdefault(ran.job, ran.begin)
            if ran.completed:
                ended[ran.job] = ran.end
    return {job.name: (began[job.name], ended[job.name]) for job in jobs}


def check(name: str, seed: int) -> None:
    policy, reference = PAIRS[name]
    jobs, gpus, quantum, hosts = drawn(seed)
    found = played(policy, jobs, Cluster.uniform({"T": (hosts, gpus)}), quantum, tenants=name == "stride")
    simulate(jobs, gpus * hosts, quantum, reference())
    assert found == {job.name: (job.started, job.completed) for job in jobs}, f"seed {seed}"


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("seed", seeds(2, 20))
def test_agreement(name: str, seed: int) -> None:
    check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_agreement_on_200_traces(name: str) -> None:
    for seed in range(20, 220):
        check(name, seed)


def test_the_traces_tell_schedulers_apart() -> None:
    """Else agreement would say little."""
    for one, other in (("fifo", "srtf"), ("srtf", "las"), ("las", "las-one-queue"), ("las", "stride")):
        differ = 0
        for seed in range(20):
            ends = []
            for name in (one, other):
                jobs, gpus, quantum, hosts = drawn(seed)
                simulate(jobs, gpus * hosts, quantum, PAIRS[name][1]())
                ends.append([job.completed for job in jobs])
            differ += ends[0] != ends[1]
        assert differ >= 5, (one, other, differ)


def test_the_reference_imports_the_standard_library_only() -> None:
    tree = ast.parse((Path(__file__).parent / "reference.py").read_text(encoding="utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
    assert {str(name).partition(".")[0] for name in imported} <= sys.stdlib_module_names
