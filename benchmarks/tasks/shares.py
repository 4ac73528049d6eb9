"""What the tasks of sharing have in common: which constraints there are, and what proves how good an answer can be.

Written in NumPy from the definitions, apart from the policies and solvers that are judged. An answer is the shares
(n, k). A reference is a bound that dual values prove: whoever found the values, the bound is computed here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairopt import allocate
from fairopt.backends import Backend, Highs
from fairopt.backends.exact import Exact
from fairopt.discovery import policy
from fairopt.errors import FairoptError
from fairopt.experiment.bench import Instance, Interval, Judgement, Task, require_small
from fairopt.policy import Allocation, Formulated
from fairopt.problem import Market
from fairopt.program import Program

Floats = NDArray[np.float64]
#: A bound is raised by this part of itself: more than the rounding errors of computing it.
ROUNDED = 1e-12
#: A gap between bound and what is reached that is as good as none; larger ones are tried to close with more effort.
CLOSED = 1e-10
#: Markets up to this many cells are solved in rational arithmetic for their reference.
EXACT_CELLS = 60
#: Seconds that HiGHS may take for a reference.
HIGHS_SECONDS = 120.0
#: Users are compared with each other in blocks of so many pairs.
BLOCK_CELLS = 2_000_000


@dataclass(frozen=True)
class Bound:
    """The optimum is at most ``upper``, proven; an allocation that was checked reaches ``lower``; ``note`` says how."""

    upper: float
    lower: float
    note: str


@dataclass(frozen=True, eq=False)
class Duals:
    """Multipliers, none negative: of the capacities (k,), the demands (n,), and envy as (pairs (2, q), values (q,))."""

    capacity: Floats
    demand: Floats
    envy: tuple[NDArray[np.int64], Floats]


def limits(market: Market) -> Floats:
    """Return the demands (n,), infinity where there is none."""
    return np.full(len(market.weight), np.inf) if market.demand is None else np.asarray(market.demand, dtype=float)


def fair(market: Market) -> Floats:
    """Return each user's throughput (n,) on its own partition of the cluster: the fastest GPUs up to its demand."""
    fastest = np.argsort(-market.speedup, axis=1, kind="stable")
    speed = np.take_along_axis(market.speedup, fastest, axis=1)
    held = market.capacity[fastest] * (market.weight / market.weight.sum())[:, None]
    room = limits(market)[:, None] - (np.cumsum(held, axis=1) - held)
    return np.asarray((speed * np.clip(room, 0.0, held)).sum(axis=1))


def cheapest(market: Market, duals: Duals) -> Floats:
    """Return the least price (n,) of a unit of throughput: min_j (p_j + q_l) / s_lj over types that there are."""
    there = market.capacity > 0
    speed = market.speedup[:, there]
    prices = duals.capacity[there] + duals.demand[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(speed > 0, prices / speed, np.inf).min(axis=1))


def spent(market: Market, duals: Duals) -> float:
    """Return p . m + q . d; a multiplier of a demand that there is not must be 0."""
    demand = limits(market)
    finite = np.isfinite(demand)
    return float(duals.capacity @ market.capacity + duals.demand[finite] @ demand[finite])


