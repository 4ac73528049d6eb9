"""A plain function as a policy: from a market to shares, or to a cvxpy problem."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from importlib.util import module_from_spec, spec_from_file_location
from inspect import unwrap
from io import StringIO
from pathlib import Path
from time import perf_counter
from traceback import extract_tb
from types import TracebackType
from typing import Any

import numpy as np

from fairopt.backends import Highs, Method, Session
from fairopt.backends.exact import Exact
from fairopt.errors import BadInput, FairoptError, NotCapable, NotSolved, type_of
from fairopt.numbers import arithmetic
from fairopt.policy.allocation import Allocation
from fairopt.policy.decision import Seconds
from fairopt.policy.formulated import Formulated
from fairopt.problem import Market
from fairopt.problem.labels import nearest
from fairopt.program import Array, Program, objects

_log = logging.getLogger(__name__)
#: Floats are taken for fractions of denominators up to the first, where these differ by at most this part: of floats
#: at random one in ten thousand does.
SIMPLE, NEAR = 10**5, Fraction(1, 10**14)
#: The part of a type's GPUs by which shares may differ when a function is asked again.
REPEATED = 1e-6
#: What a function may call the variable of the shares where several have their shape.
_SHARES = ("share", "shares")


class Function(Formulated):
    """A share policy that is a function of a market, which it is given in floats.

    It returns shares (n, k): an array, lists or a table of pandas. Or it returns a cvxpy problem, whose shares are the
    variable of that shape, or of several the one called "share". A linear problem is read as a program, which backends
    solve and certificates hold; any other is left to cvxpy. On an exact market shares that are simple fractions are
    taken for these. What the function prints goes to standard error.

    Errors: `BadInput` that names the file, the function, the line and what it returned; `NotCapable` where shares are
    to be solved for or certified.

    >>> from fairopt import allocate
    >>> def by_weight(market):
    ...     return np.outer(market.weight / market.weight.sum(), market.capacity)
    >>> allocate(by_weight, Market.of([[1, 2], [1, 5]], capacity=[1, 1], weight=[1, 3])).utilities.tolist()
    [Fraction(3, 4), Fraction(9, 2)]
    """

    source = "a function"
    methods = (Method("function"),)

    def __init__(self, function: Callable[[Market], Any]) -> None:
        self.function = function
        called = getattr(function, "__name__", type(function).__name__)
        self.name = "function" if called == "<lambda>" else called  # type: ignore[misc]  # each has a name of its own
        self._repeats = False  # whether it was asked twice, and gave the same

    @cached_property
    def has_program(self) -> bool:
        """Whether it returns a linear cvxpy problem, on a market of two users and two types."""
        small = Market.of([[1, 2], [2, 1]], [1, 1]).as_(float)
        try:
            with redirect_stderr(StringIO()):  # it says so when it decides
                return self._program(self._returned(small), small) is not None
        except FairoptError:  # it may want other users and types
            return False

    def formulate(self, problem: Market, state: Any) -> Program:
        """Return the program that the function returns, in the number type of ``problem``.

        Errors: `NotCapable` where it returns none that is linear.
        """
        program = state if isinstance(state, Program) else self._program(self._returned(problem), problem)
        if program is None:
            wrong = f"{self.name} returns no linear program"
            raise NotCapable(f"{wrong}: leave out the backend, or return a linear cvxpy problem")
        return _in_simple_fractions(program) if problem.exact else program

    def decide(self, problem: Market, state: Any, solve: Session) -> Allocation:
        """Return the function's shares, or those at the optimum of its program."""
        begun = perf_counter()
        found = self._returned(problem)
        program = self._program(found, problem)
        if program is not None:
            return self._solved(problem, program, solve)
        shares = self._shares(found, problem)
        if not self._repeats:
            self._require_repeated(shares, problem)
        market = problem if arithmetic(shares).exact else problem.as_(float)
        seconds = Seconds(solve=perf_counter() - begun)
        return Allocation(self.name, problem, shares, market.utility(shares).sum(), seconds=seconds)

    def certify(self, decision: Any) -> Any:
        """Return the primal and dual solutions of the program; errors: `NotCapable` where there is none."""
        if decision.program is None:
            raise NotCapable(f"{self.name} returns shares and no linear program, so nothing shows why they are right")
        return super().certify(decision)

    def _solved(self, problem: Market, program: Program, solve: Session) -> Allocation:
        begun = perf_counter()
        if solve.method is None:
            return super().decide(problem, program, solve)
        if problem.exact and not program.integer.any():
            try:
                return self.at_optimum(problem, _in_simple_fractions(program), Exact().optimum, begun)
            except NotSolved as error:  # what was rounded need not fit exactly
                _log.info("%s: in fractions: %s; now in floats", self.name, error)
        return self.at_optimum(problem, program, Highs().optimum, begun)

    def _require_repeated(self, shares: Array, problem: Market) -> None:
        """Ask the function once more, at first: who gets other shares each time gets them for no misreport."""
        with redirect_stderr(StringIO()):  # it has said so already
            again = self._shares(self._returned(problem), problem).astype(float)
        most = abs(again - shares.astype(float)).max()
        if most > REPEATED * float(problem.capacity.max()):
            remedy = "Return the same for the same market: seed random numbers in the function, and keep no state"
            raise self._wrong(f"asked twice of one market, it gives shares that differ by {most:g}", None, remedy)
        self._repeats = True

    # -- what the function returns -----------------------------------------------------------------------------------
    def _returned(self, problem: Market) -> Any:
        try:
            with redirect_stdout(sys.stderr):
                return self.function(problem.as_(float))
        except FairoptError:
            raise
        except (Exception, SystemExit) as error:  # any error of the function
            raise self._failed(error) from error

    def _failed(self, error: BaseException) -> BadInput:
        """Return what went wrong in the function, or in the problem that it returned, in one line."""
        _log.debug("%s failed", self.name, exc_info=True)
        return self._wrong(_in_a_line(error), error, "Correct it; `fairopt -vv` shows the traceback")

    def _wrong(self, problem: str, error: BaseException | None, remedy: str) -> BadInput:
        """Return the error of the function, with its file and line: that which failed, else its first."""
        code = getattr(unwrap(self.function), "__code__", None)
        file = "" if code is None else Path(code.co_filename).name
        line = None if error is None or code is None else _line(error.__traceback__, code.co_filename)
        line = line or getattr(code, "co_firstlineno", None)
        place = f"line {line}, {self.name}" if line else self.name
        return BadInput(problem, file=file, place=place, remedy=remedy)

    def _program(self, found: Any, problem: Market) -> Program | None:
        """Return a linear cvxpy problem as a program in floats; None for anything else."""
        if not _is_problem(found):
            return None
        from fairopt.backends.cvxpy import read_problem  # here, since few return one

        return read_problem(found, self._variable(found, problem), self.name)

    def _variable(self, found: Any, problem: Market) -> Any:
        fit = [each for each in found.variables() if each.shape == problem.shape]
        fit = [each for each in fit if each.name() in _SHARES] if len(fit) > 1 else fit
        if len(fit) != 1:
            shapes = ", ".join(f"{each.name()} {each.shape}" for each in found.variables()) or "none"
            remedy = f"Have one for the shares: cvxpy.Variable({problem.shape}, nonneg=True, name='share')"
            raise self._wrong(f"the problem has the variables {shapes}", None, remedy)
        return fit[0]

    def _shares(self, found: Any, problem: Market) -> Array:
        n, k = problem.shape
        remedy = f"Return shares of shape ({n}, {k}), GPUs of each type for each user; or a cvxpy problem"
        if _is_problem(found):
            share = self._variable(found, problem)
            if found.status is None:
                try:
                    _solve(found)
                except Exception as error:  # any error of cvxpy, as where the problem is not convex
                    raise self._failed(error) from error
            if found.status not in ("optimal", "optimal_inaccurate"):
                raise NotSolved(f"{self.name}: cvxpy calls its problem {found.status}")
            found = share.value
        try:
            shares = problem.as_(float).shares(found)
        except BadInput as error:
            array = isinstance(found, np.ndarray)
            got = f"an array of shape {found.shape}" if array else type_of(found)
            wrong_cells = array and found.shape == problem.shape
            said = f": {error}" if wrong_cells or isinstance(found, list) or hasattr(found, "columns") else ""
            raise self._wrong(f"it returned {got}{said}", None, remedy) from error
        odd = np.argwhere(~np.isfinite(shares.astype(float)))
        if len(odd):
            user, kind = odd[0]
            where = f"{problem.users[user]} of {problem.types[kind]}"
            raise self._wrong(f"it returned {shares[user, kind]} for {where}", None, remedy)
        return _recognised(shares, problem) if problem.exact else shares.astype(float)


