"""Peers: what each answers is the optimum, within its constraints, or an error that says why there is none."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairopt import allocate, discovery
from fairopt.benchmarks.instances.fft_rounds import FftRounds
from fairopt.benchmarks.instances.posted_prices import PostedPriceBatches
from fairopt.benchmarks.peers import (
    cvxpy_clarabel,
    cvxpy_ecos,
    cvxpy_highs,
    cvxpy_programs,
    cvxpy_scs,
    dede,
    fairopt_generic,
    fairopt_own,
    highs_direct,
    linopy_highs,
    ortools_cp_sat,
    ortools_linear,
    posted_prices,
    pyomo_highs,
    scip,
)
from fairopt.benchmarks.peers.plain import Peer, SharedGpus
from fairopt.benchmarks.tasks.fft_round import FftRound
from fairopt.benchmarks.tasks.posted_prices import PostedPrices
from fairopt.errors import BadInput, NotCapable, NotInstalled, NotSolved, OutOfTime
from fairopt.experiment.bench import Contender
from fairopt.problem import Market

NEAR = 1e-5
MARKETS = {
    "weights": Market.of(
        [[1, 2, 3], [1, "1.5", 5], [1, 3, "3.5"], [1, 1, 4], [2, 1, 1]], [2, 3, 1], weight=[1, 2, 1, "0.5", 3]
    ),
    "demands and zeros": Market.of(
        [[1, 2, 0], [1, 0, 4], [0, 1, 1], [1, 1, 1]], [1, 2, 2], demand=["0.5", None, 1, 3], weight=[2, 1, 1, 1]
    ),
    "ties and a type without GPUs": Market.of([[1, 2, 4], [1, 2, 4], [1, 2, 2], [1, 1, 1]], [3, 2, 0]),
}
PEERS: tuple[type[Contender], ...] = (
    highs_direct.HighsDirect,
    highs_direct.HighsIpm,
    highs_direct.HighsPdlp,
    highs_direct.HighsRounds,
    cvxpy_ecos.CvxpyEcos,
    cvxpy_ecos.OefPaper,
    cvxpy_clarabel.CvxpyClarabel,
    cvxpy_highs.CvxpyHighs,
    cvxpy_scs.CvxpyScs,
    pyomo_highs.PyomoHighs,
    linopy_highs.LinopyHighs,
    scip.Scip,
    fairopt_generic.FairoptHighs,
    fairopt_generic.FairoptExact,
    fairopt_own.Fairopt,
)
#: OR-Tools and highspy do not load into one process.
OR_TOOLS: tuple[type[Contender], ...] = (ortools_linear.OrToolsGlop, ortools_linear.OrToolsPdlp)
ROUNDS = ("fft-round", "posted-prices")
PAIRS = [(kind, task) for kind in (*PEERS, *OR_TOOLS) for task in kind.tasks if task not in ROUNDS]

#: Some versions of HiGHS say this where another library makes one; the harness keeps it from its own output.
OF_HIGHS = ("Running HiGHS", "Includes third-party software components")

CHILD = """
import pickle, sys
jobs = pickle.load(sys.stdin.buffer)
answers = []
for contender, task, problem, limit in jobs:
    try:
        built = contender.build(task, contender.prepare(task, problem), time_limit=limit, threads=1)
        answers.append(contender.solve(built))
    except Exception as error:
        answers.append(error)
