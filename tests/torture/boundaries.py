"""Corrupted answers of all other solvers: those behind cvxpy and Pyomo, floats that hint at rationals, programs side by
side, programs that grow; and the death of the process in which a solver runs. The judge is the definition.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from random import Random
from typing import Any

import numpy as np
from answers import CHANGES, CLOSE, NAMES, SPOILS, bare, off_by, policies, problems, truth
from plain_lp import NoPoint, Row, at_least, largest
from plain_market import of, table, too_much
from plainly import PROGRAMS
from trials import Ending, Fault, Kind, TooLong, at_most

from fairopt import allocate
from fairopt.backends import Backend, Highs, apart, pyomo
from fairopt.backends.batched import _Dictionaries
from fairopt.backends.batched_tall import _Simplex
from fairopt.backends.cvxpy import CLARABEL, ECOS, SCS, Cvxpy
from fairopt.backends.exact import Exact
from fairopt.backends.exact.refinement import FloatProgram
from fairopt.backends.pyomo import Pyomo
from fairopt.backends.solution import Solution
from fairopt.deadline import time_limit
from fairopt.errors import FairoptError
from fairopt.methods.incremental_lp import IncrementalLP
from fairopt.policy import many_programs
from fairopt.problem import Market
from fairopt.testing.samples import sample_markets

#: An answer in other arrays than those of a `Solution` is spoiled in these ways: inside of us, shapes are ours.
VALUES = ("scaled", "one entry moved", "one entry NaN", "one entry infinite", "exchanged", "noise")
#: Only these change what kind of thing an answer is, or break off.
SAME_SHAPE = {**{name: CHANGES[name] for name in VALUES}}


@dataclass(frozen=True)
class Boundary:
    """Where a library's answer comes in: a function of a class or module, and how its answers are spoiled."""

    owner: Any
    name: str
    spoil: Callable[[Any, tuple[Any, ...], str, Random], Any]
    ways: tuple[str, ...]
    #: Whether what it answers from is spoiled, since it judges its own answer.
    before: bool = False


def _solution(program: Callable[[tuple[Any, ...]], Any]) -> Callable[..., Any]:
    return lambda answer, given, how, draw: WAYS[how](answer, program(given), draw)


def _basis(solution: Solution, program: Any, draw: Random) -> Solution:
    """Return the answer with another basis: random, exchanged, or of the wrong size."""
    if solution.basis is None:
        return solution
    random = np.random.default_rng(draw.randrange(2**32))
    columns, rows = solution.basis.columns, solution.basis.rows
    how = draw.choice(["random", "exchanged", "short", "out of range"])
    if how == "random":
        columns, rows = (random.integers(0, 4, len(each)).astype(np.int8) for each in (columns, rows))
    elif how == "exchanged":
        columns, rows = random.permutation(columns), random.permutation(rows)
    elif how == "short":
        columns = columns[:-1]
    else:
        columns = columns + np.int8(draw.choice([-1, 4, 100]))
    return replace(solution, basis=replace(solution.basis, columns=columns, rows=rows))


WAYS: Mapping[str, Any] = {**SPOILS, "another basis": _basis}


def _arrays(answer: Any, given: tuple[Any, ...], how: str, draw: Random) -> Any:
    """Return a vertex, or points and multipliers of many programs, with one array changed."""
    if answer is None:
        return answer
    parts = list(answer)
    place = draw.randrange(len(parts)) if parts[-1].dtype == float else 0
    if parts[place].size:
        parts[place] = SAME_SHAPE[how](parts[place].ravel(), draw).reshape(parts[place].shape)
    return tuple(parts)


def _vertices(answer: None, given: tuple[Any, ...], how: str, draw: Random) -> None:
    """Change the points, or the multipliers, that a step of many programs has come to."""
    name = draw.choice(["x", "true"])
    values = getattr(given[0], name)
    if values.size:
        setattr(given[0], name, SAME_SHAPE[how](values.ravel(), draw).reshape(values.shape))


_OF_SOLUTION = tuple(WAYS)
BOUNDARIES = {
    "cvxpy": Boundary(Cvxpy, "_run", _solution(lambda given: given[1]), _OF_SOLUTION),
    "pyomo": Boundary(pyomo, "_by_modern", _solution(lambda given: given[1].program), _OF_SOLUTION),
    "hints": Boundary(FloatProgram, "solve", _solution(lambda given: given[0]._scaled.program), _OF_SOLUTION),
    "corrections": Boundary(FloatProgram, "corrected", _solution(lambda given: given[0]._scaled.program), _OF_SOLUTION),
    "growing": Boundary(IncrementalLP, "_run", _arrays, VALUES),
    "side by side": Boundary(_Dictionaries, "answer", _arrays, VALUES),
    "side by side, tall": Boundary(_Simplex, "answer", _vertices, VALUES, before=True),
}


