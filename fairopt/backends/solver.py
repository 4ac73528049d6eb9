"""Solvers: backends for any program, methods for one policy's problem, and a `Session` of either.

Capabilities are declared on the class and fail closed: what is not declared is refused with `NotCapable` before any
solver runs. An option that a backend would ignore is refused in the same way.
"""

from __future__ import annotations

import enum
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar, Self

from fairopt.backends.apart import solved, wanted
from fairopt.backends.scaling import scaled
from fairopt.backends.solution import Basis, Solution, Status
from fairopt.backends.trivial import whole_bounds
from fairopt.backends.trust import asked, refuse_unsure, refuse_wide, trusted, well_formed
from fairopt.deadline import left
from fairopt.deadline import time_limit as within
from fairopt.errors import BadInput, NotCapable, NotInstalled, OutOfTime
from fairopt.numbers import NUMBERS, arithmetic
from fairopt.program import INFINITY, Number, Program

_log = logging.getLogger(__name__)


class Capability(enum.Enum):
    """What a backend may declare; the value of each is its wording in messages.

    >>> Capability.DUALS.value
    'dual values'
    """

    INTEGERS = "integer variables"
    LOGARITHMS = "logarithms in the objective"
    DUALS = "dual values"
    BASIS = "a simplex basis"
    CONFLICTS = "an irreducible set of constraints that cannot hold together"
    TIME_LIMIT = "option time_limit"
    GAP = "option gap"
    TOLERANCE = "option tolerance"
    SEED = "option seed"
    THREADS = "option threads"


#: Most solvers take seeds of 31 bits. A solver that is asked for a million threads kills the process.
MOST, MOST_THREADS = 2**31, 256
#: The options that are whole numbers, and the least value of each.
_WHOLE = {Capability.SEED: 0, Capability.THREADS: 1}


@dataclass(frozen=True)
class Options:
    """How to solve; None leaves the solver's own default.

    time_limit: seconds. gap: relative gap at which an integer program counts as solved. tolerance: feasibility and
    optimality tolerance. seed: random seed. threads: the largest number of threads.

    Errors: `BadInput` for numbers out of range.

    >>> Options(time_limit=10).given()
    {<Capability.TIME_LIMIT: 'option time_limit'>: 10}
    """

    time_limit: float | None = None
    gap: float | None = None
    tolerance: float | None = None
    seed: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        for option, value in self.given().items():
            whole, least = option in _WHOLE, _WHOLE.get(option, 0.0)
            number = isinstance(value, int if whole else NUMBERS) and not isinstance(value, bool)
            if not number or not least <= value < (MOST if whole else INFINITY):
                kind = f"a whole number below {MOST}" if whole else "a finite number"
                raise BadInput(f"got {value!r}", place=option.value, remedy=f"Give {kind} that is at least {least:g}")
        if self.threads is not None and self.threads > MOST_THREADS:
            raise BadInput(f"got {self.threads}", place="option threads", remedy=f"Give at most {MOST_THREADS}")

    def given(self) -> dict[Capability, Number]:
        """Return the options that are set, by the capability that each needs, which has the option's name."""
        return {Capability[name.upper()]: value for name, value in vars(self).items() if value is not None}

    def named(self, names: Mapping[Capability, tuple[str, ...]]) -> dict[str, int | float]:
        """Return the options that are set, under the names by which a library takes them."""
        plain = {each: int(value) if each in _WHOLE else float(value) for each, value in self.given().items()}
        return {name: value for each, value in plain.items() for name in names[each]}


