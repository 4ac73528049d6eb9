"""Certificates about bare programs, linear or with integers: no market is needed to read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from fairopt.backends.solution import Solution
from fairopt.certificates.certificate import Certificate
from fairopt.certificates.parts import BareDuals, Duals, Gap, Objective, Part, Policy, UpTo, bare_duals, rows_of
from fairopt.problem import Market
from fairopt.problem.floors import is_entitled
from fairopt.program import Array, Program, Sense

Point: TypeAlias = Annotated[
    Array, Part({"type": "array", "items": {"$ref": "#/$defs/number"}}, "A number for each variable.")
]


@dataclass(frozen=True, eq=False)
class Bound(Certificate):
    """``point`` is feasible with objective ``value``; no feasible point is better than ``bound``.

    ``gap`` is the difference; with a gap of 0 the point is optimal. ``duals`` are entries ["row", number, value] for
    the objective maximised.

    >>> from fairopt.backends.exact import Exact
    >>> from fairopt.program import Formulation
    >>> p = Formulation('one')
    >>> x = p.variable('x', lower=0, upper=3)
    >>> p.maximize(2 * x)
    >>> program = p.program()
    >>> print(Bound.of_optimum(program, Exact().solve(program)).value)
    6
    """

    kind: ClassVar[str] = "bound"
    program: Program
    point: Point
    value: Objective
    bound: UpTo
    gap: Gap
    duals: BareDuals

    @classmethod
    def of_optimum(cls, program: Program, solution: Solution) -> Bound:
        """Return the certificate of an exact optimum of a linear program."""
        assert solution.dual is not None
        value = Fraction(program.value(solution.point))
        dual = solution.dual if program.sense is Sense.MAXIMIZE else -solution.dual
        return cls(program, solution.point, value, value, Fraction(0), bare_duals(dual))


@dataclass(frozen=True, eq=False)
class OutsideDecision(Certificate):
    """The optimum of a program of an outside policy, which the verifier does not know.

    ``shares`` (n, k) are the positions of the share variables. It proves what it says of the program, which the
    policy's author wrote. Whether that is the policy's program, the verifier cannot decide, and says so. Where the
    market has entitlements, it does decide that the shares keep the caps, and the guarantees that can be used.

    >>> OutsideDecision.kind, OutsideDecision.decision
    ('bound', True)
    """

    kind: ClassVar[str] = "bound"
    decision: ClassVar[bool] = True
    market: Market
    policy: Policy
    program: Program
    point: Point
    shares: Annotated[Array, Part(rows_of("positions"), "Which variable is which share.")]
    value: Objective
    bound: UpTo
    gap: Gap
    duals: BareDuals

    def tells_whole(self) -> bool:
        """Whether the market is told with its entitlements: where they say something."""
        return is_entitled(self.market)

    @property
    def allocation(self) -> Array:
        """The shares (n, k) of the point."""
        return self.point[self.shares]

    @classmethod
    def of(cls, market: Market, policy: str, program: Program, solution: Solution) -> OutsideDecision:
        """Return the certificate of an exact optimum."""
        best = Bound.of_optimum(program, solution)
        shares = program.variable("share", np.arange(len(program.cost)))
        return cls(market, policy, program, best.point, shares, best.value, best.bound, best.gap, best.duals)


@dataclass(frozen=True, eq=False)
class Infeasibility(Certificate):
    """No point satisfies the rows and bounds of ``program``: ``duals`` are multipliers that contradict them.

    >>> Infeasibility.kind
    'infeasibility'
    """

    kind: ClassVar[str] = "infeasibility"
    program: Program
    duals: BareDuals


@dataclass(frozen=True, eq=False)
class UnreachableUtilities(Certificate):
    """No feasible allocation of ``market`` gives these users these throughputs: ``at_least`` of (user, throughput).

    >>> market = Market.of([[1, 2]], [1, 1])
    >>> duals = [['capacity', 0, 1], ['capacity', 1, 2], ['at_least', 0, -1]]
    >>> UnreachableUtilities(market, [('u1', 4)], duals).to_json()['at_least']
    [['u1', 4]]
    """

    kind: ClassVar[str] = "infeasibility"
    market: Market
    at_least: Annotated[Sequence[tuple[str, Fraction]], Part(rows_of("at_least"), "What each user should get.")]
    duals: Duals
