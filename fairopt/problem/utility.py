"""What a bundle of GPUs is worth to a user that can use only so many at once."""

from __future__ import annotations

import numpy as np

from fairopt.program import Array


def usable(speedup: Array, bundle: Array, demand: Array | None) -> Array:
    """Return the part of bundles (..., k) that users with speedups (..., k) put to use.

    A user runs on its fastest GPUs first, on ``demand`` (...) of them at most (None: no limit), and not at all where
    its speedup is 0.
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
    """Return the throughput of bundles (..., k) at speedups (..., k) for users limited to ``demand`` (...) GPUs."""
    used = bundle if demand is None else usable(speedup, bundle, demand)
    return np.asarray((speedup * used).sum(axis=-1))
