"""What bundles of GPUs are worth to users who can use only so many."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.numbers import arithmetic
from fairopt.program import Array, objects


def usable(speedup: Array, bundle: Array, demand: Array | None) -> Array:
    """Return the part of bundles (..., k) in use: fastest GPUs first, ``demand`` (...) at most, none at speedup 0.

    >>> usable(np.array([1.0, 3.0]), np.array([2.0, 1.0]), np.array(2.0)).tolist()
    [1.0, 1.0]
    """
    speedup, bundle = np.broadcast_arrays(speedup, bundle)
    runs = np.where(speedup > 0, bundle, 0)
    if demand is None:
        return np.asarray(runs)
    fastest_first = np.argsort(-speedup, axis=-1, kind="stable")
    sorted_ = np.take_along_axis(runs, fastest_first, axis=-1)
    held_before = np.cumsum(sorted_, axis=-1) - sorted_
    used = np.maximum(0, np.minimum(sorted_, demand[..., None] - held_before))
    out: Array = np.empty_like(used)
    np.put_along_axis(out, fastest_first, used, axis=-1)
    return out


def capped_value(speedup: Array, bundle: Array, demand: Array | None) -> Array:
    """Return the throughput of bundles (..., k) at speedups (..., k) for users limited to ``demand`` (...) GPUs.

    >>> capped_value(np.array([1.0, 3.0]), np.array([2.0, 1.0]), np.array(2.0)).tolist()
    4.0
    """
    used = bundle if demand is None else usable(speedup, bundle, demand)
    if arithmetic(speedup).exact and arithmetic(used).exact:  # most shares are 0, and Fractions are slow
        own, held = (each.reshape(-1, each.shape[-1]).tolist() for each in np.broadcast_arrays(speedup, used))
        rows = zip(own, held, strict=True)
        totals = [sum((s * x for s, x in zip(*row, strict=True) if x), Fraction(0)) for row in rows]
        return objects(totals).reshape(np.broadcast_shapes(speedup.shape, used.shape)[:-1])
    return np.asarray((speedup * used).sum(axis=-1))
