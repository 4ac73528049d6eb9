"""What an algorithm in floats proves of its answer: numbers between which the optimum lies, whatever was rounded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from fairopt.program import Array

#: Half the distance between 1 and the next float: a rounded result is off by at most this part of itself.
ROUNDING = float(np.finfo(float).eps) / 2


@dataclass(frozen=True, eq=False)
class Proven:
    """The optimum of a program that is maximised lies between ``lower`` and ``upper``, all rounding counted.

    The program is that of the market in floats: of a market in Fractions, of the nearest floats to its numbers.

    ``lower`` is what an allocation reaches that keeps every constraint exactly and differs from the shares returned
    by rounding only; ``upper`` is what dual values prove. ``duals`` are those values, by the names of the program's
    rows: an array in the shape of its block, or (indices, values) where most are zero. ``effort`` counts what was
    done, for who wants to know why it took long.
    """

    lower: float
    upper: float
    duals: Mapping[str, Array | tuple[Array, Array]] = field(default_factory=dict)
    effort: Mapping[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """How far the optimum may be above ``lower``, as a part of ``upper``."""
        return (self.upper - self.lower) / abs(self.upper) if self.upper else self.upper - self.lower
