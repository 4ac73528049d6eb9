"""A rule as the solution of a linear program: its variables are the shares at each profile, its rows what is asked."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from fairopt.errors import BadInput
from fairopt.methods.eisenberg_gale.exact import exact_equilibrium
from fairopt.methods.eisenberg_gale.solve import TARGET, maximal_nash_welfare
from fairopt.problem import Market
from fairopt.program import Affine, Array, Formulation, Program
from fairopt.proofs.findings.truthful.profiles import Profiles


class Design:
    """The linear program of all rules at some profiles: nobody gets less than nothing, and no GPU is given twice.

    Each method asks for one property more. All are linear, so that the rules that have them are a convex set. With
    ``symmetric``, a rule treats users alike, and types, wherever renaming them gives another of the profiles. Nothing
    is lost by that for what is linear: the mean of a rule and its renamed copies has the same properties, and as large
    a level. Something is lost where a choice is made (`efficient`), which is refused then.

    >>> from fairopt.backends.exact import Exact
    >>> from fairopt.proofs.findings.truthful.profiles import grid
    >>> design = Design(Profiles.every(grid(2, 4, positive=False), users=2))
    >>> design.strategy_proof()
    >>> design.sharing_incentive()
    >>> design.proportionally_fair()
    >>> print(Exact().solve(design.program()).objective)
    6/7
    """

    def __init__(self, profiles: Profiles, *, symmetric: bool = True) -> None:
        self.profiles = profiles
        self._form = Formulation("rule")
        (count, n), k = profiles.told.shape, len(profiles.capacity)
        orbit = np.arange(count * n * k).reshape(count, n, k)
        if symmetric:
            for users, types, where in profiles.symmetries():
                orbit = np.minimum(orbit, _renamed(count, n, k, users, types, where))
        self._symmetric = symmetric
        first, position = np.unique(orbit, return_inverse=True)
        #: The profiles at which rows are needed: one of each set that are renamings of each other.
        self.asked = np.unique(first // (n * k))
        #: What each user gets of each type at each profile, (P, n, k).
        self.share: Affine = self._form.variable("share", (len(first),), lower=0)[position.reshape(orbit.shape)]
        given = self.share[self.asked].sum(axis=1)
        self._form.constrain("capacity", given <= profiles.capacity, equation="sum_i x_ij <= m_j")

    @cached_property
    def _own(self) -> Affine:
        """What their shares are worth to users at each corner of what they report, (A, n, c), at asked profiles."""
        return (self.share[self.asked][:, :, None, :] * self._speedup).sum(axis=3)

    @property
    def _speedup(self) -> Array:
        return np.asarray(self.profiles.corners[self.asked])

    @property
    def _whole(self) -> Array:
        """What all GPUs are worth to each user at each corner, (A, n, c)."""
        return np.asarray(self._speedup @ self.profiles.capacity)

    # -- what is asked of the rule -----------------------------------------------------------------------------------
    def strategy_proof(self) -> None:
        """Nobody gains by a report that leads to another of the profiles, whatever the speedups in its cell are."""
        lies = self.profiles.lies()
        p, q, i = lies[np.isin(lies[:, 0], self.asked)].T
        corners = self.profiles.corners[p, i]
        truth, lie = ((self.share[at, i][:, None, :] * corners).sum(axis=2) for at in (p, q))
        self._form.constrain("strategy_proof", truth >= lie, equation="v_i . x_i(v) >= v_i . x_i(v'_i, v_-i)")

    def sharing_incentive(self, part: Fraction | int = 1) -> None:
        """Everybody gets at least this part of what an equal share of all GPUs is worth to it."""
        fair = self._whole * Fraction(part) / self.profiles.told.shape[1]
        self._form.constrain("sharing_incentive", self._own >= fair, equation="v_i . x_i >= v_i . m / n")

    def envy_free(self) -> None:
        """Nobody would rather have what another one gets."""
        others = (self.share[self.asked][:, None, :, None, :] * self._speedup[:, :, None, :, :]).sum(axis=4)
        (_, n), pairs = self.profiles.told.shape, self._own[:, :, None, :] >= others
        self._form.constrain(
            "envy_free", pairs.where(~np.eye(n, dtype=bool)[:, :, None]), equation="v_i.x_i >= v_i.x_l"
        )

    def equal_throughput(self) -> None:
        """Everybody has the same throughput, in the units of the reports."""
        if self._own.shape[1] > 1:
            corners = self._own[:, 1:, :, None] == self._own[:, :1, None, :]
            self._form.constrain("equal_throughput", corners, equation="v_i . x_i = v_1 . x_1")

    def nothing_left_over(self) -> None:
        """All GPUs are given out."""
        given = self.share[self.asked].sum(axis=1)
        self._form.constrain("nothing_left_over", given == self.profiles.capacity, equation="sum_i x_ij = m_j")

    def efficient(self, profile: int, holders: Array) -> None:
        """All GPUs are given out at this profile, each to one that ``holders`` (n, k) allows.

        Where these are `efficient_holders`, no other allocation is as good for all and better for somebody. Errors:
        `BadInput` for a symmetric design: the mean of such rules need not be one.
        """
        if self._symmetric:
            raise BadInput("efficient() was asked of a symmetric design", remedy="Make it with symmetric=False")
        share = self.share[profile]
        self._form.constrain(f"given at {profile}", share.sum(axis=0) == self.profiles.capacity)
        self._form.constrain(f"held at {profile}", (share <= 0).where(~holders), equation="x_ij = 0")

    # -- how good it is to be ----------------------------------------------------------------------------------------
    def proportionally_fair(self) -> None:
        """Maximise the part t of its throughput at the largest Nash welfare that everybody is sure to get.

        In ranges of two types the corners decide. Let p be the price of the second type over that of the first. It
        rises with everybody's ratio r_i = v_i2 / v_i1. A user gets max(v_i1 (1 + p), v_i2 (1 + 1/p)) / n, where m = 1.
        In p the one rises and the other falls, so that for its given speedups it gets most where all others have their
        least ratios, or all their largest. In its own speedups that is convex: with v_i1 = 1 it is constant in r_i up
        to p, then has the slope 1/n while p follows r_i, then (1 + 1/p) / n. Errors: `BadInput` for ranges of more
        types.
        """
        if self.profiles.cells.shape[1] > 1 and len(self.profiles.capacity) > 2:
            remedy = "Ask about single reports, which bounds what is possible from above"
            raise BadInput("proportional fairness over ranges of more than two types", remedy=remedy)
        joint, speedup = self.profiles.joint_corners(), self._speedup
        users = np.arange(joint.shape[1])
        target = np.zeros(speedup.shape[:3], dtype=object)
        known: dict[
            tuple[tuple[Fraction, ...], ...], Array
        ] = {}  # neighbours have corners in common, and order is nothing
        for a, corners in enumerate(speedup):
            for at in joint:
                rows = list(map(tuple, corners[users, at]))
                order = sorted(users, key=rows.__getitem__)
                alike = tuple(rows[i] for i in order)
                if alike not in known:
                    known[alike] = nash_utilities(np.array(alike), self.profiles.capacity)
                fair = known[alike][np.argsort(order)]
                target[a, users, at] = np.maximum(target[a, users, at], fair)
        self._level("proportionally_fair", self._own, target, "v_i . x_i >= t v_i . x_i(Nash)")

    def large_total(self) -> None:
        """Maximise the part t of the largest total throughput that is sure to be reached.

        Speedups count as they are reported, so let them sum to 1 (`grid`, `ranges`): in units of one's own choice,
        whoever says larger numbers would have to get everything. In ranges the corners decide, since the largest total
        is convex.
        """
        joint = self.profiles.joint_corners()
        users = np.arange(joint.shape[1])
        best = self._speedup[:, users, joint].max(axis=2) @ self.profiles.capacity
        self._level("large_total", self._own[:, users, joint].sum(axis=2), best, "sum_i v_i . x_i >= t max")

    def _level(self, name: str, reached: Affine, target: Array, equation: str) -> None:
        level = self._form.variable("t", lower=0)
        self._form.maximize(level)
        self._form.constrain(name, reached >= level * target, equation=equation)

    def program(self) -> Program:
        """Return the linear program; without a level to maximise, its objective is 0."""
        return self._form.program()

    def rule(self, point: Array) -> Array:
        """Return what a solution of the program gives, (P, n, k)."""
        return np.asarray(point[self.share.column].reshape(self.share.shape))


def nash_utilities(speedup: Array, capacity: Array) -> Array:
    """Return each user's throughput (n,) at the largest Nash welfare, exact: a competitive equilibrium.

    >>> print(*nash_utilities(np.array([[1, 2], [1, 5]]), np.array([1, 1])))
    3/2 15/4
    """
    market = Market.of(speedup, capacity).as_(Fraction)
    for draft in maximal_nash_welfare(market, (1e-3, TARGET)):
        found = exact_equilibrium(market, draft.values["share"])
        if found is not None:
            return np.asarray((market.speedup * found[1]).sum(axis=1))
    raise BadInput(f"no exact equilibrium found for {speedup.tolist()}", remedy="Give speedups with fewer digits")


def _renamed(count: int, n: int, k: int, users: Sequence[int], types: Sequence[int], where: Array) -> Array:
    """Return the number of the share (P, n, k) that each share becomes when users and types are renamed."""
    # what user users[i] gets of type types[j] is what user i gets of type j under the other names
    number = np.zeros((count, n, k), dtype=np.int64)
    to = (where[:, None, None] * n + np.arange(n)[None, :, None]) * k + np.arange(k)[None, None, :]
    number[:, np.array(users)[:, None], np.array(types)[None, :]] = to
    return number
