"""Seeded batches for policies of schedules: small, with everything that can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from random import Random

from fairopt.problem.batch import Batch
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps


def sample_batches(count: int, *, seed: int = 0, jobs: int = 4, servers: int = 3) -> Iterator[Batch]:
    """Yield ``count`` exact batches, the same ones in every run for a ``seed``.

    Among them: servers without workers or PS; tenants without a share, and without jobs; jobs that arrive later, want
    more workers than there are, slow down when they are spread, or are worth nothing after a few slots; several types.
    """
    for number in range(count):
        yield _batch(Random(f"{seed}/{number}"), jobs, servers)


def _batch(random: Random, most_jobs: int, most_servers: int) -> Batch:
    types = [random.choice([1, 1, 2]) for _ in range(2)]
    servers, jobs = random.randint(1, most_servers), random.randint(1, most_jobs)
    names = [f"tenant-{number}" for number in range(random.randint(1, 3))]
    held = [[[random.randint(0, 2) for _ in range(of)] for _ in range(servers)] for of in types]
    for there in held:
        there[0][0] = max(1, there[0][0])
    workers, ps = held
    return Batch.of(
        workers=workers,
        ps=ps,
        worker_quota=quotas(random, workers, names),
        ps_quota=quotas(random, ps, names),
        worker_types=[f"worker-{number}" for number in range(types[0])],
        ps_types=[f"ps-{number}" for number in range(types[1])],
        worker_bandwidth=random.choice([1, 2]),
        ps_bandwidth=random.choice([1, 2, 3]),
        tenant=[random.choice(names) for _ in range(jobs)],
        arrival=[random.choice([0, 0, 1, 3]) for _ in range(jobs)],
        epochs=[random.randint(1, 2) for _ in range(jobs)],
        chunks=[random.randint(1, 3) for _ in range(jobs)],
        minibatches=[1] * jobs,
        minibatch_time=[[Fraction(random.randint(1, 4), 4) for _ in range(types[0])] for _ in range(jobs)],
        update_time=[[Fraction(random.randint(0, 2), 4) for _ in range(types[1])] for _ in range(jobs)],
        gradient=[Fraction(random.randint(0, 2), 4) for _ in range(jobs)],
        utility=[_utility(random) for _ in range(jobs)],
        names=[f"job-{number}" for number in range(jobs)],
        servers=[f"server-{number}" for number in range(servers)],
    )


def quotas(random: Random, there: list[list[int]], names: list[str]) -> dict[str, list[int]]:
    """Return who owns what: each worker, or PS, belongs to somebody."""
    quota = {name: [0] * len(there[0]) for name in names}
    for kind in range(len(there[0])):
        for _ in range(sum(row[kind] for row in there)):
            quota[random.choice(names)][kind] += 1
    return quota


def _utility(random: Random) -> CompletionUtility:
    linear = Linear(Fraction(-random.randint(2, 5)), Fraction(random.randint(4, 20)))
    steps = Steps(tuple(sorted((Fraction(random.randint(0, 20)) for _ in range(5)), reverse=True)))
    return random.choice([linear, steps, Power(Fraction(random.randint(5, 60)), Fraction(1))])
