"""FFT: in each round an integer program weighs completion times, switching costs and compensation for unfairness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import perf_counter
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fairopt.backends import Capability, Method, Session
from fairopt.deadline import left
from fairopt.errors import BadInput
from fairopt.methods.gang_assignment import IDLE, solve_gangs, usable_gpus
from fairopt.methods.result import duals_of
from fairopt.models.fft.placement import HierarchicalPlacement
from fairopt.models.fft.program import OneRound, UsableGpus, choices, types_of
from fairopt.policy import Policy, Schedule, Seconds, Trait
from fairopt.problem import exact
from fairopt.problem.numbers import shown, within
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array, Number, Program
from fairopt.simulation import Mechanics, Placement, placed
from fairopt.simulation.placement import Requests


@dataclass(frozen=True)
class FFTState:
    """FFT's state between rounds, by the names of the jobs that were present and fit some type.

    * ``compensation``: rho_j, in units of the job's work. ``coefficient``: mu_j, a ratio, of the last round.
    * ``fair_end``: tau_j, in the trace's unit of time; its keys are A(t) of the last round.
    * ``prices`` (k,), ``reward``: the multipliers of the last round's program, if the next one starts from them.

    The type on which a job ran last is in `Queue.last`, which `run` keeps.

    Source: FFT Sec. 4.2.2, Eq. (5).
    """

    compensation: Mapping[str, Number] = field(default_factory=dict)
    coefficient: Mapping[str, Number] = field(default_factory=dict)
    fair_end: Mapping[str, Number] = field(default_factory=dict)
    prices: tuple[float, ...] = ()
    reward: float = 0.0


#: The type on which each job runs (n,), `IDLE` for none; the state; and the evidence for the schedule, by field.
Answer: TypeAlias = tuple[Array, FFTState, dict[str, Any]]


@dataclass(frozen=True)
class FFT(Policy):
    """The schedule of least cost phi + s - rho theta that keeps as many GPUs busy as possible: Eq. (6) with (1), (7).

    Time counts in rounds: theta is work per round, t - a_j rounds since the arrival, parts of rounds included. Options:

    * ``restart``: the cost of a switch besides the transfer of the state, in the trace's unit of time; the paper's s is
      the transfer alone.
    * ``remaining``: the volume d_j W_j / theta counts the remaining work. The paper prints all work, W_j, although the
      text compares the result with shortest remaining service first.
    * ``pauses``: a job that did not run in the last round also pays for coming back to its last type. The paper's s
      depends on the type at t - 1, which a paused job does not have. Yet its state lies on its last type and does not
      move.
    * ``in_rounds``: the compensation counts work in rounds on the job's fastest type. As printed, rho theta is in
      squares of the job's own unit of work, so a job that counts steps instead of epochs is compensated more.
    * ``whole_gpus``, ``from_now``: readings of tau_j, see `fair_end`.
    * ``served``: the work of a round in Eq. (5). None counts a full round, theta_j^i, as printed: loading and spreading
      over hosts are not subtracted. A `Mechanics` counts the work after loading only, at the speed that the hosts allow
      (Sec. 2.2: what migration takes off).
    * ``usable``: K(t); by default exact, the most GPUs that whole gangs on allowed types keep busy.
    * ``placement``: how hosts are chosen. ``gap``: the relative gap at which our own method may stop. ``warm_start``:
      whether it starts from the last round's multipliers, which it drops if they are far off. The cost is the same, but
      it may choose another schedule of equal cost.

    The program leaves out jobs that hold leases, and their GPUs; ``costs`` of a schedule counts them. The own method
    works in floats and proves its optimum (``evidence`` holds bound, gap and multipliers), which
    `fairopt.evidence.certify_gangs` proves in fractions; a backend solves the program itself.

    Source: FFT (ICS 2025), Sec. 4.

    >>> from fairopt import run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> list(run(FFT(), philly_trace(), philly_cluster(), length=300, rounds=3))[-1]
    <Round: 2 of fft, 600 to 900: 1 ran, 0 waited, 1 completed>
    """

    problem = Queue
    name = "fft"
    source = "FFT, ICS 2025, Sec. 4, Eq. (6)"
    #: Prices of the types, reduced-cost fixing and a small integer program (`fairopt.methods.gang_assignment`).
    methods = (Method("gang-assignment"),)
    needs = frozenset({Capability.INTEGERS})
    traits = frozenset({Trait.PROGRAM, Trait.WORK_CONSERVING, Trait.ONE_TYPE, Trait.SAME_IN_FLOATS, Trait.NAMELESS})
    states: ClassVar[tuple[type, ...]] = (FFTState,)
    restart: Number = within(0, least=0)
    remaining: bool = False
    pauses: bool = False
    in_rounds: bool = False
    whole_gpus: bool = False
    from_now: bool = False
    served: Mechanics | None = None
    usable: UsableGpus = usable_gpus
    placement: Placement = field(default_factory=HierarchicalPlacement)
    gap: float = within(0.0, least=0)
    warm_start: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "restart", exact(self.restart, "fft, restart"))

    def fair_end(self, queue: Queue, count: int) -> Array:
        """Return tau_j (n,): when each job would complete on a part 1/``count`` of every type, alone, never preempted.

        It stays on one type: the one on which its part makes it fastest. All hosts count, also those that are down.
        GPUs are divisible: a job has Y_i/|A(t)| of type i, and its gang's speed in proportion, at most 1, which is the
        same as the whole gang for a part of the time. With ``whole_gpus`` it has floor(Y_i/|A(t)|), at least one. The
        paper does not say what a gang does on less than its GPUs.

        tau_j = a_j + W_j / speed, as if the job had had its present part since its arrival: W_j / (tau_j - a_j), the
        work due in a round, is then the part's work in a round. With ``from_now`` it is now plus the time that the part
        takes for the remaining work. Meaningless for jobs that fit no type.

        Source: FFT Sec. 4.2.2 and its footnote 2.
        """
        now: Any = queue.now
        speed = np.where(queue.fits, queue.jobs.throughput * self._fair_part(queue, count), now * 0).max(axis=1)
        speed = np.where(speed > 0, speed, 1)
        begun, work = (now, queue.remaining) if self.from_now else (queue.jobs.arrival, queue.jobs.work)
        return np.asarray(begun + work / speed)

    def _fair_part(self, queue: Queue, count: int) -> Array:
        """Return the fraction of each job's gang (n, k), at most 1, that a part 1/``count`` of each type can run."""
        gpus, capacity = queue.jobs.gpus[:, None], queue.cluster.capacity[None, :]
        one = queue.number(1)
        part = np.maximum(capacity // count, 1) * one / gpus if self.whole_gpus else capacity * one / (count * gpus)
        return np.asarray(np.minimum(part, 1))

    def refreshed(self, queue: Queue, state: FFTState) -> FFTState:
        """Return the state for the jobs present: new jobs owe and are owed nothing, and jobs that left are dropped.

        If a job came or went since the last round, tau_j is estimated again for all jobs. A(t) are those that fit.
        """
        rows = queue.fitting
        names = [queue.jobs.names[row] for row in rows]
        if state.fair_end.keys() == set(names):
            return state
        zero = queue.now * 0
        if not rows:
            return FFTState(prices=state.prices, reward=state.reward)
        return replace(
            state,
            compensation={name: state.compensation.get(name, zero) for name in names},
            coefficient={name: state.coefficient.get(name, zero) for name in names},
            fair_end=dict(zip(names, self.fair_end(queue, len(rows))[rows].tolist(), strict=True)),
        )

    def one_round(self, problem: Queue, state: FFTState) -> OneRound:
        """Return the parts of the round's program, after ``state``."""
        allowed = choices(problem)
        return OneRound.of(
            problem,
            self.refreshed(problem, state).compensation,
            allowed,
            self.usable(problem.jobs.gpus, allowed, problem.room),
            restart=self.restart,
            remaining=self.remaining,
            pauses=self.pauses,
            in_rounds=self.in_rounds,
        )

    def formulate(self, problem: Queue, state: FFTState) -> Program:
        """Return the program of the round after ``state``, in the numbers of ``problem``."""
        return self.one_round(problem, state).program()

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Decide types by the program and hosts by the placement, and update the compensation."""
        begun = perf_counter()
        known = self.refreshed(problem, state)
        one = self.one_round(problem, known)
        answer = _by_back_end(one, known, begun, solve) if solve.method is None else self._by_gangs(one, known, begun)
        type_of, after, proof = answer
        rows = np.flatnonzero(type_of >= 0)
        placements = placed(problem, Requests(rows, type_of[rows]), self.placement)
        notes = {}
        if len(placements) < len(rows) + np.count_nonzero(problem.holds):
            notes = {row: "chosen to run, but not placed" for row in rows.tolist() if row not in placements}
        return Schedule(
            policy=self.name,
            queue=problem,
            placements=placements,
            state=self.advanced(problem, after, placements),
            costs=one.costs(placements),
            notes=notes,
            **proof,
        )

    def advanced(self, queue: Queue, state: FFTState, placements: Mapping[int, Spots]) -> FFTState:
        """Return the state after a round: the recursion (5) for every job in ``state``.

        mu_j(t) = (t - a_j)/(tau_j - a_j), and rho_j(t+1) = max(0, rho_j + mu_j (W_j/(tau_j - a_j) - work in the
        round)), with times in rounds. Errors: `BadInput` where a tau_j does not lie after the job's arrival.

        Source: FFT Eq. (5).
        """
        jobs = queue.jobs
        rows = np.array([row for row, name in enumerate(jobs.names) if name in state.fair_end], dtype=np.int64)
        names = [jobs.names[row] for row in rows.tolist()]
        end, owed = (
            np.array([each[name] for name in names], dtype=queue.remaining.dtype)
            for each in (state.fair_end, state.compensation)
        )
        span = end - jobs.arrival[rows]
        for at in np.flatnonzero(span <= 0)[:1].tolist():
            raise BadInput(
                f"got {shown(end[at])} for an arrival at {shown(jobs.arrival[rows[at]])}",
                place=f"job {names[at]!r}, fair_end (tau)",
                remedy="A fair end lies after the arrival: work is positive and speeds are finite",
            )
        mu = (queue.now - jobs.arrival[rows]) / span
        due = jobs.work[rows] * queue.length / span
        more = owed + mu * (due - self._work(queue, placements)[rows])
        more = np.where(more > 0, more, queue.remaining[rows] * 0)
        after, coefficient = (dict(zip(names, each.tolist(), strict=True)) for each in (more, mu))
        return replace(state, compensation=after, coefficient=coefficient)

    def _work(self, queue: Queue, placements: Mapping[int, Spots]) -> Array:
        """Return the work that each job does in a round (n,), as Eq. (5) counts it: see ``served``."""
        done = queue.remaining * 0
        if self.served is None:
            on = types_of(queue, placements)
            runs = np.flatnonzero(on >= 0)
            done[runs] = queue.jobs.throughput[runs, on[runs]] * queue.length
            return done
        for row, spots in placements.items():
            if spots:
                loading = min(self.served.setup(queue, row, spots), queue.length)
                done[row] = self.served.speed(queue, row, spots) * (queue.length - loading)
        return done

    def _by_gangs(self, one: OneRound, state: FFTState, begun: float) -> Answer:
        gangs = one.gangs()
        start = None
        if self.warm_start and state.prices:
            start = {"capacity": -np.array(state.prices), "work_conserving": np.array(state.reward)}
        built = perf_counter()
        found = solve_gangs(gangs, start=start, gap=self.gap, time_limit=left()).require_optimal()
        spent = perf_counter() - built
        if self.warm_start:
            down, reward = duals_of(found, "capacity", "work_conserving")
            state = replace(state, prices=tuple((-down).tolist()), reward=float(reward))
        type_of = found.values["type_of"]
        x = (type_of[:, None] == np.arange(len(gangs.capacity))[None, :]).astype(float).ravel()
        solution = replace(found, x=x, seconds=spent)
        seconds = Seconds(build=built - begun, solve=spent)
        return type_of, state, {"solution": solution, "evidence": found, "seconds": seconds}


def _by_back_end(one: OneRound, state: FFTState, begun: float, solve: Session) -> Answer:
    program = one.program().as_(solve.number)
    built = perf_counter()
    solution = solve.optimum(program)
    x = np.asarray(program.variable("x", solution.point) > Fraction(1, 2), dtype=bool)
    type_of = np.where(x.any(axis=1), x.argmax(axis=1), IDLE)
    seconds = Seconds(build=built - begun, solve=perf_counter() - built)
    proof = {"program": program, "solution": solution, "seconds": seconds}
    return type_of, replace(state, prices=(), reward=0.0), proof
