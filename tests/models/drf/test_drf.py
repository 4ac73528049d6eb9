"""Dominant Resource Fairness: the paper's example, filling against the linear program, gangs, caps and preemption."""

from __future__ import annotations

from fractions import Fraction as F
from random import Random
from typing import Any

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.errors import NotCapable
from fairopt.models.baselines.equal_split import fill
from fairopt.models.drf.drf import DominantResourceFairness, dominant_share, filled, program, rates
from fairopt.policy import DecisionReason
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good
from fairopt.program import Array, fractions
from fairopt.testing.counted_steps import CountedSteps

#: The most steps: what takes time that grows with the square takes more.
STEPS = 50_000_000

USERS = ("A", "B")


def cluster(gangs: dict[str, Any], cpus: int = 9, memory: int = 18, weight: Any = None, **said: Any) -> Market:
    """Return the paper's system: CPUs are the type that is shared, memory is a further good."""
    tasks = Gangs.of(**{"users": USERS, "types": ["cpu"], **gangs})
    owed = Entitlements.of(USERS, ["cpu"], goods={Good("memory", "all"): memory}, gangs=tasks, **said)
    return Market.of([[1], [1]], [cpus], users=USERS, types=["cpu"], weight=weight, entitlements=owed)


def tasks_of(first: int, second: int, **said: Any) -> dict[str, Any]:
    """Return tasks of <1 CPU, 4 GB> for A and of <3 CPUs, 1 GB> for B."""
    return {
        "user": ["A"] * first + ["B"] * second,
        "gpus": [1] * first + [3] * second,
        "other": {"memory": [4] * first + [1] * second},
        "names": [f"a{i}" for i in range(1, first + 1)] + [f"b{i}" for i in range(1, second + 1)],
        **said,
    }


def decided(market: Market, **options: bool) -> tuple[Array, DecisionReason]:
    decision = allocate(DominantResourceFairness(**options), market, exact=True)
    assert isinstance(decision.evidence, DecisionReason)
    return decision.shares, decision.evidence


@pytest.mark.parametrize("options", [{}, {"divisible": True}])
def test_the_papers_example_is_three_and_two_tasks(options: dict[str, bool]) -> None:
    shares, grounds = decided(cluster(tasks_of(9, 9)), **options)
    assert shares.tolist() == [[3], [6]]
    assert grounds.share == {"A": F(2, 3), "B": F(2, 3)}
    assert (grounds.gangs.on >= 0).sum() == 5


def test_the_papers_table_of_steps() -> None:
    # Table 1 begins with B, which is a tie; then both have the printed order
    _, grounds = decided(cluster(tasks_of(9, 9)))
    assert grounds.order == ("a1", "b1", "a2", "b2", "a3")


def test_weights_divide_a_bottleneck() -> None:
    demand, capacity = fractions(np.array([[1, 1], [1, 1]], dtype=object)), fractions([8, 8])
    assert filled(demand, capacity, rates(demand, capacity, fractions([1, 3]))).tolist() == [2, 6]
    by_resource = fractions(np.array([[1, 1], [3, 1]], dtype=object))
    assert filled(demand, capacity, rates(demand, capacity, by_resource)).tolist() == [4, 4]


def problems(count: int, *, least: int) -> list[tuple[Array, Array, Array]]:
    dice, out = Random(7), []
    while len(out) < count:
        n, m = dice.randint(1, 6), dice.randint(1, 4)
        table = [[dice.randint(least, 9) for _ in range(m)] for _ in range(n)]
        if all(map(any, table)):
            weight = [dice.randint(1, 4) for _ in range(n)]
            rows = np.array(table, dtype=object)
            out.append((fractions(rows), fractions([dice.randint(3, 40) for _ in range(m)]), fractions(weight)))
    return out


def test_filling_is_the_optimum_of_the_linear_program() -> None:
    for demand, capacity, weight in problems(60, least=1):
        rate = rates(demand, capacity, weight)
        solution = Exact().solve(program(demand, capacity, rate))
        assert solution.x is not None
        assert solution.x[:-1].tolist() == filled(demand, capacity, rate).tolist()


def test_where_somebody_needs_nothing_of_a_resource_the_program_is_the_first_level() -> None:
    more = 0
    for demand, capacity, weight in problems(60, least=-4):
        demand = np.where(demand > 0, demand, F(0))
        if not (demand > 0).any(axis=1).all():
            continue
        rate = rates(demand, capacity, weight)
        solution, tasks = Exact().solve(program(demand, capacity, rate)), filled(demand, capacity, rate)
        assert solution.objective == min(tasks / rate)
        assert (tasks @ demand <= capacity).all()
        more += bool((tasks > rate * solution.objective).any())
    assert more > 5


