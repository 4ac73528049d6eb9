"""Envy-free bundles that many users share: the best ones for groups of users who hold nearly the same.

Users who hold the same do not envy each other, whatever was rounded. Where users are nearly alike and should hold the
same, a method leaves them bundles that differ by its errors, and each of them likes another's by some roundings; there
is next to no room between them to mend that. So users whose bundles are close make up a group, and a small program says
what each group holds: no member may prefer what another group holds, and a bundle is no more than the least demand of
its group allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.errors import NotSolved, OutOfTime
from fairopt.methods.envy_free.problem import MergedUsers
from fairopt.methods.incremental_lp import Blocks, Entries, IncrementalLP, entries_of
from fairopt.program import INFINITY, Array

#: At most so many groups, and so many rounds of rows against envy, of which each adds one for a pair of groups.
MOST_GROUPS, ROUNDS = 100, 20
#: At most so many pairs of bundles, and of users and groups.
MOST_PAIRS = 4_000_000
#: What its own bundle is worth more to a user than another group's, as a part: enough for what a proof rounds.
MARGIN = 1e-12


def shared_bundles(users: MergedUsers, bundle: Array, holds: Array, apart: float) -> tuple[Array, Array] | None:
    """Return bundles per weight (g, k) of the largest total among groups, and which of them each user holds (n,).

    ``bundle`` (c, k) per weight and ``holds`` (n,) are nearly right. Bundles are of one group if they, or they and
    others in between, differ by at most ``apart`` of all GPUs per weight. None where that is of no use: there are too
    many bundles or groups, users in proportion are in different ones, or the program is not solved, or not in time.
    """
    if len(bundle) ** 2 > MOST_PAIRS:
        return None
    unit = users.capacity / users.weight.sum()
    group = _close(bundle / unit, apart)
    count = int(group.max()) + 1
    pairs = np.unique(np.column_stack([users.direction, group[holds]]), axis=0)
    different = len(pairs) > users.direction.max() + 1  # users in proportion would hold different bundles
    if not 1 < count <= MOST_GROUPS or count * len(holds) > MOST_PAIRS or different:
        return None
    groups = _Groups(users, unit, group[holds], count)
    try:
        found = groups.optimum((bundle / unit)[np.unique(group, return_index=True)[1]])
    except (NotSolved, OutOfTime):  # what is known without it stands
        return None
    return found * unit, group[holds]


def _close(bundle: Array, apart: float) -> Array:
    """Return the group (c,) of each bundle (c, k), numbered from 0."""
    group = np.full(len(bundle), -1)
    count = 0
    for first in range(len(bundle)):
        reached = [first] if group[first] < 0 else []
        group[reached] = count
        while reached:
            near = (np.abs(bundle - bundle[reached.pop()]) <= apart).all(axis=1) & (group < 0)
            group[near] = count
            reached += np.flatnonzero(near).tolist()
        count = int(group.max()) + 1
    return group


@dataclass(frozen=True, eq=False)
class _Groups:
    """The program of ``count`` groups: ``holds`` (n,) is each user's, ``unit`` (k,) what bundles are counted in."""

    users: MergedUsers
    unit: Array
    holds: Array
    count: int

    def optimum(self, near: Array) -> Array:
        """Return the best bundles (g, k); ``near`` (g, k) are nearly the best. Errors: `NotSolved`, `OutOfTime`."""
        value = self.users.speedup * self.unit
        value = value / value.max(axis=1, keepdims=True)
        lp, known, bundle = self._program(), np.zeros((len(value), self.count), dtype=bool), near
        for _ in range(ROUNDS):
            spared = (value * bundle[self.holds]).sum(axis=1)[:, None] * (1 - MARGIN) - value @ bundle.T
            envious, envied = self._least(spared)
            # at first a row for each pair of groups, then those that are violated
            new = ~known[envious, envied] & ((spared[envious, envied] < 0) | (not known.any()))
            if not new.any():
                break
            envious, envied = envious[new], envied[new]
            known[envious, envied] = True
            lp.add_rows(*self._against(value[envious], self.holds[envious], envied))
            lp.solve()
            lp.polish()
            bundle = lp.x.reshape(bundle.shape)
        return np.maximum(bundle, 0.0)

    def _program(self) -> IncrementalLP:
        """Return the program without rows against envy."""
        users, k = self.users, len(self.unit)
        weight = np.bincount(self.holds, users.weight) / users.weight.sum()
        limit = np.full(self.count, INFINITY)
        np.minimum.at(limit, self.holds, users.demand / users.weight)
        gain = np.zeros((self.count, k))
        np.add.at(gain, self.holds, users.weight[:, None] * users.speedup * self.unit)
        lp, limited = Blocks(), np.flatnonzero(limit < INFINITY)
        columns = lp.columns((gain / gain.sum()).ravel()).reshape(self.count, k)
        capacity, demand = lp.rows(-INFINITY, 1.0, k), lp.rows(-INFINITY, 1.0, len(limited))
        lp.entries(np.tile(capacity, self.count), columns.ravel(), np.repeat(weight, k))
        lp.entries(np.repeat(demand, k), columns[limited].ravel(), (self.unit / limit[limited, None]).ravel())
        return IncrementalLP(lp.program("bundles of groups"))

    def _least(self, spared: Array) -> tuple[Array, Array]:
        """Return for each two groups the member of the first that has least to spare (n, g), and the second group."""
        members = [np.flatnonzero(self.holds == g) for g in range(self.count)]
        envious = np.array([each[spared[each].argmin(axis=0)] for each in members])
        first, second = np.nonzero(~np.eye(self.count, dtype=bool))
        return envious[first, second], second

    def _against(self, value: Array, own: Array, envied: Array) -> tuple[Array, Array, Entries]:
        """Return rows that say: bundle ``own`` is worth more than ``envied`` at speedups ``value`` (q, k)."""
        at = np.concatenate(
            [each[:, None] * len(self.unit) + np.arange(len(self.unit)) for each in (own, envied)], axis=1
        )
        rows = entries_of(at, np.concatenate([value * (1 - MARGIN), -value], axis=1))
        return np.zeros(len(own)), np.full(len(own), INFINITY), rows
