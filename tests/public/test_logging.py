"""What was chosen, and what fell back, is logged; nobody who does not ask for it sees anything."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from fairopt import Market, allocate, compare
from fairopt.datasets import oef_example

FAR_APART = Market.of([[1, 2], [1, 3]], [1e15, 1e-9])


def test_a_decision_says_who_decided(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fairopt")
    allocate("max-min", oef_example(), "highs")
    (said,) = caplog.messages
    assert "max-min on <Market: 3 users" in said
    assert "by highs in floats" in said


def test_a_fall_back_to_rationals_says_why(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "fairopt")
    allocate("max-min", FAR_APART)
    assert any("prices failed in floats (numerically out of range" in said for said in caplog.messages)


def test_a_comparison_logs_a_line_a_policy_and_details_below(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "fairopt")
    list(compare(oef_example(), ["equal-split", "max-min"], ["envy_freeness"]))
    lines = [record for record in caplog.records if record.name.startswith("fairopt.compare")]
    assert [record.levelname for record in lines].count("INFO") == 2
    assert any("<Verdict: envy_freeness FAILS" in record.getMessage() for record in lines)


def test_nothing_is_printed_unasked() -> None:
    code = "import fairopt; fairopt.allocate('max-min', fairopt.Market.of([[1, 2], [1, 3]], [1e15, 1e-9]))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not ran.stdout + ran.stderr
