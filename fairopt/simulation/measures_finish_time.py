"""Finish-time fairness: a job's time in the shared cluster over its time on a part of its own.

Source: FFT, ICS 2025, Sec. 6.1.5, after Themis, NSDI 2020; ASTRAEA, TPDS 2022, Sec. 4.1.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Protocol

from fairopt.problem.queue import Queue
from fairopt.program import Number
from fairopt.simulation.gpu_time import GpuTime
from fairopt.simulation.history import History
from fairopt.simulation.steps import StepFunction


class Ideal(Protocol):
    """A definition of T_id, a job's time without the others."""

    def time(self, queue: Queue, row: int, jobs: Number) -> Number:
        """Return T_id of the job in ``row`` of a queue of all jobs; ``jobs`` is N, the jobs that share the cluster."""
        ...


@dataclass(frozen=True)
class OwnPart:
    """T_id is the time alone on 1/N of the GPUs of each type: the default reading.

    Where the part of a type is smaller than the gang, the job holds the whole gang for the fraction of time with the
    same GPU-time, on one type at a time, the fastest first. So T_id stays finite, as in Themis and Gavel.
    Source: Themis (a cluster of its own with 1/N of the resources); Gavel, OSDI 2020 (1/N of the time on each type).
    """

    def time(self, queue: Queue, row: int, jobs: Number) -> Number:
        """Return W_j over the throughput on this part; see `Ideal.time`."""
        jobs, speeds = jobs * int(queue.jobs.gpus[row]), queue.jobs.throughput[row].tolist()
        types = zip(speeds, queue.capacity.tolist(), queue.fits[row].tolist(), strict=True)
        there = [(each, gpus) for each, gpus, fits in types if fits]
        there.sort(key=itemgetter(0), reverse=True)  # types of one speed keep their order
        speed, left = queue.now * 0, queue.now * 0 + 1
        for each, gpus in there:
            part = min(left, gpus / jobs)
            speed, left = speed + part * each, left - part
        time: Number = queue.jobs.work[row] / speed
        return time


@dataclass(frozen=True)
class WholeCluster:
    """T_id is the time alone on the whole cluster, on the job's fastest type; ``times_jobs`` multiplies it by N.

    Source: FFT Sec. 6.1.5 literally ("exclusive cluster"); with ``times_jobs`` ASTRAEA Sec. 4.1.2.
    """

    times_jobs: bool = False

    def time(self, queue: Queue, row: int, jobs: Number) -> Number:
        """Return W_j over the largest throughput; see `Ideal.time`."""
        time: Number = queue.jobs.work[row] / max(queue.jobs.throughput[row][queue.fits[row]])
        return time * jobs if self.times_jobs else time


def finish_time_fairness(history: History, ideal: Ideal | None = None) -> Mapping[str, Number]:
    """Return rho = T_sh / T_id of each completed job; above 1 it was worse off than alone on its part.

    T_sh is from arrival to completion; N is the mean number of jobs present meanwhile that fit some type.
    Source: FFT Sec. 6.1.5; Themis (N is the contention over the time of the job).
    """
    own, jobs = ideal or OwnPart(), history.trace.jobs
    if not history.rounds:
        return {}
    queue = Queue.fresh(jobs, history.cluster, length=1)
    present = presence(history)
    rho = {}
    for row, name in enumerate(jobs.names):
        done = history.completion.get(name)
        if done is not None:
            spent = done - history.arrival[name]
            others = present.integral(history.arrival[name], done) / spent
            rho[name] = spent / own.time(queue, row, others)
    return rho


def presence(history: History) -> StepFunction:
    """Return the number of jobs present over time, up to the run's end: arrived, not completed, fit for some type."""
    return StepFunction.of_windows((begin, end, 1) for begin, end in GpuTime(history).active.values())
