"""fairopt: how scarce GPUs are shared, solved by any solver and checked property by property.

>>> import fairopt
>>> market = fairopt.Market.of([[1, 2], [1, 5]], capacity=[1, 1])
>>> fairopt.allocate("equal-split", market).utilities.tolist()
[Fraction(3, 2), Fraction(3, 1)]
"""

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairopt.later import later, offered

if TYPE_CHECKING:
    from fairopt.audit import audit as audit
    from fairopt.by_name import allocate as allocate
    from fairopt.by_name import decide as decide
    from fairopt.by_name import run as run
    from fairopt.by_name import uniqueness as uniqueness
    from fairopt.compare import compare as compare
    from fairopt.compare import verify as verify
    from fairopt.discovery import policies as policies
    from fairopt.errors import BadInput as BadInput
    from fairopt.errors import FairoptError as FairoptError
    from fairopt.errors import NotCapable as NotCapable
    from fairopt.errors import NotInstalled as NotInstalled
    from fairopt.errors import NotSolved as NotSolved
    from fairopt.frontier import frontier as frontier
    from fairopt.policy import Allocation as Allocation
    from fairopt.policy import Decision as Decision
    from fairopt.policy import Policy as Policy
    from fairopt.problem import Cluster as Cluster
    from fairopt.problem import Market as Market
    from fairopt.problem import Trace as Trace
    from fairopt.problem import read_cluster as read_cluster
    from fairopt.problem import read_market as read_market
    from fairopt.problem import read_trace as read_trace
    from fairopt.problem import write_market as write_market
    from fairopt.properties import Answer as Answer
    from fairopt.properties import Verdict as Verdict
    from fairopt.properties.graphs import envy_graph as envy_graph
    from fairopt.properties.graphs import trade_graph as trade_graph
    from fairopt.properties.metrics import metrics as metrics
    from fairopt.simulation import History as History

    __version__: str

# a module is loaded when a name of it is first used, so that the command line starts fast
_load = later(__name__)
__all__ = offered(__name__)

logging.getLogger(__name__).addHandler(logging.NullHandler())  # who wants to see what is logged adds another


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return import_module(f"{__name__}.experiment.plot") if name == "plot" else _load(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__", "plot"])
