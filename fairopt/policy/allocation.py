"""What a share policy decides on a market, and the allocations that give every user the same utility."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from fairopt.backends.optimal_face import FLOAT_SLACK
from fairopt.backends.solution import Status
from fairopt.policy.decision import Decision
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Number, Program


@dataclass(frozen=True, eq=False)
class Allocation(Decision):
    """What a share policy decided on a market.

    Shapes: ``shares`` (n, k) GPUs of each type for each user. ``objective`` is the policy's own, in its own unit.
    """

    market: Market
    shares: Array
    objective: Number
    _: KW_ONLY
    status: Status = Status.OPTIMAL

    @property
    def exact(self) -> bool:
        """Whether the shares are Fractions."""
        return self.shares.dtype == object

    @property
    def utilities(self) -> Array:
        """Each user's throughput (n,) in its own units."""
        return self.market.as_(Fraction if self.exact else float).utility(self.shares)


def same_utilities(decision: Allocation, name: str, part: Array | None = None) -> Program:
    """Return the allocations of a market that give every user at least what ``decision`` gives it.

    Where all optima of a policy have the same utilities, and these are Pareto-efficient, such allocations are all of
    its optima. Utilities in floats are lowered by the relative slack `FLOAT_SLACK`. ``part`` is that of `shares_of`.
    """
    market = decision.market.as_(Fraction if decision.exact else float)
    p = Formulation(name)
    share = shares_of(p, market, part)
    own = (market.speedup * share).sum(axis=1)
    slack = 0 if decision.exact else FLOAT_SLACK
    p.constrain("utilities", own >= decision.utilities * (1 - slack), labels=(market.users,))
    return p.program()
