"""Shockwave's window of rounds as a program, and its optimum by prices for GPUs: a linear program of few rows.

The objective is Nash social welfare of progress, less a penalty on the makespan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, floor

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.solution import Solution, Status, written_out
from fairopt.deadline import left as time_left
from fairopt.problem.profile import Course
from fairopt.problem.queue import Queue
from fairopt.program import Array, Formulation, Program

#: The bases of the chords of the logarithm, and what stands for no progress.
BASES, ORIGIN = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0), 1e-6
#: Smaller parts of a round are errors of a solver.
LEAST_PART = 1e-6
#: Jobs are taken together in so many groups: with more, fewer turns are needed, and each takes longer.
GROUPS = 24
#: More turns than this are not tried, nor more jobs that may be the one with the longest time left, nor more numbers.
MOST_TURNS, MOST_LAST, MOST_NUMBERS = 80, 20, 30_000_000


@dataclass(frozen=True, eq=False)
class PlanningWindow:
    """The next ``rounds`` of a ``length``, and the jobs that may run in them, in floats; n jobs on k types.

    * ``rows``: their rows in the queue. ``gpus`` (n,). ``allowed`` (n, k): where each may run. ``capacity`` (k,): GPUs.
    * ``rate`` (n, k): speed on each type over that on the job's fastest type. ``left``, ``whole`` (n,): time that the
      remaining and all of its work take on its fastest type, without loading; where that changes as `predicted`.
    * ``part`` (n,): of its progress that a job has made. ``gain`` (n,): more of it for a unit of planned time.
    * ``makespan``: the penalty on the longest time that is left after the window, for a unit of time.
    * ``bases``: the logarithm of progress is taken as its chords between these; at 0 it is that of ``origin``.

    Source: shockwave.py; for the chords `nash_social_welfare_first_order_apx` (bases 0, 0.2, ..., 1; origin 1e-6).
    """

    rows: tuple[int, ...]
    gpus: Array
    allowed: Array
    rate: Array
    left: Array
    whole: Array
    part: Array
    gain: Array
    capacity: Array
    length: float
    rounds: int
    makespan: float
    bases: Array
    origin: float

    @classmethod
    def of(
        cls,
        queue: Queue,
        rounds: int,
        makespan: float,
        bases: Sequence[float] = BASES,
        origin: float = ORIGIN,
        epoch: float = 0.0,
    ) -> PlanningWindow:
        """Return the window of the jobs of a queue that could run now; progress in whole epochs, 0 for exactly."""
        rows = queue.able
        allowed = queue.allowed[rows]
        speed = np.where(allowed, queue.jobs.throughput[rows].astype(float), 0.0)
        fastest = speed.max(axis=1)
        left, whole = (column[rows].astype(float) / fastest for column in (queue.remaining, queue.jobs.work))
        part, gain = (whole - left) / whole, 1 / whole
        for at, row in enumerate(rows) if queue.jobs.profiles or epoch else ():
            profile = queue.jobs.profile(row)
            work, done = float(queue.jobs.work[row]), float(queue.jobs.work[row] - queue.remaining[row])
            if epoch:
                work = ceil(work / epoch - LEAST_PART) * epoch
                done = min(floor(done / epoch + LEAST_PART), work / epoch - 1) * epoch
            found = () if profile is None else profile.factors(int(queue.jobs.gpus[row]), int(speed[at].argmax()))
            told = tuple((float(mark), float(factor)) for mark, factor in found if mark < queue.jobs.work[row])
            part[at] = done / work
            left[at], whole[at], gain[at] = predicted(work, done, told, float(fastest[at]))
        of_jobs = (tuple(rows), queue.jobs.gpus[rows], allowed, speed / fastest[:, None], left, whole, part, gain)
        length, chords = float(queue.length), np.asarray(bases, dtype=float)
        return cls(*of_jobs, queue.capacity, length, rounds, makespan, chords, origin)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def most(self) -> Array:
        """The time (n,) that can be planned for each job: with it all of its progress would be made."""
        return np.asarray((1 - self.part) / self.gain)

    @property
    def logarithm(self) -> Array:
        """The logarithm at each of the bases."""
        return np.asarray(np.log(np.maximum(self.bases, self.origin)))

    def program(
        self, weight: Array, slack: Array | None = None, *, together: bool = False, whole: bool = True
    ) -> Program:
        """Return the program over binary ``x`` (n, k, rounds): who runs on which type in which round of the window.

        With ``together`` rounds are not told apart: ``x`` (n, k, 1) is how many of them a job runs, and with ``whole``
        False not always a whole number. Both are relaxations, with as many GPUs in all; their optima are at least as
        large. ``weight`` (n,) is that of each job's logarithm, ``slack`` (n,) the most time that may be left to each
        job after the window (None: no such limit).

        The chords of the logarithm need no binary variables, which the source's code has: a concave function that is
        maximised lies on its chords by itself.

        Source: shockwave.py, `dynamic_eisenberg_gale_scheduling` (a line below names its place there).
        """
        n, k = self.allowed.shape
        p = Formulation("shockwave window")
        slots, each = (1, self.rounds) if together else (self.rounds, 1)
        x = p.variable("x", (n, k, slots), lower=0, upper=each * self.allowed[:, :, None].astype(int), integer=whole)
        planned = p.variable("planned", (n,), lower=0, upper=self.most)
        chord = p.variable("chord", (n, len(self.bases)), lower=0)
        longest = p.variable("longest", lower=0)
        # measured from no progress at all: no sum of opposite signs is near 0, and a relative gap means something
        gained = chord * (self.logarithm - np.log(self.origin))
        p.maximize(
            (gained * (weight / (n * self.rounds))[:, None]).sum() + self.makespan * (self.left.max() - longest),
            equation="sum_i w_i (log U_i - log U_0) / (N T) + k (max_i R_i(now) - max_i R_i)",
            source="the objective",
        )
        p.constrain("one_type", x.sum(axis=1) <= each, equation="sum_j x_ijt <= 1")
        p.constrain(
            "capacity",
            (x * self.gpus[:, None, None]).sum(axis=0) <= each * self.capacity[:, None],
            equation="sum_i d_i x_ijt <= Y_j",
            source="construct_round_sched_constraints",
        )
        served = (x.sum(axis=2) * self.rate).sum(axis=1) * self.length
        p.constrain(
            "served", planned - served <= 0, equation="p_i <= L sum_jt r_ij x_ijt", source="planned_progress_consts"
        )
        done = planned * self.gain + self.part
        p.constrain("chords", chord.sum(axis=1) == 1, equation="sum_b z_ib = 1", source="cursor_consts")
        reached = (chord * self.bases).sum(axis=1)
        p.constrain("progress", reached - done == 0, equation="sum_b b z_ib = U_i", source="cursor_consts")
        p.constrain(
            "makespan", longest + planned >= self.left, equation="max_i R_i >= R_i", source="jobs_remaining_time"
        )
        if slack is not None:
            p.constrain("in_time", planned >= self.left - slack, equation="R_i <= slack_i", source="finish_time_consts")
        return p.program()

    def ranked(self, counts: Array, priority: Array) -> Program:
        """Return the program that orders rounds: each job has ``counts`` (n, k) of them, urgent jobs the earlier ones.

        Source: shockwave.py, `rank_in_schedule_jobs`.
        """
        p = Formulation("shockwave order")
        x = p.variable(
            "x", (*counts.shape, self.rounds), lower=0, upper=(counts > 0).astype(int)[:, :, None], integer=True
        )
        p.constrain("one_type", x.sum(axis=1) <= 1, equation="sum_j x_ijt <= 1")
        p.constrain("same", x.sum(axis=2) == counts, equation="sum_t x_ijt = n_ij")
        p.constrain("capacity", (x * self.gpus[:, None, None]).sum(axis=0) <= self.capacity[:, None])
        each = priority / np.maximum(counts.sum(axis=1), 1)
        p.minimize((x * each[:, None, None] * np.arange(self.rounds)).sum(), equation="sum_i w_i mean_t(t : x_ijt = 1)")
        return p.program()

    def filled(self, counts: Array, priority: Array) -> Array:
        """Return who runs in which round, (n, k, rounds) bool, for ``counts`` (n, k) of rounds, as far as gangs fit.

        Round by round: first who must run in all rounds that are left, then by falling priority, then who has least
        time to spare, then the larger gang. Jobs to which less than half a round is left come after all others.
        """
        left, x = counts.astype(float), np.zeros((*counts.shape, self.rounds), dtype=bool)
        for number in range(self.rounds):
            room = self.capacity.copy()
            spare = (self.rounds - number - left.sum(axis=1)).tolist()
            least = (left.max(axis=1) < 1 / 2).tolist()
            order = sorted(
                np.flatnonzero((left > LEAST_PART).any(axis=1)).tolist(),  # of thousands, few are to run at all
                key=lambda at: (least[at], spare[at] >= 1, -priority[at], spare[at], -self.gpus[at], at),
            )
            for at in order:
                if not room.any():
                    break
                fits = np.flatnonzero((left[at] > LEAST_PART) & (self.gpus[at] <= room))
                if len(fits):
                    gpu_type = fits[left[at, fits].argmax()]
                    x[at, gpu_type, number] = True
                    left[at, gpu_type] -= 1
                    room[gpu_type] -= self.gpus[at]
        return x

    # -- by prices ---------------------------------------------------------------------------------------------------
    def priced(self, program: Program, weight: Array, gap: float) -> Solution | None:
        """Return the optimum of its ``program`` without whole rounds, to the relative ``gap``; None for none found.

        The bound is one on the objective of any plan.

        GPUs of each type, and progress of the jobs that may be the last to end, have prices. At these each job does
        what is worth most to it alone, which bounds what all together are worth. The best mixture of what the jobs, in
        groups, did at the prices so far keeps to the GPUs that there are, and gives the next prices. The makespan
        counts from its least possible value, so that the bound is that of the program.

        Source: Dantzig and Wolfe, Decomposition principle for linear programs, Operations Research 8(1), 1960.
        """
        n, k = self.rate.shape
        bases = self.bases
        slopes = np.diff(self.logarithm) / np.diff(bases)
        least = max(0.0, float((self.left - self.rounds * self.length * self.rate.max(axis=1)).max()))
        last = np.flatnonzero(self.left > least) if self.makespan else np.array([], dtype=np.int64)
        size = n * (len(bases) + k + 1) * k * (k + 1) * k // 2
        concave = bases[0] == 0 and bases[-1] == 1 and (slopes[1:] <= slopes[:-1]).all()
        if not concave or len(last) > MOST_LAST or size > MOST_NUMBERS:
            return None
        progress, worth, taken = self._options(weight)
        gpus = taken * self.gpus[:, None, None]
        there = (self.rounds * self.capacity).astype(float)
        group = np.arange(n) % GROUPS
        kept: list[_Response] = []
        choice, bound = np.zeros(n, dtype=np.int64), np.inf
        constant = self.makespan * float(self.left.max())  # the program's objective has it, and its gap is meant
        for _ in range(MOST_TURNS):
            time_left()
            at = np.arange(n), choice
            kept.append(_Response.of(taken[at], progress[at], worth[at], gpus[at], group, last))
            price, longest, value, part = _mixed(kept, there, self.left[last], least, self.makespan)
            # not as a product of matrices, which is rounded in another way on each processor
            net = worth - sum(gpus[:, :, each_type] * each for each_type, each in enumerate(price.tolist()))
            net[last] += longest[:, None] * progress[last]
            choice = net.argmax(axis=1)
            best = net[np.arange(n), choice].sum() + (price * there).sum()
            paid = (longest * self.left[last]).sum() + (self.makespan - longest.sum()) * least
            bound = min(bound, float(best - paid))
            if bound - value <= gap * max(abs(bound + constant), 1e-300):
                mine = part[:, group]  # (turns, n)
                return self._as_solution(
                    program,
                    sum(each[:, None] * one.rounds for each, one in zip(mine, kept, strict=True)),
                    sum(each * one.progress for each, one in zip(mine, kept, strict=True)),
                    bound + constant,
                )
        return None

    def _options(self, weight: Array) -> tuple[Array, Array, Array]:
        """Return what each job may do in m ways: progress (n, m), what it is worth (n, m), and rounds (n, m, k).

        They are the corners of what can be done: progress up to one of the bases of the logarithm, or all that a type
        allows; on one type, or on two that together take the whole window. What is impossible is worth minus infinity.
        """
        n = len(self)
        most = np.minimum(self.most, self.rounds * self.length * self.rate.max(axis=1))[:, None]
        part, gain = self.part[:, None], self.gain[:, None]
        corners = np.hstack(((self.bases - part) / gain, self.rounds * self.length * self.rate, most))
        progress = np.clip(corners, 0.0, most)
        reached = np.interp(part + progress * gain, self.bases, self.logarithm)
        worth = (reached - np.log(self.origin)) * (weight / (n * self.rounds))[:, None]
        ways = list(self._ways(progress / self.length))
        return (
            np.tile(progress, len(ways)),
            np.hstack([np.where(able, worth, -np.inf) for able, _ in ways]),
            np.concatenate([taken for _, taken in ways], axis=1),
        )

    def _ways(self, needed: Array) -> Iterator[tuple[Array, Array]]:
        """Yield for each way which progress is possible, and the rounds; on the fastest type it takes ``needed``."""
        rate, k = np.where(self.allowed, self.rate, 0.0), self.rate.shape[1]
        for gpu_type in range(k):
            speed = rate[:, gpu_type, None]
            able = needed <= self.rounds * speed  # no progress at all is possible on each
            taken = np.zeros((*needed.shape, k))
            taken[:, :, gpu_type] = np.divide(needed, speed, out=np.zeros_like(needed), where=able & (speed > 0))
            yield able, taken
        for one, other in combinations(range(k), 2):
            slow, fast = (np.where(rate[:, one] <= rate[:, other], a, b) for a, b in ((one, other), (other, one)))
            low, high = (np.take_along_axis(rate, at[:, None], axis=1) for at in (slow, fast))
            able = (low > 0) & (low < high) & (needed > self.rounds * low) & (needed <= self.rounds * high)
            on_fast = np.divide(needed - self.rounds * low, high - low, out=np.zeros_like(needed), where=able)
            taken = np.zeros((*needed.shape, k))
            for at, how_many in ((fast, on_fast), (slow, self.rounds - on_fast)):
                np.put_along_axis(taken, at[:, None, None], np.where(able, how_many, 0.0)[:, :, None], axis=2)
            yield able, taken

    def _as_solution(self, program: Program, taken: Array, progress: Array, bound: float) -> Solution:
        """Return rounds on each type (n, k), ``taken``, and progress (n,) of jobs as a solution of the ``program``."""
        bases = self.bases
        reached = self.part + progress * self.gain
        below = np.clip(np.searchsorted(bases, reached, side="right") - 1, 0, len(bases) - 2)
        part = np.clip((reached - bases[below]) / (bases[below + 1] - bases[below]), 0.0, 1.0)
        chord, rows = np.zeros((len(self), len(bases))), np.arange(len(self))
        chord[rows, below], chord[rows, below + 1] = 1 - part, part
        longest = np.maximum(self.left - progress, 0.0).max()
        values = {"x": taken, "planned": progress, "chord": chord, "longest": longest}
        found = written_out(program, Solution(Status.OPTIMAL, "the gap is small enough", "prices", values=values))
        return replace(found, objective=float(program.value(found.point)), bound=bound, values={})


def predicted(work: float, done: float, phases: Course, speed: float) -> tuple[float, float, float]:
    """Return the time that a job's progress will still take, that of all of it, and its mean gain so far.

    The job does ``speed`` of its work in a unit of time now. ``phases``: how many times as fast as at first it is, by
    the work done. It is known to have as many regimes as there are such factors, and nothing is known of their order:
    each is expected to make up an equal part of the
    ``work`` beforehand, and what has been done counts as much as what was expected (a Dirichlet prior). ``gain`` is the
    part of all progress made in a unit of time, the mean so far; before anything is done, that of now.

    Source: JobMetaData.py, `dirichlet_posterior_remaining_runtime`, and shockwave.py, `interpolate_epoch_duration`;
    there in whole epochs.

    >>> predicted(100, 50, ((50, 4),), 4)  # half of it at 1, and now at 4; the rest is expected half and half
    (25.000000000000007, 75.0, 0.01)
    """
    seen: dict[float, float] = {}
    begin, factor, now = 0.0, 1.0, 1.0
    for mark, following in ((float(mark), float(each)) for mark, each in (*phases, (max(done, work), 1.0))):
        seen[factor] = seen.get(factor, 0.0) + max(min(done, mark) - begin, 0.0)
        now = factor if begin <= done else now
        begin, factor = mark, following
    time = {factor: now / (speed * factor) for factor in seen}
    coming = {factor: max(work * (work / len(seen) + got) / (work + done) - got, 0.0) for factor, got in seen.items()}
    spent = sum(got * time[factor] for factor, got in seen.items())
    mean = sum(part * time[factor] for factor, part in coming.items()) / sum(coming.values())
    left = (work - done) * mean
    return left, spent + left, (done / spent if done else speed) / work


@dataclass(frozen=True, eq=False)
class _Response:
    """What n jobs do at some prices: ``rounds`` (n, k) and ``progress`` (n,).

    By group: ``worth`` (g,), ``gpus`` (g, k), and ``last`` (g, b), the progress of those who may be the last to end.
    """

    rounds: Array
    progress: Array
    worth: Array
    gpus: Array
    last: Array

    @classmethod
    def of(cls, rounds: Array, progress: Array, worth: Array, gpus: Array, group: Array, last: Array) -> _Response:
        """Return the response with so many rounds on each type (n, k), progress, worth (n,) and GPUs (n, k)."""
        ahead = np.zeros((GROUPS, len(last)))
        ahead[group[last], np.arange(len(last))] = progress[last]
        return cls(
            rounds,
            progress,
            np.bincount(group, weights=worth, minlength=GROUPS),
            np.stack([np.bincount(group, weights=each, minlength=GROUPS) for each in gpus.T], axis=1),
            ahead,
        )


def _mixed(
    kept: list[_Response], there: Array, left: Array, least: float, makespan: float
) -> tuple[Array, Array, float, Array]:
    """Return the best mixture of responses: prices of GPUs and of the last jobs' progress, worth, parts (turns, g)."""
    p = Formulation("mixture")
    part = p.variable("part", (len(kept), GROUPS), lower=0)
    longest = p.variable("longest", lower=least)
    p.maximize((part * np.array([each.worth for each in kept])).sum() - makespan * longest)
    for gpu_type, gpus in enumerate(there):
        used = np.array([each.gpus[:, gpu_type] for each in kept])
        p.constrain(f"gpus {gpu_type}", (part * used).sum() <= gpus)
    for at, time in enumerate(left):
        ahead = np.array([each.last[:, at] for each in kept])
        p.constrain(f"last {at}", (part * ahead).sum() + longest >= time)
    p.constrain("whole", part.sum(axis=0) == 1)
    program = p.program()
    solution = Highs().solve(program).require_optimal()
    dual = np.asarray(solution.dual, dtype=float)
    price = np.maximum(dual[: len(there)], 0.0)
    last = np.maximum(-dual[len(there) : len(there) + len(left)], 0.0)
    parts = np.maximum(np.asarray(program.variable("part", solution.point), dtype=float), 0.0)
    return price, last, float(solution.objective or 0), parts / parts.sum(axis=0)
