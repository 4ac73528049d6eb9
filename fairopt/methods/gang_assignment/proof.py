"""What an assignment of gangs costs at least, in exact arithmetic: prices, and cases that leave no gap.

At the multipliers of `solve_gangs` nearly every job has one type that an assignment of less cost can give it. What is
left is a small program. Branch and bound splits it by how many gangs of a size run on a type: once these numbers are
whole, what is left is a transportation problem, which has whole optima. Each case is bounded by prices of its linear
program, taken for the fractions that they are: a float that is off makes the bound less close, and never wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.highs import instance, load
from fairopt.backends.solution import Solution, Status
from fairopt.backends.solver import Options
from fairopt.errors import BadInput, NotSolved
from fairopt.methods.gang_assignment.deviations import UNIT
from fairopt.methods.gang_assignment.groups import IDLE, grain_of
from fairopt.methods.gang_assignment.problem import GangAssignment
from fairopt.methods.incremental_lp import Blocks
from fairopt.methods.result import StageClock, duals_of
from fairopt.program import INFINITY, Array, Program, Sense, objects

#: A size of gangs and a type; and how many gangs of a kind run, from and to.
Kind: TypeAlias = tuple[int, int]
Limits: TypeAlias = Mapping[Kind, tuple[float, float]]
#: So many fractional numbers of gangs are tried for the next split, each with so many steps of the simplex.
TRIED, STEPS = 10, 30
#: Numbers of gangs that are nearer to a whole one are whole.
WHOLE = 1e-6
#: Prices that prove all but this part of what is wanted of a case are made exact.
NEAR = 1e-6
#: What floats may be off by, as a part of the numbers that they are made of.
OFF = 1e-11


@dataclass(frozen=True, eq=False)
class _GangPrices:
    """A price of a GPU by type and the reward of a busy one, from 0, and what a gang of a kind pays besides."""

    prices: list[Fraction]
    reward: Fraction
    tolls: Mapping[Kind, Fraction]

    def pays(self, gang: int, gpu_type: int) -> Fraction:
        """Return what a gang pays on a type besides its cost."""
        if gpu_type == IDLE:
            return Fraction(0)
        return gang * (self.prices[gpu_type] - self.reward) + self.tolls.get((gang, gpu_type), 0)

    def written(self) -> dict[str, Any]:
        """Return the case that these bound."""
        told: dict[str, Any] = {"prices": self.prices, "reward": self.reward}
        return told | ({"tolls": [[*kind, toll] for kind, toll in self.tolls.items()]} if self.tolls else {})


def exact_sum(values: Array) -> Fraction:
    """Return the sum of floats, exactly."""
    return sum(map(Fraction, values.tolist()), Fraction(0))


def prove_gangs(problem: GangAssignment, found: Solution, *, time_limit: float | None = None) -> Solution:
    """Return an exact bound on the cost of every assignment, as close to that of ``found`` as time allows.

    ``found``: an assignment with duals, as `solve_gangs` returns it; if it is optimal, the bound is mostly its cost.
    ``time_limit``: seconds for the search; after it, cases stay unsplit and a gap is left. The exact bounds of the
    cases come on top. What is proved has its bound and its cost as ``lower`` and ``upper``, and as evidence what
    `fairopt.certificates.GANGS` says beside the problem.
    Errors: `NotSolved` where there is no assignment, or HiGHS ends without an answer; `BadInput` for another problem's.

    >>> from fairopt.methods.gang_assignment import solve_gangs
    >>> free = np.ones((2, 2), dtype=bool)
    >>> problem = GangAssignment(np.array([[1.0, 3], [2, 2]]), np.array([1, 2]), np.array([2, 2]), 3, free)
    >>> proved = prove_gangs(problem, solve_gangs(problem))
    >>> proved.lower == proved.upper
    True
    """
    if "type_of" not in found.values:
        raise NotSolved(f"there is no assignment to prove anything of ({found.status.value})")
    type_of, (down, reward) = found.values["type_of"], duals_of(found, "capacity", "work_conserving")
    if (type_of.shape, down.shape) != (problem.gangs.shape, problem.capacity.shape) or problem.violations(type_of):
        jobs = f"{len(type_of)} jobs for {len(problem.gangs)}"
        raise BadInput(
            f"no assignment of this problem: {jobs}", place="found", remedy="Give what solve_gangs returns for it"
        )
    runs = np.flatnonzero(type_of != IDLE)
    value = exact_sum(problem.cost[runs, type_of[runs]])
    root = _GangPrices([Fraction(-each) for each in down.tolist()], Fraction(float(reward)), {})
    grain = Fraction(grain_of(problem.cost[problem.allowed])) or None
    cases = _Tree(problem, root, value, grain or Fraction(0), StageClock(time_limit))
    bound, told = cases.lower, list[Mapping[str, Any]]()
    if bound < value:
        bound, told = cases.search()
    if grain:
        bound = math.ceil(bound / grain) * grain
    bound = min(bound, value)
    numbers = {"value": value, "bound": bound, "gap": value - bound}
    evidence = {**numbers, "root": root.written(), "cases": tuple(told), "grain": grain}
    return replace(found, lower=bound, upper=value, evidence=evidence)


@dataclass(eq=False)
class _Case:
    """Limits, and how their linear program ended: what is lost, its duals, the numbers of gangs and the basis.

    Where nothing fits, ``loss`` is infinite and the duals are a ray. ``split``: a kind and the most of one part.
    """

    limits: Limits
    loss: float
    dual: Array
    numbers: Array = field(default_factory=lambda: np.zeros(0))
    basis: Any = None
    split: tuple[int, int, int] | None = None
    parts: Sequence[_Case] = ()


def _sides_of(split: tuple[int, int, int], limits: Limits) -> list[Limits]:
    """Return the limits of at most so many gangs of a kind, and of more than that."""
    gang, gpu_type, most = split
    low, high = limits.get((gang, gpu_type), (0, INFINITY))
    return [{**limits, (gang, gpu_type): side} for side in ((low, most), (most + 1, high))]


class _Tree:
    """Branch and bound on numbers of gangs; the linear program is in moves from each job's best type at the root.

    It is of a round without what cannot be part of an assignment that costs less than ``value``: most jobs are
    ``settled``, by kind, at a cost ``spent``, and others have some types left. ``jobs``: of a gang and its costs by
    type, how many there are. ``root``: the prices that leave these types only, and prove ``lower``.
    """

    def __init__(
        self, problem: GangAssignment, root: _GangPrices, value: Fraction, grain: Fraction, clock: StageClock
    ) -> None:
        self.problem, self.root, self.value, self.grain, self.clock = problem, root, value, grain, clock
        self._narrow(float(value))
        self.every_kind = sorted({(gang, i) for gang, own in self.jobs for i, _ in own})
        self.kinds = [kind for kind in self.every_kind if kind[1] != IDLE]
        self.lower = self._bound(root, {})

    def _load(self) -> None:
        """Set the linear program, and load it into HiGHS."""
        types = range(len(self.problem.capacity))
        self.base: Counter[Kind] = Counter(self.settled)
        moves: list[tuple[int, int, int, int, Fraction]] = []  # number of the jobs, gang, from, to, how much dearer
        for number, ((gang, own), count) in enumerate(self.jobs.items()):
            full = {i: cost + self.root.pays(gang, i) for i, cost in own}
            best = min(full, key=lambda i: full[i])
            self.base[gang, best] += count
            moves += [(number, gang, best, i, full[i] - full[best]) for i in full if i != best]
        busy = [sum(gang * n for (gang, i), n in self.base.items() if i == each) for each in types]
        self.free = [int(room) - used for room, used in zip(self.problem.capacity, busy, strict=True)]
        self.moves, self.idle = moves, int(self.problem.capacity.sum()) - self.problem.least
        self.unit = UNIT / float(self.value - self.lower)
        self.enough = float(self.value - self.lower - self.grain * Fraction(999, 1000)) * self.unit * (1 - OFF)
        self.exact = [move[-1] for move in moves] + self.root.prices + [self.root.reward]
        self.highs = instance(Options())
        self.highs.setOptionValue("presolve", "off")
        load(self.highs, self._program({}))
        self._now: Limits = {}

    def _narrow(self, upper: float) -> None:
        """Set what is left of the round where an assignment is to cost less than ``upper``."""
        problem, root = self.problem, self.root
        types = len(problem.capacity)
        full = np.zeros((len(problem.gangs), types + 1))
        pays = np.array([float(price - root.reward) for price in root.prices])
        full[:, :types] = np.where(problem.allowed, problem.cost + problem.gangs[:, None] * pays, np.inf)
        best = full.min(axis=1)
        lower = math.fsum(best) - math.fsum(float(p) * c for p, c in zip(root.prices, problem.capacity, strict=True))
        sizes = np.abs(problem.cost[problem.allowed]).sum() + np.abs(pays).max(initial=0) * problem.gangs.sum()
        room = upper - lower - float(root.reward) * problem.least + OFF * float(sizes)
        kept = full <= (best + max(room, 0.0))[:, None]
        cost = np.append(problem.cost, np.zeros((len(full), 1)), axis=1)
        alone = kept.sum(axis=1) == 1
        chosen = np.where(kept[alone, -1], IDLE, kept[alone].argmax(axis=1))
        self.settled = Counter(zip(problem.gangs[alone].tolist(), chosen.tolist(), strict=True))
        self.spent = exact_sum(cost[alone, chosen])
        self.jobs: Counter[tuple[int, tuple[tuple[int, Fraction], ...]]] = Counter()
        for job in np.flatnonzero(~alone).tolist():
            some = np.flatnonzero(kept[job])
            own = tuple((each if each < types else IDLE, Fraction(cost[job, each])) for each in some.tolist())
            self.jobs[int(problem.gangs[job]), own] += 1

    def _bound(self, at: _GangPrices, limits: Limits) -> Fraction:
        """Return what prices prove of the cost within limits, exactly."""
        pays = {kind: at.pays(*kind) for kind in {*self.settled, *self.every_kind}}
        least = self.spent + at.reward * self.problem.least
        least += sum(count * pays[kind] for kind, count in self.settled.items())
        least -= sum(p * int(room) for p, room in zip(at.prices, self.problem.capacity, strict=True))
        least -= sum(toll * int(limits[kind][toll > 0]) for kind, toll in at.tolls.items())
        for (gang, own), count in self.jobs.items():
            least += count * min(cost + pays[gang, i] for i, cost in own)
        return least

    def search(self) -> tuple[Fraction, list[Mapping[str, Any]]]:
        """Return the least bound of all cases, and the cases in the order in which the verifier follows them.

        The case that could have the least cost is split next, so that the bound is as close as it can be at any time.
        """
        self._load()
        root = self._case({})
        ready, number = [(root.loss, 0, root)], 0
        while ready and not self.clock.over:
            case = heappop(ready)[-1]
            if case.loss >= self.enough or not (parts := self._split(case)):
                continue
            case.split, case.parts = parts
            for part in case.parts:
                number += 1
                heappush(ready, (part.loss, number, part))
        told: list[Mapping[str, Any]] = []
        waiting, least = [root], self.value
        while waiting:
            case = waiting.pop()
            if case.split is None:
                at, bound = self._bounded(case)
                told.append(at.written())
                least = min(least, bound)
            else:
                told.append({"split": case.split})
                waiting += case.parts[::-1]
        return max(least, self.lower), told

    def _program(self, limits: Limits) -> Program:
        """Return the linear program: rows are the types, all busy GPUs, the kinds, and jobs that have several moves."""
        jobs = np.array(list(self.jobs.values()), dtype=np.int64)
        number, gang, base, to, _ = (
            (np.array(part) for part in zip(*self.moves, strict=True))
            if self.moves
            else [np.zeros(0, dtype=np.int64)] * 5
        )
        types, lp = len(self.free), Blocks()
        cost = np.array([float(each) for each in self.exact]) * self.unit
        moved = lp.columns(cost[: len(self.moves)], 0.0, jobs[number] if len(number) else np.zeros(0))
        slack, surplus = lp.columns(cost[len(self.moves) : -1]), lp.columns(cost[-1:])
        free = np.array(self.free, dtype=float)
        filled, busy = lp.rows(free, free, types), lp.rows(float(self.idle), float(self.idle), 1)
        lp.entries(filled, slack, np.ones(types))
        lp.entries(np.repeat(busy, types + 1), np.append(slack, surplus), np.ones(types + 1))
        sides = np.array([self._sides(kind, limits) for kind in self.kinds]).reshape(-1, 2)
        kinds = lp.rows(sides[:, 0], sides[:, 1], len(self.kinds))
        row = dict(zip(self.kinds, kinds.tolist(), strict=True))
        for at, sign in ((to, 1), (base, -1)):
            there = np.flatnonzero(at != IDLE)
            lp.entries(filled[at[there]], moved[there], sign * gang[there])
            own = [row[kind] for kind in zip(gang[there].tolist(), at[there].tolist(), strict=True)]
            lp.entries(np.array(own, dtype=np.int64), moved[there], np.full(len(there), sign))
        several = lp.rows(-INFINITY, jobs, len(jobs))
        lp.entries(several[number], moved, np.ones(len(moved)))
        return lp.program("cases of gangs", Sense.MINIMIZE)

    def _sides(self, kind: Kind, limits: Limits) -> tuple[float, float]:
        low, high = limits.get(kind, (-INFINITY, INFINITY))
        return low - self.base[kind], high - self.base[kind]

    def _case(self, limits: Limits) -> _Case:
        """Return a case with the end of its linear program."""
        loss = self._solve(limits)
        if loss == INFINITY:
            return _Case(limits, loss, np.array(self.highs.getDualRay()[2]))
        solution, first = self.highs.getSolution(), len(self.free) + 1
        numbers = np.array(solution.row_value)[first : first + len(self.kinds)]
        return _Case(limits, loss, np.array(solution.row_dual), numbers, self.highs.getBasis())

    def _solve(self, limits: Limits, steps: int = 2**31 - 1) -> float:
        """Return what is lost within limits against the bound of the root, in units; infinity where nothing fits."""
        for at, kind in enumerate(self.kinds):
            if self._now.get(kind) != limits.get(kind):
                self.highs.changeRowBounds(len(self.free) + 1 + at, *self._sides(kind, limits))
        self._now = limits
        self.highs.setOptionValue("simplex_iteration_limit", steps)
        self.highs.run()
        ended = self.highs.getModelStatus().name
        if ended not in ("kOptimal", "kInfeasible", "kIterationLimit"):
            raise NotSolved(f"the bound of an assignment was not decided: HiGHS says {ended}")
        return INFINITY if ended == "kInfeasible" else float(self.highs.getInfo().objective_function_value)

    def _split(self, case: _Case) -> tuple[tuple[int, int, int], list[_Case]] | None:
        """Return the number of gangs whose two sides lose most, split, and its two cases; None where all are whole."""
        apart = np.abs(case.numbers - np.rint(case.numbers))
        most, chosen = -1.0, None
        for at in np.argsort(-apart, kind="stable")[:TRIED].tolist():
            if apart[at] <= WHOLE:
                break
            split = (*self.kinds[at], math.floor(case.numbers[at]) + self.base[self.kinds[at]])
            gains = []
            for limits in _sides_of(split, case.limits):
                self.highs.setBasis(case.basis)
                gains.append(max(min(self._solve(limits, STEPS), self.enough) - case.loss, OFF))
            if math.prod(gains) > most:
                most, chosen = math.prod(gains), split
        if chosen is None:
            return None
        parts = []
        for limits in _sides_of(chosen, case.limits):
            self.highs.setBasis(case.basis)
            parts.append(self._case(limits))
        return chosen, parts

    def _bounded(self, case: _Case) -> tuple[_GangPrices, Fraction]:
        """Return prices of a case, and what they prove: those of HiGHS or, where these are a hair off, exact ones."""
        limits = case.limits
        if case.loss == INFINITY:
            return self._refuted(case)
        at = self._prices(case.dual / self.unit, limits)
        bound = self._bound(at, limits)
        if not self.clock.over and 0 < float(self.value - bound) * self.unit <= UNIT * NEAR:
            program = self._program(limits).as_(Fraction)
            solution = Exact().solve(replace(program, cost=objects(self.exact)))
            if solution.status is Status.OPTIMAL and solution.dual is not None:
                exact = self._prices(solution.dual, limits)
                return max((exact, self._bound(exact, limits)), (at, bound), key=lambda each: each[1])
        return at, bound

    def _refuted(self, case: _Case) -> tuple[_GangPrices, Fraction]:
        """Return prices that prove as much as is wanted of a case that nothing satisfies, by its ray."""
        best = (self.root, self.lower)
        for power in range(0, 120, 2):
            at = self._prices(case.dual * 2.0**power / self.unit, case.limits)
            best = max(best, (at, self._bound(at, case.limits)), key=lambda each: each[1])
            if best[1] >= self.value:
                break
        return best

    def _prices(self, dual: Array, limits: Limits) -> _GangPrices:
        """Return the prices that duals of the rows stand for."""
        types, root = len(self.free), self.root
        down = [Fraction(each) for each in dual[: types + 1].tolist()]
        prices = [max(p - own - down[-1], Fraction(0)) for p, own in zip(root.prices, down[:-1], strict=True)]
        tolls = {}
        for kind, own in zip(self.kinds, dual[types + 1 :].tolist(), strict=False):
            toll = -Fraction(own)
            if toll and kind in limits and limits[kind][toll > 0] < INFINITY:
                tolls[kind] = toll
        return _GangPrices(prices, max(root.reward - down[-1], Fraction(0)), tolls)
