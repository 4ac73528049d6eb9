"""HiGHS through highspy: the default backend for linear and mixed-integer programs.

`Highs.solve` answers one program. `Highs.opened` keeps the model loaded: each further program of the same structure
is compared with the loaded one, only the numbers that differ are passed on, and the simplex starts from the last basis.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt.backends.apart import Remote, wanted
from fairopt.backends.bases import basis_of, begin_at
from fairopt.backends.scaling import scaled
from fairopt.backends.solution import Basis, Solution, Status
from fairopt.backends.solver import Backend, Capability, Options
from fairopt.backends.trivial import whole_bounds
from fairopt.backends.trust import well_formed
from fairopt.deadline import left, time_limit
from fairopt.errors import BadInput, NotSolved, OutOfTime
from fairopt.program import INFINITY, Array, Number, Program, Sense, entry_names, objects

if TYPE_CHECKING:
    import highspy

_log = logging.getLogger(__name__)

#: HiGHS silently drops smaller coefficients (its default is 1e-9); this is the least value that it accepts.
SMALLEST_COEFFICIENT = 1e-12

#: HiGHS's names of our options.
PASSED_AS = {
    Capability.TIME_LIMIT: ("time_limit",),
    Capability.GAP: ("mip_rel_gap",),
    Capability.TOLERANCE: tuple(f"{kind}_feasibility_tolerance" for kind in ("primal", "dual", "mip")),
    Capability.SEED: ("random_seed",),
    Capability.THREADS: ("threads",),
}

#: Up to this many non-zeros presolve takes longer than it saves: a third more for cooperative OEF with 20 users (3,120
#: non-zeros), a fifth more with 60 (25,000). Above it the times are about equal (`make bench` times whole calls).
PRESOLVE_FROM = 25_000

#: Seconds for the search for a conflict, which can take far longer than the proof of infeasibility. It is optional.
CONFLICT_SECONDS = 5.0
_IRREDUCIBLE = 6  # iis_strategy: from the LP, then reduced until nothing can be left out
_BOUND_MATTERS = 2  # from this bound status on, a variable's bound is part of the irreducible set


class Highs(Backend):
    """HiGHS (simplex, interior point, branch and bound).

    ``nodes``: the most nodes of branch and bound, after which the best point that is known is the answer, on every
    machine the same; None for all. ``thorough``: whether an "infeasible" of its presolve is confirmed, and a conflict
    sought that explains it.

    Source: Huangfu and Hall, Parallelizing the dual revised simplex method, 2018; https://highs.dev

    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=2))
    >>> Highs().solve(p.program()).objective
    2.0
    """

    name = "highs"
    modules = ("highspy",)
    capabilities = frozenset(Capability) - {Capability.LOGARITHMS}
    #: HiGHS and the program that it holds, where the model is kept.
    _loaded: tuple[highspy.Highs, Program] | None = None
    #: Where the first program begins.
    _begin: Basis | None = None

    def __init__(self, nodes: int | None = None, *, thorough: bool = True) -> None:
        self.nodes, self.thorough = nodes, thorough

    def opened(self, options: Options | None = None) -> Callable[[Program], Solution]:
        """Return a HiGHS that keeps the model loaded: a changed coefficient is solved again without a rebuild."""
        return partial(copy(self)._again, options=options or Options())

    def near(self, basis: Basis) -> Highs:
        """Return a `Highs` whose first program begins at a basis."""
        here = copy(self)
        here._begin = basis
        return here

    def _solve(self, program: Program, options: Options) -> Solution:
        return copy(self)._again(program, options)

    def _again(self, program: Program, options: Options) -> Solution:
        """Solve ``program``, warm where the last one had the same structure; errors as `Backend.solve`."""
        self.check(program, options)
        ordinary = scaled(whole_bounds(program.as_(float)))
        limit = left(options.time_limit)
        try:
            with time_limit(limit):
                solution = well_formed(ordinary.program, self._solved(ordinary.program, options, limit))
        except OutOfTime as over:
            solution = Solution(Status.LIMIT, str(over), Highs.name, seconds=limit or 0.0)
        solution = ordinary.back(solution)
        left(found=solution)
        return solution

    def _solved(self, program: Program, options: Options, limit: float | None) -> Solution:
        kept = self._loaded
        if kept is None or getattr(kept[0], "lost", False):
            highs = instance(options, len(program.rows.value))
            if self.nodes is not None and _bad(highs.setOptionValue("mip_max_nodes", self.nodes)):
                raise BadInput(f"HiGHS refuses {self.nodes!r}", place="nodes", remedy="Give a whole number from 0 on")
            load(highs, program)
            if self._begin is not None:
                begin_at(highs, program, self._begin)
        else:
            highs, before = kept
            if program.same_structure(before):
                _update(highs, before, program)
            else:
                load(highs, program)
        self._loaded = highs, program
        return run(highs, program, limit, self.thorough)


def write(program: Program, path: str | Path) -> None:
    """Write ``program`` to an LP or MPS file (by the suffix of ``path``), through HiGHS's own writer.

    Numbers are rounded to `written_digits`; `as_written` is the program that the file then holds. Errors: `BadInput`
    where the suffix is another or the file cannot be written, `NotCapable` where the program has logarithms.

    >>> from tempfile import TemporaryDirectory
    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=2))
    >>> with TemporaryDirectory() as folder:
    ...     write(p.program(), f"{folder}/one.lp")
    ...     print("max" in Path(folder, "one.lp").read_text())
    True
    """
    from fairopt.replacing import replacing  # here, since who solves writes no file

    target = Path(path)
    if target.suffix not in (".lp", ".mps"):
        raise BadInput(f"cannot tell the format from {target.name!r}", remedy="End the name in .lp or .mps")
    Highs().check(program, Options())
    highs = instance(Options())
    load(highs, program.as_(float))
    # HiGHS's LP writer does not keep names with brackets: it then calls all rows r0, r1, ...
    spelling = str.maketrans({" ": "_"} | ({"[": "(", "]": ")"} if target.suffix == ".lp" else {}))
    for names, give in ((program.variable_blocks, highs.passColName), (program.row_blocks, highs.passRowName)):
        for position, name in enumerate(entry_names(names)):
            give(position, name.translate(spelling))
    with replacing(target) as file:
        if _bad(highs.writeModel(str(file.beside))):
            raise OSError("HiGHS cannot write there")


def written_digits() -> int:
    """Return how many digits HiGHS writes of a number: 17, which give any float back, and 15 before 1.16."""
    import highspy

    return 17 if (highspy.HIGHS_VERSION_MAJOR, highspy.HIGHS_VERSION_MINOR) >= (1, 16) else 15


def as_written(program: Program) -> Program:
    """Return, in Fractions, the program that a file of `write` holds: each number is the decimal that stands there.

    >>> from fairopt.program import Formulation
    >>> p = Formulation("one")
    >>> p.maximize(p.variable("x", upper=1 / 3))
    >>> print(as_written(p.program()).upper == Fraction(f"{1 / 3:.{written_digits()}g}"))
    [ True]
    """
    digits = written_digits()

    def decimals(values: Any) -> Array:
        several, place = np.unique(np.asarray(values, dtype=float), return_inverse=True)  # most stand many times
        told = (v if abs(v) == INFINITY else Fraction(f"{v:.{digits}g}") for v in several.tolist())
        return objects(told)[place.ravel()]

    rows = program.rows
    value, least, most = map(decimals, (rows.value, rows.lower, rows.upper))
    cost, lower, upper = map(decimals, (program.cost, program.lower, program.upper))
    rows = replace(rows, value=value, lower=least, upper=most)
    return replace(program, cost=cost, offset=decimals(program.offset)[0], lower=lower, upper=upper, rows=rows)


def holds(path: str | Path, program: Program) -> bool:
    """Whether HiGHS reads this very program, in floats, from an LP or MPS file.

    A coefficient below `SMALLEST_COEFFICIENT` is not written, nor is a variable that is nowhere used.
    """
    highs = instance(Options())
    if _bad(highs.readModel(str(path))):
        return False
    read, asked, rows = highs.getLp(), program.as_(float), program.rows
    matrix = read.a_matrix_
    column = np.repeat(np.arange(read.num_col_), np.diff(matrix.start_))  # HiGHS keeps what it reads by columns
    order = np.lexsort((column, matrix.index_))
    integer = np.array([kind.value for kind in read.integrality_] or [0] * read.num_col_) == 1
    pairs = (
        (read.sense_.value, -1 if program.sense is Sense.MAXIMIZE else 1),
        (read.offset_, asked.offset),
        (read.col_cost_, asked.cost),
        (read.col_lower_, asked.lower),
        (read.col_upper_, asked.upper),
        (integer, program.integer),
        (read.row_lower_, asked.rows.lower),
        (read.row_upper_, asked.rows.upper),
        (np.asarray(matrix.index_)[order], rows.row),
        (column[order], rows.column),
        (np.asarray(matrix.value_)[order], asked.rows.value),
    )
    return all(np.array_equal(np.asarray(found), np.asarray(wanted)) for found, wanted in pairs)


@lru_cache(maxsize=64)  # the methods ask for the same ones thousands of times
def settings(options: Options) -> Mapping[str, int | float]:
    """Return HiGHS's own options for ours."""
    return {"small_matrix_value": SMALLEST_COEFFICIENT, **options.named(PASSED_AS)}