class ShareTask(Task):
    """A task whose answer is shares; each says what is maximised, what else must hold, and what dual values prove."""

    @abstractmethod
    def objective(self, market: Market, shares: Floats) -> float:
        """Return what is maximised."""

    @abstractmethod
    def upper(self, market: Market, duals: Duals) -> float:
        """Return what the multipliers prove of the optimum, whatever they are."""

    def others(self, market: Market, shares: Floats) -> Iterator[tuple[float, str]]:
        """Yield the relative violations of further constraints, each with what it is."""
        return iter(())

    def distance(self, market: Market, upper: float, objective: float) -> float:
        """Return how far an objective is below the bound, as a part of it."""
        return (upper - objective) / abs(upper) if upper else upper - objective

    def exact_up_to(self) -> int:
        """Return the cells of the largest market that rational arithmetic is asked for."""
        return EXACT_CELLS

    # -- judging ---------------------------------------------------------------------------------------------------
    def warm_up(self) -> Market:
        """Return three users with two types, one of them with a demand."""
        return Market.of_arrays([[1.0, 2.0], [1.0, 3.0], [2.0, 1.0]], [2.0, 2.0], demand=[np.inf, 2.0, np.inf])

    def judge(self, instance: Instance, answer: Any, reference: Bound) -> Judgement:
        """Return what shares are worth; whatever is no array of the right shape is worth nothing."""
        market: Market = instance.problem
        shares = _real(answer)
        if shares.shape != market.shape or not np.isfinite(shares).all():
            note = (
                f"the answer has the shape {shares.shape}, or numbers that are not finite; {market.shape} is asked for"
            )
            return Judgement(False, float("inf"), float("inf"), float("nan"), note)
        violation, what = self.violation(market, shares)
        objective = self.objective(market, shares)
        gap = self.distance(market, reference.upper, objective)
        if not violation <= self.tolerance:
            return Judgement(False, violation, gap, objective, f"{what}: off by {violation:.3g}")
        if not gap <= self.tolerance:
            tight = self.distance(market, reference.upper, reference.lower) <= self.tolerance
            note = f"objective {objective:.9g}, but {reference.note}"
            return Judgement(False, violation, gap, objective, note, proven=tight)
        return Judgement(True, violation, gap, objective, reference.note)

    def violation(self, market: Market, shares: Floats) -> tuple[float, str]:
        """Return the largest relative violation, and of what: GPUs over what there is, or over all where none is."""
        total = market.capacity.sum()
        unit = np.where(market.capacity > 0, market.capacity, total)
        over = (shares.sum(axis=0) - market.capacity) / unit
        demand = limits(market)
        with np.errstate(invalid="ignore"):
            above = np.where(np.isfinite(demand), shares.sum(axis=1) / demand - 1.0, 0.0)
        found = [
            # all of a type together: what is small for one user is not for a million
            (float((-np.minimum(shares, 0.0).sum(axis=0) / unit).max()), "negative shares"),
            (float(over.max()), f"capacity of {market.types[int(over.argmax())]}"),
            (float(above.max()), f"demand of {market.users[int(above.argmax())]}"),
            *self.others(market, shares),
        ]
        worst, what = max(found)
        return (worst if worst > 0 else 0.0), what

    # -- what is proven ----------------------------------------------------------------------------------------------
    def reference(self, instance: Instance) -> Bound:
        """Return the best bound that dual values of several makers prove: each is tried until the gap is closed."""
        market: Market = instance.problem
        best = Bound(
            self.upper(market, self.trivial(market)), -np.inf, "nothing better than the trivial bound is proven"
        )
        told = []
        for source, solver in self.sources(market):
            try:
                decision = self.decided(market, solver)
                duals = self.duals(market, decision)
            except FairoptError as error:  # nothing to compare with: the next one is asked, and the note says so
                told.append(f"{source} failed: {error!r}")
                continue
            shares = np.asarray(decision.shares, dtype=float)
            violation, _ = self.violation(market, shares)
            lower = self.objective(market, shares) if violation <= self.tolerance else -np.inf
            upper = best.upper if duals is None else self.upper(market, duals)
            note = best.note if upper >= best.upper else f"at most {upper:.9g} is proven by the dual values of {source}"
            best = Bound(min(upper, best.upper), max(lower, best.lower), note)
            if self.distance(market, best.upper, best.lower) <= CLOSED:
                break
        return Bound(best.upper, best.lower, "; ".join([best.note, *told]))

    def sources(self, market: Market) -> Iterator[tuple[str, Backend | None]]:
        """Yield who is asked for dual values, the quickest first, each with what it is called."""
        if policy(self.name).methods:
            yield "our own method", None
        if market.speedup.size <= self.exact_up_to():
            yield "the exact simplex method", Exact()
        if self.rows(market) * market.speedup.shape[1] <= 2_000_000:
            yield "HiGHS", Highs()

    def rows(self, market: Market) -> int:
        """Return how many rows the plain program has, about."""
        return len(market.weight)

    # -- for files ---------------------------------------------------------------------------------------------------
    def program(self, problem: Market) -> Program:
        """Return the policy's program."""
        require_small(self.rows(problem) * problem.shape[1])
        rule = policy(self.name)
        assert isinstance(rule, Formulated)
        return rule.formulate(problem.as_(float), rule.start(problem))

    def interval(self, problem: Market) -> Interval | None:
        """Return the bounds of the policy's own method."""
        solution = allocate(policy(self.name), problem).solution
        if solution is None or solution.lower is None or solution.upper is None:
            return None
        return Interval(float(solution.lower), float(solution.upper), f"{self.name}: the policy's own method")

    def decided(self, market: Market, solver: Backend | None) -> Allocation:
        """Return the policy's decision."""
        limit = HIGHS_SECONDS if isinstance(solver, Highs) else None
        return allocate(policy(self.name), market, solver, time_limit=limit)

    def trivial(self, market: Market) -> Duals:
        """Return multipliers that prove something on any market."""
        return _with(market, market.speedup.max(axis=0))

    def duals(self, market: Market, decision: Allocation) -> Duals | None:
        """Return the multipliers that a decision brings, cut off below at 0; None where it brings none."""
        if decision.program is None:
            return told_duals(market, None if decision.solution is None else decision.solution.duals)
        program, solution = decision.program, decision.solution
        if solution is None or solution.dual is None:
            return None
        values = np.abs(np.asarray(solution.dual, dtype=float))  # each constraint has one side only
        names = {block.name for block in program.row_blocks}
        demand = np.zeros(len(market.weight))
        if "demand" in names:
            demand[np.isfinite(limits(market))] = values[program.row_block("demand").span]
        envy = _nothing()
        if "envy_free" in names:
            n = len(market.weight)
            pairs = np.argwhere(~np.eye(n, dtype=bool)).T
            of = values[program.row_block("envy_free").span]
            envy = np.ascontiguousarray(pairs[:, of > 0]), of[of > 0]
        return Duals(values[program.row_block("capacity").span], demand, envy)


