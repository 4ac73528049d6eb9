"""Certificates that a policy rewards a lie."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from fairopt.certificates.certificate import Certificate
from fairopt.certificates.parts import Part, Policy, User
from fairopt.problem import Market
from fairopt.program import Array


@dataclass(frozen=True, eq=False)
class MisreportProof(Certificate):
    """On ``market``, ``user`` gains ``gain`` (by its true speedups) from ``policy`` by reporting ``report`` (k,).

    ``truth`` and ``lie`` certify the two decisions; or, as `Extreme` certificates, the most that the user gets at any
    optimum on the truth, and the least at any optimum on the lie.
    """

    kind: ClassVar[str] = "misreport"
    market: Market
    policy: Policy
    user: User
    report: Annotated[Array, Part("numbers", "What it reports.")]
    gain: Annotated[Fraction, Part("number", "What it gains.")]
    truth: Annotated[Certificate, Part("decided", "The decision on the truth, or its best for the user.")]
    lie: Annotated[Certificate, Part("decided", "The decision on the lie, or its worst for the user.")]