class Backend(ABC):
    """A solver library behind the one verb `solve`; subclasses declare what they can do and implement `_solve`.

    ``number`` is the number type that the library computes in; `_solve` gets programs in it. ``modules`` must be
    importable; ``install`` is what pip installs for them (the modules themselves, if empty).

    Errors of `solve`: `NotInstalled`, `NotCapable`, `BadInput` for options.

    >>> from fairopt.backends import Highs
    >>> Highs().name, Highs().available()
    ('highs', True)
    """

    name: str
    capabilities: frozenset[Capability]
    modules: tuple[str, ...]
    install: ClassVar[str] = ""
    number: ClassVar[type] = float
    #: How many times as long as a step of HiGHS a solve takes, which under a time limit then runs in a process that can
    #: be ended (`fairopt.backends.apart`); 0: it never does. Only backends of fairopt can.
    endable: ClassVar[int] = 0

    @classmethod
    def available(cls) -> bool:
        """Whether the libraries are installed; none of them is imported."""
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

        How solving ended is a `Status`, never an exception. Errors: `NotInstalled`; `NotCapable`, where the program or
        an option needs a capability that is not declared; `BadInput` for an option's value.
        """
        options = Options(time_limit=time_limit, gap=gap, tolerance=tolerance, seed=seed, threads=threads)
        self.check(program, options)
        limit = left(time_limit)
        if limit is not None and Capability.TIME_LIMIT in self.capabilities:
            options = replace(options, time_limit=limit)
        told: list[Solution] = []
        try:
            with within(limit):
                given = whole_bounds(program.as_(self.number))
                ordinary = None if arithmetic(self.number).exact else scaled(given)
                asked = given if ordinary is None else ordinary.program
                ended = self.endable and wanted(self.endable * len(asked.rows.value))
                found = solved(self, asked, options, told) if ended else self._solve(asked, options)
                solution = well_formed(asked, found, f"{type(self).__name__}._solve")
                solution = solution if ordinary is None else ordinary.back(solution)
        except OutOfTime as over:
            known = over.solution or Solution(Status.LIMIT, str(over), self.name, seconds=limit or 0.0)
            solution = told[-1] if told else known
        left(found=solution)
        return solution

    def optimum(self, program: Program) -> Solution:
        """Return the optimal answer to ``program``, as far as it can be `trusted`; errors: `NotSolved`."""
        return trusted(program, asked(self.solve, program, self.name))

    def opened(self, options: Options | None = None) -> Callable[[Program], Solution]:
        """Return what answers one program after another; a backend may keep a model loaded in between."""
        return partial(self.solve, **asdict(options or Options()))

    def near(self, basis: Basis) -> Self:
        """Return the backend as one that begins at a basis, of whatever quality; itself where it cannot."""
        return self

    def check(self, program: Program, options: Options) -> None:
        """Raise `NotInstalled` or `NotCapable` if solving would have to guess or ignore something."""
        if missing := self.missing():
            install = f"'{self.install}'" if self.install else " ".join(missing)
            raise NotInstalled(f"backend {self.name!r} needs {', '.join(missing)}: pip install {install}")
        asked = {Capability.INTEGERS: program.integer.any(), Capability.LOGARITHMS: program.logarithms is not None}
        needs = options.given().keys() | {need for need, there in asked.items() if there}
        if lacking := sorted(need.value for need in needs - self.capabilities):
            raise NotCapable(
                f"backend {self.name!r} has no {', no '.join(lacking)}, which {program.name!r} was asked with; "
                "`fairopt backends` lists what each can do"
            )
        if unfit := self.unfit(program):
            what = f"{program.name!r}, which has {unfit}"
            raise NotCapable(f"backend {self.name!r} does not solve {what}; ask another one")

    def unfit(self, program: Program) -> str:
        """Return what a program has that the backend cannot solve, in words, where capabilities do not say it."""
        return ""

    @abstractmethod
    def _solve(self, program: Program, options: Options) -> Solution:
        """Solve a program that has passed `check` and is in the backend's number type."""


class Method:
    """A policy's own algorithm: a rule, carried out by `Policy.decide`, or, with `solve`, a way to solve its program.

    It is listed, named, chosen and refused like a backend. ``number`` is the number type of its answers: float, or
    None for that of the problem. ``capabilities`` are the options that it supports beside the time limit, which
    `fairopt.policy.decide.decide` keeps for all: a loop that may last asks `fairopt.deadline.left` in each turn.

    >>> from fairopt.models import MaxMin
    >>> MaxMin.methods[0].name, MaxMin.methods[0].solves_programs, Method("rule").solves_programs
    ('prices', True, False)
    """

    name: str = "rule"
    number: type | None = None
    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, name: str | None = None, number: type | None = None) -> None:
        if name is not None:
            self.name, self.number = name, number

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Method)
            and (self.name, self.number) == (other.name, other.number)
        )

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def solves_programs(self) -> bool:
        """Whether it solves the policy's program, without formulating it."""
        return type(self).solve is not Method.solve

    def solve(self, policy: Any, problem: Any, start: Any = None) -> Solution:
        """Return the solution for ``problem``, with ``values``, proven ``lower`` and ``upper``, and ``duals``.

        Where time is over, its status is `Status.LIMIT`, and it has what was proven by then. ``start`` is the
        ``warm_start`` of an earlier solution of the policy; one that does not fit is ignored. Errors: `NotSolved`;
        `NotCapable` where the numbers are too far apart for floats, and of a rule; `OutOfTime` where nothing was
        proven.
        """
        raise NotCapable(f"{self.name} does not solve the program of {policy.name}")

    def certify(self, policy: Any, decision: Any) -> Any:
        """Return exact evidence for a decision of this method; errors: `NotCapable`, also by default."""
        raise NotCapable(f"a decision of {policy.name} by {self.name} is in floats, and floats prove nothing")


