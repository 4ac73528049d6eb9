"""The task of water filling: the least ratio, then the second least, and so on, each as large as can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.benchmarks.tasks.levels import MaxMin
from fairopt.benchmarks.tasks.shares import (
    EXACT_CELLS,
    Bound,
    Duals,
    Floats,
    cheapest,
    fair,
    limits,
    spent,
    told_duals,
)
from fairopt.discovery import policy
from fairopt.errors import FairoptError, NotCapable
from fairopt.experiment.bench import Instance, Judgement
from fairopt.policy import Allocation
from fairopt.problem import Market
from fairopt.program import Program

#: Markets up to this many cells are filled by HiGHS, a program for each level, where nobody else does it.
HIGHS_CELLS = 20_000
#: Markets up to this many cells get a second opinion where levels are not proven.
SECOND_CELLS = 4_000
#: Levels that differ by less than this part are the same.
SAME = 1e-9


@dataclass(frozen=True, eq=False)
class Filled:
    """What levels are compared with.

    ``levels`` (n,) are those of each user, None where nobody found them; ``first`` is what prices prove of the least;
    ``note`` says whose levels they are.
    """

    levels: Floats | None
    first: Bound
    note: str


class WaterFilling(MaxMin):
    """The ratio that gains least as large as can be, then the next, and so on.

    Levels are unique, user by user. An answer's are sorted and compared with those of a reference, from the least.
    The gap is the largest part by which a sorted level is below the reference's at the same place. The reference is
    what our own method finds, where this task's own code proves it from the prices of the rounds: by how
    much any user could be raised without lowering one that is no better off (`raisable`). Else it is what the exact
    simplex method finds on small markets, and HiGHS is asked for a second opinion on larger ones. The least level is
    bounded as in max-min. The note says what came out.
    """

    name = "water-filling"

    def reference(self, instance: Instance) -> Any:
        """Return the levels to compare with, and the bound on the least."""
        market: Market = instance.problem
        first = self.first(market)
        told: list[str] = []
        found: Filled | None = None
        own = policy(self.name).methods
        small = market.speedup.size <= EXACT_CELLS
        for source, solver in (
            *([("our own method", None)] if own else []),
            *([("the exact simplex method", Exact())] if small else []),
            *([("HiGHS round by round", Highs())] if not small and market.speedup.size <= HIGHS_CELLS else []),
        ):
            if found is not None and market.speedup.size > SECOND_CELLS:
                break
            try:
                decision = allocate(policy(self.name), market, solver)
            except FairoptError as error:  # nothing to compare with: the next one is asked, and the note says so
                told.append(f"{source} failed: {error!r}")
                continue
            shares = np.asarray(decision.shares, dtype=float)
            if self.violation(market, shares)[0] > self.tolerance:
                continue
            levels = self.ratios(market, shares)
            if isinstance(solver, Exact):  # in fractions, round by round: nothing is left to be proven
                return Filled(levels, first, f"levels are those of {source}")
            rounds = [each for each in map(self.prices(market), decisive(decision)) if each is not None]
            part = raisable(market, levels, rounds)
            if part <= self.tolerance:
                return Filled(levels, first, "; ".join([f"levels are those of {source}, {said(part)}", *told]))
            if found is None:
                found = Filled(levels, first, f"levels are those of {source}, {said(part)}")
            else:
                same = found.levels is not None and bool(np.allclose(found.levels, levels, rtol=self.tolerance, atol=0))
                told.append(f"{source} finds {'the same' if same else 'other levels'}")
        if found is not None:
            return Filled(found.levels, first, "; ".join([found.note, *told]))
        return Filled(None, first, "; ".join(["nobody found levels to compare with", *told]))

    def prices(self, market: Market) -> Callable[[Any], Duals | None]:
        """Return what takes the multipliers out of a round's proof."""
        return lambda proof: told_duals(market, proof.duals)

    def first(self, market: Market) -> Bound:
        """Return what is proven of the least level."""
        least = MaxMin()
        return least.reference(Instance("", "", len(market.weight), 0, {}, "", market))

    def ratios(self, market: Market, shares: Floats) -> Floats:
        """Return the levels (n,)."""
        return np.asarray((market.speedup * shares).sum(axis=1) / fair(market))

    def program(self, problem: Market) -> Program:
        """Refuse: each level is a program of its own."""
        raise NotCapable("water-filling is a program for each level; choose max-min, which is the first of them")

    def judge(self, instance: Instance, answer: Any, reference: Any) -> Judgement:
        """Return what shares are worth: first the least level, then all."""
        told: Filled = reference
        base = super().judge(instance, answer, told.first)
        if not base.accepted:
            return base
        market: Market = instance.problem
        if told.levels is None:
            return Judgement(False, base.violation, base.gap, base.objective, told.note, proven=False)
        levels = np.sort(self.ratios(market, np.asarray(answer, dtype=float)))
        wanted = np.sort(told.levels)
        below = (wanted - levels) / wanted
        place = int(below.argmax())
        gap = max(float(below[place]), 0.0)
        # what is above the reference at one place, with none below before it, would show the reference wrong
        above = np.flatnonzero(levels > wanted * (1 + 10 * self.tolerance))
        short = np.flatnonzero(below > self.tolerance)
        if above.size and (not short.size or above[0] < short[0]):
            note = f"level {above[0] + 1} of {len(levels)} is above the reference: {told.note}"
            return Judgement(False, base.violation, gap, base.objective, note, proven=False)
        if short.size:
            note = f"level {place + 1} of {len(levels)} is {levels[place]:.9g}, not {wanted[place]:.9g}; {told.note}"
            return Judgement(False, base.violation, gap, base.objective, note)
        return Judgement(True, base.violation, gap, base.objective, told.note)


def decisive(decision: Allocation) -> Sequence[Any]:
    """Return the proofs of the rounds that a decision brings; none where it brings none."""
    return tuple(getattr(decision.evidence, "proven", None) or ())


def raisable(market: Market, levels: Floats, rounds: Sequence[Duals]) -> float:
    """Return by which part some user could at most be raised while nobody at its level or below is lowered.

    At prices p and q whatever throughput there is costs sum_i f_i t_i c_i <= p . m + q . d, with c as in `cheapest`. If
    those no better off than l keep their levels t_i, then f_l c_l t_l can rise by p . m + q . d less what they all
    (l included) cost now. Each user takes the round that proves most, or its own demand. 0 for all proves that levels
    are max-min fair, and so the lexicographic maximum.

    Source: Radunovic and Le Boudec 2007, Sec. II (max-min fairness: nobody can be raised but at the cost of one no
    better off).
    """
    share = fair(market)
    order = np.argsort(levels, kind="stable")
    # how many are no better off than each, in that order
    many = np.searchsorted(levels[order], levels[order] * (1 + SAME), side="right")
    fastest = np.where(market.capacity > 0, market.speedup, 0.0).max(axis=1)
    least = (limits(market) * fastest / (share * levels) - 1.0)[order]
    for duals in rounds:
        cost = (share * cheapest(market, duals) * levels)[order]
        room = spent(market, duals) - np.cumsum(cost)[many - 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            least = np.minimum(least, np.where(cost > 0, room / cost, np.inf))
    return float(np.maximum(least, 0.0).max())


def said(part: float) -> str:
    """Return what is proven of levels of which no user can be raised by more than ``part``."""
    if part > MaxMin.tolerance:
        return "of which only the least is proven here"
    return f"none of which can rise by more than {max(part, 1e-12):.1e} of itself at the cost of better-off users alone"