def instance(options: Options, nonzeros: int = 0) -> highspy.Highs:
    """Return an empty HiGHS with ``options`` set, for a program with so many non-zeros; under a time limit a `Remote`.

    Errors: `BadInput` for a value that HiGHS refuses.
    """
    from fairopt.backends.silent_highs import SilentHighs

    highs: highspy.Highs = Remote() if wanted(nonzeros) else SilentHighs()
    if options.threads is not None:
        highs.resetGlobalScheduler(True)  # otherwise all instances share one number of threads
    for name, value in settings(options).items():
        if _bad(highs.setOptionValue(name, value)):
            raise BadInput(f"HiGHS refuses {value!r}", place=f"option {name}", remedy="Choose a value in its range")
    return highs


def _bad(status: Any) -> bool:
    import highspy

    return bool(status == highspy.HighsStatus.kError)  # its name takes much longer to read


def load(highs: highspy.Highs, program: Program) -> None:
    """Pass a program in floats to HiGHS, in place of what it held; errors: `NotSolved` where HiGHS refuses a number."""
    rows, variables = program.shape
    maximize = program.sense is Sense.MAXIMIZE
    status = highs.passModel(
        variables, rows, len(program.rows.value),
        2,  # the matrix comes row by row
        -1 if maximize else 1,
        float(program.offset),
        program.cost, program.lower, program.upper,
        program.rows.lower, program.rows.upper,
        program.rows.start[:-1].astype(np.int32), program.rows.column.astype(np.int32), program.rows.value,
        program.integer.astype(np.int32),
    )  # fmt: skip
    if _bad(status):
        otherwise = "measure in other units" if program.integer.any() else "decide with the exact backend"
        raise NotSolved(f"numerically out of range for HiGHS: a number of {program.name!r}; {otherwise}")


