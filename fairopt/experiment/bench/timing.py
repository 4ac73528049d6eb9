"""Statistics of seconds: medians, means, ratios with intervals, the machine's noise, growth, performance profiles.

Functions of arrays of seconds; nothing here knows contenders or files. The report states these conventions:

* Of several repeats the median counts, and only where every repeat was solved.
* In a mean, an instance that was not solved counts at the time limit, and so does a longer time: failing never pays.
* A ratio compares two contenders on one instance that both solved; instances that only one solved are counted apart.
* Times below `CLOCK_STEP` count as `CLOCK_STEP`, so that a ratio to a time of zero is large but finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.experiment.statistics import NOTHING, Estimate, Floats, bootstrap, student
from fairopt.numbers import counted

Flags = npt.NDArray[np.bool_]

#: The least difference in seconds that a clock can tell (`time.perf_counter` counts nanoseconds).
CLOCK_STEP = 1e-9
#: A line through two points fits always; with fewer distinct sizes than this, no exponent is given.
FEWEST_SIZES = 3


def seconds_of(values: ArrayLike, what: str = "seconds") -> Floats:
    """Return times as an array of floats; `BadInput` for a negative one, NaN, infinity, or what is no number."""
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise BadInput(f"{values!r:.80} are not numbers", place=what, remedy="Give seconds") from error
    bad = found[~(np.isfinite(found) & (found >= 0))]
    if bad.size:
        raise BadInput(f"{bad[0]} is not a time", place=what, remedy="Give finite seconds that are not negative")
    return found


def _measurable(seconds: ArrayLike) -> Floats:
    return np.maximum(seconds_of(seconds), CLOCK_STEP)


def shifted_geometric_mean(seconds: ArrayLike, shift: float) -> float:
    """Return exp(mean(log(t + shift))) - shift of times t (n,), in their unit.

    The shift keeps times that are too short to matter from deciding the mean; 0 gives the plain geometric mean.
    Errors: `BadInput` for no times, and for a shift that is negative or not finite.

    Source: Achterberg, Constraint Integer Programming (2007), appendix A.3.
    """
    times = seconds_of(seconds)
    if not times.size:
        raise BadInput("there are no times", remedy="A mean needs at least one")
    if not (math.isfinite(shift) and shift >= 0):
        raise BadInput(f"the shift is {shift}", place="shift", remedy="Give seconds that are not negative")
    if shift == 0:
        return float(library("scipy.stats", "statistics of a benchmark").gmean(times))
    # scipy's gmean(times + shift) - shift would lose the digits of times far below the shift
    return float(shift * np.expm1(np.log1p(times / shift).mean()))


def penalised(seconds: ArrayLike, solved: ArrayLike, limit: float) -> Floats:
    """Return times (n,) in which what was not solved counts at ``limit``, and so does what took longer.

    Where ``solved`` is false, the time given is not looked at (it may be NaN). Errors: `BadInput` for a limit that is
    not positive and finite.
    """
    if not (math.isfinite(limit) and limit > 0):
        raise BadInput(f"the time limit is {limit}", place="limit", remedy="Give the positive seconds of the run")
    times = seconds_of(np.where(np.asarray(solved, dtype=bool), np.asarray(seconds, dtype=float), limit))
    return np.minimum(times, limit)


def median_of(seconds: ArrayLike) -> float:
    """Return the median of times; NaN where there is none."""
    times = seconds_of(seconds)
    return float(np.median(times)) if times.size else math.nan


def ratios(seconds: ArrayLike, baseline: ArrayLike, solved: ArrayLike, baseline_solved: ArrayLike) -> Floats:
    """Return how many times as long as a baseline a contender took (m,), on the instances that both solved.

    All are of the same instances (n,), in the same order.
    """
    ours, theirs = np.asarray(solved, dtype=bool), np.asarray(baseline_solved, dtype=bool)
    first, second = np.asarray(seconds, dtype=float), np.asarray(baseline, dtype=float)
    if len({ours.shape, theirs.shape, first.shape, second.shape}) > 1:
        remedy = "Give both for the same instances, in order"
        raise BadInput(f"{first.size} times are compared with {second.size}", remedy=remedy)
    both = ours & theirs
    return np.asarray(_measurable(first[both]) / _measurable(second[both]))


def geometric_mean(values: ArrayLike) -> Estimate:
    """Return the geometric mean of ratios, with its bootstrap interval, of which one ratio has none; NaN of nothing."""
    logs = np.log(np.asarray(values, dtype=float))
    if not logs.size:
        return NOTHING
    low, high = bootstrap(np.mean, logs) if logs.size > 1 else (math.nan, math.nan)
    return Estimate(float(np.exp(logs.mean())), math.exp(low), math.exp(high), count=logs.size)


def noise(reference: ArrayLike) -> Estimate:
    """Return how much the seconds of one unchanging job varied: the median, and the 5th and the 95th percentile.

    Errors: `BadInput` where there are none, or one is zero.
    """
    times = seconds_of(reference, "reference job")
    if not times.size or np.any(times == 0):
        raise BadInput("the reference job has no time", place="reference job", remedy="Time it between measurements")
    low, high = np.percentile(times, (5, 95))
    return Estimate(float(np.median(times)), float(low), float(high), count=times.size)


# -- growth ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Growth:
    """How time grows with size: seconds = ``constant`` * size^``exponent``, by least squares in logarithms.

    ``error`` is the exponent's standard error, ``low`` to ``high`` its 95% interval by Student's t with ``points`` - 2
    degrees of freedom. Both assume that the logarithms of times scatter equally around one power of the size; where
    growth is no power, they are too narrow. ``smallest`` and ``largest`` are the sizes fitted over, ``sizes`` the
    number of distinct ones.
    """

    constant: float
    exponent: float
    error: float
    low: float
    high: float
    points: int
    sizes: int
    smallest: float
    largest: float

    def at(self, size: float) -> float:
        """Return the fitted seconds at a size within the measured range; `BadInput` beyond it."""
        if not self.smallest <= size <= self.largest:
            problem = f"size {size:g} is beyond what was measured, {self.smallest:g} to {self.largest:g}"
            raise BadInput(problem, remedy="Measure it: an extrapolation is not a measurement")
        return self.constant * math.pow(size, self.exponent)


def fit(sizes: ArrayLike, seconds: ArrayLike) -> Growth:
    """Return the growth over instances of ``sizes`` (m,) solved in ``seconds`` (m,), several of a size allowed.

    Errors: `BadInput` for fewer than `FEWEST_SIZES` distinct sizes, a size that is not positive, lengths that differ.
    """
    x, times = np.asarray(sizes, dtype=float), seconds_of(seconds)
    if x.shape != times.shape or x.ndim != 1:
        raise BadInput(f"{x.size} sizes have {times.size} times", remedy="Give a time for each size")
    if not np.all(np.isfinite(x)) or np.any(x <= 0):
        raise BadInput("a size is not positive", place="sizes", remedy="Growth is over counts of at least 1")
    distinct = np.unique(x)
    if distinct.size < FEWEST_SIZES:
        found = counted(distinct.size, "distinct size")
        problem = f"solved at {found}, and no growth can be told from fewer than {FEWEST_SIZES}"
        raise BadInput(problem, place="growth", remedy="Measure more sizes")
    (slope, intercept), covariance = np.polyfit(np.log(x), np.log(np.maximum(times, CLOCK_STEP)), 1, cov=True)
    error = math.sqrt(covariance[0, 0])
    fitted = (math.exp(intercept), float(slope), error, *student(float(slope), error, x.size - 2))
    return Growth(*fitted, x.size, int(distinct.size), float(distinct[0]), float(distinct[-1]))


# -- performance profiles: which part of all instances a contender solved within a factor of the fastest ---------------
# At 1 a profile shows how often the contender is the fastest, at the right end how much it solves; what nobody solved
# stays among all instances. The comparison is with the best contender only: leaving one out may change the order of the
# others, so that profiles do not rank contenders (Gould and Scott, A note on performance profiles for benchmarking
# software, ACM Transactions on Mathematical Software 43(2), 2016).
#
# Source: Dolan and More, Benchmarking optimization software with performance profiles, Mathematical Programming 91,
# 201-213 (2002), section 2.
def to_the_best(seconds: ArrayLike, solved: ArrayLike) -> Floats:
    """Return each time as a multiple of the best on its instance (contenders, instances); infinite where not solved.

    ``seconds`` and ``solved`` have that shape too; the time of what was not solved is not looked at. The paper's
    r_{p,s}, its r_M being infinity.

    Errors: `BadInput` for shapes that differ, for no contender or no instance, and for a time that is negative or not
    finite.
    """
    times, done = np.asarray(seconds, dtype=float), np.asarray(solved, dtype=bool)
    if times.ndim != 2 or times.shape != done.shape:
        problem = f"times of shape {times.shape} have statuses of shape {done.shape}"
        raise BadInput(problem, remedy="Give both as (contenders, instances)")
    if not times.size:
        raise BadInput("there are no contenders, or no instances", remedy="A profile compares at least one on one")
    times = np.where(done, _measurable(np.where(done, times, 0.0)), np.inf)
    return np.asarray(np.divide(times, times.min(axis=0), out=np.full_like(times, np.inf), where=done), dtype=float)


def within(factors: ArrayLike, factor: float) -> float:
    """Return the part of instances, given by their factors (n,), that were solved within ``factor`` times the best."""
    return float(np.mean(np.isfinite(factors) & (np.asarray(factors) <= factor)))


def profile(factors: Floats) -> tuple[Floats, Floats]:
    """Return a step function: factors (m,) that ascend from 1, and the parts of instances (m,) solved within them."""
    reached = np.unique([1.0, *factors[np.isfinite(factors)]])
    return reached, np.array([within(factors, each) for each in reached])