@contextmanager
def lying(boundary: Boundary, how: str, draw: Random) -> Iterator[list[int]]:
    """Let answers at a boundary be spoiled from a random call on, once or always; yield how often they were."""
    first, once, calls, lies = draw.choice([0, 0, 1, 2, 5]), draw.random() < 0.5, [0], [0]
    honest = getattr(boundary.owner, boundary.name)

    def spoiled(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] <= first or (once and lies[0]):
            return honest(*given, **named)
        lies[0] += 1
        if boundary.before:
            boundary.spoil(None, given, how, draw)
            return honest(*given, **named)
        return boundary.spoil(honest(*given, **named), given, how, draw)

    setattr(boundary.owner, boundary.name, spoiled)
    try:
        yield lies
    finally:
        setattr(boundary.owner, boundary.name, honest)


def _wrong(says: str) -> Any:
    raise Fault(Ending.WRONG, says)


def _judge(name: str, number: int, found: Any, exact: bool) -> Ending:
    """Return RIGHT where a decision is the best one; `Fault` where it is not."""
    right = truth(number, name)
    allowed = 1e-9 / CLOSE if exact and found.exact else 1.0
    if (wrong := off_by(name, number, found)) <= allowed:
        return Ending.RIGHT
    scale, solution = max(1.0, abs(right)), found.solution
    fits = float(too_much(bare(number), table(found.shares))) <= CLOSE
    if fits and solution is not None and None not in (solution.lower, solution.upper):
        least, most = float(solution.lower), float(solution.upper)
        if least - CLOSE * scale <= right <= most + CLOSE * scale and solution.gap > CLOSE:
            return Ending.UNDECIDED  # it says itself how far it may be from the optimum
    return _wrong(f"{name}, market {number}: {wrong:.3g} times what is allowed from {right}")


def decide(which: str, solvers: tuple[Backend | None, ...], draw: Random, exact: bool) -> Ending:
    """Decide while a library lies: the decision is the best one, or an error says that it is not known."""
    number, name = draw.randrange(len(problems())), draw.choice(NAMES)
    boundary, backend = BOUNDARIES[which], draw.choice(solvers)
    how = draw.choice(boundary.ways)
    if name == "nash-welfare" and (exact or (backend and backend.name == "pyomo")):
        name = "max-min"
    market = problems()[number] if exact else problems()[number].as_(float)
    if backend is not None and not policies()[name].has_program:
        name = "max-min"
    truth(number, name)
    with lying(boundary, how, draw) as lies:
        try:
            found = allocate(policies()[name], market, backend, exact=exact)
        except FairoptError as error:
            return Ending.REFUSED if lies[0] else _wrong(f"{name}, market {number}: {error}")
    try:
        return _judge(name, number, found, exact)
    except Fault as fault:
        raise Fault(fault.ending, f"{how}: {fault.says}") from None


@cache
def narrow() -> list[Market]:
    """Return markets of one type: each share is in all rows, so that 0 times an infinite one makes no NaN there."""
    return list(sample_markets(6, seed=43, users=(2, 2), types=(1, 1)))


def many(draw: Random) -> Ending:
    """Decide on many misreports side by side while the steps lie: each bundle is one of an optimum, or not known."""
    markets = [*problems(), *narrow()]
    number, name = (
        draw.randrange(len(markets)),
        draw.choice(["oef-cooperative", "oef-noncooperative", "max-efficiency"]),
    )
    market = markets[number].as_(float)
    which = draw.choice(["side by side", "side by side, tall"])
    how, policy = draw.choice(VALUES), policies()[name]
    before = allocate(policy, market)
    user = draw.randrange(len(market.users))
    reports = np.array([market.speedup[user] * [draw.uniform(0.5, 2) for _ in market.types] for _ in range(8)])
    with ExitStack() as stack:
        if which.endswith("tall"):
            tall = many_programs.LARGEST_TALL
            stack.callback(setattr, many_programs, "LARGEST_TALL", tall)
            many_programs.LARGEST_TALL = 0
        asked = policy.many_bundles(market, before)
        if asked is None:
            return Ending.REFUSED
        stack.enter_context(lying(BOUNDARIES[which], how, draw))
        stack.enter_context(np.errstate(all="ignore"))
        try:
            bundles = asked(np.full(len(reports), user), reports)
        except FairoptError:
            return Ending.REFUSED
    for report, bundle in zip(reports, bundles, strict=True):
        if np.isnan(bundle).any():
            continue
        if np.isinf(bundle).any():
            _wrong(f"{name}, market {number}, {how}, {which}: bundle {bundle.tolist()}")
        told = of(market)
        told = told._replace(
            speedup=[list(map(Fraction, report)) if i == user else v for i, v in enumerate(told.speedup)]
        )
        gain, limits = PROGRAMS[name](told)
        best = largest(gain, limits).value
        room = 1e-6 * max(1.0, float(np.abs(bundle).max()))
        for j, held in enumerate(bundle.tolist()):
            share = {(user, j): Fraction(1)}
            limits += [Row(share, Fraction(held + room)), at_least(share, Fraction(held - room))]
        try:
            right = best - largest(gain, limits).value <= 1e-4 * max(1.0, float(best))
        except NoPoint:
            right = False
        if not right:
            _wrong(f"{name}, market {number}, {how}, {which}: bundle {bundle.tolist()} of {report.tolist()}")
    return Ending.RIGHT


