"""A `Trace`: what happens to a cluster over time."""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic
from fairopt.problem.jobs import Jobs
from fairopt.problem.numbers import exact
from fairopt.program import INFINITY, Number


@dataclass(frozen=True)
class Outage:
    """A host that is down from ``begin`` until ``end`` (infinity: for good), in the trace's unit of time.

    Errors: `BadInput` where it ends before it begins.

    >>> Outage("host-1", 60, 120).end
    120
    """

    host: str
    begin: Number
    end: Number

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.end:
            remedy = "Give a beginning that is not negative, and an end after it"
            raise BadInput(f"from {self.begin} to {self.end}", place=f"outage of {self.host!r}", remedy=remedy)

    def as_(self, number: type | Arithmetic) -> Outage:
        """Return the same outage in ``float`` or in ``Fraction``; a float becomes the decimal that it is written as."""
        return Outage(self.host, _in(self.begin, number, self.host), _in(self.end, number, self.host))


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What happens to a cluster: jobs that arrive, and hosts that fail and come back; outages in the jobs' numbers.

    Shapes, units and source are those of `Jobs`. Errors: `BadInput` for an outage that ends before it begins.

    >>> from fairopt.problem import Jobs
    >>> Trace(Jobs.of(types=["T"], arrival=[0, 5], gpus=[1, 2], work=[60, 120]))
    <Trace: <Jobs: 2 of 1 tenant, types T>, 0 outages>
    """

    jobs: Jobs
    outages: tuple[Outage, ...] = ()

    def __post_init__(self) -> None:
        # a float among Fractions would make every number float that it meets
        outages = tuple(outage.as_(self.jobs.arithmetic) for outage in self.outages)
        object.__setattr__(self, "outages", outages)

    def as_(self, number: type | Arithmetic) -> Trace:
        """Return the same trace in ``float`` or in ``Fraction``."""
        return Trace(self.jobs.as_(number), self.outages)

    def __repr__(self) -> str:
        return f"<Trace: {self.jobs!r}, {len(self.outages)} outages>"


def _in(moment: Number, number: type | Arithmetic, host: str) -> Number:
    own: Number = moment if moment == INFINITY else number(exact(moment, f"outage of {host!r}"))
    return own
