"""Statistics of experiments: who is better, by how much, and how sure, from outcomes with the same seeds.

Functions of arrays of numbers; nothing here knows policies or files. The page states these conventions:

* A replicate is a run. All policies play the same trace with the same seed (common random numbers), so that outcomes
  are compared in pairs. Jobs of one run are not independent, and never counted as if they were.
* Where seeds draw independent traces, a ratio is that of the means over seeds. Its interval is a percentile bootstrap
  of pairs, expanded for few pairs: its level is that at which the percentiles of a normal sample would be as wide as
  Student's t interval. Source: Hesterberg, What teachers should know about the bootstrap, The American Statistician
  69(4), 2015, Sec. 5.3. The test is Student's, of the paired differences.
* Where seeds resample one trace, the ratio is that on the trace itself. The others show how it would differ on another
  draw: their spread is its standard error. The interval, in logarithms, is Student's with that error. More seeds do not
  make it narrower than what one trace can tell.
* Where all pairs differ by the same, Student's error is 0, which few pairs cannot show. The p-value is then that of the
  sign test, 2^(1 - n) of n pairs (of a resampled trace, n draws).
* Several comparisons are one family: p-values are adjusted by Holm, A simple sequentially rejective multiple test
  procedure, Scandinavian Journal of Statistics 6, 1979. "Better" is said where that is below 0.05 and the interval
  leaves out 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.experiment.words import digits
from fairopt.report import ResultForm, keys_of

#: The level of intervals, and of Holm's test; how many samples a bootstrap draws, and its seed.
CONFIDENCE, SAMPLES, SEED = 0.95, 9999, 20260701
#: With fewer pairs than this a bootstrap knows too few samples: of 3 pairs its interval covers 74%, not 95%.
FEWEST = 5
#: Differences that vary by less than this part of their mean are the same but for rounding.
ALIKE = 1e-12
#: The length of the batches of MSER-5, and the least that a cut leaves.
BATCH = 5
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number with its interval, NaN where there is none, and the ``p`` of its being that of no difference.

    ``count`` is how many numbers it is of, 0 where nobody says.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    count: int = 0

    form = ResultForm("A number and its interval.", *keys_of(float | None, "value low high", "Or null."))

    def __str__(self) -> str:
        """Return the number with its interval, such as 1.32 [1.20, 1.45]."""
        value = digits(self.value)
        return value if math.isnan(self.low) else f"{value} [{digits(self.low)}, {digits(self.high)}]"


NOTHING = Estimate(math.nan)


class Better(Enum):
    """Which values of a measure are the better ones."""

    LESS = "less"
    MORE = "more"


#: What a comparison says, by how sure it is.
_VERDICTS = MappingProxyType(
    {
        "same": "{first} and {second}: the same in all runs",
        "sure": "{first} better than {second} by {by}",
        "too few seeds": "{first} before {second} by {by}: too few seeds to be sure",
        "not sure": "{first} before {second} by {by}: not sure among {family} comparisons",
        "undecided": "{first} and {second}: undecided, {by}",
    }
)


@dataclass(frozen=True)
class PairedResult:
    """How the outcomes of two compare, in ``pairs`` runs with the same seeds.

    ``ratio`` is the ``first`` over the ``second``; its value is NaN where either is not positive, and then the
    ``difference`` decides. ``adjusted`` is Holm's p among a ``family`` of so many comparisons.
    """

    pairs: int
    ratio: Estimate
    difference: Estimate
    first: str = ""
    second: str = ""
    better: Better = Better.LESS
    adjusted: float = math.nan
    family: int = 1

    @property
    def decisive(self) -> tuple[Estimate, float]:
        """The ratio, or else the difference, and its value where the two do not differ."""
        return (self.difference, 0.0) if math.isnan(self.ratio.value) else (self.ratio, 1.0)

    @property
    def p(self) -> float:
        """The p-value of the comparison."""
        return self.decisive[0].p

    @property
    def sure(self) -> bool:
        """Whether the two differ, as far as the family of comparisons allows to say so."""
        found, none = self.decisive
        return self.adjusted < 1 - CONFIDENCE and not found.low <= none <= found.high

    @property
    def factor(self) -> Estimate:
        """By what the first is better, at least 1; NaN where there is no ratio, and the difference says it."""
        ratio = self.ratio
        if self.better is Better.MORE:
            return ratio
        return Estimate(1 / ratio.value, 1 / ratio.high, 1 / ratio.low, ratio.p) if ratio.value > 0 else ratio

    @property
    def by(self) -> str:
        """By how much the first is better, in words: a factor, or a difference."""
        if not math.isnan(self.factor.value):
            return str(self.factor)
        apart = self.difference
        if self.better is Better.MORE:
            return f"{Estimate(apart.value, apart.low, apart.high)} more"
        return f"{Estimate(-apart.value, -apart.high, -apart.low)} less"

    @property
    def certainty(self) -> str:
        """How sure it is, in words."""
        found, none = self.decisive
        if found.value == found.low == found.high == none:
            return "same"
        if self.sure:
            return "sure"
        if math.isnan(self.p):
            return "too few seeds"
        return "undecided" if found.low <= none <= found.high else "not sure"

    @property
    def verdict(self) -> str:
        """Who is better and how sure, in words."""
        names = {"first": self.first, "second": self.second, "by": self.by, "family": self.family}
        return _VERDICTS[self.certainty].format(**names)


def compare_drawn(first: ArrayLike, second: ArrayLike) -> PairedResult:
    """Return how outcomes (n,) of independent replicates compare, in pairs.

    With fewer than `FEWEST` pairs the interval is Student's instead, in logarithms; with one there is none.
    Errors: `BadInput` for lengths that differ, and for no pair.
    """
    a, b = _pairs(first, second)
    if len(a) == 1:
        return _alone(a[0], b[0])
    gap, error = float(np.mean(a - b)), float(np.std(a - b, ddof=1)) / math.sqrt(len(a))
    p = _student_p(gap, error, len(a) - 1)
    few = len(a) < FEWEST
    difference = Estimate(gap, *(student(gap, error, len(a) - 1) if few else bootstrap(_difference, a, b)), p)
    if not (np.all(a > 0) and np.all(b > 0)):
        return PairedResult(len(a), NOTHING, difference)
    ratio = float(a.mean() / b.mean())
    if few:
        spread = float(np.std(a / a.mean() - b / b.mean(), ddof=1)) / math.sqrt(len(a))
        low, high = np.exp(student(math.log(ratio), spread, len(a) - 1)).tolist()
    else:
        low, high = bootstrap(_ratio, a, b)
    return PairedResult(len(a), Estimate(ratio, low, high, p), difference)


def compare_resampled(first: ArrayLike, second: ArrayLike) -> PairedResult:
    """Return how outcomes (n,) on one trace (the first) and on draws from it (the others) compare, in pairs.

    Two draws at least are needed for an interval. Errors: as `compare_drawn`.
    """
    a, b = _pairs(first, second)
    if len(a) < 3:
        return _alone(a[0], b[0])

    def around(values: Floats) -> tuple[float, float, float]:
        value, error, freedom = float(values[0]), float(np.std(values[1:], ddof=1)), len(values) - 2
        return *student(value, error, freedom), _student_p(value, error, freedom)

    difference = Estimate(float(a[0] - b[0]), *around(a - b))
    if not (np.all(a > 0) and np.all(b > 0)):
        return PairedResult(len(a), NOTHING, difference)
    low, high, p = around(np.log(a / b))
    return PairedResult(len(a), Estimate(float(a[0] / b[0]), math.exp(low), math.exp(high), p), difference)


def mean_of(values: ArrayLike, resampled: bool) -> Estimate:
    """Return the mean of one policy's outcomes (n,), of a resampled trace its own value, with its interval.

    Intervals are those of `compare_drawn` and `compare_resampled`.
    """
    found = np.asarray(values, dtype=float)
    draws = found[1:] if resampled else found
    value = float(found[0] if resampled else found.mean())
    if len(draws) < 2:
        return Estimate(value, count=len(found))
    if resampled and np.all(found > 0):
        logs = student(math.log(value), float(np.std(np.log(draws), ddof=1)), len(draws) - 1)
        low, high = map(math.exp, logs)
    elif not resampled and len(draws) >= FEWEST:
        low, high = bootstrap(np.mean, found)
    else:
        error = float(np.std(draws, ddof=1)) / (1 if resampled else math.sqrt(len(draws)))
        low, high = student(value, error, len(draws) - 1)
    return Estimate(value, low, high, count=len(found))


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for being several, in their order; NaN stays, and does not count.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    known = sorted((p, place) for place, p in enumerate(values) if not math.isnan(p))
    adjusted, least = [math.nan] * len(values), 0.0
    for rank, (p, place) in enumerate(known):
        least = max(least, min(p * (len(known) - rank), 1.0))
        adjusted[place] = least
    return adjusted


def mser(batches: Sequence[float]) -> float:
    """Return which part of a run is not yet a steady state, by the rule MSER; NaN for fewer than ten batches.

    ``batches`` are means of as many numbers each, in order of time; of five they make the rule MSER-5. It cuts where
    the squared standard error of the mean of what is left is least. Cuts that leave fewer than five are not looked at,
    since few numbers may be alike by chance. Above 1/2 no steady state is to be seen.

    Source: White, Cobb and Spratt, A comparison of five steady-state truncation heuristics for simulation, Winter
    Simulation Conference 2000; Hoad, Robinson and Davies, Automating warm-up length estimation, Journal of the
    Operational Research Society 61, 2010 (the last five, and the half).

    >>> mser([9, 7, 5, *[1, 2] * 10])
    0.13043478260869565
    """
    means = np.asarray(batches, dtype=float)
    if len(means) < 2 * BATCH:
        return math.nan
    errors = [float(np.var(means[cut:])) / (len(means) - cut) for cut in range(len(means) - BATCH + 1)]
    return int(np.argmin(errors)) / len(means)


def expanded(pairs: int) -> float:
    """Return the level of a percentile interval of so many pairs, `FEWEST` at least; see this module.

    >>> round(expanded(5), 4), round(expanded(1000), 4)
    (0.9981, 0.9504)
    """
    stats = _stats()
    half = stats.t.ppf((1 + CONFIDENCE) / 2, pairs - 1) * math.sqrt(pairs / (pairs - 1))
    return float(2 * stats.norm.cdf(half) - 1)


def bootstrap(statistic: Callable[..., Any], *samples: Floats) -> tuple[float, float]:
    """Return the percentile interval of a statistic (samples (n,), axis) of pairs, expanded; see this module."""
    how = {"n_resamples": SAMPLES, "rng": np.random.default_rng(SEED), "method": "percentile", "vectorized": True}
    found = _stats().bootstrap(samples, statistic, paired=True, confidence_level=expanded(len(samples[0])), **how)
    low, high = found.confidence_interval
    return float(low), float(high)


def _difference(a: Floats, b: Floats, axis: int) -> Any:
    return (a - b).mean(axis=axis)


def _ratio(a: Floats, b: Floats, axis: int) -> Any:
    return a.mean(axis=axis) / b.mean(axis=axis)


def student(value: float, error: float, freedom: int) -> tuple[float, float]:
    """Return Student's interval around a value with a standard error."""
    half = error * float(_stats().t.ppf((1 + CONFIDENCE) / 2, freedom))
    return value - half, value + half


def _student_p(value: float, error: float, freedom: int) -> float:
    if error <= ALIKE * abs(value):  # every pair says the same, which is no error to measure with: the sign test
        return 0.5**freedom if value else 1.0
    return float(2 * _stats().t.sf(abs(value) / error, freedom))


def _alone(a: float, b: float) -> PairedResult:
    return PairedResult(1, Estimate(float(a / b)) if a > 0 and b > 0 else NOTHING, Estimate(float(a - b)))


def _pairs(first: ArrayLike, second: ArrayLike) -> tuple[Floats, Floats]:
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if a.shape != b.shape or a.ndim != 1 or not a.size:
        raise BadInput(f"{a.size} outcomes are compared with {b.size}", remedy="Give both for the same seeds, in order")
    return a, b


def _stats() -> Any:
    return library("scipy.stats", "statistics of an experiment")
