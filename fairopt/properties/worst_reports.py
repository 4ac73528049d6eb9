"""What a user truly gets at worst where a policy decides by reports with an error: branch and bound, exact.

A cell is a part of the range of reports. What the policy is proved to do bounds from below what the user truly gets at
any optimum for any reports in it; the exact decision at its middle bounds the worst from above. The cell with the least
lower bound is halved until the two bounds meet, or so many cells were looked at.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, floor

import numpy as np

from fairopt.deadline import left
from fairopt.errors import NotCapable, OutOfTime, require
from fairopt.policy import Optima, Policy, decide
from fairopt.policy.policy import require_policy
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.program import INFINITY, Array, Number, Sense, number_text
from fairopt.report import ResultForm, Statement

#: The two bounds on the part of an equal share meet within this, or at most so many cells are looked at.
GAP, CELLS = Fraction(1, 100), 200
#: What to do where so many cells were not enough.
CLOSER = "for closer bounds give smaller ranges, or more cells to fairopt.properties.worst_share"
#: With more types than this, fair shares are bounded by the worst type alone, and not at all corners of the range.
CORNERS_UP_TO = 10


def _worst(it: Statement) -> str:
    between = f"{number_text(it.least)}"
    if not it.exact:
        between = f"between {floor(it.least * 10**4) / 10**4} and {ceil(it.most * 10**4) / 10**4}"
    said = f"{it.user} truly gets, at worst, {between} of its equal share, whatever is reported in the range"
    rest = f"; {it.stopped}" if it.stopped else ""
    parts = "the range looked at as a whole" if it.cells == 1 else f"the range looked at in {it.cells} parts"
    exactly = "exact" if it.exact else f"the lower bound is by {it.how}"
    return f"{said} ({exactly}; {parts}{rest})"


#: What a ``user`` truly gets at worst, as a part of its equal share: at least ``least``, and at most ``most``, which is
#: what some optimum gives at ``reports`` (n, k). ``cells`` were looked at; ``how`` says what bounds from below, and
#: ``stopped`` why the bounds are further apart than was asked, "" where they are not. ``exact``: both are the same.
WORST_SHARE = ResultForm("What a user truly gets at worst.", in_full=True, sentence=_worst)


def worst_share(policy: Policy, market: Market, user: str, *, gap: Number = GAP, cells: int = CELLS) -> Statement:
    """Return bounds on the least that ``user`` truly gets, of its equal share, over all reports in a market's ranges.

    They are a `WORST_SHARE`. True speedups are those that ``market`` states; what is reported, by all users, is
    anywhere in the ranges. Where optima tie, the worst counts. The search ends where the bounds are ``gap`` apart, with
    so many ``cells`` at most, or with the time limit. Errors: `NotCapable` for ranges without end and markets with
    demands; those of `fairopt.decide` on the market as it is stated.

    Source: our own; branch and bound over boxes, Horst and Tuy, Global Optimization, 1996, ch. 4.

    >>> from fairopt.models import CooperativeOEF
    >>> from fairopt.problem.ranges import with_error
    >>> market = with_error(Market.of([[1, 2], [1, 5]], capacity=[1, 1]), "5%")
    >>> found = worst_share(CooperativeOEF(), market, "u1", cells=9)
    >>> found.least < found.most < 1, found.exact
    (True, False)
    """
    require_policy(policy)
    require(cells > 0, cells, "cells", "Give at least 1")
    told = market.as_(Fraction)
    i = told.index(user)
    if told.demand is not None or is_entitled(told) or (told.ends[1] == INFINITY).any():
        raise NotCapable("the worst over reports needs ranges with two ends, and no demands or entitlements")
    fair = Fraction(told.fair_utility()[i])
    below, how = _from_below(policy, told, i)
    search = _Search(policy, told, i, below)
    stopped = ""
    try:
        while search.most - search.least > gap * fair:
            if search.cells + 2 > cells:  # two halves would be more than are allowed
                stopped = f"the limit is {cells}: {CLOSER}"
                break
            if not search.split():
                break
            left()
    except OutOfTime as error:
        stopped = str(error)
    least, most = min(search.least, search.most) / fair, search.most / fair
    ends = {"user": user, "least": least, "most": most, "reports": search.at}
    return WORST_SHARE.of(**ends, cells=search.cells, how=how, stopped=stopped, exact=least == most)


class _Search:
    """Cells by their lower bounds, and the least that a decision gives."""

    def __init__(self, policy: Policy, market: Market, user: int, below: Callable[[Market], Fraction]) -> None:
        self._policy, self._market, self._user, self._below = policy, market, user, below
        self.cells = 0
        self._open: list[tuple[Fraction, int, Array, Array]] = []
        self.at = market.speedup
        self.most = self._given(self.at)
        self._push(*market.ends)

    @property
    def least(self) -> Fraction:
        """What the user has in every cell."""
        return self._open[0][0]

    def split(self) -> bool:
        """Halve the cell with the least bound at its widest speedup; return whether one has a width."""
        _, _, least, most = self._open[0]
        stated = self._market.speedup
        wide = (most - least) / np.where(stated > 0, stated, 1)
        if not wide.any():
            return False
        heapq.heappop(self._open)
        at = np.unravel_index(int(np.argmax(wide)), wide.shape)
        middle = (least[at] + most[at]) / 2
        lower, upper = most.copy(), least.copy()
        lower[at] = upper[at] = middle
        self._push(least, lower)
        self._push(upper, most)
        return True

    def _push(self, least: Array, most: Array) -> None:
        middle = (least + most) / 2
        given = self._given(middle)
        if given < self.most:
            self.at, self.most = middle, given
        cell = replace(self._market, speedup=middle, least=least, most=most)
        below = given if (least == most).all() else self._below(cell)
        heapq.heappush(self._open, (below, self.cells, least, most))
        self.cells += 1

    def _given(self, reports: Array) -> Fraction:
        """Return the least that the user truly gets at any optimum for ``reports`` (n, k)."""
        decision = decide(self._policy, replace(self._market, speedup=reports, least=None, most=None), exact=True)
        if not decision.exact:
            raise NotCapable(f"what {decision.policy} decides on this market is irrational, and rationals only near it")
        optima = Optima.of(self._policy, decision)
        if optima is None:  # nothing was optimised, so that there is no choice
            return Fraction(self._market.utility(decision.shares)[self._user])
        weight = np.full(self._market.shape, Fraction(0), dtype=object)
        weight[self._user] = self._market.speedup[self._user]
        return Fraction(optima.extreme(weight, Sense.MINIMIZE))


def _from_below(policy: Policy, market: Market, user: int) -> tuple[Callable[[Market], Fraction], str]:
    """Return what bounds from below what ``user`` truly gets in a cell, and what it is called."""
    true = market.speedup[user]
    if policy.least_in_range(market, user, true) is not None:
        return lambda cell: Fraction(policy.least_in_range(cell, user, true) or 0), "what is proved of the policy"
    if any(each.property == "sharing_incentive" and each.known(market) for each in policy.claims):
        fair, most = market.equal_split()[user], market.capacity
        return lambda cell: by_fair_share(
            true, cell.ends[0][user], cell.ends[1][user], fair, most
        ), "promised fair shares"
    return lambda _: Fraction(0), "nothing that is proved"


def by_fair_share(true: Array, least: Array, most: Array, fair: Array, capacity: Array) -> Fraction:
    """Return what a user truly gets at least where, by its reports, it has what ``fair`` (k,) is worth.

    Its bundle x, within ``capacity`` (k,), has r.x >= r.fair for reports r between ``least`` and ``most`` (k,). For
    each x the r that allows most is a corner of the range; at each corner types are taken in the order of true worth
    per reported worth, which is exact.

    >>> one, two = np.array([Fraction(1)] * 2), np.array([Fraction(2)] * 2)
    >>> print(by_fair_share(one, one, two, one / 2, one))
    3/4
    """
    if len(true) > CORNERS_UP_TO:
        runs = most > 0
        return Fraction((true[runs] / most[runs]).min() * (least * fair).sum())
    ends = (dict.fromkeys(each) for each in zip(least.tolist(), most.tolist(), strict=True))
    return min(_cheapest(true, np.array(corner, dtype=object), fair, capacity) for corner in product(*ends))


def _cheapest(true: Array, reports: Array, fair: Array, capacity: Array) -> Fraction:
    """Return the least true worth of a bundle that is reported to be worth as much as ``fair`` (k,)."""
    owed, worth = (reports * fair).sum(), Fraction(0)
    for j in sorted(np.flatnonzero(reports).tolist(), key=lambda j: true[j] / reports[j]):
        taken = min(capacity[j], owed / reports[j])
        worth += true[j] * taken
        owed -= reports[j] * taken
    return Fraction(worth)
