"""How time grows with size: seconds = c * size^a, fitted by least squares in logarithms over what was solved.

The fit describes the measured range. It says nothing of sizes beyond it: `Growth.at` refuses them, so that no
extrapolation can pass for a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairopt.bench.statistics import CLOCK_STEP, CONFIDENCE, Floats, seconds_of
from fairopt.errors import BadInput

#: A line through two points fits always; with fewer distinct sizes than this, no exponent is given.
FEWEST_SIZES = 3


@dataclass(frozen=True)
class Growth:
    """The fitted ``constant`` (c, seconds) and ``exponent`` (a), and how sure the exponent is.

    ``error`` is its standard error, ``low`` to ``high`` its 95% interval by Student's t with ``points`` - 2 degrees of
    freedom; both suppose that times scatter alike, in logarithms, around one power of the size, and are too narrow
    where they bend. ``smallest`` and ``largest`` are the sizes fitted over, ``sizes`` how many distinct ones.
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
            raise BadInput(
                f"size {size:g} is beyond what was measured, {self.smallest:g} to {self.largest:g}",
                remedy="Measure it: an extrapolation is not a measurement",
            )
        return self.constant * math.pow(size, self.exponent)


def fit(sizes: Sequence[float] | Floats, seconds: Sequence[float] | Floats) -> Growth:
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
        raise BadInput(
            f"solved at {distinct.size} distinct {'size' if distinct.size == 1 else 'sizes'}, "
            f"and no growth can be told from fewer than {FEWEST_SIZES}",
            place="growth",
            remedy="Measure more sizes",
        )
    u, v = np.log(x), np.log(np.maximum(times, CLOCK_STEP))
    about = u - u.mean()
    square = float(about @ about)
    exponent = float(about @ (v - v.mean())) / square
    level = float(v.mean() - exponent * u.mean())
    left = v - level - exponent * u
    freedom = x.size - 2
    error = math.sqrt(float(left @ left) / freedom / square)
    half = student_quantile(CONFIDENCE, freedom) * error
    return Growth(
        constant=math.exp(level),
        exponent=exponent,
        error=error,
        low=exponent - half,
        high=exponent + half,
        points=x.size,
        sizes=int(distinct.size),
        smallest=float(distinct[0]),
        largest=float(distinct[-1]),
    )


def student_inside(t: float, freedom: int) -> float:
    """Return the probability that Student's t with ``freedom`` degrees (1, 2, ...) lies within -t and t, for t >= 0.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    # the terms of the series in powers of the squared cosine, each from the one before
    term, total = 1.0, 0.0
    for k in range((freedom - odd) // 2):
        if k:
            term *= (2 * k - 1 + odd) / (2 * k + odd) * square
        total += term
    if odd:
        return 2 / math.pi * (angle + sine * math.cos(angle) * total)
    return sine * total


def student_quantile(confidence: float, freedom: int) -> float:
    """Return the t >= 0 with a probability of ``confidence`` within -t and t; bisected to the last digits."""
    if not 0 < confidence < 1 or freedom < 1:
        raise BadInput(
            f"confidence {confidence} with {freedom} degrees of freedom",
            remedy="Give 0 < confidence < 1, and at least 1",
        )
    low, high = 0.0, 1.0
    while student_inside(high, freedom) < confidence:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if student_inside(middle, freedom) < confidence else (low, middle)
    return high
