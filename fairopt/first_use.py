"""Names of a package whose modules are loaded when a name is first used, so that a program loads what it uses only."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package, of whose names ``modules`` says the modules. Errors: `AttributeError`.

    >>> on_first_use("fairopt", {"read_market": "problem"})("read_market").__name__
    'read_market'
    """

    def attribute(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return attribute
