"""Sia: its program against every choice, restarts by hand, elastic jobs in a run, what elastic jobs are refused."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest

from fairopt.errors import BadInput, WrongReturn
from fairopt.models.common.schedulers import Adapted
from fairopt.models.sia.sia import Configurations, Sia
from fairopt.policy import Schedule, decide
from fairopt.policy.schedule import refuse_broken
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.problem.profile import Profile
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import History, Mechanics, run
from fairopt.simulation.document import document
from fairopt.simulation.engine import Engine
from fairopt.testing.round_samples import sample_settings
from fairopt.testing.round_suite import round_suite

CLUSTER = Cluster.uniform({"T4": (2, 2), "V100": (1, 4)})


def elastic(**more: Any) -> Jobs:
    """Return an elastic job of 1, 2 or 4 GPUs, a rigid one of 2, and one of 1 that is elastic up to 2."""
    return Jobs.of(
        gpus=[1, 2, 1],
        work=[400, 400, 400],
        types=CLUSTER.types,
        throughput=[[1, 2], [1, 4], [2, 3]],
        profiles=[
            Profile.scaled(1, [1, 2], {2: "1.8", 4: 3}),
            None,
            Profile.scaled(1, [2, 3], {2: "3/2"}),
        ],
        **more,
    )


def queue(jobs: Jobs, now: int = 0) -> Queue:
    return Queue.fresh(jobs, CLUSTER, length=60, now=now)


def test_goodputs_are_relative_to_the_slowest_configuration_times_its_gpus() -> None:
    found = Configurations.of(queue(elastic()))
    columns = (found.row, found.gpu_type, found.gpus, found.goodput)
    table = {tuple(key): goodput for *key, goodput in zip(*(column.tolist() for column in columns), strict=True)}
    assert table == pytest.approx({
        (0, 0, 1): 1, (0, 0, 2): 1.8, (0, 0, 4): 3, (0, 1, 1): 2, (0, 1, 2): 3.6, (0, 1, 4): 6,
        (1, 0, 2): 2, (1, 1, 2): 8,
        (2, 0, 1): 1, (2, 0, 2): 1.5, (2, 1, 1): 1.5, (2, 1, 2): 2.25,
    })  # fmt: skip


def test_jobs_that_are_alike_are_one_in_the_program() -> None:
    many = 1000
    speeds = [[1, 2] if row % 2 else [1, 3] for row in range(many)]
    jobs = Jobs.of(gpus=[1] * many, work=[400] * many, types=CLUSTER.types, throughput=speeds)
    schedule = decide(Sia(), queue(jobs))
    assert schedule.program is not None
    assert schedule.program.variable_block("x").shape == (4,)
    # the four V100 go to the first four jobs that gain most there, the four T4 to four more
    fast = sorted(row for row, spots in schedule.placements.items() if spots[0][0] == 2)
    assert (fast, len(schedule.placements)) == ([0, 2, 4, 6], 8)
    idle, first = 1.1, 3**-0.5
    assert schedule.costs["objective"] == pytest.approx(4 * first + 4 * 1 + (many - 8) * idle)


@pytest.mark.parametrize("power", [-0.5, -1.0, -3.0])
def test_the_program_finds_the_best_of_all_choices(power: float) -> None:
    asked = queue(elastic())
    found = Configurations.of(asked)
    mine = [[None, *np.flatnonzero(found.row == row).tolist()] for row in range(3)]
    best = float("inf")
    for choice in product(*mine):
        at = [each for each in choice if each is not None]
        used = np.bincount(found.gpu_type[at], weights=found.gpus[at], minlength=2)
        if (used <= CLUSTER.capacity).all():
            best = min(best, sum(found.goodput[each] ** power for each in at) + 1.1 * (3 - len(at)))
    assert decide(Sia(power=power, growth=None), asked).costs["objective"] == pytest.approx(best)


def test_a_restart_has_the_price_of_the_papers_factor() -> None:
    # age 120, one restart of 30 already: r = (120 - 30) / (120 + 30) = 3/5, for all but where it runs
    asked = replace(queue(elastic(), now=120), running=np.array([True, False, False]), last=(((0, 2),), (), ()))
    found = Configurations.of(asked)
    costs = Sia().costs(asked, found, Adapted({"j1": 1}))
    here = (found.row == 0) & (found.gpu_type == 0) & (found.gpus == 2)
    assert found.now.tolist() == here.tolist()
    factor = np.where(here | (found.row != 0), 1, 3 / 5)
    assert costs == pytest.approx((found.goodput * factor) ** -0.5)


def test_young_jobs_move_for_nothing_and_exhausted_ones_never() -> None:
    ran = {"running": np.array([True, False, False]), "last": (((0, 2),), (), ())}
    young = replace(queue(elastic(), now=29), **ran)
    assert Sia().costs(young, Configurations.of(young), Adapted()) == pytest.approx(
        Configurations.of(young).goodput ** -0.5
    )
    worn = replace(queue(elastic(), now=60), **ran)
    found = Configurations.of(worn)
    assert set(Sia().costs(worn, found, Adapted({"j1": 2}))[(found.row == 0) & ~found.now]) == {3000}


def test_jobs_that_load_stay() -> None:
    # the job has just come to a T4, and would go to four V100 if it could
    alone = elastic().take([0])
    asked = replace(queue(alone, now=10), running=np.array([True]), last=(((0, 1),),))
    assert decide(Sia(growth=None), asked).placements == {0: ((2, 4),)}
    assert decide(Sia(growth=None), replace(asked, setup=np.array([Fraction(5)], dtype=object))).placements == {
        0: ((0, 1),)
    }


def test_an_elastic_job_runs_at_the_speed_of_its_gpus() -> None:
    # alone on the V100s: speed 2 alone, times 3 with four GPUs; 400 / 6
    rounds = list(run(Sia(growth=None), Trace(elastic().take([0])), CLUSTER, length=60, mechanics=Mechanics(restart=0)))
    [first] = rounds[0].ran
    assert (first.gpus, first.speed, first.progress) == (4, 6, 360)
    assert rounds[1].ran[0].end == Fraction(400, 6)


def test_restarts_are_counted_and_forgotten_with_the_job() -> None:
    jobs = elastic(arrival=[0, 60, 120])
    records = list(run(Sia(restart=0), Trace(jobs), CLUSTER, length=60))
    for before, then in pairwise(records):
        ran = {each.job: each.spots for each in before.ran}
        for each in then.ran:
            if each.job in then.after.state.restarted and each.job in ran:
                more = then.after.state.restarted[each.job] - before.after.state.restarted[each.job]
                assert more == (ran[each.job] != each.spots)
    assert isinstance(records[-1].after.state, Adapted)


def test_gangs_of_other_sizes_are_refused() -> None:
    asked = queue(elastic())
    for gpus, fine in ((1, True), (2, True), (3, False), (4, True)):
        schedule = Schedule("by hand", asked, {0: ((2, gpus),)})
        if fine:
            refuse_broken(schedule)
        else:
            with pytest.raises(WrongReturn, match="gets 3 GPUs of the 1 or 2 or 4 that it needs"):
                refuse_broken(schedule)


@pytest.mark.parametrize("number", [Fraction, float])
def test_the_verifier_knows_elastic_jobs(number: type) -> None:
    trace = Trace(elastic(arrival=[0, 60, 70])).as_(number)
    history = History.of(trace, CLUSTER, run(Sia(growth=None), trace, CLUSTER, length=60))
    told = document(history, Mechanics(), 60, "sia")
    near = Fraction(1, 10**9) if number is float else Fraction(0)
    assert judge(json.dumps(told), near)[0] == []
    at = next(each for record in told["rounds"] for each in record["ran"] if sum(n for _, n in each["spots"]) == 4)
    job = next(each for each in told["trace"]["jobs"] if each["name"] == at["job"])
    rows = told["trace"]["profiles"][job["profile"]]["throughput"]
    rows[:] = [row for row in rows if row[0] != 4]
    found, _ = judge(json.dumps(told), near)
    assert any("it needs 1 or 2 GPUs at once, hosts rising, and gets 4" in each for each in found)


def test_the_engine_and_its_referee_agree_on_elastic_jobs() -> None:
    for number, setting in enumerate(sample_settings(6, seed=11)):
        random, jobs = Random(number), setting.trace.jobs
        profiles = tuple(
            Profile.scaled(
                gpus, own, {size: Fraction(random.randint(1, 9), 4) for size in (1, 2, 4, 8) if size != gpus}
            )
            for gpus, own in zip(jobs.gpus.tolist(), jobs.throughput.tolist(), strict=True)
        )
        trace = Trace(replace(jobs, profiles=profiles), setting.trace.outages)
        how: Any = {"length": setting.length, "mechanics": setting.mechanics, "rounds": 12}
        *_, last = run(Sia(), trace, setting.cluster, **how)
        engine = Engine(Sia(), trace, setting.cluster, **how)
        list(engine)
        assert engine.snapshot() == last.after


@pytest.mark.parametrize("option", [{"power": 0.5}, {"idle": 1}, {"restart": -1}, {"gap": -1}, {"growth": 0}])
def test_bad_options_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(BadInput, match=f"sia, {next(iter(option))}"):
        Sia(**option)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Sia(restart=0), Sia(power=-2.0, idle=5.0, gap=0.01)], ids=repr)
def test_options_conform(policy: Sia) -> None:
    round_suite(judge, settings=4).run([policy]).require_complete()
