"""What the tests share: each conformance run is printed at the end, with what it ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def conformance(record_property: Callable[[str, object], None]) -> Callable[[object], None]:
    """Keep a line for the terminal summary; it travels with the test's report, also between processes."""
    return lambda text: record_property("conformance", str(text))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = [
        value
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, value in report.user_properties
        if name == "conformance"
    ]
    if lines:
        terminalreporter.section("conformance: what ran")
        for line in sorted(set(lines)):
            terminalreporter.write_line(line)
