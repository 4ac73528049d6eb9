"""Under a time limit, what nothing can interrupt runs in another process: the same answers, an end in time, no hang."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from fairopt.backends import Highs, apart, wire
from fairopt.backends.cvxpy import CLARABEL, SCS
from fairopt.backends.exact import Exact
from fairopt.backends.exact.checks import dual_bound
from fairopt.backends.pyomo import Pyomo
from fairopt.backends.solution import Basis, Solution, Status
from fairopt.backends.solver import Options
from fairopt.deadline import stoppable, time_limit
from fairopt.errors import BadInput, NotSolved, OutOfTime
from fairopt.methods.incremental_lp import IncrementalLP, entries_of
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.program import INFINITY, Formulation, Program

pytestmark = pytest.mark.skipif(not hasattr(os, "posix_spawn"), reason="such a process needs POSIX")
LONG = 60


@pytest.fixture(autouse=True)
def every_program_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(apart, "SMALL", 0)
    monkeypatch.setattr(apart, "SHORT", 0)
    yield
    if (kept := getattr(apart._here, "process", None)) is not None:
        kept.end("the test is over")


def cooperative(users: int, types: int, digits: int = 3) -> Program:
    draw, unit = Random(users), 10**digits
    rows = [
        [Fraction(draw.randrange(unit // 2, unit), unit - draw.randrange(100)) for _ in range(types)]
        for _ in range(users)
    ]
    return CooperativeOEF().formulate(Market.of(rows, [users] * types), None)


def contradictory() -> Program:
    p = Formulation("nobody can")
    x = p.variable("x", (2,), lower=0)
    p.constrain("most", x.sum() <= 1)
    p.constrain("least", x[0] >= 2)
    p.maximize(x.sum())
    return p.program()


def knapsack() -> Program:
    p = Formulation("knapsack")
    take = p.variable("take", (20,), upper=1, lower=0, integer=True)
    p.constrain("size", sum((7 + at * 13 % 11) * take[at] for at in range(20)) <= 47)
    p.maximize(sum((9 + at * 17 % 13) * take[at] for at in range(20)))
    return p.program()


def told(solution: Solution) -> dict[str, Any]:
    """Return all that an answer says but the seconds."""
    said = {name: value for name, value in vars(solution).items() if name != "seconds"}
    basis = said.pop("basis")
    said |= {} if basis is None else {"columns": basis.columns, "rows": basis.rows}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in said.items()}


def test_the_other_process_answers_as_this_one() -> None:
    backends: list[Any] = [Highs(), Exact(), CLARABEL, SCS, Pyomo()]
    for backend, program in product(backends, (cooperative(6, 3), contradictory())):  # one process: it starts slowly
        here = backend.solve(program)
        there = backend.solve(program, time_limit=LONG)
        assert told(there) == told(here), backend.name
        assert not apart._here.process.lost, backend.name


def test_integers_and_a_model_that_is_kept_between_programs() -> None:
    assert told(Highs().solve(knapsack(), time_limit=LONG)) == told(Highs().solve(knapsack()))
    here, there = Highs().opened(), Highs().opened(Options(time_limit=LONG))
    for users in (5, 5, 6):
        assert told(there(cooperative(users, 3))) == told(here(cooperative(users, 3)))


def test_a_program_that_grows() -> None:
    def solve() -> list[list[float]]:
        program = cooperative(6, 3).as_(float)
        lp = IncrementalLP(program)
        lp.solve()
        first = lp.x
        lp.add_rows(np.array([-INFINITY]), np.array([0.5]), entries_of(np.array([[0, 1]]), np.ones((1, 2))))
        lp.start(*lp.basis())
        lp.solve()
        return [first.tolist(), lp.x.tolist(), lp.basis()[0].tolist()]

    here = solve()
    with time_limit(LONG):
        assert solve() == here


def test_without_a_limit_or_where_it_cannot_matter_there_is_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apart, "_Process", None)
    assert Highs().solve(cooperative(6, 3)).status is Status.OPTIMAL
    monkeypatch.setattr(apart, "SMALL", 10_000)
    monkeypatch.setattr(apart, "SHORT", 10_000)
    assert Exact().solve(cooperative(6, 3), time_limit=LONG).status is Status.OPTIMAL
    with stoppable():
        assert Exact().solve(cooperative(6, 3)).status is Status.OPTIMAL


# -- the process is stopped, ended, or hangs ---------------------------------------------------------------------------
def struck(number: int, which: signal.Signals, after: float = 0.0) -> threading.Timer:
    timer = threading.Timer(after, os.kill, (number, which))
    timer.start()
    return timer


@pytest.mark.parametrize("backend", [Highs(), Exact()], ids=lambda each: each.name)
def test_a_hang_ends_at_the_limit_and_the_next_solve_has_a_new_process(backend: Any) -> None:
    program = cooperative(6, 3)
    best = backend.solve(program, time_limit=LONG)
    hanging = apart._here.process._number
    os.kill(hanging, signal.SIGSTOP)
    found = backend.solve(program, time_limit=0.2)
    assert found.status is Status.LIMIT
    assert "time limit of 0.2 s is over" in found.raw_status
    with pytest.raises(ProcessLookupError):
        os.kill(hanging, 0)
    assert told(backend.solve(program, time_limit=LONG)) == told(best)


@pytest.mark.parametrize("which", [signal.SIGSEGV, signal.SIGABRT])
@pytest.mark.parametrize("backend", [Highs(), Exact()], ids=lambda each: each.name)
def test_a_crash_is_an_error_that_says_so(backend: Any, which: signal.Signals) -> None:
    program = cooperative(6, 3)
    backend.solve(program, time_limit=LONG)
    kept = apart._here.process
    os.kill(kept._number, signal.SIGSTOP)  # so that it is amid something
    timer = struck(kept._number, which, 0.1)
    timer2 = struck(kept._number, signal.SIGCONT, 0.15)
    with pytest.raises(NotSolved, match=f"process was ended by {which.name}"):
        backend.solve(program, time_limit=LONG)
    timer.join()
    timer2.cancel()
    assert backend.solve(program, time_limit=LONG).status is Status.OPTIMAL


def test_a_model_whose_process_is_gone_is_loaded_again() -> None:
    ask = Highs().opened(Options(time_limit=LONG))
    program = cooperative(6, 3)
    first = ask(program)
    os.kill(apart._here.process._number, signal.SIGKILL)  # nobody asked it anything meanwhile: nothing is amiss
    time.sleep(0.2)
    assert ask(program).objective == first.objective


def test_an_error_of_the_back_end_comes_over() -> None:
    with time_limit(LONG), pytest.raises(BadInput, match="option threads") as caught:
        Highs().solve(cooperative(6, 3), threads=1000)
    assert caught.value.remedy
    with time_limit(LONG), pytest.raises(NotSolved, match="broke off: AttributeError"):
        apart.Remote().no_such_method()


def test_under_a_block_the_limit_is_that_of_the_block() -> None:
    Highs().solve(cooperative(6, 3), time_limit=LONG)
    os.kill(apart._here.process._number, signal.SIGSTOP)
    with time_limit(0.2), pytest.raises(OutOfTime):
        Highs().solve(cooperative(6, 3))


def test_what_was_proven_before_the_end_is_returned_with_its_gap() -> None:
    program = cooperative(24, 3, digits=150)  # to solve its basis in rationals takes a second
    best = Exact().solve(program, time_limit=LONG)

    class Stopping(apart._Process):
        def _read(self, until: float) -> Any:
            read = super()._read(until)
            os.kill(self._number, signal.SIGSTOP)  # it has told what HiGHS's answer proves, and comes no further
            return read

    apart._here.process.__class__ = Stopping
    found = Exact().solve(program, time_limit=3)
    assert found.status is Status.LIMIT
    assert "ended at its limit" in found.raw_status
    assert found.objective == program.value(found.x) <= best.objective <= found.bound
    assert found.bound == dual_bound(program.as_(Fraction), found.dual)
    assert program.violations(found.x) == {}
    with pytest.raises(NotSolved, match="the best point so far") as caught:
        found.require_optimal()
    assert caught.value.solution.gap is not None


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of another process is limited on Linux only")
def test_memory_that_is_used_up_is_no_crash() -> None:
    Highs().solve(cooperative(4, 3), time_limit=LONG)
    resource.prlimit(apart._here.process._number, resource.RLIMIT_AS, (2**20, 2**20))
    with pytest.raises(NotSolved, match=r"MemoryError|process was ended"):
        Highs().solve(cooperative(40, 4), time_limit=LONG)


# -- threads, forks, interruptions, and who is gone --------------------------------------------------------------------
def solved(users: int, limit: float | None = LONG) -> Any:
    return Highs().solve(cooperative(users, 3), time_limit=limit).objective


def test_threads_and_forked_processes_have_their_own() -> None:
    best = {users: Highs().solve(cooperative(users, 3)).objective for users in (4, 5, 6)}
    solved(4)
    kept = apart._here.process
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(solved, [4, 5, 6] * 3)) == [best[users] for users in (4, 5, 6)] * 3
    with multiprocessing.get_context("fork").Pool(2) as forked:
        assert forked.map(solved, [4, 5, 6] * 2) == [best[users] for users in (4, 5, 6)] * 2
    assert apart._here.process is kept
    assert not kept.lost
    assert solved(5) == best[5]


@pytest.mark.parametrize("limit", [LONG, None])
def test_an_interruption_ends_it(limit: float | None) -> None:
    with stoppable():
        _interrupted(limit)


def _interrupted(limit: float | None) -> None:
    solved(4, limit)
    kept = apart._here.process
    os.kill(kept._number, signal.SIGSTOP)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have let it be ignored
    try:
        timer = struck(os.getpid(), signal.SIGINT, 0.2)
        with pytest.raises(KeyboardInterrupt):
            solved(4, limit)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert kept.lost
    assert solved(4, limit) > 0


_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems end it where there is a limit")


@pytest.mark.parametrize(
    ("busy", "limit"),
    [pytest.param(False, 1.0, marks=pytest.mark.slow), (True, 1.0), pytest.param(True, None, marks=_LINUX)],
)
def test_it_does_not_outlive_who_asked(busy: bool, limit: float | None) -> None:
    script = f"""
