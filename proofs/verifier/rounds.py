"""How a job stands between two rounds, what a record says of a round, and what came of the round."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

from .reading import Number
from .trace import Job, Spots

ZERO = Fraction(0)


@dataclass
class JobState:
    """How a job stands at the beginning of round ``since``; from there on it goes on as it does."""

    job: Job
    row: int
    fits: bool
    remaining: Fraction
    since: int = 0
    attained: Fraction = ZERO
    setup: Fraction = ZERO
    speed: Fraction = ZERO
    last: Spots = ()
    running: bool = False
    lease: Number = ZERO
    said: int = -1  # the round in which the lease was said
    started: Number = inf
    token: int = 0  # of what is known of its completion


@dataclass
class Told:
    """What a record says of a round that is not worked out, but chosen, or too close to call."""

    placed: dict[str, Spots] = field(default_factory=dict)
    stop: list[str] = field(default_factory=list)
    lease: dict[str, Number] = field(default_factory=dict)
    complete: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    whole: bool = False  # whether what every job did is asked for
    down: set[int] | None = None  # None: as before


@dataclass
class JobRun:
    """What a job did in a round."""

    spots: Spots
    before: Spots
    change: str
    speed: Fraction
    until: Fraction
    setup: Fraction
    progress: Fraction
    remaining: Fraction
    lease: Number
    completed: bool
    lost: bool


@dataclass
class Came:
    """What came of a round; ``wrong`` says what was not allowed."""

    index: int
    begin: Fraction
    arrived: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    back: list[str] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)
    stop: list[str] = field(default_factory=list)
    placed: dict[str, tuple[str, Spots, Spots]] = field(default_factory=dict)
    ran: dict[str, JobRun] = field(default_factory=dict)
    complete: dict[str, Fraction] = field(default_factory=dict)
    lost: dict[str, Fraction] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether something happened, so that the record must have a line."""
        happened = (self.arrived, self.failed, self.back, self.stop, self.placed, self.complete, self.lost)
        return any(happened) or bool(self.wrong)


def happened(came: Came) -> str:
    """Return what happened in a round, in words."""
    said = [
        *came.wrong,
        *(f"job {name!r} arrives" for name in came.arrived),
        *(f"host {name!r} fails" for name in came.failed),
        *(f"host {name!r} comes back" for name in came.back),
        *(f"job {name!r} is completed" for name in came.complete),
        *(f"job {name!r} loses its host" for name in came.lost),
        *(f"job {name!r} stops" for name in came.stop),
    ]
    return ", ".join(said[:3])
