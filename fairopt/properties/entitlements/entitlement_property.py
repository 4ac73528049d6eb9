"""What properties of entitlements have in common: where they are asked, how a mend is said, and what they cite."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from fairopt.problem import Entitled, Entitlements, Gangs, Market
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


_USERS, _TYPES = ("team-a", "team-b", "batch"), ("A100", "H100")
#: team-a holds 2 H100, waits for 6 and is owed 8; batch is owed none. All GPUs are guaranteed to the group ml.
TEAMS = Market.of(
    [[1, 2], [1, 3], [1, 2]],
    capacity=[4, 10],
    users=_USERS,
    types=_TYPES,
    entitlements=Entitlements.of(
        _USERS,
        _TYPES,
        group={"team-a": "ml", "team-b": "ml"},
        guarantee={"team-a": [0, 8], "team-b": [4, 2]},
        cap={"team-b": [4, 4], "batch": [2, 8]},
        gangs=Gangs.of(
            ["team-a", "team-a", "team-b", "batch", "batch"],
            [2, 6, 4, 6, 2],
            users=_USERS,
            types=_TYPES,
            names=["train", "tune", "serve", "sweep", "bench"],
            allowed=[["H100"], ["H100"], ["A100"], None, ["H100"]],
            on=["H100", None, "A100", "H100", "H100"],
        ),
    ),
)
#: What the teams hold: batch has what team-a waits for.
NOW = ((0, 2), (4, 0), (0, 8))
#: What they are owed: the tuning runs, and the sweep waits.
OWED = ((0, 8), (4, 0), (0, 2))
