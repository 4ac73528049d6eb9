"""Multipliers against envy of a good bound, in a moment: by gradients of the smoothed dual, where time is over.

For any multipliers y >= 0 the sum of prices times capacities is a bound on every total without envy (`bounds`), where
the price of a type is the most that anybody would pay; so whatever the steps here do, what they end at is valid, and
`bounds.upper_bound` computes it anew, with every rounding counted. The sum is convex in y. With the largest payments
taken as a logarithm of a sum of exponentials it has a gradient: what each user's own bundle is worth to it, less
another's, where bundles are parts of the types by who pays most. Accelerated steps come within some percent of the
optimum.

Source: Nesterov, Smooth minimization of non-smooth functions, Mathematical Programming 103, 2005.
"""

from __future__ import annotations

import numpy as np

from fairopt.methods.envy_free.problem import MergedUsers
from fairopt.program import Array

#: The payments that count are those within about this part of the largest.
SMOOTH = 0.02
#: The most steps, and the entries of tables (users, users, types) that they go through, in some tenths of a second.
STEPS, ENTRIES = 60, 8e7
#: Beyond so many users a step takes a tenth of a second.
MOST_USERS = 1000
#: A step that is refused is halved so often; then rounding decides.
HALVED = 60


def smoothed_multipliers(users: MergedUsers) -> tuple[Array, Array, Array]:
    """Return multipliers (l, i, y), y >= 0, for "s_l . b_l >= s_l . b_i", as `bounds.upper_bound` takes them.

    None for more than `MOST_USERS` users. Demands are ignored: a bound for any demands is one for these, if a wide one.
    """
    n = len(users.weight)
    if n > MOST_USERS:
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)
    dual = _SmoothedDual(users)
    found = _least(dual) * dual.scale * (dual.unit / dual.top)[:, None]
    envious, envied = np.nonzero(found)
    return envious, envied, found[envious, envied]


class _SmoothedDual:
    """The smoothed sum of prices, in units in which it is about one; multipliers (n, n) are multiples of ``scale``."""

    def __init__(self, users: MergedUsers) -> None:
        worth = users.speedup * users.capacity
        self.top = worth.max(axis=1)
        self.value = worth / self.top[:, None]
        self.weight = users.weight / users.weight.sum()
        self.unit = float((self.top * users.weight).sum())
        self.gain = self.top * users.weight / self.unit
        # neither of two users pays more than the multiple times what it values all GPUs of a type
        self.scale = np.minimum(self.weight[:, None], self.weight)
        np.fill_diagonal(self.scale, 0.0)  # nobody envies itself
        # no price is above its start
        self.smooth = SMOOTH * self._pays(np.zeros_like(self.scale)).max(axis=0)

    def _pays(self, y: Array) -> Array:
        kept = self.value * (self.gain + y.sum(axis=1))[:, None] - y.T @ self.value
        return np.asarray(kept / self.weight[:, None])

    def __call__(self, x: Array) -> tuple[float, float, Array]:
        """Return the sum of prices, that sum smoothed, and the gradient (n, n) of the latter."""
        pays = self._pays(x * self.scale)
        prices = pays.max(axis=0)
        parts = np.exp((pays - prices) / self.smooth)
        sums = parts.sum(axis=0)
        bundle = parts / sums / self.weight[:, None]
        own = (bundle * self.value).sum(axis=1)
        gradient = (own[:, None] - self.value @ bundle.T) * self.scale
        return float(prices.sum()), float((prices + self.smooth * np.log(sums)).sum()), gradient


def _least(dual: _SmoothedDual) -> Array:
    """Return the variables of the least bound that some accelerated steps meet."""
    n, k = dual.value.shape
    x: Array = np.zeros_like(dual.scale)
    ahead = best = x
    least, curvature, momentum = dual(x)[0], 1.0, 1.0
    for _ in range(min(STEPS, int(ENTRIES / (n * n * k)))):
        _, value, gradient = dual(ahead)
        for _ in range(HALVED):
            step = np.maximum(ahead - gradient / curvature, 0.0)
            moved = step - ahead
            total, reached, _ = dual(step)
            expected = value + float((gradient * moved).sum()) + curvature / 2 * float((moved * moved).sum())
            if reached <= expected + 1e-12 * abs(value):
                break
            curvature *= 2
        if total < least:
            least, best = total, step
        following = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
        ahead = step + (momentum - 1) / following * (step - x)
        x, momentum, curvature = step, following, 0.8 * curvature
    return best