# -- the process of a solver dies, or hangs ----------------------------------------------------------------------------
LIMIT, LATE = 0.4, 1.0
#: What has not ended by then has no end, however busy the machine is.
NO_END = 10.0
DEATHS = (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGTERM, signal.SIGSTOP)


def die(draw: Random) -> Ending:
    """End, or stop, the process in which a solver runs: the answer is right, or an error comes within the limit."""
    number, name = draw.randrange(len(problems())), draw.choice(NAMES[:-1])
    market, right = problems()[number], truth(number, name)
    exact = draw.random() < 0.5
    backend = draw.choice([Exact()] if exact else [Highs(), Highs(), CLARABEL, Pyomo(), None])
    with ExitStack() as stack:
        stack.callback(setattr, apart, "SMALL", apart.SMALL)
        apart.SMALL = 0
        if not policies()[name].has_program:
            name, right = "max-min", truth(number, "max-min")
        with time_limit(30):  # begins the process, and has it load what it needs
            allocate(policies()[name], market if exact else market.as_(float), backend, exact=exact)
        which = draw.choice(DEATHS)
        told = f"{name}, market {number}, {which.name}"
        kept = getattr(apart._here, "process", None)
        target = kept._number if kept is not None and not kept.lost else None
        timer = threading.Timer(draw.choice([0.0, 0.001, 0.01, 0.03]), _strike, (target, which))
        begun = time.perf_counter()
        timer.start()
        try:
            with at_most(NO_END):
                found = allocate(
                    policies()[name], market if exact else market.as_(float), backend, exact=exact, time_limit=LIMIT
                )
            ending = _judge(name, number, found, exact)
        except TooLong:
            raise Fault(Ending.HANG, f"{told}: no end in {NO_END} s where {LIMIT} s were given") from None
        except FairoptError as error:
            ending = Ending.REFUSED
            solution = getattr(error, "solution", None)
            if solution is not None and solution.bound is not None and exact and name != "water-filling":
                least = Fraction(solution.bound) if name != "max-min" else None
                if least is not None and float(least) < right - 1e-9 * abs(right):
                    _wrong(f"{name}, market {number}: the bound {float(least)} is below {right}")
        finally:
            seconds = time.perf_counter() - begun
            timer.join()
            if kept is not None:
                kept.end("the trial is over")
    if seconds > LIMIT + LATE:
        raise Fault(Ending.SLOW, f"{told}: {seconds:.2f} s where {LIMIT} s were given")
    return ending


def _strike(number: int | None, which: signal.Signals) -> None:
    if number is not None:
        try:
            os.kill(number, which)
        except ProcessLookupError:
            return


FLOATS, EXACTLY = partial(decide, exact=False), partial(decide, exact=True)
KINDS = [
    Kind("b", "spoiled answers behind cvxpy", partial(FLOATS, "cvxpy", (CLARABEL, ECOS, SCS)), 30, 60),
    Kind("b", "spoiled answers behind Pyomo", partial(FLOATS, "pyomo", (Pyomo(),)), 30, 60),
    Kind("b", "spoiled hints to rationals", partial(EXACTLY, "hints", (Exact(), None)), 30, 30),
    Kind("b", "spoiled corrections to rationals", partial(EXACTLY, "corrections", (Exact(),)), 30, 30),
    Kind("b", "spoiled programs that grow", partial(FLOATS, "growing", (None,)), 20, 15),
    Kind("b", "spoiled programs side by side", many, 20, 40),
    Kind("b", "deaths of a solver's process", die, 60, 1500, most=300),
]  # fmt: skip
