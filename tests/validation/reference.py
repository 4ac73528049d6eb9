"""Four schedulers as their papers describe them, in a simulator that shares nothing with fairopt.

The setting: GPUs of one type, all alike and all reachable for a gang; a decision at every multiple of a quantum; no
cost of starting, stopping or moving; a job that completes within a quantum leaves its GPUs idle until the next one.
Only the standard library is used. Times and work are Fractions, so that ties are ties.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass
class Job:
    """A job, and how far it has come."""

    name: str
    user: str
    arrival: Fraction
    gpus: int
    work: Fraction
    speed: Fraction
    left: Fraction = Fraction(0)
    service: Fraction = Fraction(0)  # GPUs times time
    passed: Fraction | None = None  # stride's pass
    runs: bool = False
    started: Fraction | None = None
    completed: Fraction | None = None
    now: Fraction = Fraction(0)  # when the quantum begins

    def __post_init__(self) -> None:
        self.left = self.work


#: Chooses who runs in a quantum, of the jobs present in order of arrival, on so many GPUs.
Scheduler = Callable[[Sequence[Job], int], list[Job]]


def simulate(jobs: Sequence[Job], gpus: int, quantum: Fraction, scheduler: Scheduler) -> None:
    """Play all jobs to their ends: each gets ``started`` and ``completed``."""
    queue = sorted(jobs, key=lambda job: job.arrival)
    now = Fraction(0)
    while any(job.completed is None for job in queue):
        present = [job for job in queue if job.arrival <= now and job.completed is None]
        if not present:
            coming = min(job.arrival for job in queue if job.completed is None)
            now = quantum * -(-coming // quantum)
            continue
        for job in present:
            job.now = now
        chosen = scheduler(present, gpus)
        assert sum(job.gpus for job in chosen) <= gpus
        for job in present:
            job.runs = any(job is other for other in chosen)
        for job in chosen:
            job.started = now if job.started is None else job.started
            needs = job.left / job.speed
            held = min(needs, quantum)
            job.service += job.gpus * held
            job.left -= held * job.speed
            if needs <= quantum:
                job.completed = now + needs
        now += quantum


def _in_order(jobs: Sequence[Job], gpus: int) -> list[Job]:
    """Take jobs in an order, passing over those that do not fit."""
    chosen = []
    for job in jobs:
        if job.gpus <= gpus:
            chosen.append(job)
            gpus -= job.gpus
    return chosen


def fifo(present: Sequence[Job], gpus: int) -> list[Job]:
    """First in, first out: who runs goes on to its end; then jobs by arrival, until one does not fit.

    Source: ASTRAEA Sec. 3.2: long jobs "may monopolize the whole cluster or VC, blocking the execution of pending jobs
    (a.k.a. head-of-line blocking)".
    """
    chosen = [job for job in present if job.runs]
    gpus -= sum(job.gpus for job in chosen)
    for job in present:
        if job.runs:
            continue
        if job.gpus > gpus:
            break
        chosen.append(job)
        gpus -= job.gpus
    return chosen


def srtf(present: Sequence[Job], gpus: int) -> list[Job]:
    """Shortest remaining time first. Source: FFT Sec. 2.2, Fig. 2(a)."""
    return _in_order(sorted(present, key=lambda job: job.left / job.speed), gpus)


def las(thresholds: Sequence[Fraction]) -> Scheduler:
    """Least attained service in queues: GPUs times time received; within a queue by arrival.

    Source: Tiresias, NSDI 2019, Sec. 3.3 (discretised two-dimensional LAS).
    """

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        return _in_order(sorted(present, key=lambda job: bisect_right(thresholds, job.service)), gpus)

    return choose


def gang_stride(tickets: dict[str, Fraction]) -> Scheduler:
    """Algorithm 1 of Gandiva_fair: by pass, who does not fit is skipped; who runs adds its stride.

    ``tickets``: those of users. A job's tickets are its GPUs times its user's tickets per GPU (Eq. (1) and (3)); a
    stride is GPUs over tickets. A new job enters at the least pass. Source: Gandiva_fair Sec. 3.1.
    """

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        known = [job.passed for job in present if job.passed is not None]
        for job in present:
            job.passed = min(known, default=Fraction(0)) if job.passed is None else job.passed
        chosen = _in_order(sorted(present, key=lambda job: job.passed or Fraction(0)), gpus)
        for job in chosen:
            per_gpu = tickets[job.user] / sum(other.gpus for other in present if other.user == job.user)
            job.passed = (job.passed or Fraction(0)) + job.gpus / (job.gpus * per_gpu)
        return chosen

    return choose
