"""HiGHS through highspy, given the whole matrix as arrays: the fastest way to ask it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from fairopt.benchmarks.peers.plain import Floats, Peer, SharedGpus
from fairopt.benchmarks.peers.sparse_programs import LINEAR, PROGRAMS, SparseProgram, max_min
from fairopt.errors import NotSolved, OutOfTime


def forget_threads() -> None:
    """Let the next HiGHS have its own number of threads: else the first number holds for the whole process."""
    import highspy

    highspy.Highs.resetGlobalScheduler(True)


def load(program: SparseProgram, options: dict[str, object], threads: int) -> Any:
    """Return a HiGHS that holds the program. Errors: `NotSolved` where it refuses an option or the program."""
    import highspy

    from fairopt.backends.silent_highs import SilentHighs

    forget_threads()
    highs = SilentHighs()
    for name, value in {"threads": threads, **options}.items():
        if highs.setOptionValue(name, value) == highspy.HighsStatus.kError:
            raise NotSolved(f"HiGHS {highs.version()} refuses {value!r} for its option {name}")
    lp = highspy.HighsLp()
    rows = program.rows
    lp.num_col_, lp.num_row_ = len(program.gain), len(rows.lower)
    # as a minimisation: where PDLP maximises, the postsolve of HiGHS 1.15 returns dual values of the wrong sign, and
    # the status is "unknown"
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = -program.gain, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = rows.lower, rows.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = rows.starts, rows.columns, rows.values
    if program.whole:
        lp.integrality_ = [highspy.HighsVarType.kInteger] * lp.num_col_
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise NotSolved("HiGHS refuses the program")
    return highs


def run(highs: Any) -> Floats:
    """Return the optimal x. Errors: `OutOfTime`; `NotSolved` with any other status that is not optimal."""
    import highspy

    highs.run()
    status = highs.getModelStatus()
    if status == highspy.HighsModelStatus.kTimeLimit:
        raise OutOfTime("HiGHS stopped at its time limit")
    if status != highspy.HighsModelStatus.kOptimal:
        raise NotSolved(f"HiGHS: {highs.modelStatusToString(status)}")
    return np.array(highs.getSolution().col_value)


@dataclass(frozen=True)
class HighsDirect(Peer):
    """HiGHS on the program as a sparse matrix.

    ``solver`` is HiGHS's own option: simplex, ipm, pdlp, or hipo where the build has it. ``gap``: relative, for
    integer programs; it is below the tolerance of the task, so that nobody is asked for more than is judged.
    """

    name = "highs"
    tasks = tuple(PROGRAMS)
    libraries: ClassVar[Sequence[str]] = ("highspy",)
    modules: ClassVar[Sequence[str]] = ("highspy",)
    solver: str = "simplex"
    gap: float = 1e-7

    def build(self, task: str, prepared: Any, *, time_limit: float, threads: int) -> tuple[SparseProgram, Any]:
        """Make the arrays and pass them on."""
        program = PROGRAMS[task](prepared)
        options: dict[str, object] = {"time_limit": float(time_limit)}
        options |= {"mip_rel_gap": self.gap} if program.whole else {"solver": self.solver}
        return program, load(program, options, threads)

    def solve(self, built: tuple[SparseProgram, Any]) -> Any:
        """Run HiGHS."""
        program, highs = built
        return program.read(run(highs))


@dataclass(frozen=True)
class HighsIpm(HighsDirect):
    """HiGHS's interior-point method with crossover, on linear programs."""

    name = "highs-ipm"
    tasks = tuple(LINEAR)
    solver: str = "ipm"


@dataclass(frozen=True)
class HighsPdlp(HighsDirect):
    """HiGHS's first-order method, on linear programs, at its own tolerance of 1e-7."""

    name = "highs-pdlp"
    tasks = tuple(LINEAR)
    solver: str = "pdlp"


@dataclass(frozen=True, eq=False)
class _Filling:
    """A market being filled: the program of the round, loaded, and when to stop."""

    market: SharedGpus
    program: SparseProgram
    highs: Any
    time_limit: float


@dataclass(frozen=True)
class HighsRounds(Peer):
    """Water filling as schedulers do it: a linear program a round, whose duals show the users that cannot be raised.

    Each round raises the least ratio of the users still open. Users whose row has at least ``share`` of the average
    dual are fixed at the level; the next round begins from this one's basis, in the same HiGHS.

    Source: Gavel, OSDI 2020, Sec. 4.3, which finds the users to fix by a mixed-integer program.
    """

    name = "highs-rounds"
    tasks = ("water-filling",)
    libraries: ClassVar[Sequence[str]] = ("highspy",)
    modules: ClassVar[Sequence[str]] = ("highspy",)
    share: float = 0.5

    def build(self, task: str, prepared: SharedGpus, *, time_limit: float, threads: int) -> _Filling:
        """Write the first round down."""
        program = max_min(prepared)
        return _Filling(prepared, program, load(program, {"solver": "simplex"}, threads), time_limit)

    def solve(self, built: _Filling) -> Floats:
        """Fill round by round."""
        begun = perf_counter()
        highs, n = built.highs, len(built.market.fair)
        level = len(built.program.gain) - 1  # the variable
        open_ = np.ones(n, dtype=bool)
        while True:
            left = built.time_limit - (perf_counter() - begun)
            if left <= 0:
                raise OutOfTime(f"{int(open_.sum())} of {n} users are still open at the time limit")
            highs.setOptionValue("time_limit", highs.getRunTime() + left)  # HiGHS's clock runs on from round to round
            x = run(highs)
            push = np.abs(np.array(highs.getSolution().row_dual)[:n]) * open_
            stuck = (push > 0) & (push >= min(self.share / open_.sum(), push.max()))
            if not stuck.any():
                raise NotSolved("HiGHS: optimal, with duals that hold nobody down")
            open_ &= ~stuck
            if not open_.any():
                return np.asarray(built.program.read(x))
            for user in np.flatnonzero(stuck).tolist():
                highs.changeCoeff(user, level, 0.0)
                highs.changeRowBounds(user, float(x[level]), np.inf)
