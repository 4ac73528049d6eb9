"""How often tenants are served unfairly, by readings of the interval, counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from fairopt.experiment.studies.playing import BY_DEMAND, BY_QUOTA, HOUR, play, tenant_loss
from fairopt.models import ShortestRemainingTimeFirst
from fairopt.problem import Cluster, Jobs, Trace
from fairopt.simulation import Mechanics


def test_a_case_is_a_tenant_to_whom_something_is_due_at_a_full_hour() -> None:
    hours = HOUR * np.arange(5)
    held = [np.array([0.0, 1, 1, 5, 5]), np.zeros(5)]
    due = [np.array([0.0, 1, 3, 4, 4]), np.zeros(5)]
    assert tenant_loss(1, hours, held, due) == 1 / 3  # the second hour; the fourth, and the other, are no cases
    assert tenant_loss(2, hours, held, due) == 1 / 4  # of hours 1, 1-2, 2-3 and 3-4
    assert tenant_loss(None, hours, held, due) == 1 / 4
    assert tenant_loss(1, hours, [], []) is None


@pytest.mark.parametrize(("name", "part"), [("tenant_loss_hour", 1 / 2), ("tenant_loss_quota", 1 / 2)])
def test_a_run_of_two_tenants_of_whom_one_waits(name: str, part: float) -> None:
    cluster = Cluster.uniform({"GPU": (1, 2)})
    # the short job of a holds both GPUs for as long as jobs come; b, whose quota is one, waits
    jobs = Jobs.of(gpus=[2, 2, 1], work=[9000, 9500, 1], arrival=[0, 0, 9000], types=["GPU"], tenant=["a", "b", "a"])
    trace = Trace(jobs).as_(float)
    seen = play(ShortestRemainingTimeFirst(), trace, cluster.as_(float), length=100, mechanics=Mechanics())
    assert {*BY_DEMAND, *BY_QUOTA} < set(seen.measures)
    assert seen.measures[name] == part