def told_duals(market: Market, told: Any) -> Duals | None:
    """Return the multipliers in `Solution.duals`, cut off below at 0; None where there are none."""
    if not told or "capacity" not in told:
        return None
    demand, envy = np.zeros(len(market.weight)), _nothing()
    if "demand" in told:
        demand = np.where(np.isfinite(limits(market)), np.maximum(_dense(told["demand"], len(demand)), 0.0), 0.0)
    if "envy_free" in told:
        pairs, values = told["envy_free"]
        envy = np.asarray(pairs, dtype=np.int64), np.maximum(np.asarray(values, dtype=float), 0.0)
    return Duals(np.maximum(np.asarray(told["capacity"], dtype=float), 0.0), demand, envy)


def _real(answer: Any) -> Floats:
    """Return an answer as floats; an empty array for what holds no real numbers, or rows of several lengths."""
    if not isinstance(answer, np.ndarray | list):
        return np.empty(0)
    try:
        found = np.asarray(answer)
    except ValueError:
        return np.empty(0)
    return found.astype(float) if found.dtype.kind in "fiu" else np.empty(0)


def _dense(values: Any, size: int) -> Floats:
    if not isinstance(values, tuple):
        return np.asarray(values, dtype=float)
    dense = np.zeros(size)
    dense[np.asarray(values[0], dtype=np.int64).ravel()] = np.asarray(values[1], dtype=float)
    return dense


def _with(market: Market, prices: Floats) -> Duals:
    return Duals(np.asarray(prices, dtype=float), np.zeros(len(market.weight)), _nothing())


def _nothing() -> tuple[NDArray[np.int64], Floats]:
    return np.zeros((2, 0), dtype=np.int64), np.zeros(0)
