"""What a share policy decides on a market, and the allocations that give every user the same utility."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace

from fairopt.backends.optimal_face import FLOAT_SLACK
from fairopt.backends.solution import Status
from fairopt.numbers import Arithmetic, arithmetic
from fairopt.policy.decision import Decision, DecisionReason
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, Number, Program, short_text
from fairopt.report import Grid, Tabular


@dataclass(frozen=True, eq=False, repr=False)
class Allocation(Decision, Tabular):
    """What a share policy decided on a market.

    Shapes: ``shares`` (n, k) GPUs of each type for each user. ``objective`` is the policy's own, in its own unit.
    ``error`` is 0, except where exact shares stand for irrational or very long ones: it is then proved that each
    utility differs from that of the policy's own allocation by at most this part of itself.

    Errors of what makes one are those of `fairopt.allocate`. Source: the policy's.

    >>> from fairopt import allocate
    >>> decision = allocate("oef-cooperative", Market.of([[1, 2], [1, 5]], capacity=[1, 1]), exact=True)
    >>> decision
    <Allocation: oef-cooperative on <Market: 2 users, 2 types (T1, T2), 2 GPUs>: objective 5.25, by exact in rationals>
    >>> print(decision.utilities, decision.shares[0])
    [Fraction(3, 2) Fraction(15, 4)] [Fraction(1, 1) Fraction(1, 4)]
    >>> print(decision)
    oef-cooperative on <Market: 2 users, 2 types (T1, T2), 2 GPUs>: objective 5.25, by exact in rationals
    user  T1    T2  throughput  times that of the equal split
    u1     1  0.25         1.5                              1
    u2     0  0.75        3.75                           1.25
    """

    market: Market
    shares: Array
    objective: Number
    _: KW_ONLY
    status: Status = Status.OPTIMAL
    error: Number = 0

    def __repr__(self) -> str:
        by = self.solver.name if self.solver else "nobody named"
        numbers = "rationals" if self.arithmetic.exact else "floats"
        numbers += f" that are within {float(self.error):.0e} of what is irrational or too long" if self.error else ""
        found = f"objective {short_text(self.objective)}, by {by} in {numbers}"
        return f"<Allocation: {self.policy} on {self.market!r}: {found}>"

    def __str__(self) -> str:
        """Return who gets what, as a table."""
        return f"{repr(self)[len('<Allocation: ') : -1]}\n{self._shown().text()}"

    def _table(self) -> Grid:
        return Grid("user", self.market.users, dict(zip(self.market.types, self.shares.T.tolist(), strict=True)))

    def _shown(self) -> Grid:
        own = self.utilities
        fair = self.market.as_(self.arithmetic).fair_utility()
        more = {"throughput": own.tolist(), "times that of the equal split": (own / fair).tolist()}
        return self._table().beside(more)

    @property
    def arithmetic(self) -> Arithmetic:
        """That of its numbers: floats or rationals."""
        return arithmetic(self.shares)

    @property
    def exact(self) -> bool:
        """Whether the shares are the policy's own, in rationals: not floats, and not near what is irrational."""
        return self.arithmetic.exact and not self.error

    @property
    def utilities(self) -> Array:
        """Each user's throughput (n,) in its own units."""
        return self.market.as_(self.arithmetic).utility(self.shares)

    def leaves(self, market: Market) -> Market:
        """Return ``market`` after the decision: where a scheduler's rule says which gangs run, they do."""
        if not isinstance(self.evidence, DecisionReason) or market.entitlements is None:
            return market
        return replace(market, entitlements=market.entitlements.running(self.evidence.gangs))


def same_utilities(decision: Allocation, name: str, part: Array | None = None) -> Program:
    """Return the allocations of a market that give every user at least what ``decision`` gives it.

    Where all optima of a policy have the same utilities, and these are Pareto-efficient, such allocations are all of
    its optima. Utilities in floats are lowered by the relative slack `FLOAT_SLACK`. ``part`` is that of `shares_of`.
    """
    market = decision.market.as_(decision.arithmetic)
    p = Formulation(name)
    share = shares_of(p, market, part)
    own = (market.speedup * share).sum(axis=1)
    slack = decision.arithmetic.tolerance(FLOAT_SLACK)
    p.constrain("utilities", own >= decision.utilities * (1 - slack), labels=(market.users,))
    return p.program()
