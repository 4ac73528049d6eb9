"""A `Trace`: what happens to a cluster over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike

from fairopt.errors import BadInput
from fairopt.problem.jobs import Jobs
from fairopt.program import INFINITY, Number


@dataclass(frozen=True)
class Outage:
    """A host that is down from ``begin`` until ``end`` (infinity: for good), in the trace's unit of time."""

    host: str
    begin: Number
    end: Number

    def __post_init__(self) -> None:
        if not 0 <= self.begin < self.end:
            raise BadInput(
                f"from {self.begin} to {self.end}",
                place=f"outage of {self.host!r}",
                remedy="Give a beginning that is not negative, and an end after it",
            )

    def meets(self, begin: Number, end: Number) -> bool:
        """Whether the host is down at some moment of [begin, end)."""
        return self.begin < end and begin < self.end


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """What happens to a cluster: jobs that arrive, and hosts that fail and come back."""

    jobs: Jobs
    outages: tuple[Outage, ...] = ()

    @classmethod
    def read(cls, path: str | PathLike[str], types: Sequence[str]) -> Trace:
        """Return the trace in a .csv, .csv.gz, .toml or .json file, for a cluster of ``types``; see `trace_files`."""
        from fairopt.problem.trace_files import read_trace

        return read_trace(path, types)

    def as_(self, number: type) -> Trace:
        """Return the same trace in ``float`` or in ``Fraction``."""
        outages = tuple(Outage(each.host, number(each.begin), _end(each, number)) for each in self.outages)
        return Trace(self.jobs.as_(number), outages)

    def __repr__(self) -> str:
        return f"<Trace: {self.jobs!r}, {len(self.outages)} outages>"


def _end(outage: Outage, number: type) -> Number:
    end: Number = outage.end if outage.end == INFINITY else number(outage.end)
    return end
