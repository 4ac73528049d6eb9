"""Seeds of tests that ask the same question of many random instances: some in every run, all in `make campaign`."""

from __future__ import annotations

from typing import Any

import pytest


def seeds(quick: int, whole: int) -> list[Any]:
    """Return the seeds below ``whole``; those from ``quick`` on are of the campaign."""
    return [pytest.param(seed, marks=[pytest.mark.slow] if seed >= quick else []) for seed in range(whole)]


def counts(quick: int, whole: int) -> list[Any]:
    """Return how many instances one test draws: ``quick`` in every run, ``whole`` in the campaign."""
    return [quick, pytest.param(whole, marks=pytest.mark.slow)]
