"""Errors of estimation: what policies are told of a job's work, where that is not the truth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from math import exp

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem import Trace
from fairopt.problem.numbers import check_number, exact
from fairopt.program import cast, objects
from fairopt.workloads.workload import streams

#: An estimate is the work times a factor of so many parts of one, at least one part.
PARTS = 10_000
#: Sets errors apart from the trace that is drawn with the same seed: else who works longer is overestimated.
APART = 1


class ErrorForm(Enum):
    """How errors are distributed.

    UNIFORM: evenly up to the size. FIXED: all of that size. LOGNORMAL: the size is the standard deviation of the
    logarithm of estimate over work.
    """

    UNIFORM = "uniform"
    FIXED = "fixed"
    LOGNORMAL = "lognormal"


class ErrorSign(Enum):
    """Whether estimates are too large (OVER), too small (UNDER), or either, as likely (BOTH)."""

    OVER = "over"
    UNDER = "under"
    BOTH = "both"


@dataclass(frozen=True)
class WorkEstimates:
    """What policies are told of jobs' work, with a relative error of given size, form and sign. Source: ours.

    With size 0 they are told the truth. ``label`` is what tables of a study call it. Errors: `BadInput` for a size that
    is negative, or such that estimates too small would not be positive.

    >>> from fairopt.datasets import philly_trace
    >>> told = WorkEstimates(0.3, ErrorForm.FIXED, ErrorSign.OVER).applied(philly_trace(), seed=1).jobs
    >>> told.work[0], told.estimate[0]
    (Fraction(79, 1), Fraction(1027, 10))
    """

    size: float = 0.0
    form: ErrorForm = ErrorForm.UNIFORM
    sign: ErrorSign = ErrorSign.BOTH
    label: str = ""

    def __post_init__(self) -> None:
        check_number(self.size, "error", least=0, most=10)
        if self.size >= 1 and self.sign is not ErrorSign.OVER and self.form is not ErrorForm.LOGNORMAL:
            problem = f"got {self.size}, by which an estimate may be too small"
            raise BadInput(problem, place="error", remedy="Give one below 1, or sign=over, or form=lognormal")

    def applied(self, trace: Trace, seed: int) -> Trace:
        """Return the trace with an ``estimate`` for each job, the same for the same seed; the work stays."""
        if not self.size:
            return trace
        for_size, for_sign = streams(seed, 2, APART)
        count, size = len(trace.jobs), exact(self.size, "error")
        signs = {
            ErrorSign.OVER: np.ones(count, dtype=np.int64),
            ErrorSign.UNDER: -np.ones(count, dtype=np.int64),
            ErrorSign.BOTH: for_sign.integers(2, size=count) * 2 - 1,
        }[self.sign].tolist()
        if self.form is ErrorForm.LOGNORMAL:
            drawn = for_size.standard_normal(count).tolist()
            # rounded, so that the last digit of a logarithm matters to nobody
            factors = [
                Fraction(round(exp(sign * abs(each) * self.size) * PARTS), PARTS)
                for sign, each in zip(signs, drawn, strict=True)
            ]
        else:
            part = (
                for_size.integers(PARTS + 1, size=count).tolist() if self.form is ErrorForm.UNIFORM else [PARTS] * count
            )
            factors = [1 + sign * size * Fraction(each, PARTS) for sign, each in zip(signs, part, strict=True)]
        least = Fraction(1, PARTS)
        number = trace.jobs.arithmetic.number
        told = cast(objects(max(each, least) for each in factors), number) * trace.jobs.work
        return replace(trace, jobs=replace(trace.jobs, estimate=told))
