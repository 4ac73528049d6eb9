"""Certificates about bare programs, linear or with integers: no market is needed to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.certificates.certificate import Certificate
from fairopt.certificates.rows import bare_duals
from fairopt.problem import Market
from fairopt.program import Array, Program, Sense


@dataclass(frozen=True, eq=False)
class Bound(Certificate):
    """``point`` is feasible with objective ``value``, no feasible point is beyond ``bound``; ``gap`` is between them.

    With a gap of 0 the point is optimal. ``duals`` are entries ["row", number, value], of the objective maximised.
    Where the program is that of a policy which the verifier does not know, ``policy`` names it, and ``shares`` (n, k)
    are the positions of the variables that are the shares of ``market``.
    """

    kind: ClassVar[str] = "bound"
    program: Program
    point: Array
    value: Fraction
    bound: Fraction
    gap: Fraction
    duals: Sequence[Sequence[Any]]
    market: Market | None = None
    policy: str | None = None
    shares: Array | None = None

    @classmethod
    def of_optimum(cls, program: Program, solution: Solution) -> Bound:
        """Return the certificate of an exact optimum of a linear program."""
        assert solution.dual is not None
        value = Fraction(program.value(solution.point))
        dual = solution.dual if program.sense is Sense.MAXIMIZE else -solution.dual
        return cls(program, solution.point, value, value, Fraction(0), bare_duals(dual))

    @classmethod
    def of_decision(cls, market: Market, policy: str, program: Program, solution: Solution) -> Bound:
        """Return the certificate of a decision by a program that only the policy's author knows how to write."""
        shares = program.variable("share", np.arange(len(program.cost)))
        return replace(cls.of_optimum(program, solution), market=market, policy=policy, shares=shares)


@dataclass(frozen=True, eq=False)
class Infeasibility(Certificate):
    """No point satisfies the rows and bounds of ``program``: ``duals`` are multipliers that contradict them."""

    kind: ClassVar[str] = "infeasibility"
    program: Program
    duals: Sequence[Sequence[Any]]


@dataclass(frozen=True, eq=False)
class OutOfReach(Certificate):
    """No feasible allocation of ``market`` gives these users these throughputs: ``at_least`` of (user, throughput)."""

    kind: ClassVar[str] = "infeasibility"
    market: Market
    at_least: Sequence[tuple[str, Fraction]]
    duals: Sequence[Sequence[Any]]
