"""The result of a check: an answer, a margin, and a witness or evidence."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np

from fairopt.certificates import Certificate, Judgement
from fairopt.errors import BadInput, NotCapable
from fairopt.policy import Optima
from fairopt.problem import Market, allocation_from, exact
from fairopt.problem.numbers import in_full
from fairopt.program import INFINITY, Array, Number

#: The relative tolerance for float allocations. HiGHS and the conic solvers are asked for 1e-7 to 1e-9, so a violation
#: beyond ten times that is the allocation's and not the solver's.
TOLERANCE = 1e-6

Json: TypeAlias = Mapping[str, Any]


class Answer(enum.Enum):
    """The three answers. NOT_REFUTED: a search found no failure, which does not prove that there is none."""

    HOLDS = "HOLDS"
    FAILS = "FAILS"
    NOT_REFUTED = "NOT_REFUTED"


@dataclass(frozen=True, eq=False)
class Verdict:
    """A property's verdict on an allocation, or on a policy.

    ``margin`` is the slack of the tightest case in the definition's own ``unit``; a negative one says by how much the
    property fails. ``witness`` shows a failure. ``evidence`` proves that the property holds, where the definition alone
    does not. ``exact`` says that the answer was decided in rational arithmetic with no tolerance; for NOT_REFUTED it
    says only that the margin comes from rational decisions. ``effort`` says what was examined.
    """

    property: str
    answer: Answer
    margin: Number | None
    unit: str
    exact: bool
    effort: str
    witness: Any = None
    evidence: Any = None
    by_misreport: Mapping[str, Verdict] = field(default_factory=dict)

    def to_json(self, *, exact: bool = False) -> Json:
        """Return the verdict as JSON types; ``exact`` writes Fractions as "p/q" instead of as decimals."""
        out: dict[str, Any] = {
            "answer": self.answer.value,
            "margin": plain(self.margin, exact=exact),
            "unit": self.unit,
            "exact": self.exact,
            "witness": plain(self.witness, exact=exact),
            "evidence": plain(self.evidence, exact=exact),
            "effort": self.effort,
        }
        if self.by_misreport:
            out["by_misreport"] = {kind: verdict.to_json(exact=exact) for kind, verdict in self.by_misreport.items()}
        return out


@runtime_checkable
class Summarised(Protocol):
    """An object of which only some fields are shown."""

    def summary(self) -> Mapping[str, Any]:
        """Return the fields to show."""
        ...


def plain(value: Any, *, exact: bool = False) -> Any:
    """Return a value as JSON types: arrays as lists, dataclasses as objects, numbers that are not finite as null.

    Fractions become "p/q" strings where ``exact``, else decimals.
    """
    if isinstance(value, Fraction):
        return in_full(value) if exact else float(value)
    if isinstance(value, np.ndarray):
        return [plain(entry, exact=exact) for entry in value.tolist()]
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Mapping):
        return {str(key): plain(entry, exact=exact) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, exact=exact) for entry in value]
    if isinstance(value, Summarised):
        return plain(value.summary(), exact=exact)
    if is_dataclass(value) and not isinstance(value, type):
        return {entry.name: plain(getattr(value, entry.name), exact=exact) for entry in fields(value)}
    return value


@dataclass(frozen=True, eq=False)
class Instance:
    """A cited instance on which a property's answer is known: a market, an allocation, and the answer."""

    source: str
    market: Market
    shares: Sequence[Sequence[object]]
    answer: Answer

    @property
    def allocation(self) -> Array:
        """The shares (n, k) as Fractions."""
        out = np.empty(self.market.shape, dtype=object)
        for i, row in enumerate(self.shares):
            out[i] = [exact(value, self.source) for value in row]
        return out


@dataclass(frozen=True, eq=False)
class OverOptima:
    """A property decided over all optima of a policy on a market.

    ``some``: whether an optimum has the property; ``having`` (n, k) is such an optimum. ``every``: whether all have it;
    ``lacking`` is an optimum without it. HOLDS and FAILS are proved; an unproved answer is NOT_REFUTED. Margins and
    witnesses are those of the optimum that is shown, or of the worst one.
    """

    some: Verdict
    every: Verdict
    having: Array | None = None
    lacking: Array | None = None


