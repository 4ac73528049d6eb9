"""What a policy of rounds is, and what it decides: who runs where until the next round."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fairopt.backends.solution import Solution
from fairopt.errors import FairoptError
from fairopt.policy import Claim, Seconds, Solve
from fairopt.problem.queue import Queue, Spots
from fairopt.program import Number, Program


class BrokenSchedule(FairoptError, ValueError):
    """A policy decided what a cluster cannot do; the message names the round, the job, the host and both numbers."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """What a policy decided for one round.

    * ``placements``: for each row of ``queue`` that runs, its `Spots`; jobs that hold a lease stay where they are.
    * ``leases``: until when a job that runs holds its GPUs; where nothing is said, the lease that it has, or the end of
      the round.
    * ``state``: what the policy carries to the next round. ``costs``: its objective, term by term, in its own unit.
    * ``solution``, ``program``, ``evidence``: what shows that it is right, where something does; ``backend``: which.
    * ``notes``: what a policy wants said of a job (row: text), such as why it was passed over.
    """

    policy: str
    queue: Queue
    placements: Mapping[int, Spots]
    leases: Mapping[int, Number] = field(default_factory=dict)
    state: Any = None
    costs: Mapping[str, Number] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    backend: str = "auto"
    program: Program | None = None
    solution: Solution | None = None
    evidence: Any = None
    seconds: Seconds = field(default_factory=Seconds)


class RoundTrait(enum.Enum):
    """What a policy of rounds declares of itself; the conformance suite holds it to it, and fails closed."""

    PROGRAM = "a program that back ends solve"
    EXACT = "the same placements in floats as in Fractions, where no two numbers are alike by accident"
    WORK_CONSERVING = "no job waits for which GPUs of one type, all free, would do"
    ONE_TYPE = "the GPUs of a gang are of one type"
    RUNS_TO_COMPLETION = "a job that runs stays where it is until it is done or its host fails"
    NAMELESS = "what jobs, tenants and hosts are called does not matter"


class RoundPolicy(ABC):
    """A rule that says who runs where, round after round.

    A policy is a frozen dataclass whose fields are its options, each with a default. Its ``state`` is None or a frozen
    dataclass (named in ``states``), whose fields hold dataclasses, tuples, mappings, frozensets, strings and numbers
    and say so by their type hints: so `fairopt.codec` writes it down and reads it back. Nothing is kept in the object.
    `RoundPolicy.decide` is a function: the same queue and state give the same schedule, with randomness seeded from the
    options and the queue's index.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    traits: ClassVar[frozenset[RoundTrait]] = frozenset()
    claims: ClassVar[tuple[Claim, ...]] = ()
    states: ClassVar[tuple[type, ...]] = ()
    #: Whether `decide` can do without a solver; it is then called with ``solve=None`` by default.
    own_algorithm: ClassVar[bool] = True

    def start(self, problem: Queue) -> Any:
        """Return the state before the first round; a policy without memory has none."""
        return None

    @abstractmethod
    def decide(self, problem: Queue, state: Any, solve: Solve | None) -> Schedule:
        """Return the schedule of one round after ``state``; ``solve`` None asks for the policy's own algorithm.

        Errors: `NotSolved`, `NotCapable` (a back end was named, and there is no program for it), `NotInstalled`.
        """


def refuse_broken(schedule: Schedule) -> None:
    """Raise `BrokenSchedule` unless gangs are whole, hosts up and not overbooked, types suitable and leases kept.

    Kept means in place, and not cut short.
    """
    queue, jobs = schedule.queue, schedule.queue.jobs
    where = f"{schedule.policy}, round {queue.index}"
    for row, spots in schedule.placements.items():
        if not 0 <= row < len(queue):  # Python would take a negative row, or host, for one from the end
            raise BrokenSchedule(f"{where}: there is no job in row {row}; there are {len(queue)}")
        job = jobs.names[row]
        given = sum(gpus for _, gpus in spots)
        if given != jobs.gpus[row] or any(gpus <= 0 or gpus % 1 for _, gpus in spots):
            raise BrokenSchedule(
                f"{where}: job {job!r} gets {given} GPUs of the {jobs.gpus[row]} that it needs at once"
            )
        if [host for host, _ in spots] != sorted({host for host, _ in spots}):
            raise BrokenSchedule(f"{where}: the hosts of job {job!r} are not rising: {spots}")
        strange = [host for host, _ in spots if not 0 <= host < len(queue.cluster.hosts)]
        if strange:
            raise BrokenSchedule(
                f"{where}: job {job!r} is put on host {strange[0]}; there are {len(queue.cluster.hosts)}"
            )
        for kind in queue.kinds(spots):
            if not queue.suits[row, kind]:
                raise BrokenSchedule(f"{where}: job {job!r} cannot run on type {queue.cluster.types[kind]!r}")
    left = queue.free(schedule.placements)
    for host in (left < 0).nonzero()[0]:
        there = int(queue.cluster.gpus[host]) if queue.up[host] else 0
        raise BrokenSchedule(
            f"{where}: host {queue.cluster.hosts[host]!r} gives out {there - int(left[host])} GPUs and has {there}"
        )
    for row, spots in queue.leased.items():
        if schedule.placements.get(row) != spots:
            raise BrokenSchedule(
                f"{where}: job {jobs.names[row]!r} holds a lease on {spots} until {queue.lease[row]} and was moved"
            )
        if schedule.leases.get(row, queue.lease[row]) < queue.lease[row]:
            raise BrokenSchedule(
                f"{where}: job {jobs.names[row]!r} holds a lease until {queue.lease[row]}, "
                f"cut short to {schedule.leases[row]}"
            )
