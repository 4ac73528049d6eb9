"""How hard a property of policies is searched for a counterexample."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from fairopt.errors import BadInput
from fairopt.program import INFINITY

#: The kinds of misreports; each gets an equal part of the effort.
KINDS = 3


@dataclass(frozen=True)
class Effort:
    """The limits of a search: at most ``evaluations`` misreports and ``seconds``, with random ``seed``.

    The same evaluations and seed make the same search; seconds depend on the machine. Decisions that are repeated, to
    confirm a gain or make it exact, are not counted.
    """

    evaluations: int = 600
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.evaluations < 1 or (self.seconds is not None and not self.seconds > 0):
            raise BadInput(f"got {self}", place="effort", remedy="Allow at least one evaluation and some time")

    def ends(self, parts: int = 1) -> float:
        """Return when a part of a search that begins now must end, by `monotonic`; infinite where no time is set."""
        return INFINITY if self.seconds is None else monotonic() + self.seconds / parts

    def part(self, number: int) -> int:
        """Return the number of evaluations for kind ``number`` of misreport; the parts add up to all."""
        return (self.evaluations + KINDS - 1 - number) // KINDS
