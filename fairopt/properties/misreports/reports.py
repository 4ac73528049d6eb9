"""A policy's decisions on misreports: one at a time, or thousands of programs side by side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from time import monotonic

import numpy as np

from fairopt.backends import Highs, Method
from fairopt.backends.solution import Solution
from fairopt.deadline import time_limit
from fairopt.errors import NotSolved, require_returned
from fairopt.policy import Allocation, Policy, chosen, decide, session
from fairopt.policy.policy import ManyBundles
from fairopt.problem import Market
from fairopt.problem.checks import are_beyond
from fairopt.problem.floors import is_entitled
from fairopt.problem.throughput import capped_value
from fairopt.program import INFINITY, Array

#: So many speedups, of all misreports that are decided together, are in one array: a step on them takes milliseconds.
MOST_AT_ONCE = 1_000_000
#: Up to so many speedups decisions are made to a vertex; of larger programs a vertex takes too long.
VERTEX_UP_TO = 1_000
#: With more speedups a backend begins at the basis of the truth: from nothing it takes several times as long.
BEGIN_FROM = 250


class Reports:
    """What misreports gain under a policy, on a market in floats.

    ``truth`` is the decision when all tell the truth: to a vertex, where none is given and the market is small. All
    others are made by the same solver, where somebody asked for it; else as `decide` does. ``own`` (n,) is each user's
    throughput in it, ``fair`` (n,) that on its equal share.
    """

    def __init__(self, policy: Policy, problem: Market, truth: Allocation | None = None) -> None:
        self.policy, self.market = policy, problem.as_(float)
        self.truth = self._decided() if truth is None else truth
        self._asked = self.truth.solver if self.truth.asked else None
        self._solver = self._asked or chosen(policy, entitled=is_entitled(problem))
        self.own = self.market.utility(self.truth.shares.astype(float))
        self.fair = self.market.fair_utility()
        self._together = self._many()
        self._after: dict[tuple[int, bytes], Allocation] = {}

    def _decided(self) -> Allocation:
        """Return the decision at the truth, to a vertex: by the solver that decides many at once, where it can.

        On a large market the policy's own method decides, which may be ten times as fast.
        """
        vertex = self.market.speedup.size <= VERTEX_UP_TO
        try:
            solver = chosen(self.policy, vertex=vertex, entitled=is_entitled(self.market))
            return decide(self.policy, self.market, solver)
        except NotSolved:  # nobody asked for this solver
            return decide(self.policy, self.market, vertex=vertex)

    @property
    def chunk(self) -> int:
        """How many misreports are best decided at once."""
        return 16 if self._together is None else 1024

    @property
    def screened(self) -> bool:
        """Whether gains may come from another optimum than the one that `misreported` finds, where optima tie."""
        own = isinstance(self._solver, Method) and self._solver.solves_programs
        begins = not isinstance(self._solver, Method) and self._near is not None
        return self._together is not None or own or begins or self._asked is None

    @property
    def _near(self) -> Solution | None:
        """The answer to the truth, where decisions on misreports begin; None where they begin from nothing."""
        begins = isinstance(self._solver, Method) or self.market.speedup.size > BEGIN_FROM
        return self.truth.solution if begins else None

    def misreported(self, user: int, report: Array) -> Allocation:
        """Return the decision on a market in which one user misreports, decided as the truth was asked for."""
        key = user, report.tobytes()
        if key not in self._after:  # other kinds may ask for it again
            self._after[key] = decide(self.policy, self.market.misreport(user, report), self._asked)
        return self._after[key]

    def gain(self, user: int, report: Array) -> float:
        """Return what one misreport (k,) gains, decided like the truth."""
        decision = self.misreported(user, report)
        return float(self.market.utility(decision.shares.astype(float))[user] - self.own[user])

    def gains(
        self, users: Array, reports: Array, over: Callable[[], bool] = lambda: False, ends: float = INFINITY
    ) -> Array:
        """Return what each of the misreports (cases, k) by ``users`` (cases,) gains, in the user's own units.

        NaN where the policy has no answer, and for numbers that no market takes, which can be reported by nobody. When
        ``over`` returns True no more are decided, and the result is shorter. What is decided together stops at
        ``ends``, by `monotonic`, with `OutOfTime`.
        """
        told = np.flatnonzero(~are_beyond(reports).any(axis=1))
        gained = self._gains(users[told], reports[told], over, ends)
        found = np.full(len(users), np.nan)
        found[told[: len(gained)]] = gained
        return found if len(gained) == len(told) else found[: told[len(gained)]]

    def _gains(self, users: Array, reports: Array, over: Callable[[], bool], ends: float) -> Array:
        reached = np.full(len(users), np.nan)
        at_once = max(1, MOST_AT_ONCE // self.market.speedup.size)
        for first in range(0, len(users) if self._together is not None else 0, at_once):
            if over():
                return reached[:first] - self.own[users[:first]]
            part = slice(first, first + at_once)
            with time_limit(max(0.0, ends - monotonic())):
                reached[part] = self._reached(users[part], reports[part])
        found: Array = reached - self.own[users]
        for place in np.flatnonzero(np.isnan(found)):
            if over():
                return found[:place]
            user = int(users[place])
            market = self.market.misreport(user, reports[place])
            bundle = self._bundle(user, market)
            if bundle is not None:
                demand = None if self.market.demand is None else self.market.demand[user]
                found[place] = capped_value(self.market.speedup[user], bundle, demand) - self.own[user]
        return found

    def _bundle(self, user: int, market: Market) -> Array | None:
        """Return what the policy gives a user, decided near the truth, else from nothing; None where it cannot say."""
        for start in (None,) if self._near is None else (self._near, None):
            with suppress(NotSolved):
                found = self.policy.bundle(user, market, self.truth, session(self.policy, self._solver, start=start))
                fits = isinstance(found, np.ndarray) and found.shape == market.capacity.shape
                method = f"{type(self.policy).__name__}.bundle"
                require_returned(fits, found, method, "an array (k,): GPUs of each type")
                return found.astype(float)
        return None

    def _reached(self, users: Array, reports: Array) -> Array:
        """Return what ``users`` (cases,) get out of their bundles, all decided together; NaN where one is not."""
        assert self._together is not None
        demand = None if self.market.demand is None else self.market.demand[users]
        return capped_value(self.market.speedup[users], self._together(users, reports), demand)

    def _many(self) -> ManyBundles | None:
        """Return what decides on many misreports at once; None where there is none, or another solver was asked for."""
        own = chosen(self.policy, entitled=is_entitled(self.market))
        asked = isinstance(self._solver, Highs) or self._solver == own
        return self.policy.many_bundles(self.market, self.truth) if asked else None
