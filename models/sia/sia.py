"""Sia: each round an integer program chooses a GPU type and a number of GPUs for each job."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from fairopt.backends import Capability, Options, Session
from fairopt.models.common.schedulers import Adapted
from fairopt.policy import Policy, Schedule, Trait
from fairopt.problem import exact
from fairopt.problem.numbers import within
from fairopt.problem.queue import Queue
from fairopt.program import Array, Formulation, Program
from fairopt.simulation import Consolidated, Placement, Request, placed

#: No job has run before.
NOTHING = Adapted()
#: A cost above this counts as this, as in the source's code (sia_goodput_clip_val).
MOST_COST = 3000.0


@dataclass(frozen=True, eq=False)
class Configurations:
    """What jobs may run with: one entry for each of c triples of job, type and number of GPUs.

    ``row``, ``gpu_type``, ``gpus`` (c,); ``goodput`` (c,): relative to the job's slowest, which counts as many as it
    has GPUs; ``now`` (c,) bool: the one that the job ran with in the round before.

    Source: Sia, SOSP 2023; sia.py, `optimize_mip` (scaled so that the least goodput is the number of replicas).
    """

    row: Array
    gpu_type: Array
    gpus: Array
    goodput: Array
    now: Array

    @classmethod
    def of(cls, queue: Queue, past: Adapted = NOTHING, growth: int | None = None) -> Configurations:
        """Return the configurations of the jobs without a lease that fit the GPUs without one, in their ``growth``."""
        jobs, row = queue.jobs, np.flatnonzero(~queue.holds)
        gpus, table = jobs.gpus[row], jobs.throughput[row].astype(float)
        if jobs.profiles:
            every = [jobs.speeds(each, queue.jobs.work[each] - queue.remaining[each]) for each in row.tolist()]
            sizes = [
                (each, gpus, speeds[gpus])
                for each, speeds in zip(row.tolist(), every, strict=True)
                for gpus in past.sizes(queue, each, growth)
            ]
            row, gpus = np.array([size[:2] for size in sizes], dtype=np.int64).reshape(-1, 2).T
            table = np.array([size[2] for size in sizes], dtype=float).reshape(len(row), len(jobs.types))
        at, gpu_type = np.nonzero(queue.suits[row] & (table > 0) & (gpus[:, None] <= queue.room))
        row, gpus, speed = row[at], gpus[at], table[at, gpu_type]
        rising = np.lexsort((gpus, gpu_type, speed, row))
        _, first, own = np.unique(row[rising], return_index=True, return_inverse=True)
        slowest = np.empty_like(row)
        slowest[rising] = rising[first][own]
        last = np.zeros(len(queue), dtype=np.int64)
        for each in np.flatnonzero(queue.running).tolist():
            last[each] = sum(count for _, count in queue.last[each])
        now = (last[row] == gpus) & (queue.last_type[row] == gpu_type)
        return cls(row, gpu_type, gpus, speed / speed[slowest] * gpus[slowest], now)


@dataclass(frozen=True, eq=False)
class _Alike:
    """Jobs that may run with the same at the same cost, run with the same now, and load or not, are of one kind.

    Of K kinds with c configurations:

    * ``at`` (c,): the configurations of the first job of each kind, in the table of all; ``of`` (c,): their kinds.
    * ``count`` (K,): jobs of each kind. ``places``, ``there`` (K, m): which of the c each kind has, and where there are
      fewer than m, no more.
    * ``jobs``: for each kind the configurations (count, m) of its jobs.
    """

    choices: Configurations
    at: Array
    of: Array
    count: Array
    places: Array
    there: Array
    jobs: list[Array]

    @classmethod
    def find(cls, queue: Queue, choices: Configurations, costs: Array) -> _Alike:
        """Return the kinds of the jobs, by their first jobs."""
        _, own, count = np.unique(choices.row, return_inverse=True, return_counts=True)
        order = np.argsort(own, kind="stable")
        cell = own[order], np.arange(len(own)) - np.repeat(np.cumsum(count) - count, count)
        table, there = np.zeros((2, len(count), count.max()), dtype=np.int64)
        table[cell], there[cell] = order, 1
        loading = choices.now & np.asarray(queue.setup > 0, dtype=bool)[choices.row]
        columns = (choices.gpu_type, choices.gpus, costs, choices.now, loading)
        marks = np.stack([column[table] * there for column in columns], axis=-1)
        marks = np.concatenate([marks.reshape(len(count), -1), there], axis=1)
        _, first, kind = np.unique(marks, axis=0, return_index=True, return_inverse=True)
        rank = np.argsort(np.argsort(first))  # kinds in the order of their first jobs
        first, kind = np.sort(first), rank[kind.reshape(-1)]
        has = there[first].astype(bool)
        at = table[first][has]
        places = np.zeros_like(has, dtype=np.int64)
        places[has] = np.arange(len(at))
        members = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
        return cls(
            choices=choices,
            at=at,
            of=np.nonzero(has)[0],
            count=np.bincount(kind),
            places=places,
            there=there[first],
            jobs=[table[each] for each in members],
        )

    def given(self, x: Array) -> list[int]:
        """Return the configurations with which jobs run, for so many jobs of each kind (c,); first jobs come first."""
        whole, chosen = np.rint(np.asarray(x, dtype=float)).astype(np.int64), []
        for jobs, places, there in zip(self.jobs, self.places, self.there, strict=True):
            begin = 0
            for slot in np.flatnonzero(there).tolist():
                end = begin + int(whole[places[slot]])
                chosen += jobs[begin:end, slot].tolist()
                begin = end
        return sorted(chosen)


@dataclass(frozen=True)
class Sia(Policy):
    """The choice of configurations with the best sum of goodputs to a power, where a restart has a price.

    A job's goodput on a type with a number of GPUs is its speed there, relative to its slowest. The program minimises
    the sum over jobs of goodput to the power p, and ``idle`` for each job that gets nothing; with p < 0 a job that is
    badly off counts more. A job that would change its configuration has its goodput multiplied by
    r = (T - N S) / (T + S), for its age T, its restarts N, and the time S of a restart.

    * ``power``: p, negative. ``idle``: lambda, more than the cost of any first allocation, which is at most 1.
    * ``restart``: S, in the trace's unit of time, of jobs whose profile has none. ``gap``: the relative gap at which
      HiGHS may stop.
    * ``growth``: a job gets at most so many times the GPUs that it has ever run with, and its least number at first;
      None for no such limit.
    * ``placement``: how hosts are chosen.

    Readings. Jobs are elastic by their profiles, and take the batch of the best goodput; of rigid jobs what is left is
    the choice of type. Goodputs are as given, where the source fits models of them. Jobs that load are left where they
    are, as in the source's code. Costs are not rounded to two digits, which the code does. Its rules for placement are
    those of ``placement``.

    Source: Sia, SOSP 2023; its code, sia-simulator/sia.py and simulator_config.py (p = -1/2, lambda = 1.1).

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(Sia(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of sia, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "sia"
    source = "Sia, SOSP 2023"
    methods = ()
    needs = frozenset({Capability.INTEGERS})
    states = (Adapted,)
    traits = frozenset({Trait.PROGRAM, Trait.ONE_TYPE, Trait.NAMELESS})
    power: float = within(-0.5, below=0)
    idle: float = within(1.1, above=1)
    restart: object = within(30, least=0)
    growth: int | None = within(2, least=1)
    gap: float = within(0.0, least=0)
    placement: Placement = field(default_factory=Consolidated)

    @property
    def solver_options(self) -> Options:
        """Options for the default backend."""
        return Options(gap=self.gap)

    def costs(self, queue: Queue, choices: Configurations, past: Adapted) -> Array:
        """Return the cost (c,) of each configuration: goodput times r to the power p."""
        pause = float(Fraction(exact(self.restart, "sia, restart")))
        factor = np.ones(len(queue))
        for row in np.flatnonzero(queue.running).tolist():
            if float(queue.now - queue.jobs.arrival[row]) >= past.pause(queue, row, pause) > 0:
                factor[row] = past.moved(queue, row, pause)
        goodput = choices.goodput * np.where(choices.now, 1.0, factor[choices.row])
        with np.errstate(divide="ignore"):
            return np.asarray(np.minimum(goodput**self.power, MOST_COST))

    def formulate(self, queue: Queue, kinds: _Alike, costs: Array) -> Program:
        """Return the program over whole ``x`` (c,): of each kind, how many jobs run with each configuration."""
        choices, at = kinds.choices, kinds.at
        p = Formulation("sia round")
        count = kinds.count[kinds.of]
        loading = choices.now[at] & np.asarray(queue.setup > 0, dtype=bool)[choices.row[at]]
        x = p.variable("x", at.shape, lower=loading * count, upper=count, integer=True)
        p.minimize(
            (costs[at] * x).sum() + self.idle * (int(kinds.count.sum()) - x.sum()),
            equation="sum_ic (r_ic G_ic)^p x_ic + lambda sum_i (n_i - sum_c x_ic)",
            source="Sia, SOSP 2023",
        )
        one = (x[kinds.places] * kinds.there).sum(axis=1)
        p.constrain("one_configuration", one <= kinds.count, equation="sum_c x_ic <= n_i", source="Sia, SOSP 2023")
        types = np.arange(len(queue.cluster.types))[:, None]
        used = np.asarray(types == choices.gpu_type[at][None, :], dtype=np.int64) * choices.gpus[at]
        p.constrain("capacity", used @ x <= queue.room, equation="sum_ic d_c x_ic <= Y_j", source="Sia, SOSP 2023")
        return p.program()

    def decide(self, problem: Queue, state: Adapted, solve: Session) -> Schedule:
        """Solve the round's program and place; see `Policy.decide`."""
        choices = Configurations.of(problem, state, self.growth)
        if not len(choices.row):
            return Schedule(self.name, problem, dict(problem.leased), state=state.after(problem, problem.leased))
        costs = self.costs(problem, choices, state)
        kinds = _Alike.find(problem, choices, costs)
        program = self.formulate(problem, kinds, costs)
        solution = solve.optimum(program)
        chosen = kinds.given(program.variable("x", solution.point))
        sizes, running = problem.jobs.gpus.copy(), problem.running.copy()
        for row, gpus, same in zip(choices.row[chosen], choices.gpus[chosen], choices.now[chosen], strict=True):
            sizes[row] = gpus
            running[row] &= same  # a job of another size cannot stay
        sized = replace(problem, jobs=replace(problem.jobs, gpus=sizes), running=running)
        requests = [Request(int(choices.row[at]), (int(choices.gpu_type[at]),)) for at in chosen]
        placements = dict(placed(sized, requests, self.placement))  # of `sized`, which says otherwise who has how many
        return Schedule(
            self.name,
            problem,
            placements,
            state=state.after(problem, placements),
            costs={"objective": float(solution.objective or 0)},
            program=program,
            solution=solution,
        )