def test_one_resource_with_limits_is_max_min_fairness() -> None:
    for demand, capacity, weight in problems(40, least=1):
        demand, capacity = demand[:, :1], capacity[:1]
        most = fractions([1 + i for i in range(len(weight))])
        tasks = filled(demand, capacity, rates(demand, capacity, weight), most)
        held = fill(weight, most * demand[:, 0], capacity[0])
        assert (tasks * demand[:, 0]).tolist() == held.tolist()


def test_floats_fill_as_fractions_do() -> None:
    for demand, capacity, weight in problems(60, least=1):
        exact = filled(demand, capacity, rates(demand, capacity, weight)).astype(float)
        demand, capacity, weight = (each.astype(float) for each in (demand, capacity, weight))
        assert filled(demand, capacity, rates(demand, capacity, weight)) == pytest.approx(exact)


def test_nothing_of_a_resource_stops_those_who_need_it() -> None:
    demand, capacity = fractions(np.array([[1, 1], [1, 0]], dtype=object)), fractions([4, 0])
    assert filled(demand, capacity, rates(demand, capacity, fractions([1, 1]))).tolist() == [0, 4]
    assert dominant_share([2, 0], [4, 0], 1) == F(1, 2)


def test_a_cap_stops_a_user_and_the_other_goes_on() -> None:
    shares, grounds = decided(cluster(tasks_of(9, 9), cap={"B": {"cpu": 4}}))
    assert shares.tolist() == [[4], [3]]
    assert grounds.waits["b2"] == "cpu: needs 3, 'B' has 3 of at most 4"
    assert grounds.waits["b3"] == "behind 'b2'"
    assert grounds.waits["a5"] == "memory:all: needs 4, 1 are free"
    divided, _ = decided(cluster(tasks_of(9, 9), cap={"B": {"cpu": 4}}), divisible=True)
    assert divided.tolist() == [[F(25, 6)], [4]]


def test_what_runs_stays() -> None:
    shares, grounds = decided(cluster(tasks_of(2, 3, on=[None, None, "cpu", "cpu", "cpu"])))
    assert shares.tolist() == [[0], [9]]
    assert grounds.waits["a1"] == "cpu: needs 1, 0 are free"


def test_a_gang_takes_the_first_of_its_types_with_room() -> None:
    gangs = Gangs.of(["A"] * 3, [2, 2, 2], users=["A"], types=["K80", "V100"], allowed=[None, ["V100"], None])
    owed = Entitlements.of(["A"], ["K80", "V100"], gangs=gangs)
    market = Market.of([[1, 2]], [2, 4], users=["A"], types=["K80", "V100"], entitlements=owed)
    shares, grounds = decided(market)
    assert shares.tolist() == [[2, 4]]
    assert grounds.gangs.on.tolist() == [0, 1, 1]


def test_tasks_that_differ_cannot_be_divided() -> None:
    with pytest.raises(NotCapable, match=r"gangs 'a1' and 'a2' of 'A' take different amounts.*leave divisible out"):
        decided(cluster({"user": ["A", "A"], "gpus": [1, 2], "names": ["a1", "a2"]}), divisible=True)


def test_guarantees_are_refused_by_name() -> None:
    with pytest.raises(NotCapable, match="drf does not support guarantees, which this market has; leave these out"):
        decided(cluster(tasks_of(1, 1), guarantee={"A": [2]}))


@pytest.mark.slow
def test_fifty_thousand_gangs_of_two_thousand_users_are_decided_in_few_steps() -> None:
    dice = Random(1)
    users, types = [f"u{i}" for i in range(2000)], [f"T{j}" for j in range(10)]
    owners = [dice.choice(users) for _ in range(50_000)]
    gangs = Gangs.of(
        owners,
        [dice.choice([1, 1, 2, 4, 8]) for _ in owners],
        users=users,
        types=types,
        allowed=[dice.sample(types, dice.randint(1, 3)) for _ in owners],
        other={"cpu": [dice.randint(1, 32) for _ in owners]},
    )
    owed = Entitlements.of(users, types, goods={Good("cpu", "all"): 300_000}, gangs=gangs)
    market = Market.of([[1] * 10] * 2000, [5000] * 10, users=users, types=types, entitlements=owed)
    with CountedSteps(STEPS):
        decision = allocate(DominantResourceFairness(), market)
    assert (decision.shares.sum(axis=0) <= 5000).all()
