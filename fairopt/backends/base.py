"""What a back end is: a name, what it can do, whether it is here, and `solve`.

Capabilities are declared on the class and fail closed: what is not declared is refused with `NotCapable`, before any
solver is touched, and an option that a back end would ignore is refused in the same way.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from importlib.util import find_spec
from typing import ClassVar, Protocol, runtime_checkable

from fairopt.errors import BadInput, NotCapable, NotInstalled
from fairopt.program import Number, Program
from fairopt.solution import Solution


class Capability(enum.Enum):
    """What a back end may declare; each value is how a message says it."""

    INTEGERS = "integer variables"
    LOGARITHMS = "logarithms in the objective"
    DUALS = "dual values"
    BASIS = "a simplex basis"
    CONFLICTS = "an irreducible set of constraints that cannot hold together"
    TIME_LIMIT = "the option time_limit"
    GAP = "the option gap"
    TOLERANCE = "the option tolerance"
    SEED = "the option seed"
    THREADS = "the option threads"


@dataclass(frozen=True)
class Options:
    """How to solve; None leaves the solver's own default.

    time_limit: seconds. gap: relative gap at which an integer program counts as solved. tolerance: feasibility and
    optimality tolerance. seed: random seed. threads: most threads.
    """

    time_limit: float | None = None
    gap: float | None = None
    tolerance: float | None = None
    seed: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("time_limit", 0.0), ("gap", 0.0), ("tolerance", 0.0), ("seed", 0), ("threads", 1)):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not value >= least:
                raise BadInput(
                    f"got {value!r}", place=f"option {name}", remedy=f"Give a number that is at least {least}"
                )

    def given(self) -> dict[Capability, Number]:
        """Return the options that were set, by the capability that each needs."""
        pairs = {
            Capability.TIME_LIMIT: self.time_limit,
            Capability.GAP: self.gap,
            Capability.TOLERANCE: self.tolerance,
            Capability.SEED: self.seed,
            Capability.THREADS: self.threads,
        }
        return {capability: value for capability, value in pairs.items() if value is not None}


@runtime_checkable
class Solver(Protocol):
    """What the rest of fairopt needs of a back end; a third party's need not inherit from `Backend`."""

    name: ClassVar[str]
    number: ClassVar[type]

    def solve(
        self,
        program: Program,
        *,
        tolerance: float | None = None,
        time_limit: float | None = None,
        gap: float | None = None,
        seed: int | None = None,
        threads: int | None = None,
    ) -> Solution:
        """Return an answer to ``program``; never raise for how solving ended."""
        ...


class Backend(ABC):
    """A solver library behind one verb; subclasses declare and implement `_solve`.

    ``number`` is the number type that the library computes in; programs come to `_solve` in it. ``modules`` are what
    must be importable, ``extra`` the fairopt extra that installs them.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[Capability]]
    modules: ClassVar[tuple[str, ...]]
    extra: ClassVar[str] = ""
    number: ClassVar[type] = float

    @classmethod
    def available(cls) -> bool:
        """Whether the libraries are installed; nothing is imported to find out."""
        return not cls.missing()

    @classmethod
    def missing(cls) -> tuple[str, ...]:
        """Return the modules that are not installed."""
        return tuple(module for module in cls.modules if find_spec(module) is None)

    def solve(
        self,
        program: Program,
        *,
        tolerance: float | None = None,
        time_limit: float | None = None,
        gap: float | None = None,
        seed: int | None = None,
        threads: int | None = None,
    ) -> Solution:
        """Solve ``program``.

        Errors: `NotInstalled`, `NotCapable` (the program or an option needs what is not declared), `BadInput` (an
        option's value). How solving ended is a `Status`, never an exception.
        """
        options = Options(time_limit=time_limit, gap=gap, tolerance=tolerance, seed=seed, threads=threads)
        self.check(program, options)
        return self._solve(program.as_(self.number), options)

    def check(self, program: Program, options: Options) -> None:
        """Raise `NotInstalled` or `NotCapable` where solving would have to guess or ignore something."""
        if missing := self.missing():
            install = f"pip install 'fairopt[{self.extra}]'" if self.extra else f"pip install {' '.join(missing)}"
            raise NotInstalled(f"back end {self.name!r} needs {', '.join(missing)}: {install}")
        needs = set(options.given())
        if program.integer.any():
            needs.add(Capability.INTEGERS)
        if program.logarithms is not None:
            needs.add(Capability.LOGARITHMS)
        if lacking := sorted(need.value for need in needs - self.capabilities):
            raise NotCapable(
                f"back end {self.name!r} has no {', no '.join(lacking)}, which {program.name!r} was asked with; "
                "`fairopt backends` lists what each can do"
            )

    @abstractmethod
    def _solve(self, program: Program, options: Options) -> Solution:
        """Solve a program that has passed `check` and is in the back end's own numbers."""
