"""Shockwave: every few rounds a window of rounds is planned at once, for welfare, finish times and makespan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairopt.backends import Capability, Options, Session
from fairopt.backends.solution import Solution, Status
from fairopt.backends.trust import trusted
from fairopt.models.shockwave.window import BASES, ORIGIN, PlanningWindow
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem.numbers import within
from fairopt.problem.queue import Queue
from fairopt.program import Array, Program
from fairopt.simulation import Consolidated, Placement, by_throughput, choose, placed

#: A job that has less than a round left counts with this power of its ratio.
LAST_ROUND_POWER = 100
#: By prices the gap is at most this.
PRICED = 1e-7
#: Larger weights of a job say nothing more, and no solver keeps its tolerance with them.
MOST_WEIGHT = 1e6


@dataclass(frozen=True)
class FinishTarget:
    """When a job would finish on an equal share: the ``latest`` estimate, made in round ``at``.

    ``area``: the sum over past rounds, from round ``since``, of the estimate that held in each.
    """

    since: int
    at: int
    latest: float
    area: float = 0.0

    def mean(self, index: int, momentum: float) -> float:
        """Return the target in round ``index``: mostly the mean over rounds, and the latest estimate for the rest.

        Source: shockwave.py, `finish_time_momentumed_average`.
        """
        rounds = index - self.since
        if not rounds:
            return self.latest
        mean = (self.area + (index - self.at) * self.latest) / rounds
        return momentum * mean + (1 - momentum) * self.latest

    def estimated(self, index: int, latest: float) -> FinishTarget:
        """Return the target after another estimate in round ``index``."""
        return FinishTarget(self.since, index, latest, self.area + (index - self.at) * self.latest)


@dataclass(frozen=True)
class WindowPlan:
    """What is planned: for each coming round the type of each job that runs, by name; and the jobs' targets.

    ``present`` and ``capacity`` are those that it was made for: it is made again where they change. ``age``: the rounds
    of it that have been played.
    """

    rounds: tuple[Mapping[str, int], ...] = ()
    targets: Mapping[str, FinishTarget] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    capacity: tuple[int, ...] = ()
    age: int = 0


@dataclass(frozen=True)
class Shockwave(Policy):
    """A window of rounds is planned by an integer program; it is planned anew when a job comes or goes.

    The program maximises the sum of the logarithms of the jobs' progress at the window's end, less a penalty on the
    longest time that is left then. First every job must be able to finish in time: at its target, the time at which it
    would finish with 1/N of the GPUs, averaged over the rounds that it has seen. Where that is impossible, jobs that
    are projected to be late weigh more, by a power of how late, and come first in the window. GPUs that the plan leaves
    idle go to the jobs with the longest remaining time.

    * ``window``: T, rounds. ``again``: a window is planned anew after so many of them, None for all (the source: 8).
      ``makespan``: k, the penalty for a unit of the trace's time (the source: 1e-3 a second).
    * ``epoch``: the work of an epoch: a job's progress counts in whole epochs only, as in the source. 0: exactly.
    * ``power``: lambda, the power of the ratio rho of projected finish to target; ``most_late``: the rho above which a
      job is late. ``momentum``: the part of the mean in a target.
    * ``bases``, ``origin``: the logarithm of progress is taken as its chords between the bases, and that of ``origin``
      at 0. ``ranked``: whether late jobs come first in the window.
    * ``together``: rounds of a window are not told apart in the program, and are filled afterwards as far as gangs fit;
      else each has its own binary variables, as in the source, which can take minutes.
    * ``most_whole``: with more jobs than this rounds that are taken together need not be whole, so that the program is
      linear. That is less fair (docs/validation.md); on several types more take minutes. None for no such
      limit.
    * ``priced``: the optimum of a linear program is found by `prices`, where no job is held to its target; else, and
      where that ends without one, by the backend. ``gap``: the relative gap at which HiGHS may stop.
    * ``placement``: how hosts are chosen.

    Readings. The source has one GPU type: here a job runs on one type in a round, and times are those on its fastest
    type. What a job whose speed changes still takes is `predicted` from the speeds that it had. The share 1/N counts
    jobs, not GPUs, as in the code. The code stops its solver after 15 s; here the gap alone stops it, so that runs can
    be repeated. Targets are estimated again where jobs or GPUs have changed.

    Source: Shockwave, NSDI 2023; its code, scheduler/shockwave.py and configurations/tacc_32gpus.json.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(Shockwave(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of shockwave, 600 to 900: 2 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "shockwave"
    source = "Shockwave, NSDI 2023, Sec. 6"
    methods = ()
    needs = frozenset({Capability.INTEGERS})
    states = (WindowPlan, FinishTarget)
    traits = frozenset({Trait.PROGRAM, Trait.ONE_TYPE, Trait.WORK_CONSERVING, Trait.NAMELESS})
    window: int = within(20, least=1)
    again: int | None = within(8, least=1)
    makespan: float = within(1e-3, least=0)
    power: float = within(12.0, least=0)
    most_late: float = within(1.0, least=0)
    momentum: float = within(0.9, least=0, most=1)
    epoch: float = within(0.0, least=0)
    bases: Sequence[float] = BASES
    origin: float = ORIGIN
    ranked: bool = True
    together: bool = True
    most_whole: int | None = within(100, least=0)
    priced: bool = True
    gap: float = within(1e-3, least=0)
    placement: Placement = field(default_factory=Consolidated)

    @property
    def solver_options(self) -> Options:
        """Options for the default backend: the source's relative gap."""
        return Options(gap=self.gap)

    def decide(self, problem: Queue, state: WindowPlan, solve: Session) -> Schedule:
        """Plan a window where there is none, and carry out its first round; see `Policy.decide`."""
        present = tuple(problem.jobs.names[row] for row in problem.able)
        capacity = tuple(problem.capacity.tolist())
        answer: dict[str, Any] = {}
        same = (present, capacity) == (state.present, state.capacity)
        if present and (not state.rounds or not same or state.age == self.again):
            jobs = self._window(problem)
            targets = state.targets if same and state.targets else self._targets(problem, jobs, state)
            rounds, answer = self._planned(problem, jobs, targets, solve)
            state = WindowPlan(rounds, targets, present, capacity)
        elif not present:
            state = WindowPlan()
        now = state.rounds[0] if state.rounds else {}
        return Schedule(
            self.name,
            problem,
            placed(problem, self._requests(problem, now), self.placement),
            state=replace(state, rounds=state.rounds[1:], age=state.age + 1),
            **answer,
        )

    def _window(self, queue: Queue) -> PlanningWindow:
        return PlanningWindow.of(queue, self.window, self.makespan, self.bases, self.origin, self.epoch)

    def _requests(self, queue: Queue, now: Mapping[str, int]) -> Any:
        """Return who runs: the planned jobs on their types, then the others by falling time left.

        Source: shockwave.py, `construct_schedules` (n_idle_workers).
        """
        names, jobs = queue.jobs.names, self._window(queue)
        left = dict(zip(jobs.rows, jobs.left.tolist(), strict=True))
        order = sorted(jobs.rows, key=lambda row: (names[row] not in now, -left[row], row))

        def gpu_types(queue: Queue, row: int) -> Sequence[int]:
            return [now[names[row]]] if names[row] in now else by_throughput(queue, row)

        return choose(queue, order, gpu_types=gpu_types)

    def _targets(self, queue: Queue, jobs: PlanningWindow, state: WindowPlan) -> dict[str, FinishTarget]:
        """Return each job's target, with a fresh estimate. Source: shockwave.py, `finish_time_uniform_share`."""
        targets = {}
        share = self._share(queue, jobs)
        for row, whole in zip(jobs.rows, jobs.whole.tolist(), strict=True):
            name, estimate = queue.jobs.names[row], float(queue.jobs.arrival[row]) + whole / share
            known = state.targets.get(name)
            targets[name] = (
                FinishTarget(queue.index, queue.index, estimate)
                if known is None
                else known.estimated(queue.index, estimate)
            )
        return targets

    def _share(self, queue: Queue, jobs: PlanningWindow) -> float:
        return min(1.0, float(queue.capacity.sum()) / len(jobs))

    def _planned(
        self, queue: Queue, jobs: PlanningWindow, targets: Mapping[str, FinishTarget], solve: Session
    ) -> tuple[tuple[Mapping[str, int], ...], dict[str, Any]]:
        """Return the rounds of a window and the evidence for them, by field of the schedule."""
        names = [queue.jobs.names[row] for row in jobs.rows]
        target = np.array([targets[name].mean(queue.index, self.momentum) for name in names])
        share, length, now = self._share(queue, jobs), float(queue.length), float(queue.now)
        slack = (target * self.most_late - now - self.window * length) * share
        program, solution = self._solved(jobs, np.ones(len(jobs)), slack, solve)
        in_time = solution is not None
        weight = np.ones(len(jobs))
        if solution is None:
            late = (now + jobs.left / share) / target
            power = np.where(jobs.left < length, LAST_ROUND_POWER, self.power)
            with np.errstate(over="ignore"):
                weight = np.where(late > self.most_late, np.minimum(late**power, MOST_WEIGHT), 1.0)
            program, solution = self._solved(jobs, weight, None, solve)
        assert program is not None
        assert solution is not None
        x = np.asarray(program.variable("x", solution.point), dtype=float)
        if self.together:
            priority = weight if self.ranked else np.ones(len(jobs))
            x = jobs.filled(x[:, :, 0], priority)
        else:
            x = x > 1 / 2
        if not self.together and not in_time and self.ranked and self.window > 1:
            counts = x.sum(axis=2)
            order = jobs.ranked(counts, weight)
            x = np.asarray(order.variable("x", solve.optimum(order).point) > 1 / 2)
        rounds = tuple(
            {names[at]: int(gpu_type) for at, gpu_type in np.argwhere(x[:, :, number]).tolist()}
            for number in range(self.window)
        )
        costs = {
            "objective": float(solution.objective or 0),
            "time left": float(program.variable("longest", solution.point)),
            "in time": int(in_time),
        }
        return rounds, {"program": program, "solution": solution, "costs": costs}

    def _solved(
        self, jobs: PlanningWindow, weight: Array, slack: Array | None, solve: Session
    ) -> tuple[Program | None, Solution | None]:
        """Return the window's program and its optimum, None where ``slack`` (n,) cannot be kept."""
        if slack is not None and (slack < 0).any():  # a job cannot finish in time whatever is planned
            return None, None
        whole = not self.together or self.most_whole is None or len(jobs) <= self.most_whole
        program = jobs.program(weight, slack, together=self.together, whole=whole)
        by_prices = not whole and slack is None and self.priced
        found = jobs.priced(program, weight, min(self.gap, PRICED)) if by_prices else None
        solution = solve(program) if found is None else found
        if slack is not None and solution.status is Status.INFEASIBLE:
            return program, None
        trusted(program, solution)
        return program, solution