pickle.dump(answers, sys.stdout.buffer)
"""


def elsewhere(*jobs: tuple[Contender, str, Any, float]) -> list[Any]:
    """Return what contenders answer in a process of their own: contender, task, problem, time limit each."""
    ran = subprocess.run([sys.executable, "-c", CHILD], input=pickle.dumps(jobs), capture_output=True, check=True)
    return list(pickle.loads(ran.stdout))


def here(contender: Contender, task: str, problem: Any, limit: float = 60.0) -> Any:
    if reason := contender.missing():
        pytest.skip(reason)
    try:
        built = contender.build(task, contender.prepare(task, problem), time_limit=limit, threads=1)
    except NotCapable as error:
        pytest.skip(str(error))  # no algorithm of its own yet
    return contender.solve(built)


@pytest.mark.parametrize("kind", [cvxpy_highs.CvxpyHighs, pyomo_highs.PyomoHighs, linopy_highs.LinopyHighs])
def test_highs_runs_with_another_number_of_threads_than_before(kind: type[Contender]) -> None:
    market, first = MARKETS["weights"], highs_direct.HighsDirect()
    first.solve(first.build("max-min", first.prepare("max-min", market), time_limit=60, threads=2))
    assert worst("max-min", market, here(kind(), "max-min", market)) < NEAR


def quality(task: str, market: Market, shares: Any) -> Any:
    """Return what the task is about: a number, or all ratios from the least on."""
    floats = market.as_(float)
    utility = floats.utility(np.maximum(shares, 0))
    ratio = np.sort(utility / floats.fair_utility())
    return {
        "max-min": ratio[0],
        "oef-noncooperative": utility.sum(),
        "oef-cooperative": utility.sum(),
        "water-filling": ratio,
        "nash-welfare": floats.weight @ np.log(np.maximum(utility, 1e-300)),
    }[task]


def worst(task: str, market: Market, shares: Any) -> float:
    """Return the largest violation of a constraint of the task, in GPUs or throughput."""
    m = market.as_(float)
    own = (m.speedup * shares).sum(axis=1)
    envy = m.speedup @ shares.T * (m.weight[:, None] / m.weight[None, :]) - own[:, None]
    level = own / m.weight
    broken = {
        "negative": -shares.min(),
        "capacity": (shares.sum(axis=0) - m.capacity).max(),
        "demand": (shares.sum(axis=1) - m.limit).max(),
        "cannot run": shares[m.speedup == 0].max(initial=0.0) if task != "nash-welfare" else 0.0,
        "envy": envy.max() if task == "oef-cooperative" else 0.0,
        "equal": np.ptp(level) if task == "oef-noncooperative" else 0.0,
    }
    return max(broken.values())


@cache
def right(task: str, name: str) -> Any:
    market = MARKETS[name]
    policy = discovery.policy(task)
    decision = allocate(policy, market, exact=True)
    return quality(task, market, decision.shares.astype(float))


@pytest.fixture(scope="module", autouse=True)
def imported() -> None:
    # where it is imported in a test whose output is captured, Pyomo keeps that test's stream, which is closed then
    if pyomo_highs.PyomoHighs().missing() is None:
        import_module("pyomo.environ")


@pytest.fixture(scope="module")
def or_tools() -> dict[tuple[str, str, str], Any]:
    kinds = [kind for kind in OR_TOOLS if kind().missing() is None]
    keys = [(kind, task, name) for kind in kinds for task in kind.tasks for name in MARKETS]
    answers = elsewhere(*((kind(), task, MARKETS[name], 60.0) for kind, task, name in keys)) if keys else []
    return {(kind.name, task, name): answer for (kind, task, name), answer in zip(keys, answers, strict=True)}


@pytest.mark.parametrize("name", MARKETS)
@pytest.mark.parametrize(("kind", "task"), PAIRS, ids=[f"{kind.name}-{task}" for kind, task in PAIRS])
def test_the_answer_is_the_optimum(
    kind: type[Contender], task: str, name: str, request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]
) -> None:
    contender, market = kind(), MARKETS[name]
    if kind in OR_TOOLS:
        if reason := contender.missing():
            pytest.skip(reason)
        shares = request.getfixturevalue("or_tools")[contender.name, task, name]
    else:
        shares = here(contender, task, market)
    assert isinstance(shares, np.ndarray), shares
    assert shares.shape == market.shape
    assert shares.dtype == np.float64
    assert quality(task, market, shares) == pytest.approx(right(task, name), rel=NEAR, abs=NEAR)
    assert worst(task, market, shares) <= NEAR
    said = [line for line in capfd.readouterr().out.splitlines() if not line.startswith(OF_HIGHS)]
    assert not said


def large(users: int) -> Market:
    random = np.random.default_rng(users)
    return Market.of_arrays(np.sort(random.uniform(1, 9, (users, 10)), axis=1), np.full(10, 5.0))


@pytest.mark.parametrize(
    "contender",
    [
        highs_direct.HighsDirect(),
        highs_direct.HighsIpm(),
        highs_direct.HighsPdlp(),
        cvxpy_clarabel.CvxpyClarabel(),
        cvxpy_highs.CvxpyHighs(),
        cvxpy_scs.CvxpyScs(),
        pyomo_highs.PyomoHighs(),
        linopy_highs.LinopyHighs(),
        scip.Scip(),
        fairopt_generic.FairoptHighs(),
    ],
    ids=lambda contender: contender.name,
)
def test_a_time_limit_is_passed_on_and_told(contender: Contender) -> None:
    with pytest.raises(OutOfTime):
        here(contender, "oef-cooperative", large(70), limit=0.01)


def test_rounds_share_one_time_limit() -> None:
    with pytest.raises(OutOfTime):
        here(highs_direct.HighsRounds(), "water-filling", large(500), limit=0.01)


def test_or_tools_time_limits_and_assignments() -> None:
    glop, pdlp, cp_sat = ortools_linear.OrToolsGlop(), ortools_linear.OrToolsPdlp(), ortools_cp_sat.OrToolsCpSat()
    if reason := glop.missing():
        pytest.skip(reason)
    market, instance, long = large(70), FftRounds().draw(1, {"jobs": 40}), FftRounds().draw(1, {"jobs": 900})
    *stopped, type_of = elsewhere(
        (glop, "oef-cooperative", market, 0.01),
        (pdlp, "oef-cooperative", market, 0.01),
        (cp_sat, "fft-round", long.problem, 0.05),
        (cp_sat, "fft-round", instance.problem, 60.0),
    )
    assert [type(error) for error in stopped] == [OutOfTime] * 3
    assert FftRound().judge(instance, type_of, FftRound().reference(instance)).accepted


def test_or_tools_answers_beside_highspy_or_says_why_it_does_not_load() -> None:
    if reason := (ortools_linear.OrToolsGlop().missing() or highs_direct.HighsDirect().missing()):
        pytest.skip(reason)
    market = MARKETS["weights"]
    _, second = elsewhere(
        (highs_direct.HighsDirect(), "max-min", market, 60.0), (ortools_linear.OrToolsGlop(), "max-min", market, 60.0)
    )
    if isinstance(second, NotInstalled):
        assert "not imported highspy" in str(second)
    else:  # some versions load beside each other
        assert quality("max-min", market, second) == pytest.approx(right("max-min", "weights"), rel=NEAR, abs=NEAR)


def test_what_is_not_installed_is_named_with_the_remedy() -> None:
    class Absent(Peer):
        name = "absent"
        tasks = ()
        libraries = ("no-such-library",)
        modules = ("numpy", "no_such_library.part")

        def build(self, task: str, prepared: Any, *, time_limit: float, threads: int) -> Any:
            raise AssertionError

        def solve(self, built: Any) -> Any:
            raise AssertionError

    assert Absent().missing() == "absent needs no_such_library.part: pip install no-such-library"


def test_dede_says_how_to_make_its_environment() -> None:
    assert "pip install dede" in str(dede.Dede(python="").missing())
    assert "there is no /nowhere/python" in str(dede.Dede(python="/nowhere/python").missing())


@pytest.mark.slow
def test_dede_comes_near_the_optimum_after_many_iterations() -> None:
    market = MARKETS["weights"]
    for task in dede.Dede.tasks:
        shares = here(dede.Dede(iterations=200, rho=0.3), task, market, limit=300.0)
        assert quality(task, market, shares) == pytest.approx(right(task, "weights"), rel=5e-2)
        assert worst(task, market, shares) <= 1e-2


def test_dede_is_stopped_at_its_time_limit(tmp_path: Path) -> None:
    sleeper = tmp_path / "python"
    sleeper.write_text("#!/bin/sh\necho ready\nexec sleep 60\n")
    sleeper.chmod(0o755)
    with pytest.raises(OutOfTime):
        here(dede.Dede(python=str(sleeper)), "nash-welfare", MARKETS["weights"], limit=0.1)
    sleeper.write_text("#!/bin/sh\necho ready\nread request\nexit 3\n")
    with pytest.raises(NotSolved, match="status 3"):
        here(dede.Dede(python=str(sleeper)), "nash-welfare", MARKETS["weights"])


def test_an_option_that_highs_does_not_have_is_told() -> None:
    with pytest.raises(NotSolved, match="refuses 'no such solver' for its option solver"):
        here(highs_direct.HighsDirect(solver="no such solver"), "max-min", MARKETS["weights"])


def test_an_answer_that_its_solver_calls_inaccurate_is_left_to_the_judge() -> None:
    class Chain:
        def solve_via_data(self, *asked: object, **options: object) -> None:
            return None

        def invert(self, raw: object, inverse: object) -> Any:
            return SimpleNamespace(status=self.status, primal_vars={7: np.eye(2)})

        status = "optimal_inaccurate"

    chain = Chain()
    written = cvxpy_programs.Written(None, SimpleNamespace(id=7))
    built = cvxpy_programs.Compiled(written, None, chain, None, {})
    assert cvxpy_ecos.CvxpyEcos().solve(built).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    chain.status = "infeasible_inaccurate"
    with pytest.raises(NotSolved, match="infeasible_inaccurate"):
        cvxpy_ecos.CvxpyEcos().solve(built)


def test_a_program_without_a_point_gives_no_values() -> None:
    market = SharedGpus.of(MARKETS["weights"])
    infeasible = replace(market, capacity=-market.capacity)
    for contender in (highs_direct.HighsDirect(), cvxpy_ecos.CvxpyEcos(), cvxpy_clarabel.CvxpyClarabel(), scip.Scip()):
        if contender.missing() is None:
            built = contender.build("oef-cooperative", infeasible, time_limit=9.0, threads=1)
            with pytest.raises(NotSolved):
                contender.solve(built)


def test_the_exact_contender_brings_a_certificate() -> None:
    contender = fairopt_generic.FairoptExact()
    built = contender.build("oef-cooperative", MARKETS["weights"], time_limit=9.0, threads=1)
    answer = contender.solve(built)
    assert contender.certify(built, answer).policy == "oef-cooperative"


# -- FFT's round and posted prices -------------------------------------------------------------------------------------
@pytest.mark.parametrize("parameters", [{"jobs": 60}, {"jobs": 40, "gangs": [3, 5], "odds": [1, 1], "rounded": 5.0}])
def test_rounds_are_decided_alike(parameters: dict[str, Any]) -> None:
    instance, task = FftRounds().draw(5, parameters), FftRound()
    reference = task.reference(instance)
    for contender in (fairopt_own.FairoptGangs(), highs_direct.HighsDirect(), scip.Scip()):
        if contender.missing() is None:
            judged = task.judge(instance, here(contender, task.name, instance.problem), reference)
            assert judged.accepted, (contender.name, judged)


def test_the_judge_of_rounds_refuses_what_is_wrong() -> None:
    instance, task = FftRounds().draw(5, {"jobs": 60}), FftRound()
    reference, best = task.reference(instance), here(fairopt_own.FairoptGangs(), "fft-round", instance.problem)
    runs, problem = np.flatnonzero(best >= 0), instance.problem
    job, kind = np.argwhere(~problem.allowed)[0]
    forbidden = best.copy()
    forbidden[job] = kind
    everywhere = problem.allowed.all(axis=1)
    crowded = np.where(everywhere, 0, best)
    dear = best.copy()
    same = [(a, b) for a in runs for b in runs if best[a] != best[b] and problem.gangs[a] == problem.gangs[b]]
    first, second = next(pair for pair in same if everywhere[list(pair)].all())
    dear[[first, second]] = best[[second, first]]
    for wrong, words in (
        (np.full(60, -1), "must be"),
        (crowded, "in use"),
        (forbidden, "may not"),
        (best[:-1], "shape"),
        (best.astype(float), "whole numbers"),
        (dear, "compared"),
    ):
        judged = task.judge(instance, wrong, reference)
        assert not judged.accepted
        assert words in judged.note


def test_packing_is_the_printed_one_and_the_judge_sees_what_is_not() -> None:
    instance, task = PostedPriceBatches().draw(0, {"jobs": 8, "servers": 6, "small": True}), PostedPrices()
    reference = task.reference(instance)
    answers = [
        here(kind(), task.name, instance.problem)
        for kind in (posted_prices.FairoptPacking, posted_prices.PrintedPacking)
    ]
    for answer in answers:
        judged = task.judge(instance, answer, reference)
        assert judged.accepted, judged
        assert "decision by decision" in judged.note
    fewer = {**answers[0], "schedules": answers[0]["schedules"][:-1]}
    unpaid = {**answers[0], "payments": answers[0]["payments"][:-1]}
    for wrong in (fewer, unpaid, {}, {**answers[0], "schedules": None}):
        assert not task.judge(instance, wrong, reference).accepted
    nothing = {**answers[0], "schedules": [], "admissions": [], "payments": [], "bases": []}
    assert not task.judge(instance, nothing, reference).accepted
    with pytest.raises(OutOfTime):
        here(posted_prices.FairoptPacking(), task.name, instance.problem, limit=0.0)


def test_families_are_the_same_every_time_and_refuse_what_cannot_be() -> None:
    for family, parameters in ((FftRounds(), {"jobs": 30}), (PostedPriceBatches(), {"jobs": 5, "servers": 9})):
        first, again, other = (family.draw(seed, parameters) for seed in (1, 1, 2))
        assert first.digest == again.digest != other.digest
        assert first.size == parameters["jobs"]
        for wrong in ({"jobs": 0}, {}, {"jobs": 5, "job": 5}, {"jobs": "5"}):
            with pytest.raises(BadInput):
                family.draw(0, wrong)
    with pytest.raises(BadInput, match="odds"):
        FftRounds().draw(0, {"jobs": 5, "gangs": [1, 2], "odds": [1]})
