"""All methods with a warm start speak of it in the same words: ``start`` in, ``warm_start`` out, the same optimum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fairopt.methods.envy_free import envy_free_shares
from fairopt.methods.gang_assignment import GangAssignment, solve_gangs, usable_gpus
from fairopt.methods.level import raise_level


def tables(step: int, users: int = 90, types: int = 5) -> np.ndarray:
    """Return speedups of users, of whom one changes from step to step."""
    random = np.random.default_rng(3)
    speedup = 1 + np.cumsum(random.uniform(0, 1, (users, types)), axis=1)
    for changed in range(step):
        speedup[changed] = 1 + np.cumsum(np.random.default_rng(100 + changed).uniform(0, 1, types))
    return speedup


CAPACITY = np.array([8.0, 20, 13, 30, 9])


def level(step: int, start: Any) -> Any:
    return raise_level(tables(step), CAPACITY, np.ones(90), start=start)


def envy_free(step: int, start: Any) -> Any:
    def equal_worth(speedup: np.ndarray, capacity: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return 1 / capacity

    names = [f"u{number}" for number in range(90)]
    return envy_free_shares(names, tables(step), CAPACITY, np.ones(90), None, equal_worth, start=start)


def gangs(step: int, start: Any) -> Any:
    number = np.array([1, 2, 4])[np.arange(90) % 3]
    allowed = np.ones((90, 5), dtype=bool)
    most = usable_gpus(number, allowed, CAPACITY.astype(int))
    return solve_gangs(GangAssignment(-tables(step), number, CAPACITY.astype(int), most, allowed), start=start)


@pytest.mark.parametrize("method", [level, envy_free, gangs])
def test_a_sequence_of_problems_is_solved_as_each_alone(method: Callable[[int, Any], Any]) -> None:
    start = None
    for step in range(5):
        warm, cold = method(step, start), method(step, None)
        assert warm.lower <= cold.upper + 1e-9
        assert cold.lower <= warm.upper + 1e-9
        assert warm.gap <= 1e-7
        assert warm.effort
        assert warm.seconds > 0
        assert {"prepare", "certify"} <= set(warm.effort)
        start = warm.warm_start
