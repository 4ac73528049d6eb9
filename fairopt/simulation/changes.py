"""What changes from round to round: the short form of a run, from which records are written and measures are taken.

A run yields `Changes` for rounds in which something changed; for others it may (the last, or one now and then, so that
who listens can say how far the run is), and need not. Its length follows what happened, not who was present: on a trace
of 100,000 jobs this is a hundredth of what a `Round` for each round holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from fairopt.problem.queue import Spots
from fairopt.program import Number
from fairopt.simulation.record import Change, Snapshot

#: Seconds after which a round is yielded though nothing changed: who listens may want to say how far the run is.
BEAT = 1.0


class Placed(NamedTuple):
    """A job that comes to GPUs on which it did not run in the round before.

    ``row`` is its row in the trace, ``how`` is START, RESUME or MIGRATE. ``setup`` is the time that it loads before it
    makes progress, ``speed`` its work per unit of time after that. STAY is for a job that goes on where it is, but at
    another speed, or loading again, as only a model of a cluster of one's own has it.
    """

    row: int
    spots: Spots
    how: Change
    setup: Number
    speed: Number


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in one round; jobs are rows of the trace, hosts are their numbers in the cluster.

    * ``index``, ``begin``, ``end``: the round's number and times. ``arrived``: the rows that came for it.
    * ``failed``, ``back``: hosts that are down since the round before, and those that work again.
    * ``unschedulable``: rows that just came and can run on no type, with the reason.
    * ``stopped``: rows that held GPUs to the end of the round before and hold none now.
    * ``placed``: rows that come to other GPUs. All other rows that ran go on where they are.
    * ``leases``: until when, for rows whose lease is neither the one they have nor the end of the round.
    * ``completed``, ``lost``: when a row was done, or its host failed and took the round's work along.
    * ``costs``, ``notes`` (row: text), ``backend``: what the policy says, None where it is as in the round before.
    * ``seconds``: what deciding took since the last changes. It alone differs between two runs.
    """

    index: int
    begin: Number
    end: Number
    arrived: range
    failed: tuple[int, ...] = ()
    back: tuple[int, ...] = ()
    unschedulable: Mapping[int, str] = field(default_factory=dict)
    stopped: tuple[int, ...] = ()
    placed: tuple[Placed, ...] = ()
    leases: Mapping[int, Number] = field(default_factory=dict)
    completed: Mapping[int, Number] = field(default_factory=dict)
    lost: Mapping[int, Number] = field(default_factory=dict)
    costs: Mapping[str, Number] | None = None
    notes: Mapping[int, str] | None = None
    backend: str | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def anything(self) -> bool:
        """Whether anything changed."""
        if self.arrived or self.placed or self.completed:  # most often, and asked in each round
            return True
        happened = (self.failed, self.back, self.stopped, self.leases, self.lost)
        return any(happened) or (self.costs, self.notes, self.backend) != (None, None, None)


class Play(Protocol):
    """A run that goes on as it is asked for its changes.

    Between two changes, and after the last, ``snapshot`` says how to go on and ``index`` which round comes next.
    ``stop`` may be called at any time, also by a handler of signals: the run ends after the round that it is in.
    """

    @property
    def index(self) -> int:
        """The round that comes next."""

    def __iter__(self) -> Iterator[Changes]:
        """Yield what changes, round after round."""

    def snapshot(self) -> Snapshot:
        """Return how to go on from here."""

    def stop(self) -> None:
        """Let the run end after the round that it is in."""
