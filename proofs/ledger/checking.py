"""Checks of what a row of the ledger rests on; one that fails says that the row no longer follows."""

from __future__ import annotations

from typing import Any, TypeVar

from fairopt.certificates import Certificate
from fairopt.errors import FairoptError
from fairopt.proofs.verify import Rejected, verify

Found = TypeVar("Found")


class NoLongerFollows(FairoptError):
    """Something that the evidence of a row rests on was computed again, and came out otherwise."""


def require(condition: object, what: str) -> None:
    """Raise `NoLongerFollows` unless the condition holds; ``what`` says what should have come out."""
    if not condition:
        raise NoLongerFollows(f"no longer so: {what}")


def found(value: Found | None, what: str) -> Found:
    """Return what was looked for, which must be there; ``what`` says what it is."""
    if value is None:
        raise NoLongerFollows(f"not found: {what}")
    return value


def proved(certificate: Certificate | dict[str, Any]) -> str:
    """Return what a certificate proves, by ``proofs/verify.py``. Errors: `NoLongerFollows` where it is rejected."""
    try:
        return verify(certificate.to_json() if isinstance(certificate, Certificate) else certificate)
    except Rejected as rejected:
        raise NoLongerFollows(f"proofs/verify.py rejects a certificate: {rejected}") from rejected
