"""What the properties of entitlements have in common: where they are asked, and what a failure's mending says."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from fairopt.problem import Entitled, Market
from fairopt.program import Array, Number, number_text
from fairopt.properties.property import AllocationProperty
from fairopt.properties.verdict import Verdict


class EntitlementProperty(AllocationProperty):
    """A property of an allocation against the market's entitlements; UNDECIDED where the market says nothing of them.

    ``needs`` is what the entitlements must say.

    >>> from fairopt.properties.entitlements.cap_kept import CapKept
    >>> CapKept().check(Market.of([[1]], capacity=[1]), [[1]]).reason
    'the market says no caps'
    """

    needs: ClassVar[Entitled | None] = None
    needs_speedups: ClassVar[bool] = False

    def asked_of(self, problem: object) -> bool:
        """Whether the market's entitlements say what the property is about."""
        return isinstance(problem, Market) and not self.missing(problem)

    def missing(self, market: Market) -> str:
        """Return what the market does not say and must; "" for nothing."""
        owed = market.entitlements
        if owed is None or (self.needs is not None and self.needs not in owed.said):
            return f"the market says no {'entitlements' if self.needs is None else self.needs.value}"
        return ""

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        if reason := self.missing(market):
            return Verdict.undecided(self.name, reason)
        return self._judged(market, shares, tolerance)

    @abstractmethod
    def _judged(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        """Decide on a market whose entitlements say what is needed."""


def action(sources: tuple[tuple[str, Number], ...], type_: str, node: str) -> str:
    """Return in words what to do: "reclaim 6 H100 from batch for team-a"."""
    idle = [f"give {node} {number_text(amount)} idle {type_}" for name, amount in sources if not name]
    lent = [f"{number_text(amount)} {type_} from {name}" for name, amount in sources if name]
    reclaim = [f"reclaim {' and '.join(lent)} for {node}"] if lent else []
    return " and ".join(idle + reclaim)