def _update(highs: highspy.Highs, old: Program, new: Program) -> None:
    """Pass on only what differs. HiGHS keeps the basis, so that the next run starts where the last one ended."""
    changed = np.flatnonzero(new.rows.value != old.rows.value)
    if len(changed) * 4 > len(new.rows.value) + 4000:  # a call for each coefficient would cost more than a load
        load(highs, new)
        return
    for place in changed:
        highs.changeCoeff(int(new.rows.row[place]), int(new.rows.column[place]), float(new.rows.value[place]))
    rows, before = new.rows, old.rows
    for change, moved, values in (
        (highs.changeColsCost, new.cost != old.cost, [new.cost]),
        (highs.changeColsBounds, (new.lower != old.lower) | (new.upper != old.upper), [new.lower, new.upper]),
        (highs.changeRowsBounds, (rows.lower != before.lower) | (rows.upper != before.upper), [rows.lower, rows.upper]),
    ):
        places = np.flatnonzero(moved).astype(np.int32)
        if len(places):
            change(len(places), places, *(each[places] for each in values))
    if new.offset != old.offset:
        highs.changeObjectiveOffset(float(new.offset))
    if new.sense is not old.sense:
        import highspy

        sense = highspy.ObjSense.kMaximize if new.sense is Sense.MAXIMIZE else highspy.ObjSense.kMinimize
        highs.changeObjectiveSense(sense)


