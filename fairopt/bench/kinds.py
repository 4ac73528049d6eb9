"""What a benchmark is made of: instances drawn from families, contenders that answer them, tasks that judge answers.

Each is found by entry point (``fairopt.instances``, ``fairopt.contenders``, ``fairopt.tasks``), so that a peer, a
generator or a kind of problem is one new file, here or in somebody else's package.

>>> from fairopt.discovery import FAMILIES, load
>>> load(FAMILIES, "ties")().draw(0, {"users": 3}).name
'ties (users 3), seed 0'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fairopt.errors import FairoptError, NotCapable
from fairopt.program import Program

#: Programs with more entries than this are not written to files: writing and proving take minutes and gigabytes.
MOST_ENTRIES = 500_000


class TimedOut(FairoptError):
    """A contender stopped at its time limit; what it had found is not an answer.

    >>> raise TimedOut("the time limit of 10 s has passed")
    Traceback (most recent call last):
        ...
    fairopt.bench.kinds.TimedOut: the time limit of 10 s has passed
    """


class NoAnswer(FairoptError):
    """A contender ended without an answer; the message is its own status, word by word.

    >>> raise NoAnswer("solver status: INFEASIBLE_OR_UNBOUNDED")
    Traceback (most recent call last):
        ...
    fairopt.bench.kinds.NoAnswer: solver status: INFEASIBLE_OR_UNBOUNDED
    """


class NotWritten(NotCapable):
    """No file is written of one instance; of others of its task there may be.

    >>> issubclass(NotWritten, NotCapable)
    True
    """


@dataclass(frozen=True, eq=False)
class Instance:
    """One problem to be answered: where it is from, and the problem itself (a `Market`, a round, a `Batch`).

    ``size`` is the number that growth is fitted over (users, jobs); ``name`` says family, parameters and seed;
    ``digest`` is the hash of its content, so that two runs can tell whether they answered the same question.

    >>> from fairopt.discovery import FAMILIES, load
    >>> instance = load(FAMILIES, "ties")().draw(0, {"users": 3})
    >>> instance.size, instance.problem
    (3, <Market: 3 users, 10 types (T1, T2, T3, T4, T5 and 5 more), 363 GPUs>)
    """

    family: str
    name: str
    size: int
    seed: int
    problem: Any
    digest: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Family(ABC):
    """A set of instances: a seeded generator, or real tables.

    >>> from fairopt.discovery import FAMILIES, load
    >>> ties = load(FAMILIES, "ties")()
    >>> ties.draw(7, {"users": 3}).digest == ties.draw(7, {"users": 3}).digest != ties.draw(8, {"users": 3}).digest
    True
    """

    name: ClassVar[str]
    source: ClassVar[str]

    @abstractmethod
    def draw(self, seed: int, parameters: Mapping[str, Any]) -> Instance:
        """Return the instance of these parameters and this seed, the same on every machine.

        Errors: `BadInput` that names an unknown parameter or a value that cannot be.
        """


@dataclass(frozen=True, eq=False)
class Judgement:
    """What an answer is worth.

    ``violation`` is the largest relative violation of a constraint, ``gap`` how far the objective is below the best
    that is proven possible, as a part of it; ``accepted`` whether both are small enough for the task. ``note`` says
    which constraint, or what was compared with what. ``proven`` is False where the answer keeps every constraint and
    the bound on the best is too loose to tell: that is neither solved nor wrong.

    >>> Judgement(accepted=False, violation=0.25, gap=0, objective=3.5, note="capacity of V100").note
    'capacity of V100'
    """

    accepted: bool
    violation: float
    gap: float
    objective: float
    note: str = ""
    proven: bool = True


@dataclass(frozen=True)
class Interval:
    """An optimum is proven to lie from ``lower`` to ``upper``; ``by`` says who proved it.

    >>> Interval(3.4999, 3.5001, "prices").by
    'prices'
    """

    lower: float
    upper: float
    by: str


class Task(ABC):
    """What is asked of contenders, and how an answer is judged, by code that shares nothing with them.

    >>> from fairopt.discovery import TASKS, load
    >>> load(TASKS, "max-min")().program(load("fairopt.instances", "ties")().draw(0, {"users": 3}).problem).shape
    (13, 31)
    """

    name: ClassVar[str]
    #: Largest violation and gap with which an answer counts as solved, both relative.
    tolerance: ClassVar[float] = 1e-6

    def warm_up(self) -> Any:
        """Return a tiny problem, or None: each contender first answers it untimed, so that imports count for nobody."""
        return None

    @abstractmethod
    def reference(self, instance: Instance) -> Any:
        """Return what answers are compared with (proven bounds): once an instance, untimed, small enough to be sent."""

    @abstractmethod
    def judge(self, instance: Instance, answer: Any, reference: Any) -> Judgement:
        """Return what ``answer`` is worth."""

    def program(self, problem: Any) -> Program:
        """Return the one program, in floats, whose optimum is asked for; `fairopt bench export` writes it.

        Errors: `NotCapable` where the task is no single linear or integer program; `NotWritten` for one that is too
        large for a file.
        """
        raise NotCapable(f"{self.name} has no program that a file could hold; choose a specification of another task")

    def interval(self, problem: Any) -> Interval | None:
        """Return what the policy's own method proves of the optimum of `program`; None where there is none."""
        return None


def require_small(entries: int) -> None:
    """Refuse a program that is too large for files. Errors: `NotWritten`.

    >>> require_small(20_000)
    >>> require_small(MOST_ENTRIES + 1)
    Traceback (most recent call last):
        ...
    fairopt.bench.kinds.NotWritten: its program has 500,001 entries or more; files are written up to 500,000
    """
    if entries > MOST_ENTRIES:
        raise NotWritten(f"its program has {entries:,} entries or more; files are written up to {MOST_ENTRIES:,}")


class Contender(ABC):
    """A way to answer a task: a library with a solver, or an algorithm of ours.

    The harness calls `build`, `solve` and `certify` in a process of its own and times each apart. ``tasks`` are the
    names of the tasks that it can answer. A contender is configured by its dataclass fields, which a specification
    may set; they are recorded as its settings.

    >>> from fairopt.discovery import CONTENDERS, load
    >>> highs = load(CONTENDERS, "highs")()
    >>> highs.missing() is None
    True
    """

    name: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    #: Installed distributions whose versions are recorded with every result.
    libraries: ClassVar[Sequence[str]] = ()
    #: Whether `certify` gives evidence; where it does not, no time is recorded for it.
    certifies: ClassVar[bool] = False

    def missing(self) -> str | None:
        """Return why this contender cannot run here (a library that is not installed), or None where it can."""
        return None

    def prepare(self, task: str, problem: Any) -> Any:
        """Return the problem as this contender takes it (arrays of floats), without work that others are timed for."""
        return problem

    @abstractmethod
    def build(self, task: str, prepared: Any, *, time_limit: float, threads: int) -> Any:
        """Write the model down for the solver; timed as "build"."""

    @abstractmethod
    def solve(self, built: Any) -> Any:
        """Return the answer, in the form that the task judges (for shares: an array (n, k)); timed as "solve".

        It is written to a file for the judge: arrays, numbers, strings, None, and lists, tuples and dictionaries of
        these (tuples come out as lists).

        Errors: `TimedOut`, `NoAnswer` with the solver's own status; anything else that is raised is kept as an error.
        """

    def certify(self, built: Any, answer: Any) -> Any:
        """Return evidence for the answer; timed as "certify", where ``certifies`` says that there is any."""
        return None
