"""FFT: in each round an integer program weighs completion times, switching costs and compensation for unfairness."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import perf_counter
from typing import Any, ClassVar, TypeAlias

import numpy as np

from fairopt.backends import Capability, Method, Session
from fairopt.deadline import left
from fairopt.errors import require
from fairopt.methods.gang_assignment import IDLE, solve_gangs, usable_gpus
from fairopt.methods.result import duals_of
from fairopt.models.fft.fairness import FairPart, FFTState, FluidPart, FullRound, Served, advance, refreshed
from fairopt.models.fft.placement import HierarchicalPlacement
from fairopt.models.fft.program import OneRound, Terms, UsableGpus, choices, terms
from fairopt.policy import Policy, Schedule, Seconds, Trait
from fairopt.problem import exact
from fairopt.problem.queue import Queue
from fairopt.program import Array, Number, Program
from fairopt.simulation import Placement, Request, placed

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
    * ``fair_part``: how tau_j is estimated. ``served``: the work of a round in Eq. (5).
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
    restart: Number = 0
    remaining: bool = False
    pauses: bool = False
    in_rounds: bool = False
    fair_part: FairPart = field(default_factory=FluidPart)
    served: Served = field(default_factory=FullRound)
    usable: UsableGpus = usable_gpus
    placement: Placement = field(default_factory=HierarchicalPlacement)
    gap: float = 0.0
    warm_start: bool = True

    def __post_init__(self) -> None:
        restart = exact(self.restart, "fft, restart")
        require(restart >= 0, restart, "fft, restart", "Give a time, not negative")
        require(self.gap >= 0, self.gap, "fft, gap", "Give a relative gap, not negative")
        object.__setattr__(self, "restart", restart)

    def terms(self, problem: Queue, state: FFTState) -> Terms:
        """Return the terms of the objective for every job and type, after ``state``."""
        known = refreshed(problem, state, self.fair_part)
        return terms(
            problem,
            known.compensation,
            restart=self.restart,
            remaining=self.remaining,
            pauses=self.pauses,
            in_rounds=self.in_rounds,
        )

    def one_round(self, problem: Queue, state: FFTState) -> OneRound:
        """Return the parts of the round's program, after ``state``."""
        allowed = choices(problem)
        least = self.usable(problem.jobs.gpus, allowed, problem.room)
        return OneRound(problem, self.terms(problem, state), allowed, least)

    def formulate(self, problem: Queue, state: FFTState) -> Program:
        """Return the program of the round after ``state``, in the numbers of ``problem``."""
        return self.one_round(problem, state).program()

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        """Decide types by the program and hosts by the placement, and update the compensation."""
        begun = perf_counter()
        known = refreshed(problem, state, self.fair_part)
        one = self.one_round(problem, known)
        answer = _by_back_end(one, known, begun, solve) if solve.method is None else self._by_gangs(one, known, begun)
        type_of, after, proof = answer
        requests = [Request(row, (int(gpu_type),)) for row, gpu_type in enumerate(type_of) if gpu_type >= 0]
        placements = placed(problem, requests, self.placement)
        return Schedule(
            policy=self.name,
            queue=problem,
            placements=placements,
            state=advance(problem, after, placements, self.served),
            costs=one.terms.of(problem, placements),
            notes={each.row: "chosen to run, but not placed" for each in requests if each.row not in placements},
            **proof,
        )

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