def run(highs: highspy.Highs, program: Program, time_limit: float | None, thorough: bool = True) -> Solution:
    """Solve ``program``, which HiGHS holds; ``thorough`` confirms presolve's "infeasible" and seeks a conflict."""
    before = highs.getRunTime()
    # HiGHS's clock runs through the whole session; the limit is for one program
    highs.setOptionValue("time_limit", INFINITY if time_limit is None else before + time_limit)
    integer = bool(program.integer.any())
    presolve = integer or len(program.rows.value) > PRESOLVE_FROM
    highs.setOptionValue("presolve", "choose" if presolve else "off")
    highs.run()
    # presolve may stop at "infeasible or unbounded", and the simplex can tell which. Presolve has also called an
    # unbounded LP with parallel rows infeasible (HiGHS before 1.16; HiGHS issues 2511 and 1530), so the
    # simplex confirms it
    status = highs.getModelStatus().name
    doubtful = status == "kUnboundedOrInfeasible" or (status == "kInfeasible" and not integer)
    if presolve and thorough and doubtful:
        _log.info("%s: HiGHS says %s; asked again without presolve", program.name, status)
        highs.setOptionValue("presolve", "off")
        highs.run()
        status = highs.getModelStatus().name
    for option, otherwise in _OTHER_WAYS if not integer else ():
        if status == "kUnknown":  # the dual simplex ends so where a program has almost a point, yet none
            _log.info("%s: HiGHS does not know; asked again with %s %s", program.name, option, otherwise)
            _, usual = highs.getOptionValue(option)
            highs.clearSolver()
            highs.setOptionValue(option, otherwise)
            highs.run()
            highs.setOptionValue(option, usual)
            status = highs.getModelStatus().name
    info = highs.getInfo()
    has_point = info.primal_solution_status == 2 or status in ("kOptimal", "kModelEmpty")
    outcome = outcome_of(status, has_point)
    found: dict[str, Any] = {"bound": _finite(info.mip_dual_bound)} if integer else {}
    if has_point:
        answer = highs.getSolution()
        found["x"] = x = np.array(answer.col_value)
        found["objective"] = program.value(x)
        if outcome is Status.OPTIMAL and not integer:
            dual, reduced = np.array(answer.row_dual), np.array(answer.col_dual)
            found |= {"bound": found["objective"], "dual": dual, "reduced_cost": reduced, "basis": basis_of(highs)}
    if thorough and outcome is Status.INFEASIBLE and not integer:
        found["conflict"] = _conflict(highs, program)
    raw = highs.modelStatusToString(highs.getModelStatus())
    solution = Solution(outcome, raw, Highs.name, seconds=highs.getRunTime() - before, **found)
    return with_conflict(program, solution) if thorough and integer else solution


#: Options under which a program is asked again that HiGHS leaves undecided: interior points, the primal simplex.
_OTHER_WAYS = (("solver", "ipm"), ("simplex_strategy", 4))
_LIMITS = ("kTimeLimit", "kIterationLimit", "kSolutionLimit", "kInterrupt", "kHighsInterrupt", "kMemoryLimit")
_OUTCOMES = dict.fromkeys(_LIMITS, Status.LIMIT) | {
    "kOptimal": Status.OPTIMAL,
    "kModelEmpty": Status.OPTIMAL,
    "kInfeasible": Status.INFEASIBLE,
    "kUnbounded": Status.UNBOUNDED,
    "kUnboundedOrInfeasible": Status.INFEASIBLE_OR_UNBOUNDED,
}


def outcome_of(status: str, has_point: bool) -> Status:
    """Return the status that a status word of HiGHS stands for."""
    return _OUTCOMES.get(status, Status.INACCURATE if has_point else Status.FAILED)


def with_conflict(program: Program, solution: Solution) -> Solution:
    """Return the solution; where a library calls the program infeasible and does not say why, with a conflict.

    HiGHS seeks it among the constraints without integrality: what cannot hold in fractions cannot hold at all.
    """
    if solution.status is not Status.INFEASIBLE or solution.conflict:
        return solution
    relaxed = replace(program, integer=np.zeros(len(program.cost), dtype=bool), logarithms=None)
    try:
        return replace(solution, conflict=Highs().solve(relaxed, time_limit=CONFLICT_SECONDS).conflict)
    except NotSolved:  # HiGHS refuses a number that the other library took; the conflict is optional
        return solution


def _conflict(highs: highspy.Highs, program: Program) -> tuple[str, ...]:
    if _bad(highs.setOptionValue("iis_strategy", _IRREDUCIBLE)):
        return ()  # this version of HiGHS has no such search; the conflict is optional
    highs.setOptionValue("iis_time_limit", CONFLICT_SECONDS)
    status, found = highs.getIis()
    if _bad(status) or not found.valid_:
        return ()
    rows = [program.row_name(int(row)) for row in found.row_index_]
    columns = zip(found.col_index_, found.col_bound_, strict=True)
    names = (program.column_name(int(column)) for column, kind in columns if kind >= _BOUND_MATTERS)
    return (*rows, *(f"bounds of {name}" for name in names))


def _finite(value: Number) -> float | None:
    return float(value) if np.isfinite(float(value)) else None
