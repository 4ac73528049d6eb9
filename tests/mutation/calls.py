"""The calls of the property checkers, each a file: as a plugin of pytest, what tests ask; and what comes of a call.

``MUTATION_CORPUS`` names the folder that they are kept in. A call is a function's name and what it was given.
"""

from __future__ import annotations

import importlib
import json
import pickle
import pkgutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import wraps
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from recording import keep

PACKAGE = "fairopt.properties"
#: What is given without end is looked at so far.
MOST = 200


def pytest_configure() -> None:
    inside = list[str]()  # the calls that are being answered: what they call themselves is not kept

    def kept(call: FunctionType, name: str) -> Callable[..., Any]:
        @wraps(call)
        def asked(*given: Any, **options: Any) -> Any:
            if not inside:
                with suppress(Exception):  # what cannot be written down, such as a function made on the spot
                    keep(pickle.dumps((name, given, options)), None)
            inside.append(name)
            try:
                return call(*given, **options)
            finally:
                inside.pop()

        return asked

    for kind in (kind for module in modules() for kind in _classes(module)):
        if "instances" in vars(kind) and vars(kind)["instances"]:
            keep(pickle.dumps(("calls:instances", (kind,), {})), None)
    for module in modules():
        for owner, prefix in ((module, ""), *((kind, f"{kind.__name__}.") for kind in _classes(module))):
            for name, call in list(vars(owner).items()):
                own = isinstance(call, FunctionType) and call.__module__ == module.__name__
                if own and not name.startswith("_") and call.__qualname__ == f"{prefix}{name}":
                    setattr(owner, name, kept(call, f"{module.__name__}:{prefix}{name}"))


def _classes(module: ModuleType) -> Iterator[type]:
    own = (each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__)
    return (each for each in own if not issubclass(each, Enum))


def modules() -> list[ModuleType]:
    """Return the checkers' modules."""
    package = importlib.import_module(PACKAGE)
    found = pkgutil.walk_packages(package.__path__, f"{PACKAGE}.")
    return [package, *(importlib.import_module(each.name) for each in found)]


def anew() -> None:
    """Forget the checkers' modules: who asks next reads them anew."""
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]


def instances(kind: type) -> list[Any]:
    """Return the instances that a property brings along, with what it says of them."""
    return [(each, kind().check(*each.case)) for each in kind.instances]  # type: ignore[attr-defined]


def answer(path: Path) -> list[str]:
    """Return the answer of a call, a verdict's or the name of an error, and everything that it says."""
    name, given, options = pickle.loads(path.read_bytes())
    module, _, place = name.partition(":")
    call: Any = importlib.import_module(module)
    for part in place.split("."):
        call = getattr(call, part)
    try:
        out = call(*given, **options)
        said = _told(out)
    except Exception as error:  # noqa: BLE001 - whatever a changed checker runs into is its answer
        return [type(error).__name__, str(error)]
    kind = out.answer.name if hasattr(out, "answer") else str(out) if isinstance(out, bool) else ""
    return [kind, json.dumps(said, default=repr)]


def _told(value: Any) -> Any:
    if isinstance(value, bool | str | type(None)):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        return [str(value.dtype), _told(value.tolist())]
    if isinstance(value, Mapping):
        return {str(key): _told(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple | Iterator):
        return [_told(each) for each in islice(value, MOST)]
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: _told(getattr(value, each.name)) for each in fields(value)}
        return [type(value).__name__, own, _named(value, str) if type(value).__module__.startswith(PACKAGE) else ""]
    return _named(value, repr)


def _named(value: Any, say: Callable[[Any], str]) -> str:
    """Return what is said of a value, its type alone where that would be where it is in memory."""
    said = say(value)
    return type(value).__name__ if " at 0x" in said else said
