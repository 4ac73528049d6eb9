"""From a market's arrays to few users and back: users that hold the same per weight in some optimum are merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.methods.envy_free.relaxation import EnvyFreeOptimum
from fairopt.methods.envy_free.warm_start import EnvyInstance
from fairopt.methods.grouping import alike_rows, evened_out, identical_rows, shared_out, sums
from fairopt.program import INFINITY, Array

#: Users whose speedups are proportional up to this are merged: 0.1, 0.3 is 1, 3 in other units, but for rounding.
ALIKE = 1e-10


@dataclass(frozen=True, eq=False)
class MergedUsers:
    """Users with identical rows are one of d *distinct* users; distinct users in proportion are one of an ``instance``.

    Shapes: ``group`` (n,) the distinct user that each user is, ``part`` (n,) its part of that one's weight. Of distinct
    users: ``speedup`` (d, k), ``weight``, ``demand``, ``top`` (largest speedup), ``direction`` (the same number where
    speedups are in proportion) and ``merged`` (place in the instance), all (d,). Of the instance's users: ``weights``
    and ``gain``, what a unit of throughput and weight counts in the objective. ``types``, ``capacity`` (k,): the types
    that have GPUs and a user that runs on them.
    """

    types: Array
    capacity: Array
    group: Array
    part: Array
    speedup: Array
    weight: Array
    demand: Array
    top: Array
    direction: Array
    merged: Array
    instance: EnvyInstance
    weights: Array
    gain: Array

    @classmethod
    def of(
        cls, users: Sequence[str], speedup: Array, capacity: Array, weight: Array, demand: Array | None
    ) -> MergedUsers:
        """Merge the users of a market; shapes as in `envy_free_shares`."""
        types = np.flatnonzero((capacity > 0) & (speedup > 0).any(axis=0))
        per_weight = np.full(len(weight), INFINITY) if demand is None else demand / weight
        first, group = identical_rows(np.column_stack([speedup[:, types], per_weight]))
        rows, limit = speedup[first][:, types], per_weight[first]
        together = sums(group, weight)
        top = rows.max(axis=1)
        scaled = rows / top[:, None]
        # alike in what a GPU is worth, and in what all GPUs of a type are
        of_all = scaled * capacity[types]
        alike = np.column_stack([scaled, of_all / of_all.max(axis=1, keepdims=True)])
        direction = alike_rows(alike, ALIKE)[1]
        leaders, merged = identical_rows(np.column_stack([direction, limit]))
        return cls(
            types=types,
            capacity=capacity[types],
            group=group,
            part=weight / together[group],
            speedup=rows,
            weight=together,
            demand=np.full(len(first), INFINITY) if demand is None else sums(group, demand),
            top=top,
            direction=direction,
            merged=merged,
            instance=EnvyInstance(tuple(users[i] for i in first[leaders]), scaled[leaders], limit[leaders], types),
            # users in proportion can as well hold the same per weight: their average is worth the same to them
            weights=np.bincount(merged, together),
            gain=np.bincount(merged, together * top),
        )

    def multipliers(self, found: EnvyFreeOptimum) -> tuple[Array, Array, Array]:
        """Return the multipliers (envious, envied, value) of an optimum of the instance, between distinct users."""
        part = self.weight / self.weights[self.merged]
        apart = shared_out(self.merged, part, found.envious, found.envied, found.envy)
        # users that count for more than their part would give to the others, were it not for their envy
        even = evened_out(self.merged, part * self.gain[self.merged] - self.weight * self.top)
        envious, envied, envy = (np.concatenate(both) for both in zip(apart, even, strict=True))
        return envious, envied, envy / self.top[envious]