def answers_in_floats(solver: Backend | Method) -> bool:
    """Whether a solver answers in floats, whatever the numbers of the problem.

    >>> from fairopt.backends import Highs
    >>> answers_in_floats(Highs())
    True
    """
    return solver.number is not None and not arithmetic(solver.number).exact


class Session:
    """A solver that makes one decision after another: the only form of warm start.

    With ``warm`` each decision starts from the one before, the first from ``start``; else each starts from ``start``.
    Where optima tie, it may then find another than a fresh session does. ``seconds`` adds up the solver's own time.
    ``exact_fallback`` is for whoever has a better way: an optimum in floats that may be wrong is then refused.

    Errors: those of the solver.

    >>> from fairopt.backends import Highs
    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=2))
    >>> Session(Highs())(p.program()).objective
    2.0
    """

    def __init__(
        self,
        solver: Backend | Method,
        options: Options | None = None,
        *,
        warm: bool = False,
        start: Solution | None = None,
    ) -> None:
        self.solver, self.options, self.warm = solver, options or Options(), warm
        self.seconds, self.exact_fallback = 0.0, False
        self._ask: Callable[[Program], Solution] | None = None
        if not isinstance(solver, Method):
            # the time limit is kept by who decides, also where a backend has no such option
            free = replace(self.options, time_limit=None)
            if start is not None and start.basis is not None:
                solver = solver.near(start.basis)
            self._ask = solver.opened(free)
        self._last = start

    @property
    def method(self) -> Method | None:
        """The policy's own method, None where the solver is a backend."""
        return self.solver if isinstance(self.solver, Method) else None

    @property
    def backend(self) -> Backend:
        """The backend; errors: `NotCapable` where the solver is a method."""
        if isinstance(self.solver, Method):
            raise NotCapable(f"{self.solver.name} is a policy's own method and solves no programs")
        return self.solver

    @property
    def number(self) -> type:
        """The number type of the backend."""
        return self.backend.number

    def next(self) -> Session:
        """Return the session for the next decision: this one where it is warm, else a fresh one."""
        following = self if self.warm else Session(self.solver, self.options, start=self._last)
        following.exact_fallback = self.exact_fallback
        return following

    def __call__(self, program: Program) -> Solution:
        """Return the backend's answer to ``program``, optimal or not."""
        ask = self._ask or self.backend.solve  # of a method, the second is refused
        solution = asked(ask, program, self.solver.name)
        self.seconds += solution.seconds
        _log.debug("%s: %s by %s", program.name, solution.status.value, self.solver.name)
        return solution

    def optimum(self, program: Program) -> Solution:
        """Return the optimal answer to ``program``, as far as it can be `trusted`; errors: `NotSolved`."""
        solution = trusted(program, self(program))
        if self.exact_fallback:
            refuse_unsure(program, solution)
        return solution

    def answer(self, policy: Any, problem: Any, start: Any = None) -> Solution:
        """Return the method's solution of ``policy`` on ``problem``, starting at ``start`` or at the last solution."""
        method = self.solver
        left()
        if not isinstance(method, Method):
            raise NotCapable(f"{method.name} does not solve the program of {policy.name}")
        if start is None and self._last is not None:
            start = self._last.warm_start
        solution = method.solve(policy, problem, start)
        if solution.status is Status.LIMIT:
            left(found=solution)
        solution.require_optimal()
        if self.exact_fallback:
            refuse_wide(solution)
        if self.warm:
            self._last = solution
        self.seconds += solution.seconds
        _log.debug("%s: %s by its method %s", policy.name, solution.status.value, method.name)
        return solution
