"""Prices near the optimal ones by an interior-point method that eliminates the users: k + 1 unknowns are left.

What comes out is a guess that others make exact; it is never believed.

Source: Mehrotra, On the implementation of a primal-dual interior point method, 1992.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairopt.methods.level.problem import Task
from fairopt.program import Array

#: A step stops short of where the first number would be 0, by this part.
SHORT = 0.95
MOST_STEPS = 80


@dataclass(frozen=True, eq=False)
class Guess:
    """Prices (k,) and a level of a task, with ``gap`` relative to the level; ``steps`` were made.

    Shapes: ``shares`` (k, n), ``rent`` (n,) or None, of the task that was solved.
    """

    prices: Array
    level: float
    shares: Array
    gap: float
    steps: int


def interior(task: Task, held: Array, rising: Array, prices: Array, level: float, tolerance: float) -> Guess:
    """Return near-optimal prices of ``task`` when others hold ``held + rising * level`` (k,) of the capacity.

    ``prices`` and ``level`` are where to begin. It stops at a relative gap of ``tolerance``, or where no step helps.
    """
    return _Iterate(task, held, rising, prices, level).run(tolerance)


class _Iterate:
    """One run: x (shares), w (what is left over), u (what is left of demands); p, y, q the duals; z the reduced costs.

    In the comments of the steps, D = x / z, as usual.
    """

    def __init__(self, task: Task, held: Array, rising: Array, prices: Array, level: float) -> None:
        can = np.isfinite(task.need)
        self.can = None if can.all() else can
        self.speed = np.divide(1.0, task.need)
        self.task, self.rising, self.cap = task, rising, task.capacity - held
        cheapest = (prices[:, None] * task.need).min(axis=0)
        scale = 1.0 / float(task.rate @ cheapest + rising @ prices)
        prices = prices * scale
        self.p, self.t = prices, level
        self.y = 0.6 * scale * cheapest
        size = task.size
        self.part = size / size.sum()
        self.z = prices[:, None] - self.speed * self.y
        k = len(prices)
        worth = max(float(prices @ np.maximum(self.cap - rising * level, 0)), 1e-3 * float(prices @ task.capacity))
        mu = worth / (2 * k)
        self.x = mu * self.part / self.z
        self.w = mu / (k * prices)
        self.limited: Any = None  # who has a demand (n,), where anybody has
        if task.demand is not None:
            self.limited = np.isfinite(task.demand)
            self.limit = np.where(self.limited, task.demand, 0.0)
            self.u = np.where(self.limited, 0.5 * self.limit, 1.0)
            self.q = np.where(self.limited, mu * self.part / self.u, 0.0)
            self.z += self.q
        if self.can is not None:
            self.x[~self.can] = self.z[~self.can] = 1.0

    def run(self, tolerance: float) -> Guess:
        """Step until the gap is small or does not shrink any more."""
        best, since, gap = np.inf, 0, np.inf
        kept = (self.p, self.t, self.x)
        steps = 0
        with np.errstate(all="ignore"):
            while steps < MOST_STEPS:
                gap = self.residuals()
                if not np.isfinite(gap):
                    break
                if gap < 0.9 * best:
                    best, since, kept = gap, 0, (self.p.copy(), self.t, self.x)
                else:
                    since += 1
                if gap <= tolerance or since > 8:
                    break
                try:
                    self.step()
                except np.linalg.LinAlgError:
                    break
                steps += 1
        prices, level, x = kept
        return Guess(prices, level, x if self.can is None else x * self.can, best, steps)

    def residuals(self) -> float:
        """Set what the rows lack, and return the largest of gap and residuals, relative."""
        x, task = self.x, self.task
        if self.can is not None:
            x = x * self.can
        self.lack_cap = self.cap - self.rising * self.t - x.sum(axis=1) - self.w
        target = task.floor + task.rate * self.t
        self.lack_y = target - np.einsum("ij,ij->j", self.speed, x)
        self.lack_t = 1.0 - float(task.rate @ self.y) - float(self.rising @ self.p)
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
        x, z, w, p, y = self.x, self.z, self.w, self.p, self.y
        D = x / z
        if self.can is not None:
            D *= self.can
        total = D.sum(axis=1) + w / p
        DS = D * self.speed
        if self.limited is None:
            shift, V, e = None, DS, np.einsum("ij,ij->j", DS, self.speed)
            matrix = -np.diag(total)
        else:
            slack = self.u / np.where(self.limited, self.q, 1.0)
            inverse = np.where(self.limited, 1.0 / (D.sum(axis=0) + slack), 0.0)
            shift = DS.sum(axis=0) * inverse
            apart = self.speed - shift
            V = D * apart
            e = (V * apart).sum(axis=0) + shift**2 * np.where(self.limited, slack, 0.0)
            # a user without demand has shift 0, and e is the sum of D s^2 as above
            matrix = -np.diag(total) + (D * inverse) @ D.T
        Ve = V / e
        k = len(p)
        system = np.empty((k + 1, k + 1))
        system[:k, :k] = matrix + Ve @ V.T
        system[:k, k] = system[k, :k] = Ve @ self.task.rate + self.rising
        system[k, k] = float(self.task.rate @ (self.task.rate / e))
        parts = (D, V, e, shift, None if shift is None else inverse, system)
        rho = -self.products
        rho_w = -w * p
        rho_u = None if shift is None else -self.u * self.q
        dx, dz, dw, dp, dy, dt, du, dq = self.direction(parts, rho, rho_w, rho_u)
        a, b = self.lengths(dx, dz, dw, dp, du, dq)
        # the sum of (x + a dx) (z + b dz): where a user cannot run, dx and dz are 0 and the products are left out
        after = float(self.products.sum()) + a * float(np.vdot(dx, z)) + b * float(np.vdot(x, dz))
        after += a * b * float(np.vdot(dx, dz)) + float((w + a * dw) @ (p + b * dp))
        if shift is not None:
            after += float((self.u + a * du) @ (self.q + b * dq))
        aim = self.mu * min(max(after / (self.mu * self.count), 0.0) ** 3, 1.0)
        even = aim * self.part
        rho = even - self.products - dx * dz
        if self.can is not None:
            rho *= self.can
        rho_w = aim / k - w * p - dw * dp
        if shift is not None:
            rho_u = np.where(self.limited, even - self.u * self.q - du * dq, 0.0)
        dx, dz, dw, dp, dy, dt, du, dq = self.direction(parts, rho, rho_w, rho_u)
        a, b = self.lengths(dx, dz, dw, dp, du, dq)
        a, b = min(1.0, SHORT * a), min(1.0, SHORT * b)
        self.x = x + a * dx
        self.w = w + a * dw
        self.t += a * float(dt)
        self.p, self.y, self.z = p + b * dp, y + b * dy, z + b * dz
        if shift is not None:
            self.u, self.q = self.u + a * du, self.q + b * dq

    def direction(self, parts: Any, rho: Array, rho_w: Array, rho_u: Any) -> Any:
        """Solve the k + 1 equations that are left, and return what all unknowns change by."""
        D, V, e, shift, inverse, system = parts
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
        answer = np.linalg.solve(system, np.append(side, self.lack_t - float(self.task.rate @ he)))
        dp, dt = answer[:-1], answer[-1]
        dy = he + (self.task.rate * dt + dp @ V) / e
        dz = dp[:, None] - self.speed * dy
        du = dq = None
        if shift is not None:
            dq = shift * dy - inverse * (g_q + dp @ D)
            dz += dq
            du = np.where(self.limited, (rho_u - self.u * dq) / np.where(self.limited, self.q, 1.0), 0.0)
        if self.can is not None:
            dz *= self.can
        dx = r - D * dz
        dw = (rho_w - self.w * dp) / self.p
        return dx, dz, dw, dp, dy, dt, du, dq

    def lengths(self, dx: Array, dz: Array, dw: Array, dp: Array, du: Any, dq: Any) -> tuple[float, float]:
        """Return how far the shares and the duals can go before the first is 0."""
        primal = max(-float((dx / self.x).min()), -float((dw / self.w).min()), 1e-9)
        dual = max(-float((dz / self.z).min()), -float((dp / self.p).min()), 1e-9)
        if du is not None:
            primal = max(primal, float((-du / self.u).max()))
            dual = max(dual, float((-dq / np.where(self.limited, self.q, 1.0)).max()))
        return 1.0 / primal, 1.0 / dual
