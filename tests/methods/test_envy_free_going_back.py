"""Cooperative OEF: free users who hold what a single-type group holds go back to it."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt import allocate
from fairopt.methods.envy_free import relaxation
from fairopt.methods.envy_free import solve as envy_free_solve
from fairopt.methods.envy_free.problem import RestrictedStart, Users
from fairopt.methods.envy_free.restricted_lp import RestrictedLP
from fairopt.models import CooperativeOEF
from fairopt.problem import Market

#: So users go back in small markets, too, whenever the total is higher.
OFTEN = (
    (envy_free_solve, "SMALL", 2),
    (relaxation, "MOST_FREED", 2),
    (relaxation, "MANY_FREE", 0),
    (relaxation, "MANY_GAIN", 1),
    (relaxation, "HIGHER", 0.0),
)


def test_the_optimum_is_the_same_where_users_go_back(monkeypatch):
    for module, name, value in OFTEN:
        monkeypatch.setattr(module, name, value)
    random, went = np.random.default_rng(0), []
    speedup = np.outer(random.lognormal(0, 1, 60), random.lognormal(0, 0.5, 6)) * random.uniform(0.95, 1.05, (60, 6))
    market = Market.of_arrays(speedup, (60 * 10 ** random.uniform(-1.5, 0, 6)).round() + 1)
    put_back = RestrictedLP.put_back

    def followed(program, found, stay):
        free = (program.single_type < 0).sum()
        put_back(program, found, stay)
        went.append(free - (program.single_type < 0).sum())

    monkeypatch.setattr(RestrictedLP, "put_back", followed)
    found = allocate(CooperativeOEF(), market)
    assert sum(went) > 0
    assert found.solution.gap <= 1e-7
    monkeypatch.undo()
    assert found.objective == pytest.approx(allocate(CooperativeOEF(), market).objective, rel=1e-8)


def test_users_who_hold_what_a_group_does_go_back_at_no_cost():
    n, k = 60, 3
    value = np.random.default_rng(5).uniform(1, 3, (n, k))
    ones, none = np.ones(n), np.zeros(0, dtype=np.int64)
    users = Users.of(value, ones, np.array([5.0, 3, 9]), ones, np.full(n, np.inf))
    groups = users.value.argmax(axis=1)
    groups[:20] = -1
    program = RestrictedLP(users, RestrictedStart.cold(groups, users.value > 0))
    total = program.solve().objective
    members = np.arange(20, 40)
    program.free(members, np.eye(k, dtype=bool)[groups[members]], none, none)
    found = program.solve()
    program.put_back(found, np.ones(n, dtype=bool))
    assert (program.single_type[members] == -1).all()
    program.put_back(found, np.zeros(n, dtype=bool))
    assert (program.single_type[members] == groups[members]).all()
    assert found.objective == pytest.approx(total, rel=1e-9)
    assert program.solve().objective == pytest.approx(total, rel=1e-9)