import os, time
from fairopt.backends import apart
apart.SMALL, apart.SHORT, apart.LATER = 0, 0, 0.2
from tests.backends.test_apart import cooperative, solved
solved(4)
kept = apart._here.process
print(kept._number, flush=True)
if {busy}:
    from fairopt.deadline import stoppable
    import threading
    threading.Timer(0.3, os.kill, (os.getpid(), 9)).start()
    if {limit} is None:
        os.kill(kept._number, {int(signal.SIGSTOP)})  # it will never answer, nor see that nobody asks any more
    from fairopt.backends.exact import Exact
    with stoppable():
        Exact().solve(cooperative(40, 4, digits=80), time_limit={limit})
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert done.stdout, done.stderr
    number = int(done.stdout)
    while Path(f"/proc/{number}").exists():  # it ends
        time.sleep(0.05)


# -- what goes to and fro ----------------------------------------------------------------------------------------------
VALUES = [
    *(None, True, 3, -(10**6000), 1.5, INFINITY, "text", [1, [2]], (1, ("a",)), {"a": 1, 2: (3,)}),
    *(Fraction(1, 3), Fraction(10**5000, 7), Status.LIMIT, np.float64(0.1), np.arange(6).reshape(2, 3)),
    *(np.array([Fraction(1, 3), INFINITY, -INFINITY]), np.zeros((0, 2)), np.array([True, False])),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_as_they_went(value: Any) -> None:
    found = wire.unpack(*wire.pack(value))
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype
        assert found.shape == value.shape
        assert found.tolist() == value.tolist()
    else:
        assert found == value


def test_records_come_as_they_went() -> None:
    program = cooperative(3, 2)
    found = wire.unpack(*wire.pack(program))
    assert found.same_structure(program)
    assert found.rows.value.tolist() == program.rows.value.tolist()
    assert found.row_name(3) == program.row_name(3)
    basis = wire.unpack(*wire.pack(Basis(np.zeros(2, dtype=np.int8), np.ones(1, dtype=np.int8))))
    assert basis.rows.dtype == np.int8
    error = wire.unpack(*wire.pack(NotSolved("so", Solution(Status.LIMIT, "raw", "highs", bound=1.0))))
    assert error.solution.bound == 1.0
    assert isinstance(wire.unpack(*wire.pack(BadInput("p", place="q"))), BadInput)


@pytest.mark.parametrize("module", ["os", "subprocess", "builtins", "numpy", "fairoptional"])
def test_nothing_foreign_is_named(module: str) -> None:
    with pytest.raises(TypeError, match="not fairopt's"):
        wire.unpack(f'["made", "{module}", "system", {{}}]'.encode(), [])


@pytest.mark.parametrize("value", [object(), test_nothing_foreign_is_named, {1}, Path()])
def test_what_is_no_number_or_name_does_not_go(value: object) -> None:
    with pytest.raises(TypeError, match="does not go to another process"):
        wire.pack(value)
