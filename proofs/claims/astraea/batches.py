"""Batches for the rows on posted prices: the paper's example, random ones, and plans decided by the verifier."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from random import Random

from fairopt.models.astraea.reference import Reference, centralised, distributed
from fairopt.models.astraea.round_state import RoundState
from fairopt.policy import Admission, Plan
from fairopt.problem.batch import Batch
from fairopt.problem.utilities import CompletionUtility, Linear, Power, Steps
from fairopt.proofs.verifier.schedules import decide
from fairopt.schedules.document import document
from fairopt.testing.samples import quotas

NAMES, OWNERS, CHUNKS = ("j11", "j12", "j21", "j22"), ("u1", "u1", "u2", "u2"), (2, 3, 2, 30)


def example(jobs: Sequence[int] = (0, 1, 2, 3)) -> Batch:
    """Return the batch of the paper's example with its jobs, or some of them, in any order.

    A mini-batch takes a slot on one server (n = 1) and two over several (n = 1/2).

    Source: Astraea (posted prices) Sec. 4.2.
    """
    count = len(jobs)
    return Batch.of(
        workers=[2] * 4,
        ps=[1] * 4,
        worker_quota={"u1": 4, "u2": 4},
        ps_quota={"u1": 2, "u2": 2},
        servers=["s1", "s2", "s3", "s4"],
        names=[NAMES[job] for job in jobs],
        tenant=[OWNERS[job] for job in jobs],
        arrival=[3] * count,
        epochs=[2] * count,
        chunks=[CHUNKS[job] for job in jobs],
        minibatches=[1] * count,
        minibatch_time=[1] * count,
        update_time=[0] * count,
        gradient=[Fraction(1, 2)] * count,
        utility=[Linear(Fraction(-2), Fraction(100))] * count,
    )


def random_batch(
    seed: int, *, servers: int = 4, tenants: int = 2, jobs: int = 6, latest: int = 8, types: tuple[int, int] = (1, 1)
) -> Batch:
    """Return a seeded batch with as many servers, tenants, jobs, and types of workers and PS."""
    random = Random(seed)
    kinds_w, kinds_p = types
    workers = [[random.randint(0, 4) for _ in range(kinds_w)] for _ in range(servers)]
    ps = [[random.randint(0, 3) for _ in range(kinds_p)] for _ in range(servers)]
    workers[0][0], ps[0][0] = max(workers[0][0], 1), max(ps[0][0], 1)
    names = [f"u{number}" for number in range(1, tenants + 1)]
    return Batch.of(
        workers=workers,
        ps=ps,
        worker_quota=quotas(random, workers, names),
        ps_quota=quotas(random, ps, names),
        worker_types=[f"worker{number}" for number in range(kinds_w)],
        ps_types=[f"ps{number}" for number in range(kinds_p)],
        worker_bandwidth=random.choice([1, 2]),
        ps_bandwidth=random.choice([1, 2, 3]),
        tenant=[random.choice(names) for _ in range(jobs)],
        arrival=[random.randint(0, latest) for _ in range(jobs)],
        epochs=[random.randint(1, 3) for _ in range(jobs)],
        chunks=[random.randint(1, 5) for _ in range(jobs)],
        minibatches=[random.randint(1, 3) for _ in range(jobs)],
        minibatch_time=[[Fraction(random.randint(1, 6), 4) for _ in range(kinds_w)] for _ in range(jobs)],
        update_time=[[Fraction(random.randint(0, 2), 4) for _ in range(kinds_p)] for _ in range(jobs)],
        gradient=[Fraction(random.randint(0, 3), 2) for _ in range(jobs)],
        utility=[_utility(random) for _ in range(jobs)],
    )


def _utility(random: Random) -> CompletionUtility:
    linear = Linear(Fraction(-random.randint(0, 3)), Fraction(random.randint(1, 40)))
    power = Power(Fraction(random.randint(5, 60)), random.choice([Fraction(1), Fraction(2), Fraction(3, 2)]))
    steps = Steps(tuple(sorted((Fraction(random.randint(0, 40)) for _ in range(6)), reverse=True)))
    return random.choice([linear, power, steps])


def violations(plan: Plan) -> list[str]:
    """Return what ``proofs/verify_schedule.py`` has against a plan."""
    return decide(json.dumps(document(plan)))[0]


@dataclass(frozen=True)
class Deviating(Reference):
    """Algorithm 3 with deviations, to find out which of them the printed example needs.

    ``all_chunks``: only as many workers as there are chunks are tried. ``central``: whether one server is tried.
    ``least_used``: of the servers that can hold all, Algorithm 5 takes one that is used least in the round.
    """

    all_chunks: bool = False
    central: bool = True
    least_used: bool = False

    def best(self, state: RoundState, job: int) -> Admission:
        """Propose the schedule of largest gain, whatever its sign; without a schedule where nothing fits."""
        most, found = int(state.batch.jobs.chunks[job]), Admission(job, origin=state.origin)
        for start in range(1, state.slots + 1):
            for workers in [most] if self.all_chunks else range(1, most + 1):
                here = (job, start, workers, 0, 0, self)
                tried = [self._centralised(state, *here)] if self.central else []
                for one in (*tried, distributed(state, *here)):
                    if one is not None and (found.schedule is None or one.gain > found.gain):
                        found = one
        return found

    def _centralised(
        self, state: RoundState, job: int, start: int, workers: int, worker: int, ps: int, readings: Reference
    ) -> Admission | None:
        one = centralised(state, job, start, workers, worker, ps, readings)
        if one is None or one.schedule is None or not self.least_used:
            return one
        span = slice(start - 1, start - 1 + one.schedule.duration)
        room = (state.workers.free[:, worker, span] >= workers) & (state.ps.free[:, ps, span] >= 1)
        free = [int(each.sum()) for each in state.workers.free]
        able = [server for server in range(len(free)) if room[server].all()]
        best = min(able, key=lambda server: (-free[server], server))
        # prices are the same on all servers, and so is the cost
        return replace(one, schedule=replace(one.schedule, workers=((best, workers),), ps=((best, 1),)))
