"""What is loaded when it is first used, so that who needs few of it starts sooner: a package's modules, libraries."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

from fairopt.errors import NotInstalled


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


def library(module: str, needed_for: str, extra: str = "bench") -> Any:
    """Return a module of an optional library. Errors: `NotInstalled`, which names the extra that has it.

    >>> library("json", "an example").__name__
    'json'
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise NotInstalled(f"{needed_for} needs {name}: pip install 'fairopt[{extra}]'") from error
