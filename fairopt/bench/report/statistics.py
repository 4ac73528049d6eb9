"""Statistics of many times: medians, shifted geometric means, ratios with their intervals, and the machine's noise.

Functions of arrays of seconds; nothing here knows contenders or files. The report states these conventions:

* Of several repeats the median counts, and only where every repeat was solved.
* In a mean, an instance that was not solved counts at the time limit, and so does a longer time: failing never pays.
* A ratio compares two contenders on one instance that both solved; instances that only one solved are counted apart.
* Times below `CLOCK_STEP` count as `CLOCK_STEP`, so that a ratio to a time of zero is large but finite.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from fairopt.bench.libraries import library
from fairopt.errors import BadInput

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

#: The least difference in seconds that a clock can tell (`time.perf_counter` counts nanoseconds).
CLOCK_STEP = 1e-9
#: How many samples a bootstrap draws, and its seed: the same input gives the same interval.
SAMPLES, SEED = 2000, 20240607
#: The part of bootstrap samples inside the interval.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratios:
    """How many times as long as a baseline a contender took, instance by instance.

    ``mean`` is the geometric mean over the ``pairs`` instances that both solved, ``low`` to ``high`` its bootstrap
    interval over instances, ``least`` and ``most`` the extreme instances. All are NaN where there is no pair; the
    interval is NaN for one pair, which says nothing of others. ``ours`` and ``theirs`` count the instances that only
    the contender, and only the baseline, solved.
    """

    pairs: int
    mean: float
    low: float
    high: float
    least: float
    most: float
    ours: int
    theirs: int


@dataclass(frozen=True)
class Noise:
    """How steady a machine was: the seconds of one unchanging job, run between the measurements.

    ``spread`` is the distance of the 5th and the 95th percentile as a part of the median; ``worst`` the slowest run
    as a multiple of the fastest.
    """

    runs: int
    median: float
    least: float
    most: float
    spread: float
    worst: float


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


def shifted_geometric_mean(seconds: ArrayLike, shift: float) -> float:
    """Return exp(mean(log(t + shift))) - shift of times t (n,), in their unit.

    The shift keeps times that are too short to matter from deciding the mean; 0 gives the plain geometric mean, which
    is 0 as soon as one time is.

    Errors: `BadInput` for no times, and for a shift that is negative or not finite.

    Source: Achterberg, Constraint Integer Programming (2007), appendix A.3.
    """
    times = seconds_of(seconds)
    if not times.size:
        raise BadInput("there are no times", remedy="A mean needs at least one")
    if not (math.isfinite(shift) and shift >= 0):
        raise BadInput(f"the shift is {shift}", place="shift", remedy="Give seconds that are not negative")
    if shift == 0:
        return float(_scipy().gmean(times))
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
    """Return the median of repeats; NaN where there is none."""
    times = seconds_of(seconds)
    return float(np.median(times)) if times.size else math.nan


def ratios(seconds: ArrayLike, baseline: ArrayLike, solved: ArrayLike, baseline_solved: ArrayLike) -> Ratios:
    """Return how a contender's times compare with a baseline's on the same instances (n,), in the same order.

    The interval is that of bootstrap samples of instances: what another draw of such instances might have given.
    """
    ours, theirs = np.asarray(solved, dtype=bool), np.asarray(baseline_solved, dtype=bool)
    first, second = np.asarray(seconds, dtype=float), np.asarray(baseline, dtype=float)
    if len({ours.shape, theirs.shape, first.shape, second.shape}) > 1:
        remedy = "Give both for the same instances, in order"
        raise BadInput(f"{first.size} times are compared with {second.size}", remedy=remedy)
    both = ours & theirs
    pairs = int(both.sum())
    only = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
    if not pairs:
        return Ratios(0, math.nan, math.nan, math.nan, math.nan, math.nan, *only)
    logs = np.log(np.maximum(seconds_of(first[both]), CLOCK_STEP) / np.maximum(seconds_of(second[both]), CLOCK_STEP))
    low, high = bootstrap(logs) if pairs > 1 else (math.nan, math.nan)
    mean, least, most = (float(np.exp(value)) for value in (logs.mean(), logs.min(), logs.max()))
    return Ratios(pairs, mean, math.exp(low), math.exp(high), least, most, *only)


def bootstrap(values: Floats) -> tuple[float, float]:
    """Return the percentile bootstrap interval, at `CONFIDENCE`, of the mean of two or more values (n,)."""
    drawn = {"n_resamples": SAMPLES, "rng": np.random.default_rng(SEED), "method": "percentile"}
    found = _scipy().bootstrap((values,), np.mean, confidence_level=CONFIDENCE, **drawn).confidence_interval
    return float(found.low), float(found.high)


def noise(reference: ArrayLike) -> Noise:
    """Return how much the seconds of one unchanging job varied; `BadInput` where there are none, or one is zero."""
    times = seconds_of(reference, "reference job")
    if not times.size or np.any(times == 0):
        raise BadInput("the reference job has no time", place="reference job", remedy="Time it between measurements")
    median = float(np.median(times))
    low, high = np.percentile(times, (5, 95))
    least, most = float(times.min()), float(times.max())
    return Noise(times.size, median, least, most, float(high - low) / median, most / least)


def _scipy() -> Any:
    return library("scipy.stats", "statistics of a benchmark")
