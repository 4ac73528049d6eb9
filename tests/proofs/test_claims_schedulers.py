"""The ledger's rows on DRF, Karma and Armada: what is stored follows, and Z3 is asked what it should be asked."""

from __future__ import annotations

import pytest

z3 = pytest.importorskip("z3")

from fairopt.proofs.claims.armada.cycle import Job, State, cycle, preempted, waiting  # noqa: E402
from fairopt.proofs.claims.drf import real  # noqa: E402
from fairopt.proofs.claims.drf.divisible import (  # noqa: E402
    Tasks,
    asset,
    drf,
    envy_freeness,
    pareto_efficiency,
    population_monotonicity,
    sharing_incentive,
    strategy_proofness,
)
from fairopt.proofs.ledger.entries import Entry, read_package  # noqa: E402

ROWS = [row for paper in ("drf", "karma", "armada", "kueue") for row in read_package(f"fairopt.proofs.claims.{paper}")]


#: All sizes that Z3 decides take seconds.
CAMPAIGN = {f"{rule}-strategy-proofness" for rule in ("drf", "karma", "armada")}


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=row.id, marks=[pytest.mark.slow] if row.id in CAMPAIGN else []) for row in ROWS]
)
def test_the_verdict_follows(row: Entry) -> None:
    finding, _ = row.recompute()
    assert row.follows(finding), finding


def test_z3_finds_what_is_there_to_be_found() -> None:
    """A question that can only be answered "no" would prove everything."""
    need, said = real.normalised(2, 2)
    level = real.Level(need, [z3.RealVal(1)] * 2)
    assert real.refuted([*said, *level.said, level.t > z3.Q(1, 2)])
    assert not real.refuted([*said, *level.said, level.t > 1])
    # of a resource that is nobody's bottleneck one may well have less than another
    assert real.refuted([*said, *level.said, need[0][0] < need[1][0]])


def test_each_property_is_broken_by_a_rule_that_breaks_it() -> None:
    def first_takes_all(tasks: Tasks) -> object:
        runs = tasks.weight * 0
        runs[0] = tasks.runs(0, tasks.capacity)
        return runs

    def wasteful(tasks: Tasks) -> object:
        return drf(tasks) / 2

    def the_more_the_better(tasks: Tasks) -> object:
        return drf(Tasks(tasks.demand, tasks.capacity, tasks.demand.sum(axis=1)))

    tasks = Tasks.of([[1, 4], [3, 1]], [9, 18])
    reports = lambda demand: iter([demand * 2])  # noqa: E731
    assert sharing_incentive(first_takes_all, tasks) == "user 2 runs 0 tasks, and 3/2 on its part"  # type: ignore[arg-type]
    assert envy_freeness(first_takes_all, tasks) is not None  # type: ignore[arg-type]
    assert pareto_efficiency(wasteful, tasks) is not None  # type: ignore[arg-type]
    assert strategy_proofness(the_more_the_better, tasks, reports) is not None  # type: ignore[arg-type]
    assert strategy_proofness(drf, tasks, reports) is None
    assert population_monotonicity(drf, Tasks.of([[0, 1], [1, 0], [1, 2]], [1, 1])) is not None
    assert sharing_incentive(asset, Tasks.of([[1, 3], [1, 1]], [30, 30])) is not None


# -- Armada's cycle ---------------------------------------------------------------------------------------------------
def test_the_least_cost_with_the_next_job_goes_first_and_ties_go_by_name() -> None:
    assert cycle(waiting([[(2,)], [(1,), (1,)]], [(4,)])).counts() == (1, 2)
    assert cycle(waiting([[(1,)], [(1,)]], [(1,)])).counts() == (1, 0)
    assert cycle(waiting([[(1,)] * 4, [(1,)] * 4], [(4,)], weight=(1, 3))).counts() == (1, 3)


def test_who_holds_its_fair_share_is_not_evicted_and_who_holds_more_is() -> None:
    full = State((Job(1, (1,), 0), Job(1, (1,), 0), Job(0, (1,))), ((2,),), (1, 1))
    after = cycle(full)
    assert preempted(full, after) == [1]
    assert after.counts() == (1, 1)
    half = State((Job(1, (2,), 0), Job(0, (3,))), ((4,),), (1, 1))
    assert preempted(half, cycle(half)) == []


def test_an_evicted_job_goes_back_to_its_own_node_or_nowhere() -> None:
    state = State((Job(0, (1,), 1), Job(0, (3,), 0)), ((3,), (2,)), (1,))
    assert [job.node for job in cycle(state, documented=True).jobs] == [1, 0]
