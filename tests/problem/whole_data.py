"""Whole public data sets, which the repository does not hold, in the folder that FAIROPT_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def whole(name: str) -> Path:
    """Return the path of a whole data set; without it the test is skipped, and the summary counts it."""
    folder = os.environ.get("FAIROPT_DATA", "")
    path = Path(folder, name)
    if not folder or not path.is_file():
        pytest.skip(f"whole data set {name}: no such file in a folder that FAIROPT_DATA names")
    return path
