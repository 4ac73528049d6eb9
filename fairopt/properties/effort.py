"""How hard a property of policies is searched for a counterexample."""

from __future__ import annotations

from dataclasses import dataclass

from fairopt.errors import BadInput

#: Larger, smaller and any misreports share the effort alike.
KINDS = 3


@dataclass(frozen=True)
class Effort:
    """How hard to search one policy: at most ``evaluations`` misreports and ``seconds``, from ``seed``.

    The same evaluations and seed make the same search; a limit of seconds depends on the machine. Decisions that are
    made again, to be sure or to be exact, are not counted.
    """

    evaluations: int = 600
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.evaluations < 1 or (self.seconds is not None and not self.seconds > 0):
            raise BadInput(f"got {self}", place="effort", remedy="Allow at least one evaluation and some time")

    def part(self, number: int) -> int:
        """Return how many evaluations the kind of misreport of this number has; the parts add up to all."""
        return (self.evaluations + KINDS - 1 - number) // KINDS
