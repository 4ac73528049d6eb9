"""What a benchmark is made of: instances drawn from families, contenders that answer them, tasks that judge answers.

Each is found by entry point (``fairopt.instances``, ``fairopt.contenders``, ``fairopt.tasks``), so that a peer, a
generator or a kind of problem is one new file, here or in somebody else's package.

>>> from fairopt.discovery import FAMILIES, load
>>> load(FAMILIES, "ties")().draw(0, {"users": 3}).name
'ties (users 3), seed 0'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from math import nan
from typing import Any, ClassVar

from fairopt import discovery
from fairopt.backends.solution import Interval
from fairopt.codec import UNWRITTEN, decode
from fairopt.errors import BadInput, FairoptError, NotCapable
from fairopt.program import Program

#: Programs with more entries than this are not written to files: writing and proving take minutes and gigabytes.
MOST_ENTRIES = 500_000


@dataclass(frozen=True)
class Instance:
    """One problem to be answered: where it is from, and the problem itself (a `Market`, a round, a `Batch`).

    ``size`` is the number that growth is fitted over (users, jobs); ``name`` says family, parameters and seed;
    ``digest`` is the hash of its content, so that two runs can tell whether they answered the same question. What is
    written down of it is all but the ``problem``, which `drawn` draws again.

    >>> from fairopt.discovery import FAMILIES, load
    >>> instance = load(FAMILIES, "ties")().draw(0, {"users": 3})
    >>> instance.size, instance.problem
    (3, <Market: 3 users, 10 types (T1, T2, T3, T4, T5 and 5 more), 363 GPUs>)
    """

    family: str
    name: str
    size: int
    seed: int
    parameters: Mapping[str, Any]
    digest: str
    problem: Any = field(default=None, compare=False, repr=False, metadata=UNWRITTEN)


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


@dataclass(frozen=True)
class Judgement:
    """What an answer is worth.

    ``violation`` is the largest relative violation of a constraint, ``gap`` how far the objective is below the best
    that is proven possible, as a part of it; NaN (null in a file) where unknown. ``accepted``: whether both are small
    enough for the task. ``note`` says which constraint, or what was compared with what. ``proven`` is False where the
    answer keeps every constraint and the bound on the best is too loose to tell: that is neither solved nor wrong.

    >>> Judgement(accepted=False, violation=0.25, gap=0, objective=3.5, note="capacity of V100").note
    'capacity of V100'
    """

    accepted: bool = True
    violation: float = nan
    gap: float = nan
    objective: float = nan
    note: str = ""
    proven: bool = True


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

        Errors: `NotCapable` where the task is no single linear or integer program, and for one that is too large.
        """
        raise NotCapable(f"{self.name} has no program that a file could hold; choose a specification of another task")

    def interval(self, problem: Any) -> Interval | None:
        """Return what the policy's own method proves of the optimum of `program`; None where there is none."""
        return None


def require_small(entries: int) -> None:
    """Refuse a program that is too large for files. Errors: `NotCapable`.

    >>> require_small(20_000)
    >>> require_small(MOST_ENTRIES + 1)
    Traceback (most recent call last):
        ...
    fairopt.errors.NotCapable: its program has 500,001 entries or more; files are written up to 500,000
    """
    if entries > MOST_ENTRIES:
        raise NotCapable(f"its program has {entries:,} entries or more; files are written up to {MOST_ENTRIES:,}")


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
        these.

        Errors: `OutOfTime` at the time limit; `NotSolved` with the solver's own status, word by word. Anything else is
        kept as an error, too.
        """

    def certify(self, built: Any, answer: Any) -> Any:
        """Return evidence for the answer; timed as "certify", where ``certifies`` says that there is any."""
        return None


# -- by name, with the settings that a specification gives -------------------------------------------------------------
def task(name: str) -> Task:
    """Return the task of a name. Errors as `registered`."""
    made: Task = registered(discovery.TASKS, name, Task)()
    return made


def family(name: str) -> Family:
    """Return the family of instances of a name. Errors as `registered`."""
    made: Family = registered(discovery.FAMILIES, name, Family)()
    return made


def drawn(key: Instance) -> Instance:
    """Return the instance again. Errors: `ValueError` where its content differs from that of the key."""
    instance = family(key.family).draw(key.seed, key.parameters)
    if key.digest and instance.digest != key.digest:
        raise ValueError(f"{key.name} has the digest {instance.digest} on this machine, and not {key.digest}")
    return instance


def contender(name: str, settings: Mapping[str, Any], place: str = "") -> Contender:
    """Return the contender of a name with settings as its fields. Errors as `registered`; `BadInput` for a setting."""
    found: type[Contender] = registered(discovery.CONTENDERS, name, Contender)
    where = place or f"{name}, settings"
    if is_dataclass(found):
        return decode(found, settings, where)
    if settings:
        raise BadInput(f"there is no setting {next(iter(settings))!r}", place=where, remedy="It has no settings")
    return found()


def registered(group: str, name: str, kind: Any) -> Any:
    """Return the class that is registered as ``name``, or that MODULE:NAME names.

    Errors: `BadInput` for an unknown name and what is no ``kind``; `NotInstalled` for what cannot be loaded.
    """
    found = discovery.named(name) if ":" in name else discovery.load(group, name)
    if not isinstance(found, type) or not issubclass(found, kind):
        raise BadInput(f"{name!r} is no {kind.__name__}", remedy="Name a class of that kind")
    return found


# -- what `fairopt bench list` says ------------------------------------------------------------------------------------
def summaries(group: str) -> Iterator[tuple[str, ...]]:
    """Yield (name, first line of its docstring) of each object of a group; of a broken one, what is wrong."""
    for name in discovery.names(group):
        try:
            yield name, (discovery.load(group, name).__doc__ or "").strip().partition("\n")[0]
        except FairoptError as error:
            yield name, str(error)


def contenders() -> Iterator[tuple[str, ...]]:
    """Yield (name, tasks, whether it can run here or why not) of each contender."""
    for name in discovery.names(discovery.CONTENDERS):
        try:
            made = contender(name, {})
            yield name, ", ".join(made.tasks), made.missing() or "available"
        except FairoptError as error:
            yield name, "", str(error)
