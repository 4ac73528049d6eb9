"""Where raising a level ended: its prices, from which a similar market can begin."""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.methods.level.problem import LevelProblem, Units
from fairopt.program import Array

#: Prices that all types together are worth less than this part of the level come of demands and say nothing of types.
WORTHLESS = 1e-4


@dataclass(frozen=True, eq=False)
class LevelWarmStart:
    """The ``prices`` (k,) of an answer and its ``level``; of use to markets of the same types."""

    prices: Array
    level: float

    def guess(self, problem: LevelProblem, units: Units) -> tuple[Array, float] | None:
        """Return prices and level in the units of ``problem``, None where they say nothing about it."""
        prices, level = self.prices[units.types] * units.level, self.level * units.level
        return (prices, level) if prices @ problem.capacity > WORTHLESS * level else None
