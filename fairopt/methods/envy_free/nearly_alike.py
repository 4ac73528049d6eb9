"""Users whose speedups are nearly in proportion: a market whose users differ more, and the way back from its answer.

Count each type's GPUs as one, and each user's throughput so that all GPUs are worth one. Then a user's speedups add up
to one, and a part of everything is worth the same to all: bundles that grow by such parts keep their differences in
what they are worth, at whatever user. Let m be the mean user and v = m + f (a - m), where f < 1 and the users ``a``
differ more. Where u is what a bundle b is worth to m, v . b = (1 - f) u + f a . b. So let each bundle get the part of
everything that it takes for u to become f u plus a constant: then users v envy as little as users ``a`` did, times f.
What that uses above the capacities is taken off all bundles in proportion, and what is left over is given to all alike.

Rounding may leave envy of some last digits, which bundles that are strictly free of envy would remove only in large
parts where users are nearly alike, since these hardly are strictly so. Among the users who differ more, a small part of
such bundles leaves room enough for it: what room there is becomes f times as much on the way back, as does what it
costs.

The program of users who are nearly alike is one that floats tell little about; that of users who differ by a hundredth
is not. What the way there and back costs, as a part of the optimum, is about the product of how much users differ in
the two markets.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.methods.envy_free.problem import against_envy, optimum_of
from fairopt.methods.grouping import evened_out
from fairopt.program import Array

#: Users who differ by up to this part from the mean are nearly alike.
ALIKE = 9e-5
#: The product of how much users differ in the two markets is to be at most `NEAR`; spread, they differ within `SPREAD`.
NEAR, SPREAD = 1e-8, (1e-3, 0.1)
#: The room that is made for rounding, as a part of what a bundle is worth to a user of the market, and the most of
#: strictly envy-free bundles that is mixed in for it, among the users who differ more.
ROOM, MIXED = 2e-13, 0.05


@dataclass(frozen=True, eq=False)
class SpreadUsers:
    """Users of speedups ``speedup`` (n, k) who differ ``1 / factor`` times as much as those of a market do.

    ``capacity`` (k,), ``weight`` (n,) are the market's. ``worth`` (n,): what all GPUs are worth to a user of the
    market; here that is 1. ``gain`` (n,): what a unit of throughput and weight counts here. ``differ``: the most that a
    user of the market differs from the mean, as a part.
    """

    speedup: Array
    gain: Array
    capacity: Array
    weight: Array
    mean: Array
    worth: Array
    factor: float
    differ: float

    @property
    def nearly_alike(self) -> bool:
        """Whether the market's users differ so little that floats tell little about them."""
        return self.differ <= ALIKE

    @property
    def far(self) -> float:
        """How much users are to differ for an answer that is near enough."""
        return float(np.clip(NEAR / self.differ, *SPREAD))

    @classmethod
    def of(cls, speedup: Array, gain: Array, capacity: Array, weight: Array, most: float) -> SpreadUsers:
        """Return users who differ from the mean by up to the part ``most`` where the market's differ less."""
        value = speedup * capacity
        worth = value.sum(axis=1)
        parts = value / worth[:, None]
        mean = weight @ parts / weight.sum()
        apart = parts / mean - 1
        differ = float(np.abs(apart).max())
        factor = min(1.0, differ / most)
        if 0 < factor < 1:
            parts = mean * (1 + apart / factor)
        return cls(parts / capacity, gain * worth, capacity, weight, mean, worth, factor, differ)

    def with_room(self, found: Solution) -> Solution:
        """Return an optimum of these users with a small part of strictly envy-free bundles: room for rounding.

        By Cauchy and Schwarz a user of speedups v values v / |v| most, in the capacities as units.
        """
        value, total = self.speedup * self.capacity, self.weight.sum()
        strict = value / np.sqrt((value * value).sum(axis=1, keepdims=True))
        strict = strict / (self.weight @ strict).max() * total
        bundle = found.values["bundle"][found.values["holds"]] / self.capacity * total
        spared, strictly = (self._spared(value, each) for each in (bundle, strict))
        lacks = ROOM / self.factor - spared
        needed = lacks > 0
        part = min(MIXED, float((lacks[needed] / (lacks[needed] + strictly[needed])).max(initial=0.0)))
        bundle = (1 - part) * bundle + part * strict
        values = {"bundle": bundle * self.capacity / total, "holds": np.arange(len(value))}
        return replace(found, values=values)

    def _spared(self, value: Array, bundle: Array) -> Array:
        """Return by how much everybody prefers its own bundle to others' (n, n)."""
        worth = value @ bundle.T
        spared: Array = np.diagonal(worth)[:, None] - worth
        np.fill_diagonal(spared, np.inf)
        return spared

    def back(self, found: Solution) -> Solution:
        """Return an optimum of these users, where no demands limit them, as nearly one of the market's."""
        total = self.weight.sum()
        holds, against = found.values["holds"], against_envy(found)
        envious, envied, envy = against
        bundle = found.values["bundle"] / self.capacity * total
        at_mean = bundle @ self.mean
        bundle = bundle + (1 - self.factor) * (at_mean.max() - at_mean)[:, None]
        used = np.bincount(holds, self.weight, minlength=len(bundle)) @ bundle / total
        bundle = bundle / used.max() + (1 - used / used.max())
        # what everybody's throughput counts, with multipliers, is to differ from what the weight says by less, too
        out, in_ = (np.bincount(each, envy, minlength=len(self.gain)) for each in (envious, envied))
        short = (1 - self.factor) * (self.gain.sum() / total * self.weight - (self.gain + out - in_))
        even = evened_out(np.zeros(len(short), dtype=np.int64), short)
        envious, envied, envy = (np.concatenate(both) for both in zip(against, even, strict=True))
        return optimum_of(
            bundle * self.capacity / total,
            holds,
            np.zeros(len(self.capacity)),
            np.asarray(found.duals["demand"]),
            (envious, envied, envy / self.worth[envious]),
            effort=found.effort,
        )
