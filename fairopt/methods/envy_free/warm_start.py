"""Envy-free shares again, after a user changed, came or went: where the last answer ended is where to begin."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairopt.methods.envy_free.restricted_lp import Basis, Start
from fairopt.methods.envy_free.solve import buys_at, room, wide
from fairopt.program import Array

#: A newcomer whose second best buy is worse than this part of its best joins the core of its best.
CLEAR = 0.9
#: A start is of use where at least this part of the kinds of users was there before.
SAME = 0.5


@dataclass(frozen=True, eq=False)
class Met:
    """The kinds of users of a market: a ``name`` for each, speedups (n, k), ``limit`` (n,), columns of the types."""

    name: tuple[str, ...]
    direction: Array
    limit: Array
    types: Array


@dataclass(frozen=True, eq=False)
class Ended:
    """Where an answer ended: for which kinds of users, the restricted program, prices (k,) of all GPUs of a type."""

    met: Met
    at: Start
    prices: Array

    def fits(self, met: Met) -> bool:
        """Whether it is of use for these users."""
        if not np.array_equal(met.types, self.met.types):
            return False
        return bool((self._before(met) >= 0).sum() >= SAME * len(met.name))

    def _before(self, met: Met) -> Array:
        """Return which kind each was before (n,), -1 for newcomers and for those who changed."""
        known = {name: place for place, name in enumerate(self.met.name)}
        before = np.array([known.get(name, -1) for name in met.name])
        same = (met.direction == self.met.direction[before]).all(axis=1) & (met.limit == self.met.limit[before])
        return np.where(same, before, -1)

    def start_for(self, met: Met, value: Array, size: Array) -> Start:
        """Return the start for users of speedups ``value`` (n, k), with ``size`` (k,) GPUs per weight in all.

        Who was there is where it was. A newcomer joins the core of its best buy where that is clear; else it is free,
        and at first tied to that core.
        """
        at, before = self.at, self._before(met)
        n, k = value.shape
        there = before >= 0
        core = np.where(there, at.core[before], -1)
        may_hold = np.where(there[:, None], at.may_hold[before], False)
        basis = at.basis
        held_basic = np.zeros((n, k), dtype=bool) if basis is None else basis.held[before] & there[:, None]
        demand_basic = np.zeros(n, dtype=bool) if basis is None else basis.demand[before] & there
        new_place = np.full(len(self.met.name), -1)
        new_place[before[there]] = np.flatnonzero(there)
        old_n, in_core = len(self.met.name), np.bincount(core[core >= 0], minlength=k) > 0

        buys, second = buys_at(value, self.prices) if k > 1 else (np.ones((n, 1)), np.zeros(n))
        best, new = buys.argmax(axis=1), np.flatnonzero(~there)
        joins = in_core[best[new]] & (second[new] < CLEAR) & (met.limit[new] > room(size, self.prices)[best[new]])
        core[new[joins]] = best[new[joins]]
        free = new[~joins]
        may_hold[free] = wide(value, buys, second)[free]
        held_basic[free, best[free]] = True
        tied = free[in_core[best[free]]]

        target = np.concatenate([np.arange(k), np.where(new_place >= 0, k + new_place, -1)])
        envious, envied = new_place[at.envious], target[at.envied]
        stay = (envious >= 0) & (envied >= 0)
        givers, takers = new_place[np.minimum(at.givers, old_n - 1)], new_place[np.minimum(at.takers, old_n - 1)]
        pair = (givers >= 0) & (takers >= 0)
        return Start(
            core,
            may_hold,
            np.concatenate([envious[stay], tied]),
            np.concatenate([envied[stay], best[tied]]),
            np.concatenate([at.tight[stay], np.ones(len(tied), dtype=bool)]),
            givers[pair],
            takers[pair],
            None if basis is None else Basis(held_basic, basis.core, basis.capacity, demand_basic),
        )
