"""A `Setting`: all that a run needs beside a policy."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from fairopt.errors import BadInput
from fairopt.problem.cluster import Cluster
from fairopt.problem.numbers import exact
from fairopt.problem.trace import Trace
from fairopt.simulation.mechanics import Mechanics

#: Seconds of a round, where nothing is said.
LENGTH = Fraction(300)


def length_of(length: object) -> Fraction:
    """Return the length of a round as an exact number; `BadInput` where it is not positive."""
    number = exact(length, "length")
    if number <= 0:
        raise BadInput(f"got {number}", place="length", remedy="Give the length of a round, positive")
    return number


@dataclass(frozen=True, eq=False)
class Setting:
    """A cluster, what happens to it, what moving costs there, and the length of a round in the trace's unit of time.

    It is what policies of rounds are compared on, as markets are for policies of shares.
    """

    cluster: Cluster
    trace: Trace
    mechanics: Mechanics = field(default_factory=Mechanics)
    length: Fraction = LENGTH

    def __post_init__(self) -> None:
        object.__setattr__(self, "length", length_of(self.length))

    def as_(self, number: type) -> Setting:
        """Return the same setting in ``float`` or in ``Fraction``."""
        return replace(self, cluster=self.cluster.as_(number), trace=self.trace.as_(number))
