"""What all peers have in common, and the arrays of floats that they are given: nothing of fairopt's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairopt.experiment.bench import Contender
from fairopt.problem import Market

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SharedGpus:
    """A market as arrays, for n users and k types.

    Shapes: ``speedup`` (n, k), ``capacity`` (k,), ``weight`` (n,), ``limit`` (n,): the most GPUs of a user, infinity
    for no limit; ``fair`` (n,): a user's throughput on its own partition of the cluster.
    """

    speedup: Floats
    capacity: Floats
    weight: Floats
    limit: Floats
    fair: Floats

    @classmethod
    def of(cls, market: Market) -> SharedGpus:
        """Return the arrays of a market."""
        floats = market.as_(float)
        fields = (floats.speedup, floats.capacity, floats.weight, floats.limit, floats.fair_utility())
        return cls(*(np.array(each, dtype=float) for each in fields))

    @property
    def shape(self) -> tuple[int, int]:
        """(users, types)."""
        n, k = self.speedup.shape
        return n, k

    @property
    def most(self) -> Floats:
        """The upper bounds (n, k) of the shares: 0 where a user cannot run, else the type's capacity."""
        return np.where(self.speedup > 0, self.capacity, 0.0)

    @property
    def limited(self) -> NDArray[np.int64]:
        """The users that have a limit."""
        return np.flatnonzero(np.isfinite(self.limit))


class Peer(Contender):
    """A contender that needs ``modules``; `missing` names those that are not installed, and how to install them."""

    modules: ClassVar[Sequence[str]] = ()
    #: What pip is to install for them; the modules themselves where it is empty.
    install: ClassVar[str] = ""

    def missing(self) -> str | None:
        """Return which modules are not installed; nothing is imported to find out."""
        absent = [module for module in self.modules if find_spec(module.split(".")[0]) is None]
        if not absent:
            return None
        return f"{self.name} needs {', '.join(absent)}: pip install {self.install or ' '.join(self.libraries)}"

    def prepare(self, task: str, problem: Any) -> Any:
        """Import what will be needed, so that it is not timed, and return a market's arrays; others as they are."""
        for module in self.modules:
            import_module(module)
        return SharedGpus.of(problem) if isinstance(problem, Market) else problem
