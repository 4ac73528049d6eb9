"""A `Workload`: a generator of traces, by seed, for a cluster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from fairopt.errors import BadInput
from fairopt.problem import Cluster, Trace
from fairopt.problem.numbers import exact, shown, whole
from fairopt.program import Number
from fairopt.workloads.load import Counted, load_of


class Workload(ABC):
    """A generator of traces: a frozen dataclass whose fields are its options, each with a default and checked.

    ``name`` is that of its entry point (group ``fairopt.workloads``), ``source`` says where it is from. ``home`` is
    the data set of its own cluster, "" where it has none.

    >>> from fairopt.discovery import workload
    >>> workload("poisson").name
    'poisson'
    """

    name: ClassVar[str]
    source: ClassVar[str]
    home: ClassVar[str] = ""
    #: The speed at which the load counts a job's GPU-time; an option of those who state a load.
    counted: Counted = Counted.MEAN

    @abstractmethod
    def trace(self, seed: int, cluster: Cluster) -> Trace:
        """Return the trace of this seed for ``cluster``, in Fractions, the same on every machine.

        Errors: `BadInput` where the options do not suit the cluster.
        """

    def load_of(self, trace: Trace, cluster: Cluster) -> Number:
        """Return the load of a trace as this generator counts it: between the first arrival and the last."""
        return load_of(trace, cluster, counted=self.counted)


def streams(seed: int, count: int, *apart: int) -> list[np.random.Generator]:
    """Return independent generators of random numbers, so that a change of one part of a trace leaves the others.

    Who draws with the same seed for another purpose gives a number ``apart``, else both draw the same. Draws from them
    are of integers only (PCG64), and are the same on every machine. Errors: `BadInput`.
    """
    number = whole(seed, "seed", least=0)
    return [
        np.random.Generator(np.random.PCG64(each))
        for each in np.random.SeedSequence(number, spawn_key=apart).spawn(count)
    ]


def check_count(value: object, place: str, *, least: int = 1) -> None:
    """Refuse what is no whole number of at least ``least``."""
    whole(value, place, least=least)


def check_range(value: object, place: str, *, above: object = 0, most: object = None) -> None:
    """Refuse what is no number above ``above`` and at most ``most`` (None: any)."""
    number = exact(value, place)
    if number <= exact(above, place) or (most is not None and number > exact(most, place)):
        limit = "" if most is None else f" and at most {most}"
        raise BadInput(f"got {shown(value)}", place=place, remedy=f"Give a number above {above}{limit}")
