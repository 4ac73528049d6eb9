"""What is loaded when it is first used, so that who needs few of it starts sooner: a package's modules, libraries."""

import re
import sys
from collections.abc import Callable
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

from fairopt.errors import NotInstalled


class _Package(ModuleType):
    """A package with such names: importing its module of the same name, such as `fairopt.compare`, hides none."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in self.__dict__["_MODULES"] and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


#: How a package says what it offers, and to type checkers, in a block of its own, what of it is loaded later.
_SAID = re.compile(r"^(    )?from (\S+) import (\w+) as \3$", re.MULTILINE)


def _said(package: str) -> list[tuple[str, str, str]]:
    """Return an indent where it is loaded later, the module, and the name, of each name that a package offers."""
    loader: Any = sys.modules[package].__loader__
    if (source := loader.get_source(package)) is None:
        raise ImportError(f"{package} is installed as bytecode alone: install fairopt with its source")
    return _SAID.findall(source)


def offered(package: str) -> list[str]:
    """Return the ``__all__`` of a package: what its source imports as ``from MODULE import NAME as NAME``.

    >>> import fairopt.workloads
    >>> offered("fairopt.workloads")[:3]
    ['Counted', 'ErrorForm', 'ErrorSign']
    """
    return sorted(name for _, _, name in _said(package))


def later(package: str) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package: what it imports ``if TYPE_CHECKING`` is loaded when it is first used."""
    own = sys.modules[package]
    modules = MappingProxyType({name: module for indent, module, name in _said(package) if indent})
    own.__dict__["_MODULES"] = modules
    own.__class__ = _Package

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name]), name)
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
