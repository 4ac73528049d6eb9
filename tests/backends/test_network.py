"""Programs that are flows: the same optimum as in rationals and as HiGHS finds, whole numbers, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.network import Network
from fairopt.backends.solution import Status
from fairopt.errors import NotCapable
from fairopt.models import MaxEfficiency
from fairopt.problem import Market
from fairopt.program import INFINITY, Formulation, Program, between
from fairopt.proofs.verify import verify
from fairopt.testing.backend_suite import check_optimality


def flow(seed: int, integer: bool = False) -> Program:
    """Draw a flow between nodes, with rows and variables multiplied, bounds of all kinds and either sense."""
    random = np.random.default_rng(seed)
    nodes, arcs = int(random.integers(1, 7)), int(random.integers(1, 15))
    p = Formulation(f"flow {seed}")

    def draw(size: int) -> list[F]:
        parts = 1 if integer else int(random.integers(1, 4))
        return [F(int(each), parts) for each in random.integers(0, 7, size)]

    kinds = random.integers(0, 4, arcs)
    lower = [-INFINITY if kind in (1, 2) else -low for kind, low in zip(kinds, draw(arcs), strict=True)]
    upper = [INFINITY if kind in (2, 3) else high for kind, high in zip(kinds, draw(arcs), strict=True)]
    if seed % 3:  # not all may be without an optimum
        lower, upper = [max(low, F(-9)) for low in lower], [min(high, F(9)) for high in upper]
    x = p.variable("x", (arcs,), lower=lower, upper=upper, integer=integer)
    ends = [random.permutation(nodes + 1)[:2] if nodes else (0, 0) for _ in range(arcs)]
    unit = [F(1)] * arcs if integer else [each + 1 for each in draw(arcs)]
    for node in range(nodes):
        times = F((-1) ** int(random.integers(2))) * (1 if integer else draw(1)[0] + 1)
        terms: Any = sum(
            (times * unit[j] * ((tail == node) - int(head == node)) * x[j] for j, (tail, head) in enumerate(ends)),
            0 * x[0],
        )
        low, room = draw(1)[0] - 3, draw(1)[0]
        if random.integers(3):
            p.constrain(f"node{node}", between(low, terms, low + room))
        else:
            p.constrain(f"node{node}", terms <= room)
    cost = [each - 2 for each in draw(arcs)]
    goal = sum((c * x[j] for j, c in enumerate(cost)), 0 * x[0])
    p.maximize(goal) if random.integers(2) else p.minimize(goal)
    return p.program()


@pytest.mark.parametrize("seed", seeds(50, 150))
def test_a_flow_has_the_optimum_that_rationals_find(seed: int) -> None:
    program = flow(seed)
    found, wanted = Network().solve(program), Exact().solve(program)
    if found.status is Status.UNBOUNDED:
        assert wanted.status in (Status.UNBOUNDED, Status.INFEASIBLE_OR_UNBOUNDED)
    else:
        assert found.status is wanted.status
    if found.status is Status.OPTIMAL:
        assert found.objective == wanted.objective
        check_optimality(program, found, 0, True)


@pytest.mark.parametrize("seed", seeds(20, 60))
def test_whole_flows_have_the_optimum_that_highs_finds(seed: int) -> None:
    program = flow(seed, integer=True)
    found, wanted = Network().solve(program), Highs().solve(program)
    if wanted.status is not Status.INFEASIBLE_OR_UNBOUNDED:
        assert found.status is wanted.status
    if found.status is Status.OPTIMAL:
        assert not program.violations(found.point)
        assert abs(float(found.objective or 0) - float(wanted.objective or 0)) < 1e-6


def test_the_drawn_flows_end_in_all_ways() -> None:
    ended = {Network().solve(flow(seed)).status for seed in range(50)}
    assert ended == {Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED}


def test_a_policy_whose_program_is_a_flow_takes_it() -> None:
    market = Market.of([[1, 2], [3, 7], [2, 2]], [2, F(7, 3)], demand=[1, 2, F(3, 2)])
    found = allocate("max-efficiency", market, backend="network", exact=True)
    assert found.objective == allocate("max-efficiency", market, backend="exact").objective == F(109, 6)
    assert "optimal for max-efficiency" in verify(json.loads(json.dumps(MaxEfficiency().certify(found).to_json())))


def test_whole_numbers_between_fractions_are_rounded_inwards() -> None:
    p = Formulation("whole")
    x = p.variable("x", (2,), upper=F(5, 2), integer=True)
    p.constrain("together", x[0] + x[1] <= F(9, 2))
    p.maximize(3 * x[0] + x[1])
    assert Network().solve(p.program()).point.tolist() == [2, 2]
    q = Formulation("none")
    y = q.variable("y", (1,), integer=True)
    q.constrain("half", between(F(1, 3), y[0], F(2, 3)))
    q.maximize(y[0])
    assert Network().solve(q.program()).status is Status.INFEASIBLE


@pytest.mark.parametrize(
    ("speedup", "policy", "what"),
    [
        ([[1, 2], [1, 5]], "oef-cooperative", "variables in more than two rows"),
        ([[1, 2], [1, 5]], "nash-welfare", "logarithms"),
    ],
)
def test_what_is_no_flow_is_refused_and_said(speedup: list[list[int]], policy: str, what: str) -> None:
    with pytest.raises(NotCapable, match=what):
        allocate(policy, Market.of(speedup, [1, 1]), backend="network")
