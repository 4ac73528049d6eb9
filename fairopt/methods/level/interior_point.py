"""Prices near the optimal ones by an interior-point method that eliminates the users: k + 1 unknowns are left.

What comes out is a guess that `fairopt.methods.level.box` makes exact; nothing rests on its accuracy.

Source: Mehrotra, On the implementation of a primal-dual interior point method, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.deadline import left
from fairopt.methods.level.problem import LevelPoint, LevelProblem
from fairopt.program import Array

#: A step goes this part of the way to where the first number would be 0.
SHORT = 0.95
MOST_STEPS = 80
#: Relative gaps: the one at which a sample's prices are good enough, and the least that is asked for.
ROUGH, FINE = 1e-4, 1e-6


def interior(
    problem: LevelProblem,
    held: Array,
    rising: Array,
    prices: Array,
    level: float,
    tolerance: float,
    enough: Callable[[Array], bool] | None = None,
) -> LevelPoint:
    """Return prices, others holding ``held + rising * level``, from ``prices`` and ``level`` to a ``tolerance``.

    It ends as soon as the shares (k, n), at the start or after a step, are ``enough``. Errors: `OutOfTime`, with the
    best `LevelPoint` by then.
    """
    iterate = _Iterate(problem, held, rising, prices, level)
    best, since, gap = np.inf, 0, np.inf
    kept = (iterate.p, iterate.t, iterate.x)
    steps = 0
    with np.errstate(all="ignore"):
        while steps < MOST_STEPS:
            if enough is not None and enough(iterate.shares):
                kept = (iterate.p, iterate.t, iterate.x)
                break
            gap = iterate.residuals()
            if not np.isfinite(gap):
                break
            if gap < 0.9 * best:
                best, since, kept = gap, 0, (iterate.p.copy(), iterate.t, iterate.x)
            else:
                since += 1
            if gap <= tolerance or since > 8:
                break
            try:
                left(found=LevelPoint(kept[0], kept[1], iterate.shares_of(kept[2]), steps=steps))
                iterate.step()
            except np.linalg.LinAlgError:
                break
            steps += 1
    prices, level, x = kept
    return LevelPoint(prices, level, iterate.shares_of(x), steps=steps)


@dataclass(frozen=True, eq=False)
class _Direction:
    """By how much a step changes each unknown of `_Iterate`; ``u`` and ``q`` are None where nobody has a demand."""

    x: Array
    z: Array
    w: Array
    p: Array
    y: Array
    t: float
    u: Any
    q: Any


class _Iterate:
    """One run. Primal: x shares, w GPUs left over, u what is left of demands. Duals: p, y, q; z are reduced costs.

    D stands for x / z, as usual. Where ``can`` is not None, pairs that it leaves out have no x.
    """

    def __init__(self, problem: LevelProblem, held: Array, rising: Array, prices: Array, level: float) -> None:
        can = np.isfinite(problem.need)
        self.can = None if can.all() else can
        self.speed = np.divide(1.0, problem.need)
        self.problem, self.rising, self.cap = problem, rising, problem.capacity - held
        cheapest = (prices[:, None] * problem.need).min(axis=0)
        scale = 1.0 / float(problem.rate @ cheapest + rising @ prices)
        prices = prices * scale
        self.p, self.t = prices, level
        self.y = 0.6 * scale * cheapest
        size = problem.size
        self.part = size / size.sum()
        self.z = prices[:, None] - self.speed * self.y
        k = len(prices)
        worth = max(float(prices @ np.maximum(self.cap - rising * level, 0)), 1e-3 * float(prices @ problem.capacity))
        mu = worth / (2 * k)
        self.x = mu * self.part / self.z
        self.w = mu / (k * prices)
        self.shift: Any = None
        self.inverse: Any = None
        self.limited: Any = None  # which users have a demand (n,), if any has
        if problem.demand is not None:
            self.limited = np.isfinite(problem.demand)
            self.limit = np.where(self.limited, problem.demand, 0.0)
            self.u = np.where(self.limited, 0.5 * self.limit, 1.0)
            self.q = np.where(self.limited, mu * self.part / self.u, 0.0)
            self.z += self.q
        if self.can is not None:
            self.x[~self.can] = self.z[~self.can] = 1.0

    @property
    def shares(self) -> Array:
        """The shares (k, n), zero where a user cannot run."""
        return self.shares_of(self.x)

    def shares_of(self, x: Array) -> Array:
        """Return ``x`` without pairs that it leaves out."""
        return x if self.can is None else x * self.can

    def residuals(self) -> float:
        """Set what the rows lack, and return the largest of gap and residuals, relative."""
        x, problem = self.x, self.problem
        if self.can is not None:
            x = x * self.can
        self.lack_cap = self.cap - self.rising * self.t - x.sum(axis=1) - self.w
        target = problem.floor + problem.rate * self.t
        self.lack_y = target - np.einsum("ij,ij->j", self.speed, x)
        self.lack_t = 1.0 - float(problem.rate @ self.y) - float(self.rising @ self.p)
        self.products = self.x * self.z
        if self.can is not None:
            self.products *= self.can
        gap = float(self.products.sum() + self.w @ self.p)
        self.count = len(x) + 1.0
        if self.limited is not None:
            self.lack_q = np.where(self.limited, self.limit - x.sum(axis=0) - self.u, 0.0)
            gap += float(self.u @ self.q)
            self.count += 1.0
        self.mu = gap / self.count
        short = float(np.abs(self.lack_cap) @ self.p + np.abs(self.lack_y) @ self.y)
        return max((gap + short) / max(abs(self.t), 1e-300), abs(self.lack_t))

    def step(self) -> None:
        """Make one predictor-corrector step."""
        self.eliminate()
        k = len(self.p)
        # the predictor aims at products of 0, and tells how far products can fall
        rho_u = None if self.limited is None else -self.u * self.q
        ahead = self.direction(-self.products, -self.w * self.p, rho_u)
        aim = self.mu * min(max(self.reached(ahead) / (self.mu * self.count), 0.0) ** 3, 1.0)
        even = aim * self.part
        rho = even - self.products - ahead.x * ahead.z
        if self.can is not None:
            rho *= self.can
        rho_w = aim / k - self.w * self.p - ahead.w * ahead.p
        if self.limited is not None:
            rho_u = np.where(self.limited, even - self.u * self.q - ahead.u * ahead.q, 0.0)
        d = self.direction(rho, rho_w, rho_u)
        a, b = (min(1.0, SHORT * length) for length in self.lengths(d))
        self.x = self.x + a * d.x
        self.w = self.w + a * d.w
        self.t += a * float(d.t)
        self.p, self.y, self.z = self.p + b * d.p, self.y + b * d.y, self.z + b * d.z
        if self.limited is not None:
            self.u, self.q = self.u + a * d.u, self.q + b * d.q

    def eliminate(self) -> None:
        """Set the Newton system without the users: k + 1 equations in prices and level, and what brings users back."""
        D = self.x / self.z
        if self.can is not None:
            D *= self.can
        total = D.sum(axis=1) + self.w / self.p
        DS = D * self.speed
        if self.limited is None:
            V, e = DS, np.einsum("ij,ij->j", DS, self.speed)
            matrix = -np.diag(total)
        else:
            slack = self.u / np.where(self.limited, self.q, 1.0)
            inverse = np.where(self.limited, 1.0 / (D.sum(axis=0) + slack), 0.0)
            shift = DS.sum(axis=0) * inverse
            self.shift, self.inverse = shift, inverse
            apart = self.speed - shift
            V = D * apart
            e = (V * apart).sum(axis=0) + shift**2 * np.where(self.limited, slack, 0.0)
            # a user without demand has shift 0, and e is the sum of D s^2 as above
            matrix = -np.diag(total) + (D * inverse) @ D.T
        Ve = V / e
        k, rate = len(self.p), self.problem.rate
        system = np.empty((k + 1, k + 1))
        system[:k, :k] = matrix + Ve @ V.T
        system[:k, k] = system[k, :k] = Ve @ rate + self.rising
        system[k, k] = float(rate @ (rate / e))
        self.D, self.V, self.e, self.system = D, V, e, system

    def direction(self, rho: Array, rho_w: Array, rho_u: Any) -> _Direction:
        """Solve the k + 1 equations that are left, and return what all unknowns change by."""
        D, V, e, shift, inverse = self.D, self.V, self.e, self.shift, self.inverse
        r = rho / self.z
        g_y = self.lack_y - np.einsum("ij,ij->j", self.speed, r)
        g_p = self.lack_cap - r.sum(axis=1) - rho_w / self.p
        h = g_y
        if shift is not None:
            g_q = np.where(self.limited, self.lack_q - r.sum(axis=0) - rho_u / np.where(self.limited, self.q, 1.0), 0.0)
            h = g_y - shift * g_q
        he = h / e
        side = g_p - V @ he
        if shift is not None:
            side -= D @ (inverse * g_q)
        answer = np.linalg.solve(self.system, np.append(side, self.lack_t - float(self.problem.rate @ he)))
        dp, dt = answer[:-1], answer[-1]
        dy = he + (self.problem.rate * dt + dp @ V) / e
        dz = dp[:, None] - self.speed * dy
        du = dq = None
        if shift is not None:
            dq = shift * dy - inverse * (g_q + dp @ D)
            dz += dq
            du = np.where(self.limited, (rho_u - self.u * dq) / np.where(self.limited, self.q, 1.0), 0.0)
        if self.can is not None:
            dz *= self.can
        return _Direction(x=r - D * dz, z=dz, w=(rho_w - self.w * dp) / self.p, p=dp, y=dy, t=dt, u=du, q=dq)

    def reached(self, d: _Direction) -> float:
        """Return what the products would add up to after the longest possible step along ``d``."""
        a, b = self.lengths(d)
        # the sum of (x + a dx) (z + b dz): where a user cannot run, dx and dz are 0 and the products are left out
        after = float(self.products.sum()) + a * float(np.vdot(d.x, self.z)) + b * float(np.vdot(self.x, d.z))
        after += a * b * float(np.vdot(d.x, d.z)) + float((self.w + a * d.w) @ (self.p + b * d.p))
        if self.limited is not None:
            after += float((self.u + a * d.u) @ (self.q + b * d.q))
        return after

    def lengths(self, d: _Direction) -> tuple[float, float]:
        """Return how far the shares and the duals can go before the first is 0."""
        primal = max(-float((d.x / self.x).min()), -float((d.w / self.w).min()), 1e-9)
        dual = max(-float((d.z / self.z).min()), -float((d.p / self.p).min()), 1e-9)
        if d.u is not None:
            primal = max(primal, float((-d.u / self.u).max()))
            dual = max(dual, float((-d.q / np.where(self.limited, self.q, 1.0)).max()))
        return 1.0 / primal, 1.0 / dual
