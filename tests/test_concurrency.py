"""From many threads, and from forked and spawned processes: the same answers as alone."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import pytest

import fairopt
from fairopt.backends import Highs
from fairopt.deadline import left, time_limit
from fairopt.discovery import BACKENDS, backend, names
from fairopt.errors import FairoptError
from fairopt.models import CooperativeOEF
from fairopt.problem import Market
from fairopt.program import Formulation

MARKETS = (
    Market.of([[1, 2], [1, 5]], [1, 1]),
    Market.of([[3, 1, 2], [1, 4, 1], [2, 2, 5], [1, 1, 1]], [2, 1, 3]),
    Market.of([[1, 2, 4], [1, 3, 3], [2, 3, 7]], [4, 2, 1], weight=[1, 2, 3]),
)
POLICIES = [each.name for each in fairopt.policies(Market)]
#: Seconds until an answer that does not come is a hang.
PATIENCE = 120


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool


@contextmanager
def forked() -> Iterator[Executor]:
    """Yield processes that begin with all that this one has done so far."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("processes are not forked on this system")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        yield pool


@cache
def fresh() -> ProcessPoolExecutor:
    """Return processes that begin with nothing: two for all tests, since each imports fairopt anew."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module", autouse=True)
def no_process_is_left() -> Iterator[None]:
    """End the processes of `fresh` with the last of these tests: those that pytest is run in do not call `atexit`."""
    yield
    if fresh.cache_info().currsize:
        fresh().shutdown()
        fresh.cache_clear()


@contextmanager
def spawned() -> Iterator[Executor]:
    yield fresh()


PLACES = [
    pytest.param(threads, id="threads"),
    pytest.param(forked, id="forked"),
    pytest.param(spawned, id="spawned"),
]
#: Since 3.12 Python says of every fork that it may not be safe; that it is, for us, is what is tested.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")


def told(ask: Callable[[], Any]) -> object:
    """Return all that an answer says but the seconds, or the error."""
    try:
        answer = ask()
    except FairoptError as error:
        return type(error), str(error)
    if isinstance(answer, fairopt.Allocation):
        return answer.shares.tolist(), answer.utilities.tolist(), answer.objective
    if isinstance(answer, dict):
        return {name: verdict.to_json(exact=True) for name, verdict in answer.items()}
    return answer


def require_same(
    place: Callable[[], Any], questions: list[Callable[[], Any]], times: int = 1, alone: list[object] | None = None
) -> None:
    """Ask everything alone and then in ``place``, where it is asked at once and in any order."""
    alone = alone or [told(ask) for ask in questions]
    order = list(range(len(questions))) * times
    random.Random(16).shuffle(order)
    with place() as pool:
        asked = [(at, pool.submit(questions[at])) for at in order]
        for at, future in asked:
            assert told(partial(future.result, PATIENCE)) == alone[at], questions[at]


@cache
def share_policies(*, exact: bool) -> tuple[list[Callable[[], Any]], list[object]]:
    """Return what is asked of the policies, and their answers alone: once for all places."""
    ask = [partial(fairopt.allocate, name, market, exact=exact) for name in POLICIES for market in MARKETS]
    return ask, [told(each) for each in ask]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "floats"])
def test_every_share_policy(place: Callable[[], Any], exact: bool) -> None:
    ask, alone = share_policies(exact=exact)
    require_same(place, ask, times=2 if place is threads else 1, alone=alone)


@pytest.mark.parametrize("place", PLACES)
def test_back_ends_that_all_share(place: Callable[[], Any]) -> None:
    program = CooperativeOEF().formulate(MARKETS[0], None)
    shared = [each for each in map(backend, names(BACKENDS)) if each.available() and not each.unfit(program)]
    ask = [partial(fairopt.allocate, "oef-cooperative", market, each) for each in shared for market in MARKETS]
    require_same(place, ask, times=4 if place is threads else 1)


@pytest.mark.parametrize("place", PLACES)
def test_verdicts_of_every_property(place: Callable[[], Any]) -> None:
    decided = [(market, fairopt.allocate("max-min", market, exact=True)) for market in MARKETS]
    require_same(place, [partial(fairopt.verify, market, decision) for market, decision in decided], times=4)


def compared(market: Market) -> object:
    found = fairopt.compare(
        market, ["equal-split", "max-min", "oef-cooperative"], ["envy_freeness", "pareto_efficiency"]
    )
    return [(row.policy.name, {name: each.to_json() for name, each in row.verdicts.items()}) for row in found]


def test_comparisons_in_threads() -> None:
    require_same(threads, [partial(compared, market) for market in MARKETS], times=4)


def knapsack() -> Any:
    p = Formulation("knapsack")
    take = p.variable("take", 30, upper=1, integer=True)
    p.constrain("size", sum((7 + at * 13 % 11) * take[at] for at in range(30)) <= 97)
    p.maximize(sum((9 + at * 17 % 13) * take[at] for at in range(30)))
    return p.program()


@pytest.mark.parametrize("place", PLACES)
def test_solvers_with_threads_of_their_own(place: Callable[[], Any]) -> None:
    """HiGHS keeps the threads that it has started, and a forked process has none of them."""
    programs = [knapsack(), CooperativeOEF().formulate(MARKETS[1], None).as_(float)]
    ask = [partial(solved, program, count) for program in programs for count in (1, 2, 3)]
    require_same(place, ask, times=4)


def solved(program: Any, count: int) -> Any:
    answer = Highs().solve(program, threads=count)
    return answer.status.value, round(answer.objective, 9)


def test_a_time_limit_is_of_its_thread_alone() -> None:
    with time_limit(0.0), ThreadPoolExecutor(1) as pool:
        assert pool.submit(left).result(PATIENCE) is None
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: time_limit(0.0).__enter__()).result(PATIENCE)
        assert left() is None
