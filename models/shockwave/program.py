"""Shockwave's program of a window: Nash social welfare of progress, less a penalty on the makespan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.problem.queue import Queue
from fairopt.program import Array, Formulation, Program

#: Smaller parts of a round are rounding errors.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class PlannedJobs:
    """The jobs of a window, in floats; shapes for n jobs on k types.

    * ``rows``: their rows in the queue. ``gpus`` (n,). ``allowed`` (n, k): where each may run.
    * ``rate`` (n, k): speed on each type over that on the job's fastest type. ``left``, ``whole`` (n,): time that the
      remaining and all of its work take on its fastest type, without loading.
    """

    rows: tuple[int, ...]
    gpus: Array
    allowed: Array
    rate: Array
    left: Array
    whole: Array

    @classmethod
    def of(cls, queue: Queue) -> PlannedJobs:
        """Return the jobs of a queue that could run now."""
        rows = queue.able
        allowed = queue.allowed[rows]
        speed = np.where(allowed, queue.jobs.throughput[rows].astype(float), 0.0)
        fastest = speed.max(axis=1)
        left, whole = (column[rows].astype(float) / fastest for column in (queue.remaining, queue.jobs.work))
        return cls(tuple(rows), queue.jobs.gpus[rows], allowed, speed / fastest[:, None], left, whole)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class LogApproximation:
    """The logarithm of progress as its chords between ``bases``; at 0 it is the logarithm of ``origin``.

    Source: shockwave.py, `nash_social_welfare_first_order_apx` (bases 0, 0.2, ..., 1; origin 1e-6).
    """

    bases: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    origin: float = 1e-6

    def values(self) -> Array:
        """Return the logarithm at each of the bases."""
        return np.asarray(np.log(np.maximum(np.asarray(self.bases, dtype=float), self.origin)))


def window_program(
    jobs: PlannedJobs,
    capacity: Array,
    rounds: int,
    length: float,
    *,
    weight: Array,
    makespan: float,
    logarithm: LogApproximation,
    slack: Array | None = None,
    together: bool = False,
    whole: bool = True,
) -> Program:
    """Return the program over binary ``x`` (n, k, rounds): who runs on which type in which round of the window.

    With ``together`` rounds are not told apart: ``x`` (n, k, 1) is how many of them a job runs, and with ``whole``
    False not always a whole number. Both are relaxations, with as many GPUs in all; their optima are at least as large.

    ``weight`` (n,) is that of each job's logarithm, ``makespan`` the penalty on the longest time left after the window,
    for a unit of time. ``slack`` (n,) is the most time that may be left to each job then (None: no such limit).

    The chords of the logarithm need no binary variables, which the source's code has: a concave function that is
    maximised lies on its chords by itself.

    Source: shockwave.py, `dynamic_eisenberg_gale_scheduling` (a line below names its place there).
    """
    n, k = jobs.allowed.shape
    p = Formulation("shockwave window")
    slots, each = (1, rounds) if together else (rounds, 1)
    x = p.variable("x", (n, k, slots), lower=0, upper=each * jobs.allowed[:, :, None].astype(int), integer=whole)
    planned = p.variable("planned", (n,), lower=0, upper=jobs.left)
    chord = p.variable("chord", (n, len(logarithm.bases)), lower=0)
    longest = p.variable("longest", lower=0)
    # measured from no progress at all, so that no sum of opposite signs is near 0 and a relative gap means something
    gained = chord * (logarithm.values() - np.log(logarithm.origin))
    p.maximize(
        (gained * (weight / (n * rounds))[:, None]).sum() + makespan * (jobs.left.max() - longest),
        equation="sum_i w_i (log U_i - log U_0) / (N T) + k (max_i R_i(now) - max_i R_i)",
        source="the objective",
    )
    p.constrain("one_type", x.sum(axis=1) <= each, equation="sum_j x_ijt <= 1")
    p.constrain(
        "capacity",
        (x * jobs.gpus[:, None, None]).sum(axis=0) <= each * capacity[:, None],
        equation="sum_i d_i x_ijt <= Y_j",
        source="construct_round_sched_constraints",
    )
    served = (x.sum(axis=2) * jobs.rate).sum(axis=1) * length
    p.constrain(
        "served", planned - served <= 0, equation="p_i <= L sum_jt r_ij x_ijt", source="planned_progress_consts"
    )
    done = (planned + (jobs.whole - jobs.left)) / jobs.whole
    p.constrain("chords", chord.sum(axis=1) == 1, equation="sum_b z_ib = 1", source="cursor_consts")
    reached = (chord * np.asarray(logarithm.bases)).sum(axis=1)
    p.constrain("progress", reached - done == 0, equation="sum_b b z_ib = U_i", source="cursor_consts")
    p.constrain("makespan", longest + planned >= jobs.left, equation="max_i R_i >= R_i", source="jobs_remaining_time")
    if slack is not None:
        p.constrain("in_time", planned >= jobs.left - slack, equation="R_i <= slack_i", source="finish_time_consts")
    return p.program()


def ranking_program(jobs: PlannedJobs, capacity: Array, counts: Array, rounds: int, priority: Array) -> Program:
    """Return the program that orders rounds: each job has ``counts`` (n, k) of them, urgent jobs the earlier ones.

    Source: shockwave.py, `rank_in_schedule_jobs`.
    """
    p = Formulation("shockwave order")
    x = p.variable("x", (*counts.shape, rounds), lower=0, upper=(counts > 0).astype(int)[:, :, None], integer=True)
    p.constrain("one_type", x.sum(axis=1) <= 1, equation="sum_j x_ijt <= 1")
    p.constrain("same", x.sum(axis=2) == counts, equation="sum_t x_ijt = n_ij")
    p.constrain("capacity", (x * jobs.gpus[:, None, None]).sum(axis=0) <= capacity[:, None])
    each = priority / np.maximum(counts.sum(axis=1), 1)
    p.minimize((x * each[:, None, None] * np.arange(rounds)).sum(), equation="sum_i w_i mean_t(t : x_ijt = 1)")
    return p.program()


def filled(jobs: PlannedJobs, capacity: Array, counts: Array, rounds: int, priority: Array) -> Array:
    """Return who runs in which round, (n, k, rounds) bool, for ``counts`` (n, k) of rounds, as far as gangs fit.

    Round by round: first who must run in all rounds that are left, then by falling priority, then who has least time
    to spare, then the larger gang. Jobs to which less than half a round is left come after all others.
    """
    left, x = counts.astype(float), np.zeros((*counts.shape, rounds), dtype=bool)
    for number in range(rounds):
        room = capacity.copy()
        spare = (rounds - number - left.sum(axis=1)).tolist()
        least = (left.max(axis=1) < 1 / 2).tolist()
        order = sorted(
            np.flatnonzero((left > ROUNDING).any(axis=1)).tolist(),  # of thousands, few are to run at all
            key=lambda at: (least[at], spare[at] >= 1, -priority[at], spare[at], -jobs.gpus[at], at),
        )
        for at in order:
            if not room.any():
                break
            fits = np.flatnonzero((left[at] > ROUNDING) & (jobs.gpus[at] <= room))
            if len(fits):
                gpu_type = fits[left[at, fits].argmax()]
                x[at, gpu_type, number] = True
                left[at, gpu_type] -= 1
                room[gpu_type] -= jobs.gpus[at]
    return x
