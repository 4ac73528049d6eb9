"""Envy-free shares of users who are nearly alike: what rounding must not drown, by interior points and spread apart."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.methods.envy_free import interior_point
from fairopt.methods.envy_free import nearly_alike as nearly_alike_module
from fairopt.methods.envy_free.interior_point import interior
from fairopt.methods.envy_free.interior_program import InteriorProgram
from fairopt.methods.envy_free.interior_step import NewtonStep
from fairopt.methods.envy_free.nearly_alike import SpreadUsers
from fairopt.methods.envy_free.problem import Users, optimum_of


def users_of(speedup: np.ndarray, limit: np.ndarray) -> Users:
    n, k = speedup.shape
    gain = np.full(n, 1 / n)
    return Users(speedup / speedup.max(axis=1, keepdims=True), gain, gain, limit, np.ones(k), np.ones(n), 1.0, 1.0)


def nearly_alike(users: int, apart: float) -> Users:
    """Users of three types in pairs who differ by the part ``apart``."""
    random = np.random.default_rng(1)
    speedup = np.repeat(random.uniform(1, 4, (users // 2, 3)), 2, axis=0)
    return users_of(speedup * random.uniform(1 - apart, 1 + apart, speedup.shape), random.uniform(0.3, 2, users))


def ordered(users: int, types: int, seed: int) -> Users:
    """Users that one number orders, whose demands are of four sizes."""
    random = np.random.default_rng([seed, users])
    speedup = np.linspace(1, 4, types) ** random.uniform(0.2, 2, users)[:, None]
    capacity = (users * 10 ** random.uniform(-1.5, 0, types)).round() + 1
    demand = random.choice([0.25, 0.5, 1, 2], users) * capacity.sum() / users
    top = speedup.max(axis=1)
    return Users.of(speedup / top[:, None], top, capacity, np.ones(users), demand)


def test_elimination_keeps_what_users_who_are_nearly_alike_differ_by(monkeypatch):
    """With bundles in amounts of all types, up to 6e10 times the right sides were left of the equations."""
    left, solved = list[float](), NewtonStep.solved

    def watched(self, *sides):
        flat = np.concatenate([each.ravel() for each in sides])
        left.append(float(np.linalg.norm(flat - self._applied(*self._roughly(*sides))) / np.linalg.norm(flat)))
        return solved(self, *sides)

    monkeypatch.setattr(NewtonStep, "solved", watched)
    assert interior(ordered(30, 10, 2), np.arange(30)).effort["gap"] < 1e-7
    assert len(left) > 20
    assert max(left) < 1e-4


def test_equations_that_floats_do_not_solve_are_an_error(monkeypatch):
    users = nearly_alike(4, 1e-4)
    program = InteriorProgram(users, np.arange(4))
    point, pairs = program.start()
    equations = NewtonStep(program, pairs, point, 1.0, 1.0)
    monkeypatch.setattr(equations, "_roughly", lambda *sides: sides)  # which solves nothing
    with pytest.raises(np.linalg.LinAlgError, match="no solution in floats"):
        equations.solved(np.ones((4, 3)), np.ones(4), np.ones(4))


def test_steps_are_held_harder_where_equations_have_no_solution(monkeypatch):
    held = list[float]()

    class Fails(interior_point.NewtonStep):
        def __init__(self, program, pairs, point, hold, gap):
            held.append(hold)
            if len(held) == 2:
                raise np.linalg.LinAlgError
            super().__init__(program, pairs, point, hold, gap)

    monkeypatch.setattr(interior_point, "NewtonStep", Fails)
    assert interior(nearly_alike(12, 1e-2), np.arange(12)).effort["loose"] < 1e-7
    assert held[1] < held[0] < held[2]
    assert min(held[2:]) >= held[2] / interior_point.SOFTER  # not where it failed again


def test_few_of_very_many_violated_rows_join():
    program = InteriorProgram(nearly_alike(60, 0.1), np.arange(60))
    point, pairs = program.start()
    slacks = np.full((60, 60), -1.0)
    np.fill_diagonal(slacks, np.inf)
    joined, more = program.joined(point, pairs, slacks, slacks < 0, best=0.0)
    assert 0 < len(more.envied) - len(pairs.envied) < 60 * 59 / 2
    assert len(joined.slack) == len(more.envied)


def test_bundles_stop_short_of_rows_that_are_not_in_the_program():
    program = InteriorProgram(nearly_alike(60, 0.1), np.arange(60))
    point, pairs = program.start()
    slacks, there = program.slacks(point), np.zeros((60, 60), dtype=bool)
    there[pairs.envious, pairs.envied] = True
    envious, envied = np.unravel_index(np.where(there, np.inf, slacks).argmin(), slacks.shape)
    assert slacks[envious, envied] > 0
    far = point.bundle.copy()
    far[envied] *= 1 + 1.1 * slacks[envious, envied] / (program.rows[envious] @ far[envied])
    far[envious] *= program.value[envious] @ point.bundle[envious] / (program.value[envious] @ far[envious])
    new, after, joins = program.held_back(point, point._replace(bundle=far), pairs, slacks)
    assert joins[envious, envied]
    assert after[~there].min() > 0
    moved = (new.bundle - point.bundle)[envied].sum() / (far - point.bundle)[envied].sum()
    assert 0.8 < moved < 0.85  # 0.9 of 1 / 1.1


def test_rows_leave_room_for_rounding():
    users = nearly_alike(12, 1e-2)
    found = interior(users, np.arange(12))
    worth = users.value @ found.values["bundle"].T
    spared = np.diagonal(worth)[:, None] - worth
    np.fill_diagonal(spared, np.inf)
    assert found.effort["gap"] < 1e-8
    assert spared.min() > 1e-14


def test_users_who_are_spread_leave_room_for_rounding():
    """Equal bundles leave none: a small part of strictly envy-free ones does, among the users who differ more."""
    random = np.random.default_rng(0)
    speedup = np.outer(random.lognormal(0, 1, 8), random.lognormal(0, 0.5, 3))
    speedup *= 1 + 1e-6 * random.uniform(-1, 1, (8, 3))
    capacity, weight = np.array([3.0, 5.0, 20.0]), random.uniform(0.5, 3, 8)
    spread = SpreadUsers.of(speedup, weight, capacity, weight, 0.1)
    none = np.zeros(0, dtype=np.int64)
    equal, holds = (capacity / weight.sum())[None], np.zeros(8, dtype=np.int64)
    found = optimum_of(equal, holds, np.zeros(3), np.zeros(8), (none, none, np.zeros(0)))
    room = spread.with_room(found).values
    held = room["bundle"][room["holds"]]
    assert (weight @ held <= capacity * (1 + 1e-12)).all()
    worth = spread.speedup @ held.T * weight.sum()
    spared = np.diagonal(worth)[:, None] - worth
    np.fill_diagonal(spared, np.inf)
    assert spared.min() * spread.factor >= 0.9 * nearly_alike_module.ROOM
    # and what it costs is little: bundles are the same but for a small part
    np.testing.assert_allclose(held, np.repeat(equal, 8, axis=0), rtol=0.1)
