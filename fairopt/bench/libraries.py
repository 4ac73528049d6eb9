"""Libraries that benchmarks use and the rest of fairopt does without: imported where they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fairopt.errors import NotInstalled


def library(module: str, needed_for: str, extra: str = "bench") -> Any:
    """Return a module of an optional library. Errors: `NotInstalled`, which names the extra that has it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise NotInstalled(f"{needed_for} needs {name}: pip install 'fairopt[{extra}]'") from error
