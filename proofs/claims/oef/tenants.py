"""Twenty tenants on real speedups, as in OEF Sec. 6.3: the tables, the markets drawn from them, and how ratios spread.

The paper's RTX speedups are not printed, but for two numbers: an RTX 3090 is 1.39 times as fast as an RTX 3070 for VGG
and 2.15 times for LSTM. The tables here are what is public, and a family within these two numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fairopt.datasets import gandiva_table1, gavel_throughputs
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.ledger.wording import percent

#: Sec. 6.1.1 and 6.3.1: eight GPUs of each type, 20 tenants with jobs of one type each.
GPUS, TENANTS = 8, 20
#: Sec. 2.2, Fig. 1(a): what the RTX 3090 makes of the two models printed; Sec. 6.1.2 trains six.
SLOWEST_GAIN, LARGEST_GAIN, MODELS = 1.39, 2.15, 6
DIGITS = 4

#: Gives the speedups (models, types) that tenants may have; the first type is the unit.
Speedups = Callable[[np.random.Generator], Array]


def tables() -> Mapping[str, Speedups]:
    """Return the tables of speedups by name, each drawn from with a generator."""
    jobs = {each.name: [value or Fraction(0) for value in each.steps_per_s.values()] for each in gavel_throughputs()}
    jobs = {name: row for name, row in jobs.items() if all(row)}  # those that run, and were measured, on every type
    alike = [row for name, row in jobs.items() if name.startswith(("ResNet", "Transformer", "LM"))]
    gandiva = [[each.over("K80")[name] for name in ("K80", "P40", "P100", "V100")] for each in gandiva_table1()]
    return {
        "Gavel's 26 jobs": _fixed(list(jobs.values())),
        "those of vision and language": _fixed(alike),
        "Gandiva_fair's 7 models": _fixed(gandiva),
        "the printed range": _within_the_printed_range,
    }


def draw(speedups: Speedups, random: np.random.Generator) -> Market:
    """Return a market of 20 tenants, each with one of the models."""
    models = speedups(random)
    return market_of(models[random.integers(len(models), size=TENANTS)])


def market_of(rows: Array) -> Market:
    """Return the market of tenants with these speedups (n, k), rounded as measurements are, on eight GPUs a type."""
    return Market.of(np.asarray(rows, dtype=float).round(DIGITS).tolist(), [GPUS] * rows.shape[1])


def bounded(market: Market, most: Fraction | int) -> Market:
    """Return the market in which no tenant can use more than ``most`` GPUs at once."""
    return replace(market, demand=np.full(len(market.users), Fraction(most), dtype=object))


@dataclass(frozen=True)
class RatioSpread:
    """The least, the quartiles and the largest of a sample."""

    least: float
    low: float
    median: float
    high: float
    largest: float

    @classmethod
    def of(cls, values: Array) -> RatioSpread:
        """Return the spread of a sample (draws,)."""
        return cls(*(float(value) for value in np.quantile(np.asarray(values, dtype=float), [0, 0.25, 0.5, 0.75, 1])))

    def __str__(self) -> str:
        least, low, median, high, largest = (f"{100 * value:+.1f}" for value in self.parts())
        return f"{median}% ({low} to {high}; all within {least} to {largest})"

    def parts(self) -> tuple[float, ...]:
        """Return the five numbers, in order."""
        return self.least, self.low, self.median, self.high, self.largest


def between(values: list[float]) -> str:
    """Return "from +1.0% to +2.0%" for the least and the largest of some ratios."""
    return f"from {'+' if min(values) >= 0 else ''}{percent(min(values), 1)} to {'+' if max(values) >= 0 else ''}" + (
        percent(max(values), 1)
    )


def _fixed(rows: list[list[Fraction]]) -> Speedups:
    table = np.array(rows, dtype=float)
    relative = table / table[:, :1]
    return lambda random: relative


def _within_the_printed_range(random: np.random.Generator) -> Array:
    """Return six models: the two printed 3090 speedups and four between; the 3080 anywhere between 3070 and 3090."""
    fast = random.uniform(SLOWEST_GAIN, LARGEST_GAIN, MODELS)
    fast[:2] = SLOWEST_GAIN, LARGEST_GAIN
    middle = 1 + random.uniform(0, 1, MODELS) * (fast - 1)
    return np.stack([np.ones(MODELS), middle, fast], axis=1)
