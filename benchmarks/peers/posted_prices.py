"""Posted-price packing: fairopt's search for the best schedule, and the paper's, as it is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar

from fairopt.benchmarks.tasks.posted_prices import as_answer
from fairopt.errors import NotSolved, OutOfTime
from fairopt.experiment.bench import Contender
from fairopt.models.astraea.fast_search import Fast
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.models.astraea.reference import Reference
from fairopt.models.astraea.round_state import RoundState
from fairopt.policy import Admission, decide
from fairopt.problem.batch import Batch


@dataclass(frozen=True)
class _Limited(Reference):
    """A search that stops at a time limit; ``ends`` is by the clock of `perf_counter`, looked at before each job."""

    search: Reference = field(default_factory=Fast)
    ends: float = 0.0

    def best(self, state: RoundState, job: int) -> Admission:
        """Return what the search finds. Errors: `OutOfTime`."""
        if perf_counter() > self.ends:
            raise OutOfTime("jobs are left that were not offered anything at the time limit")
        return self.search.best(state, job)


@dataclass(frozen=True, eq=False)
class _Asked:
    """A batch, the search in its policy, and the seconds that it has."""

    batch: Batch
    search: Reference
    time_limit: float


class _Packing(Contender):
    """The policy with one way to find a job's best schedule; there is nothing to build."""

    tasks = ("posted-prices",)
    libraries: ClassVar[Sequence[str]] = ("fairopt", "numpy")
    search: ClassVar[type[Reference]]

    def build(self, task: str, prepared: Batch, *, time_limit: float, threads: int) -> _Asked:
        """Return the batch and the search."""
        return _Asked(prepared, self.search(), time_limit)

    def solve(self, built: _Asked) -> dict[str, Any]:
        """Decide on the batch. Errors: `OutOfTime`."""
        search = _Limited(search=built.search, ends=perf_counter() + built.time_limit)
        try:
            return as_answer(decide(PostedPricePacking(search=search), built.batch))
        except NotSolved as error:  # the policy's way to say that a limit was reached
            raise OutOfTime(str(error)) from error


@dataclass(frozen=True)
class FairoptPacking(_Packing):
    """fairopt's search: sums over windows instead of loops over slots and servers."""

    name = "fairopt-packing"
    search = Fast


@dataclass(frozen=True)
class PrintedPacking(_Packing):
    """Algorithms 3 to 5 as they are printed, loop by loop."""

    name = "astraea-paper"
    search = Reference