def loaded(path: str, name: str) -> Any:
    """Return the function or class of that name in a file, which may import files beside it.

    Errors: `BadInput` that names the file and the line.
    """
    if not Path(path).is_file():
        raise BadInput("there is no such file", file=path, remedy="Give FILE.py:FUNCTION")
    spec = spec_from_file_location(f"fairopt_own_{Path(path).stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses in it look for it there
    if (folder := str(Path(path).resolve().parent)) not in sys.path:
        sys.path.append(folder)  # behind all others: no file beside it hides a library
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # any error of the file
        _log.debug("%s failed", path, exc_info=True)
        line = error.lineno if isinstance(error, SyntaxError) else _line(error.__traceback__, path)
        place, remedy = f"line {line}" if line else "", "Correct it; `fairopt -vv` shows the traceback"
        raise BadInput(_in_a_line(error), file=path, place=place, remedy=remedy) from error
    found = getattr(module, name, None) if name else None
    if not callable(found):
        own = [each for each, value in vars(module).items() if getattr(value, "__module__", "") == spec.name]
        if not name:
            remedy = f"Give {path}:NAME; it has {', '.join(own) or 'none'}"
            raise BadInput("nothing says which function", file=path, remedy=remedy)
        raise BadInput(f"it has no function {name!r}", file=path, remedy=nearest(name, own, "function"))
    if getattr(found, "__name__", "") == "<lambda>":
        found.__name__ = name  # as it was asked for
    return found


def _in_a_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(" .:")


def _line(trace: TracebackType | None, file: str) -> int | None:
    """Return the last line of a file that an error came through."""
    return next((each.lineno for each in reversed(extract_tb(trace)) if Path(each.filename) == Path(file)), None)


def _is_problem(found: Any) -> bool:
    """Whether it is a cvxpy problem; cvxpy is not imported for that."""
    return type(found).__module__.partition(".")[0] == "cvxpy" and hasattr(found, "get_problem_data")


def _solve(problem: Any) -> None:
    """Solve a cvxpy problem, by Clarabel with the tolerances of its backend where that can be."""
    import cvxpy

    from fairopt.backends.cvxpy import SETTINGS

    try:
        problem.solve(solver=cvxpy.CLARABEL, **SETTINGS[cvxpy.CLARABEL])
    except cvxpy.SolverError:  # it is none for it, or is not installed
        problem.solve()


def _recognised(shares: Array, problem: Market) -> Array:
    """Return the simple fractions that floats stand for; the floats where one is none, or they would not fit."""
    capacity = np.array([Fraction(each) for each in problem.capacity.tolist()], dtype=object)
    given = np.array([[Fraction(each) for each in row] for row in shares.tolist()], dtype=object)
    simple = np.array([[each.limit_denominator(SIMPLE) for each in row] for row in given], dtype=object)
    near = (abs(simple - given) <= NEAR * np.maximum(abs(given), capacity)).all()
    fits = (simple.sum(axis=0) <= capacity) | (given.sum(axis=0) > capacity * (1 + NEAR))
    return simple if near and fits.all() else shares.astype(float)


def _in_simple_fractions(program: Program) -> Program:
    """Return the program in fractions: of each float the simplest of some that round to it."""

    def exact(values: Array) -> Array:
        several, place = np.unique(np.asarray(values, dtype=float), return_inverse=True)
        return objects(_simplest(each) for each in several.tolist())[place.ravel()]

    value, least, most = map(exact, (program.rows.value, program.rows.lower, program.rows.upper))
    cost, lower, upper = map(exact, (program.cost, program.lower, program.upper))
    rows = replace(program.rows, value=value, lower=least, upper=most)
    return replace(program, cost=cost, offset=_simplest(float(program.offset)), lower=lower, upper=upper, rows=rows)


def _simplest(value: float) -> Any:
    if not np.isfinite(value):
        return value
    given = Fraction(value)
    tried = (given.limit_denominator(10**digits) for digits in (3, 6, 9, 12))
    return next((each for each in tried if float(each) == value), given)
