"""What a bundle of GPUs is worth to a user that can use only so many at once."""

from __future__ import annotations

import numpy as np

from fairopt.program import Array


def capped_value(speedup: Array, bundle: Array, demand: Array | None) -> Array:
    """Return the throughput of bundles (..., k) at speedups (..., k) for users that use at most ``demand`` (...) GPUs.

    Such a user runs on its fastest GPUs first; without ``demand`` the value is the plain sum.
    """
    if demand is None:
        return np.asarray((speedup * bundle).sum(axis=-1))
    speedup, bundle = np.broadcast_arrays(speedup, bundle)
    fastest_first = np.argsort(-speedup, axis=-1, kind="stable")
    speedup = np.take_along_axis(speedup, fastest_first, axis=-1)
    bundle = np.take_along_axis(bundle, fastest_first, axis=-1)
    held_before = np.cumsum(bundle, axis=-1) - bundle
    used = np.maximum(0, np.minimum(bundle, demand[..., None] - held_before))
    return np.asarray((speedup * used).sum(axis=-1))