class Property(ABC):
    """A property of an allocation, however the allocation was made.

    ``instances`` are cited; the property holds for at least one and fails for at least one. A witness has a method
    ``refutes(market, shares)`` that applies the definition directly.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    definition: ClassVar[str]
    instances: ClassVar[tuple[Instance, ...]]
    short: ClassVar[str] = ""  # the column's heading, as in OEF Table 1; the name if empty

    def check(self, problem: Market, allocation: Any, *, tolerance: Number | None = None) -> Verdict:
        """Decide whether ``allocation`` (n, k) has the property: an array of floats or Fractions, or nested lists.

        Exact shares on an exact market are decided exactly unless a tolerance is given; floats within ``tolerance``
        (relative; `TOLERANCE` by default). Errors: `BadInput` for a wrong shape, and for a number that is not finite.
        """
        given = allocation if isinstance(allocation, np.ndarray) else allocation_from(allocation, problem)
        if given.shape != problem.shape:
            raise BadInput(
                f"got shape {given.shape} for a market of shape {problem.shape}",
                place="allocation",
                remedy="Give a row for each user and a column for each type",
            )
        if given.dtype == object:
            given = allocation_from(given.tolist(), problem)
        elif not np.isfinite(given).all():
            user, column = (int(place) for place in np.argwhere(~np.isfinite(given))[0])
            raise BadInput(
                f"got {given[user, column]}",
                place=f"allocation, user {problem.users[user]!r}, type {problem.types[column]!r}",
                remedy="Give a finite number",
            )
        if tolerance is not None and not 0 <= tolerance < INFINITY:
            raise BadInput(f"got {tolerance}", place="tolerance", remedy="Give a finite number that is not negative")
        exact = problem.exact and given.dtype == object
        market = problem if exact else problem.as_(float)
        shares = given if exact else given.astype(float)
        return self._check(market, shares, (0 if exact else TOLERANCE) if tolerance is None else tolerance)

    def over(self, optima: Optima) -> OverOptima:
        """Decide for some optimum and for every optimum, exactly; by default only from the optimum that was decided."""
        return self.shown(optima)

    def shown(self, optima: Optima) -> OverOptima:
        """Return the verdicts that follow from one optimum alone."""
        verdict = replace(self.check(optima.market, optima.shares), effort="one optimum")
        other = replace(verdict, answer=Answer.NOT_REFUTED, exact=False)
        if verdict.answer is Answer.HOLDS:
            return OverOptima(verdict, other, having=optima.shares)
        return OverOptima(other, verdict, lacking=optima.shares)

    def certify(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        """Return the evidence of an exact ``verdict`` on exact ``shares``, for ``proofs/verify.py``, without solving.

        Errors: `NotCapable` where the verdict is not exact.
        """
        if not verdict.exact or shares.dtype != object:
            raise NotCapable(f"{self.name} was decided in floats, and floats prove nothing")
        return self._certificate(market.as_(Fraction), shares, verdict)

    def _certificate(self, market: Market, shares: Array, verdict: Verdict) -> Certificate:
        """Return the evidence; for most properties the verifier just evaluates the definition."""
        return Judgement(market, shares, self.name, verdict.answer.value)

    @abstractmethod
    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        """Decide; ``market`` and ``shares`` are both exact or both floats."""

    def _by_slack(
        self,
        market: Market,
        slack: Number,
        size: Number,
        tolerance: Number,
        *,
        unit: str,
        effort: str,
        witness: Any,
    ) -> Verdict:
        """Return the verdict of the tightest case: it fails if the slack is below -tolerance times the case's size."""
        fails = slack < -tolerance * size
        return Verdict(
            property=self.name,
            answer=Answer.FAILS if fails else Answer.HOLDS,
            margin=slack + 0,  # turns a float -0.0 into 0.0
            unit=unit,
            exact=market.exact and bool(fails or slack >= 0),
            effort=effort,
            witness=witness if fails else None,
        )
