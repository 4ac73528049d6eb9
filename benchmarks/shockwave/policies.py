"""The seven policies of Shockwave's published results, each as its repository's simulation plays it.

Six of them are time fractions that Gavel's scheduler serves in rounds: they are computed again after 1000 s at the
earliest, and each job begins with half a round (`minimum_time_between_allocation_resets` and `_reset_time_run_so_far`
of scheduler.py). Three have objectives that are not those of the papers they are called after; they stand here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from fairopt.backends import Session
from fairopt.backends.solution import Solution, Status
from fairopt.benchmarks.shockwave.jobs import Row
from fairopt.models import GavelRounds, Shockwave
from fairopt.models.common.shares_of_queue import JobMarket
from fairopt.models.gavel.fairness import FinishTimeFairness
from fairopt.models.gavel.objectives import MaxMinShare, Objective, Shared
from fairopt.models.gavel.partitions import Normaliser
from fairopt.models.gavel.rounds import GavelState
from fairopt.policy import Policy
from fairopt.problem import Queue
from fairopt.program import Array, Program

#: By jobs of the trace: k and lambda of Shockwave (scheduler/configurations).
SETTINGS = {120: (1e-3, 12.0), 220: (1e1, 5.0), 460: (1e-3, 15.0), 900: (1e5, 5.0)}


class Given(Objective):
    """Shares by a rule, without a program."""

    def formulate(self, jobs: JobMarket) -> Program:
        """Refuse: there is no program."""
        raise NotImplementedError("it has no program")

    def shares(self, jobs: JobMarket, solve: Session, start: Any = None) -> Shared:
        """Return the shares by the rule."""
        values = {"share": self.rule(jobs)}
        return None, Solution(Status.OPTIMAL, "by a rule", "rule", values=values, effort={"programs": 0})

    def rule(self, jobs: JobMarket) -> Array:
        """Return the shares (n, 1), in GPUs."""
        raise NotImplementedError


@dataclass(frozen=True)
class EqualTime(Given):
    """Every job the same part of the time, GPUs over jobs, whatever its gang (gandiva_fair_proportional.py)."""

    def rule(self, jobs: JobMarket) -> Array:
        """Return the shares (n, 1)."""
        part = min(1.0, float(jobs.market.capacity.sum()) / len(jobs.rows))
        return np.asarray(jobs.market.demand, dtype=float)[:, None] * part


@dataclass(frozen=True)
class MostSteps(Given):
    """The most steps a second, whatever a step is worth (max_sum_throughput.py); who makes as many a GPU gets as much.

    ``steps``: steps a second of a gang, by the job's name and its epochs a second.
    """

    steps: Mapping[str, Mapping[float, float]] = field(default_factory=dict)

    def rule(self, jobs: JobMarket) -> Array:
        """Return the shares (n, 1)."""
        gang = np.asarray(jobs.market.demand, dtype=float)
        pace = np.asarray(jobs.market.speedup, dtype=float)[:, 0] * gang
        worth = np.empty(len(gang))
        for at, (name, each) in enumerate(zip(jobs.market.users, pace.tolist(), strict=True)):
            known = self.steps[name]
            worth[at] = known[min(known, key=lambda other: abs(other - each))] / gang[at]
        left, share = float(jobs.market.capacity.sum()), np.zeros(len(gang))
        for each in np.unique(worth)[::-1]:
            alike = worth == each
            share[alike] = gang[alike] * min(1.0, left / gang[alike].sum())
            left -= share[alike].sum()
        return share[:, None]


@dataclass(frozen=True)
class NearlyLeastMakespan(Given):
    """A makespan within 5% of the least, by halving, and a point inside of what meets it (min_total_duration.py).

    What a job needs is its remaining time over the makespan; the point is half way to where all GPUs are used.
    """

    def rule(self, jobs: JobMarket) -> Array:
        """Return the shares (n, 1)."""
        gang, room = np.asarray(jobs.market.demand, dtype=float), float(jobs.market.capacity.sum())
        time = np.asarray(jobs.remaining / jobs.fastest(), dtype=float)
        low, high = 100.0, 1e6
        while 1.05 * low < high:
            middle = (low + high) / 2
            meets = time.max() <= middle and (gang * time).sum() <= room * middle
            low, high = (low, middle) if meets else (middle, high)
        return _inside(np.minimum(time / high, 1.0), gang, jobs)


def _inside(need: Array, gang: Array, jobs: JobMarket) -> Array:
    """Return the shares half way from the parts of the time that are needed to those with which all GPUs are used."""
    more = gang * (1 - need)
    rest = max(0.0, min(float(jobs.market.capacity.sum()) - (gang * need).sum(), more.sum()))
    return np.asarray((need * gang + more * (rest / more.sum() / 2 if more.sum() else 0.0))[:, None])


@dataclass(frozen=True)
class Matching(Given):
    """A gang that has been matched keeps 1 / GPUs of the time, and the others are matched to GPUs (allox.py).

    ``before``: the fractions so far, by name. Only a job of one GPU takes one; a gang is matched anew each time, and
    loses nothing if it is not. Of those who wait the oldest are matched, a fifth, or as many as GPUs are free. All
    GPUs are alike: the best sequences are by falling time, and the last of each is the first to run.
    """

    before: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def rule(self, jobs: JobMarket) -> Array:
        """Return the shares (n, 1)."""
        gang = np.asarray(jobs.market.demand, dtype=float)
        part = np.array([float(self.before.get(name, (0.0,))[0]) for name in jobs.market.users])
        free = int(jobs.market.capacity.sum()) - np.count_nonzero(part == 1)
        rest = np.flatnonzero(part != 1)
        rest = rest[np.argsort(-np.asarray(jobs.elapsed, dtype=float)[rest], kind="stable")]
        rest = rest[: max(int(len(rest) / 5), free)]
        if free > 0:
            time = np.asarray(jobs.remaining / jobs.fastest(), dtype=float)
            falling = rest[np.argsort(-time[rest], kind="stable")]
            first = falling[max(0, len(falling) - free) :]
            part[first] = 1 / gang[first]
        return np.asarray((part * gang)[:, None])


@dataclass(frozen=True)
class SinceThen(FinishTimeFairness):
    """A job is compared with the time that its work so far took on the equal shares of then, and the rest on now's.

    ``spent``: the former, by name (`_cumulative_isolated_time` of finish_time_fairness.py).
    """

    spent: Mapping[str, float] = field(default_factory=dict)
    normaliser: Normaliser = Normaliser.ISOLATED

    def shares(self, jobs: JobMarket, solve: Session, start: Any = None) -> Shared:
        """Return a point inside of what reaches the least largest ratio, as a method of interior points does."""
        program, found = super().shares(jobs, solve)
        gang = np.asarray(jobs.market.demand, dtype=float)
        needed = jobs.remaining / jobs.fastest() / (found.objective * self.isolated(jobs) - jobs.elapsed)
        return program, replace(
            found, values={"share": _inside(np.minimum(np.asarray(needed, float), 1.0), gang, jobs)}
        )

    def isolated(self, jobs: JobMarket) -> Array:
        """Return the time that each job is compared with (n,)."""
        before = np.array([self.spent.get(name, 0.0) for name in jobs.market.users])
        return np.asarray(before + jobs.remaining / self.normaliser.of(jobs.market))


@dataclass(frozen=True)
class Isolated(GavelState):
    """With what each job left to do at the last renewal, its speed on its equal share then, and the time so far."""

    known: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class FairFinish(GavelRounds):
    """`SinceThen`, served in rounds."""

    states = (Isolated,)
    objective: Objective = field(default_factory=SinceThen)

    def _claims(self, queue: Queue, state: GavelState, solve: Session) -> tuple[GavelState, Shared | None]:
        jobs = JobMarket.of(queue)
        if jobs is None:
            return super()._claims(queue, state, solve)
        known = state.known if isinstance(state, Isolated) else {}
        left = dict(zip(jobs.market.users, map(float, jobs.remaining), strict=True))
        alone = dict(zip(left, map(float, Normaliser.ISOLATED.of(jobs.market)), strict=True))
        spent = {
            name: total + (before - left[name]) / speed
            for name, (before, speed, total) in known.items()
            if name in left
        }
        made, answer = replace(self, objective=SinceThen(spent=spent))._of_gavel(queue, state, solve)
        if made is state:
            return state, answer
        claims = {each.name: getattr(made, each.name) for each in fields(GavelState)}
        return Isolated(
            **claims, known={name: (left[name], alone[name], spent.get(name, 0.0)) for name in left}
        ), answer

    def _of_gavel(self, queue: Queue, state: GavelState, solve: Session) -> tuple[GavelState, Shared | None]:
        return super()._claims(queue, state, solve)


class AlloXInRounds(GavelRounds):
    """`Matching`, served in rounds."""

    def _claims(self, queue: Queue, state: GavelState, solve: Session) -> tuple[GavelState, Shared | None]:
        by_job = zip(*state.fraction, strict=True)
        before = {name: tuple(map(float, parts)) for name, parts in zip(state.jobs, by_job, strict=True)}
        how: dict[str, Any] = {"interval": self.interval, "head_start": self.head_start}
        return GavelRounds(objective=Matching(before), **how)._claims(queue, state, solve)


#: Gavel's scheduler renews time fractions after so many seconds at the earliest, and gives every job half a round.
GAVEL: dict[str, Any] = {"interval": 1000, "head_start": "1/2"}


def gavel(objective: Objective) -> GavelRounds:
    return GavelRounds(objective=objective, **GAVEL)


def policies(count: int, jobs: list[Row]) -> dict[str, Policy]:
    """Return the policies for a trace of so many ``jobs``, by their names in the repository."""
    steps = {
        str(at): {float(job.pace(batch)): float(job.speed[batch]) for batch in job.batches()}
        for at, job in enumerate(jobs)
    }
    k, power = SETTINGS[count]
    return {
        "shockwave": Shockwave(makespan=k, power=power, epoch=1, most_whole=None),
        "min_total_duration": gavel(NearlyLeastMakespan()),
        "finish_time_fairness": FairFinish(**GAVEL),
        "max_min_fairness": gavel(MaxMinShare()),
        "allox": AlloXInRounds(**GAVEL),
        "max_sum_throughput_perf": gavel(MostSteps(steps)),
        "gandiva_fair": gavel(EqualTime()),
    }
