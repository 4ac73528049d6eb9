"""fairopt: how scarce GPUs are shared, solved by any solver and checked property by property.

>>> import fairopt
>>> from fairopt.models import EqualSplit
>>> market = fairopt.Market.of([[1, 2], [1, 5]], capacity=[1, 1])
>>> fairopt.allocate(EqualSplit(), market).utilities.tolist()
[Fraction(3, 2), Fraction(3, 1)]
"""

import sys
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairopt.compare import compare as compare
    from fairopt.compare import verify as verify
    from fairopt.errors import BadInput as BadInput
    from fairopt.errors import FairoptError as FairoptError
    from fairopt.errors import NotCapable as NotCapable
    from fairopt.errors import NotInstalled as NotInstalled
    from fairopt.errors import NotSolved as NotSolved
    from fairopt.metrics import metrics as metrics
    from fairopt.policy import Allocation as Allocation
    from fairopt.policy import Decision as Decision
    from fairopt.policy import Policy as Policy
    from fairopt.policy import allocate as allocate
    from fairopt.policy import decide as decide
    from fairopt.policy import run as run
    from fairopt.policy import uniqueness as uniqueness
    from fairopt.problem import Market as Market
    from fairopt.problem import read_market as read_market
    from fairopt.problem import write_market as write_market

#: The public names by module, which is loaded when one is first used, so that the command line starts fast.
_NAMES = {
    "compare": ("compare", "verify"),
    "errors": ("BadInput", "FairoptError", "NotCapable", "NotInstalled", "NotSolved"),
    "metrics": ("metrics",),
    "policy": ("Allocation", "Decision", "Policy", "allocate", "decide", "run", "uniqueness"),
    "problem": ("Market", "read_market", "write_market"),
}
_MODULES = MappingProxyType({name: module for module, names in _NAMES.items() for name in names})
__all__ = sorted(_MODULES)


class _Package(ModuleType):
    """The package: importing the module `fairopt.compare` must not hide the function ``fairopt.compare``."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _MODULES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
