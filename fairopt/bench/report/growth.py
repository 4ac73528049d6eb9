"""How time grows with size: seconds = c * size^a, fitted by least squares in logarithms over what was solved.

The fit describes the measured range only. `Growth.at` refuses sizes beyond it, so that no extrapolation can pass for a
measurement.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from fairopt.bench.libraries import library
from fairopt.bench.report.statistics import CLOCK_STEP, CONFIDENCE, seconds_of
from fairopt.bench.report.words import count
from fairopt.errors import BadInput

#: A line through two points fits always; with fewer distinct sizes than this, no exponent is given.
FEWEST_SIZES = 3


@dataclass(frozen=True)
class Growth:
    """The fitted ``constant`` (c, seconds) and ``exponent`` (a), and how certain the exponent is.

    ``error`` is its standard error, ``low`` to ``high`` its 95% interval by Student's t with ``points`` - 2 degrees of
    freedom. Both assume that the logarithms of times scatter equally around one power of the size; where growth is no
    power, they are too narrow. ``smallest`` and ``largest`` are the sizes fitted over, ``sizes`` the number of
    distinct ones.
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
        found = count(distinct.size, "distinct size")
        problem = f"solved at {found}, and no growth can be told from fewer than {FEWEST_SIZES}"
        raise BadInput(problem, place="growth", remedy="Measure more sizes")
    (slope, intercept), covariance = np.polyfit(np.log(x), np.log(np.maximum(times, CLOCK_STEP)), 1, cov=True)
    error = math.sqrt(covariance[0, 0])
    half = library("scipy.stats", "the growth of times").t.ppf((1 + CONFIDENCE) / 2, x.size - 2) * error
    fitted = (math.exp(intercept), float(slope), error, float(slope - half), float(slope + half))
    return Growth(*fitted, x.size, int(distinct.size), float(distinct[0]), float(distinct[-1]))
