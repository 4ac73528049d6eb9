"""What running, moving, loading and failing cost: the model of a cluster, and what `run` makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairopt.backends import Session
from fairopt.errors import BadInput
from fairopt.policy import Policy, Schedule
from fairopt.problem import Cluster, Jobs, Outage, Pattern, Queue, Spots, Trace
from fairopt.simulation import Change, JobRun, Mechanics, Round, run
from fairopt.testing.strategies import placements, queues

COSTS = Mechanics(restart=Fraction(5), launch=Fraction(2), spread=Fraction(4, 5), local_data=True)


@pytest.mark.parametrize(
    ("given", "place", "remedy"),
    [
        ({"restart": -1}, "mechanics, restart", "from 0"),
        ({"launch": "-1/2"}, "mechanics, launch", "from 0"),
        ({"launch": "soon"}, "mechanics, launch", "5/4"),
        ({"spread": 0}, "mechanics, spread", "above 0"),
        ({"spread": "6/5"}, "mechanics, spread", "at most 1"),
    ],
)
def test_odd_costs_are_refused(given: Any, place: str, remedy: str) -> None:
    with pytest.raises(BadInput) as caught:
        Mechanics(**given)
    assert caught.value.place == place
    assert remedy in caught.value.remedy


def test_costs_are_exact_however_they_are_written() -> None:
    assert Mechanics(restart=0.1, spread="1/3") == Mechanics(restart=Fraction(1, 10), spread=Fraction(1, 3))  # type: ignore[arg-type]


def queue_of(
    pattern: Pattern = Pattern.INTRA, *, last: Spots = (), running: bool = True, rest: int = 0, held: str = ""
) -> Queue:
    """One job of 2 GPUs with 6 GB of state and 12 GB of data, on hosts a, b (old, links of 1 and 3) and c (new, 2)."""
    cluster = Cluster.of(["old", "old", "new"], [2, 2, 2], bandwidth=[1, 3, 2], hosts=["a", "b", "c"])
    jobs = Jobs.of(
        gpus=[2],
        work=[100],
        types=cluster.types,
        throughput=[[2, 3]],
        pattern=[pattern],
        state_size=[6],
        dataset=["images"],
        dataset_size=[12],
    )
    queue = Queue.fresh(jobs, cluster, length=60)
    return replace(
        queue,
        last=(last,),
        running=np.array([running and bool(last)]),
        setup=queue.setup + rest,
        held=tuple(frozenset({"images"} if host in held else ()) for host in "abc"),
    )


A, B, AB, AC, C = ((0, 2),), ((1, 2),), ((0, 1), (1, 1)), ((0, 1), (2, 1)), ((2, 2),)


@pytest.mark.parametrize(
    ("spots", "pattern", "speed"),
    [
        (A, Pattern.INTRA, 2),
        (AB, Pattern.INTRA, Fraction(8, 5)),
        (AB, Pattern.INTER, 2),
        (AB, Pattern.ALONE, 2),
        (C, Pattern.INTRA, 3),
        (AC, Pattern.INTER, 2),  # the slowest type holds the others up
        (AC, Pattern.INTRA, Fraction(8, 5)),
    ],
)
def test_speed(spots: Spots, pattern: Pattern, speed: Fraction) -> None:
    assert COSTS.speed(queue_of(pattern), 0, spots) == speed


@pytest.mark.parametrize(
    ("state", "spots", "setup"),
    [
        ({}, A, 2 + 12),  # launch, and data over a's link
        ({}, AB, 2 + 12),  # data over the slower link
        ({"held": "a"}, AB, 2 + 4),  # a has the data already
        ({"held": "ab"}, AB, 2),
        ({"last": A, "held": "a"}, A, 0),  # it stays
        ({"last": A, "held": "a", "rest": 7}, A, 7),  # it stays, and is still loading
        ({"last": A, "held": "a", "running": False}, A, 5),  # it comes back: restart, its state is there
        ({"last": A, "held": "a", "running": False, "rest": 7}, A, 7),  # it was stopped while it loaded
        ({"last": A, "held": "ab"}, B, 5 + 6),  # its state over the slowest link on the way, a's
        ({"last": B, "held": "bc"}, C, 5 + 3),
        ({"last": B, "held": "b"}, C, 5 + 3 + 6),
        ({"last": AB, "held": "ab"}, A, 5),  # fewer hosts: no state moves
        ({"last": A, "held": "ab"}, AB, 5 + 6),
    ],
)
def test_setup(state: dict[str, Any], spots: Spots, setup: int) -> None:
    assert COSTS.setup(queue_of(**state), 0, spots) == setup


def test_a_link_without_limit_moves_anything_at_once() -> None:
    queue = queue_of(last=B)
    queue = replace(queue, cluster=Cluster.of(["old", "old", "new"], [2, 2, 2], hosts=["a", "b", "c"]))
    assert COSTS.setup(queue, 0, C) == 5


@given(queues(), st.data())
def test_costs_in_floats_are_those_in_fractions(queue: Queue, data: st.DataObject) -> None:
    floats = queue.as_(float)
    for row, spots in data.draw(placements(queue)).items():
        for cost in (COSTS.speed, COSTS.setup):
            exactly, nearly = cost(queue, row, spots), cost(floats, row, spots)
            assert isinstance(exactly, int | Fraction)
            assert isinstance(nearly, float)
            assert float(exactly) == pytest.approx(nearly, rel=1e-12)
            assert exactly >= 0


@given(queues(), st.data())
def test_faster_links_and_smaller_states_never_cost_more(queue: Queue, data: st.DataObject) -> None:
    fast = replace(queue, cluster=replace(queue.cluster, bandwidth=queue.cluster.bandwidth * 2))
    light = replace(queue, jobs=replace(queue.jobs, state_size=queue.jobs.state_size / 2))
    for row, spots in data.draw(placements(queue)).items():
        cost = COSTS.setup(queue, row, spots)
        assert COSTS.setup(fast, row, spots) <= cost
        assert COSTS.setup(light, row, spots) <= cost
        assert replace(COSTS, restart=Fraction(0), launch=Fraction(0)).setup(queue, row, spots) <= cost
        assert COSTS.transfer(queue, row, queue.last[row] or spots) == 0


@dataclass(frozen=True)
class Script(Policy):
    """Places job by job what it is told, round by round; where it is told nothing, nobody runs."""

    problem: ClassVar[type] = Queue
    name: ClassVar[str] = "script"
    source: ClassVar[str] = "the test"
    told: tuple[Mapping[str, Spots], ...] = ()

    def decide(self, problem: Queue, state: Any, solve: Session) -> Schedule:
        told = self.told[problem.index] if problem.index < len(self.told) else {}
        at = {name: row for row, name in enumerate(problem.jobs.names)}
        return Schedule(self.name, problem, {at[name]: spots for name, spots in told.items() if name in at})


def played(
    told: list[Mapping[str, Spots]], mechanics: Mechanics, outages: tuple[Outage, ...] = (), **columns: Any
) -> list[Round]:
    cluster = Cluster.of(["old", "old"], [2, 2], bandwidth=[1, 3], hosts=["a", "b"])
    jobs = Jobs.of(**{"gpus": [2], "work": [100], "types": ["old"], "names": ["j"]} | columns)
    policy = Script(told=tuple(told))
    return list(run(policy, Trace(jobs, outages), cluster, length=60, mechanics=mechanics, rounds=len(told)))


def one(record: Round, job: str = "j") -> JobRun:
    return next(ran for ran in record.ran if ran.job == job)


def test_loading_goes_on_over_rounds_and_progress_begins_after_it() -> None:
    records = played([{"j": A}] * 4, Mechanics(launch=Fraction(90)))
    assert [(one(r).setup, one(r).progress, one(r).remaining, one(r).end) for r in records] == [
        (60, 0, 100, 60),
        (30, 30, 70, 120),
        (0, 60, 10, 180),
        (0, 10, 0, 190),
    ]
    assert [one(r).change for r in records] == [Change.START, Change.STAY, Change.STAY, Change.STAY]
    assert records[-1].completed == ("j",)


def test_a_pause_while_loading_spares_nobody_the_rest_of_it() -> None:
    records = played([{"j": A}, {}, {"j": A}], Mechanics(launch=Fraction(90), restart=Fraction(7)))
    assert records[1].waiting == ("j",)
    assert (one(records[2]).change, one(records[2]).setup, one(records[2]).progress) == (Change.RESUME, 30, 30)


def test_moving_takes_the_state_along() -> None:
    records = played([{"j": A}, {"j": B}, {"j": ((0, 1), (1, 1))}], COSTS, state_size=[6], work=[400])
    assert [(one(r).change, one(r).setup, one(r).speed) for r in records] == [
        (Change.START, 2, 1),
        (Change.MIGRATE, 5 + 6, 1),
        (Change.MIGRATE, 5 + 6, Fraction(4, 5)),
    ]
    assert [one(r).before for r in records] == [(), ("old",), ("old",)]
    assert [ran.job for ran in records[1].migrations] == ["j"]


def test_data_that_one_job_copied_is_there_for_the_next_round() -> None:
    columns = {"gpus": [1, 1, 1], "work": [500] * 3, "names": ["j", "k", "l"]}
    columns |= {"dataset": ["images"] * 3, "dataset_size": [12] * 3}
    a = {"j": ((0, 1),), "k": ((0, 1),)}
    records = played([{"j": ((0, 1),), "k": ((0, 1),)}, {"j": ((0, 1),), "l": ((0, 1),)}, a], COSTS, **columns)
    assert [one(records[0], job).setup for job in "jk"] == [2 + 12, 2 + 12]  # both copy, in the same round
    assert one(records[1], "l").setup == 2
    assert one(records[2], "k").setup == 5


def test_a_failure_takes_the_rounds_work_and_the_lease() -> None:
    outage = Outage("a", Fraction(100), Fraction(150))
    records = played([{"j": A}, {"j": A}, {"j": B}, {"j": A}], COSTS, (outage,), work=[400], state_size=[6])
    lost = one(records[1])
    assert (lost.lost, lost.end, lost.progress, lost.remaining) == (True, 100, 0, 400 - 58)
    assert records[1].after.present[0].attained == 2 * 100
    assert not records[1].after.present[0].running
    assert records[2].down == ("a",)
    assert (one(records[2]).change, one(records[2]).setup) == (Change.MIGRATE, 5 + 6)


def test_a_failure_at_the_boundary_of_rounds_loses_nothing() -> None:
    records = played([{"j": A}, {"j": B}], COSTS, (Outage("a", Fraction(60), Fraction(61)),), state_size=[6])
    assert (one(records[0]).lost, one(records[0]).progress) == (False, 58)
    assert records[1].down == ("a",)
    assert one(records[1]).change is Change.MIGRATE


@pytest.mark.parametrize(("fails", "completed"), [(Fraction(40), True), (Fraction(399, 10), False)])
def test_who_is_done_when_its_host_fails_is_done(fails: Fraction, completed: bool) -> None:
    records = played([{"j": A}], Mechanics(), (Outage("a", fails, Fraction(50)),), work=[40])
    assert (one(records[0]).completed, one(records[0]).lost) == (completed, not completed)
    assert one(records[0]).end == fails


def test_the_end_of_a_round_is_still_in_the_round() -> None:
    records = played([{"j": A}, {}], Mechanics(), work=[60])
    assert len(records) == 1
    assert (one(records[0]).completed, one(records[0]).end, records[0].after.present) == (True, 60, {})


def test_a_failure_elsewhere_does_no_harm() -> None:
    records = played([{"j": A}], Mechanics(), (Outage("b", Fraction(10), Fraction(20)),), work=[40])
    assert one(records[0]).completed


def test_a_model_of_ones_own() -> None:
    @dataclass(frozen=True)
    class Warm(Mechanics):
        def speed(self, queue: Queue, row: int, spots: Spots) -> Any:
            return super().speed(queue, row, spots) * (2 if queue.running[row] else 1)

    records = played([{"j": A}, {"j": A}], Warm(), work=[150])
    assert [one(record).speed for record in records] == [1, 2]
    assert one(records[1]).end == 60 + 45
