"""Why tests are skipped, and how many for each reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any


def reason_of(report: Any) -> str:
    """Return the reason that a skipped test gives, "" where it gives none."""
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    reason = told.removeprefix("Skipped").removeprefix(":").strip()
    return "" if reason == "unconditional skip" else reason


def skipped_for(reports: Iterable[Any]) -> Counter[str]:
    """Return how many of the skipped tests give each reason; the first line of it."""
    return Counter(reason_of(report).partition("\n")[0] for report in reports)
