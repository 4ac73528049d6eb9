"""A common level to raise, in numbers without units: what all parts of `fairopt.methods.level.solve` work on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fairopt.errors import BadInput
from fairopt.program import Array

#: Users are gone through in blocks of so many: a block's rows stay in the processor's cache.
BLOCK = 8192
#: So many users are looked at to see whether many are alike.
LOOKED_AT = 2000


@dataclass(frozen=True, eq=False)
class Task:
    """Maximise t such that each user reaches ``floor + rate * t``, all types as rows and users as columns.

    Shapes: ``need`` (k, n) GPUs of a type for one unit of a user's throughput, infinity where it cannot run or no GPU
    is; ``capacity`` (k,); ``rate``, ``floor`` (n,); ``demand`` (n,) GPUs, infinity for no limit, or None for no limits
    at all. A user's unit is its throughput if it had the whole of its best type; ``rate`` adds up to 1, so that without
    floors and demands the optimum lies between 1 and k.
    """

    need: Array
    capacity: Array
    rate: Array
    floor: Array
    demand: Array | None

    @property
    def shape(self) -> tuple[int, int]:
        """(types, users)."""
        k, n = self.need.shape
        return k, n

    @property
    def size(self) -> Array:
        """How much each user weighs (n,): the part of its best type that it needs at level 1."""
        return np.asarray(self.rate + self.floor)

    @cached_property
    def reach(self) -> Array:
        """The level that each user's demand allows (n,), infinity where it does not limit it."""
        if self.demand is None:
            return np.full(len(self.rate), np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = (self.demand / self.need.min(axis=0) - self.floor) / self.rate
        return np.where(self.rate > 0, reach, np.inf)

    @property
    def highest(self) -> float:
        """The level that the demands alone allow, infinity where they do not limit it."""
        return float(self.reach.min(initial=np.inf))

    def evened(self, above: float) -> Task:
        """Return the task in which everybody is raised in the proportions that users have at the `highest` level.

        Whose demand is too small for a level higher by the part ``above`` uses its fastest types only, which needs no
        limit. Where the level of this task is at least 1, the demand of one user alone limits that of the other.
        """
        level = self.highest
        slow = (self.reach < level * (1 + above)) & (self.need > self.need.min(axis=0))
        limit = None if self.demand is None else np.where(self.reach < level * (1 + above), np.inf, self.demand)
        return replace(
            self,
            need=np.where(slow, np.inf, self.need),
            rate=self.floor + self.rate * level,
            floor=np.zeros(len(self.floor)),
            demand=None if limit is None or np.isinf(limit).all() else limit,
        )

    def speed(self, users: Array) -> Array:
        """Return the throughput of one GPU (k, len(users)), 0 where a user cannot run."""
        return np.asarray(1.0 / self.need[:, users])

    def select(self, users: Array, times: Array | None = None) -> Task:
        """Return the task of some users, each counted ``times``."""
        by = 1.0 if times is None else times
        return Task(
            need=self.need[:, users],
            capacity=self.capacity,
            rate=self.rate[users] * by,
            floor=self.floor[users] * by,
            demand=None if self.demand is None else self.demand[users] * by,
        )

    def merged(self) -> Task:
        """Return the task with users that are alike put together, if a look at some of them says that many are."""
        n = len(self.rate)
        few = self.select(np.arange(0, n, max(1, n // LOOKED_AT)))
        if len(few.alike()[0]) > 0.9 * len(few.rate):
            return self
        first, of = self.alike()
        size = self.size
        total = np.bincount(of, weights=size, minlength=len(first))
        return self.select(first, total / size[first])

    def alike(self) -> tuple[Array, Array]:
        """Return the first of each sort of users, alike up to size, and the sort that each is of (n,)."""
        size = self.size
        by = np.random.default_rng(len(self.capacity)).uniform(1, 2, len(self.capacity) + 2)
        mixed = by[0] * (self.rate / size)
        if self.demand is not None:
            mixed += by[1] * np.where(np.isfinite(self.demand), self.demand / size, 0.0)
        for row, each in zip(self.need, by[2:], strict=True):
            mixed += each * np.where(np.isfinite(row), row, 0.0)
        _, first, of = np.unique(mixed, return_index=True, return_inverse=True)
        return first, of

    def sample(self, count: int) -> Task:
        """Return a task of about ``count`` users drawn by size, which stand for all; the same ones every time."""
        size = self.size
        until = np.cumsum(size)
        draws = (np.arange(count) + np.random.default_rng(count).random(count)) * (until[-1] / count)
        users, times = np.unique(np.minimum(np.searchsorted(until, draws), len(until) - 1), return_counts=True)
        return self.select(users, times * (until[-1] / count) / size[users])


@dataclass(frozen=True, eq=False)
class Scale:
    """How a `Task` stands to what was asked: ``unit`` (n,) throughput, ``level`` t of the task for one t asked."""

    unit: Array
    level: float
    types: Array
    users: Array | None


def task_of(
    speedup: Array, capacity: Array, rate: Array, floor: Array | None, demand: Array | None
) -> tuple[Task, Scale]:
    """Return the task of arrays in the caller's units; types without GPUs and users that need nothing are left out.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,), the others (n,). Errors: `BadInput` where a user that is to be raised
    cannot run anywhere, or nobody is to be raised.
    """
    types = np.flatnonzero(capacity > 0)
    needy = rate > 0 if floor is None else (rate > 0) | (floor > 0)
    users = None if needy.all() else np.flatnonzero(needy)
    if len(types) < len(capacity):
        speedup = speedup[:, types]
    if users is not None:
        speedup, rate = speedup[users], rate[users]
        floor, demand = (None if each is None else each[users] for each in (floor, demand))
    amount = capacity[types].astype(float)
    n, k = speedup.shape
    need, unit = np.empty((k, n)), np.empty(n)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for first in range(0, n, BLOCK):
            part = slice(first, first + BLOCK)
            speed = np.ascontiguousarray(speedup[part].T, dtype=float)
            unit[part] = (speed * amount[:, None]).max(axis=0, initial=0.0)
            np.divide(unit[part], speed, out=need[:, part])
    if n == 0 or not (unit > 0).all() or not (rate > 0).any():
        where = "rate" if n == 0 or (unit > 0).all() else f"user {int(np.argmin(unit > 0))}"
        raise BadInput("nobody can be raised", place=where, remedy="Give users that run on some type with GPUs")
    by = rate / unit
    level = float(by.sum())
    floors = np.zeros(n) if floor is None else floor / unit
    limits = None if demand is None or not np.isfinite(demand).any() else demand.astype(float)
    return Task(need, amount, by / level, floors, limits), Scale(unit, level, types, users)
