"""What the computations on ASTRAEA have in common: schedules given in advance, and small runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import Any, ClassVar

from fairopt.backends import Session
from fairopt.policy import Policy, Schedule
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.queue import Queue
from fairopt.problem.trace import Trace
from fairopt.program import Number
from fairopt.proofs.ledger.checking import NoLongerFollows
from fairopt.simulation import Consolidated, History, Mechanics, Request, placed, run
from fairopt.simulation.gpu_time import ratio


@dataclass(frozen=True)
class GivenSchedule(Policy):
    """A schedule given in advance: who runs in which round, over and over; completed jobs are left out."""

    problem: ClassVar[type] = Queue
    name = "given"
    source = "a figure"
    turns: tuple[tuple[str, ...], ...] = ()

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Place those whose turn it is; see `Policy.decide`."""
        turn = self.turns[problem.index % len(self.turns)]
        requests = [Request(row, (0,)) for row, name in enumerate(problem.jobs.names) if name in turn]
        return Schedule(self.name, problem, placed(problem, requests, Consolidated()))


def one_host(gpus: int) -> Cluster:
    """Return a cluster of one host."""
    return Cluster.uniform({"GPU": (1, gpus)})


def work(
    gpus: Sequence[int],
    duration: Sequence[int],
    tenant: Sequence[str] | None = None,
    arrival: Sequence[int] | None = None,
    names: Sequence[str] | None = None,
) -> Jobs:
    """Return jobs on one type, by how long they take with all their GPUs."""
    return Jobs.of(gpus=gpus, work=duration, types=["GPU"], tenant=tenant, arrival=arrival, names=names)


def played(
    policy: Policy,
    jobs: Jobs,
    cluster: Cluster,
    length: int = 10,
    *,
    mechanics: Mechanics | None = None,
    rounds: int | None = None,
) -> History:
    """Return the history of a run, exact."""
    trace = Trace(jobs)
    return History.of(trace, cluster, run(policy, trace, cluster, length=length, mechanics=mechanics, rounds=rounds))


def who(history: History) -> str:
    """Return who ran, round by round: "1 23 23" for jobs called 1, 2 and 3."""
    return " ".join("".join(ran.job for ran in record.ran) or "-" for record in history.rounds)


def values(rho: Mapping[str, Number | None]) -> str:
    """Return fairness degrees as "3/2, 3/4"."""
    return ", ".join("none" if value is None else str(value) for value in rho.values())


def drawn(rng: Random, *, together: bool = False, tenants: str = "AB") -> tuple[Jobs, Cluster]:
    """Return two to seven jobs of 1 to 6 GPUs on 4 to 8 GPUs; ``together``: all arrive at once."""
    count, gpus = rng.randint(2, 7), rng.randint(4, 8)
    jobs = work(
        [rng.choice([1, 1, 2, 3, 4]) for _ in range(count)],
        [10 * rng.randint(1, 5) for _ in range(count)],
        [rng.choice(tenants) for _ in range(count)],
        [0 if together else rng.randint(0, 60) for _ in range(count)],
    )
    return jobs, one_host(gpus)


def degree(held: Number, due: Number) -> Fraction:
    """Return rho. Errors: `NoLongerFollows` where there is none."""
    rho = ratio(held, due)
    return Fraction(0) if rho is None else Fraction(rho)


def known(value: Number | None, what: str) -> Number:
    """Return a number that must be there. Errors: `NoLongerFollows`."""
    if value is None:
        raise NoLongerFollows(f"not found: {what}")
    return value
