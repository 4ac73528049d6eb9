"""Names of a package whose modules are loaded when one is first used, so that who needs few of them starts sooner."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any


class _Package(ModuleType):
    """A package with such names: importing its module of the same name, such as `fairopt.compare`, hides none."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in self.__dict__["_MODULES"] and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


def later(package: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package; ``names``: by module inside it, its names with spaces between."""
    own = sys.modules[package]
    modules = MappingProxyType({name: module for module, words in names.items() for name in words.split()})
    own.__dict__["_MODULES"] = modules
    own.__class__ = _Package

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(own, name, value)
        return value

    return load
