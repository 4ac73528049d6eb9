"""The engine in columns against the referee: the same changes and snapshots, for all policies, from any round on."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairopt.discovery import policies, policy
from fairopt.models import FifoQuota, LeastAttainedService, ShortestServiceQueues, Themis
from fairopt.policy import Policy
from fairopt.problem import Queue
from fairopt.simulation import Mechanics, Setting, Stalled
from fairopt.simulation.engine import Engine
from fairopt.testing.round_changes import check_engine
from fairopt.testing.round_samples import sample_settings
from fairopt.testing.round_strategies import clusters, traces

INSTALLED = [each.name for each in policies(Queue)]
#: Options under which schedules stand for other times than by default, and leases over several rounds.
OPTIONS: list[Policy] = [
    LeastAttainedService(thresholds=(30, 200, 700), by_start=True),
    LeastAttainedService(thresholds=(), skip=False),
    LeastAttainedService(thresholds=None),
    LeastAttainedService(promote=2),
    FifoQuota(pooled=True, overtake=True),
    FifoQuota(overtake=True, borrow=False),
    ShortestServiceQueues(random=True, gpu_time=False, wait_for_hosts=True),
    ShortestServiceQueues(per_gpu=True),
    Themis(lease=150, knob=0),
    Themis(average_contention=True, gang_share=True),
]


def _check(rule: Policy, count: int, seed: int) -> None:
    for number, setting in enumerate(sample_settings(count, seed=seed)):
        check_engine(rule, setting.as_(float), cut=number % 5 or None, ask=number % 3 == 0)
        check_engine(rule, setting.as_(float))


def called(rule: Policy) -> str:
    """Return a name that is the same in every process, as a representation with a function's address is not."""
    return rule.name if rule in map(policy, INSTALLED) else re.sub(r" at 0x\w+", "", repr(rule))


@pytest.mark.parametrize("rule", [*map(policy, INSTALLED), *OPTIONS], ids=called)
def test_the_engine_says_what_the_referee_says(rule: Policy) -> None:
    _check(rule, 4, seed=21)


@pytest.mark.slow
@pytest.mark.parametrize("rule", [*map(policy, INSTALLED), *OPTIONS], ids=called)
def test_the_engine_says_what_the_referee_says_on_500_traces(rule: Policy) -> None:
    _check(rule, 500, seed=22)


AMOUNTS = (Fraction(0), Fraction(1), Fraction(5, 2))


@st.composite
def drawn(draw: st.DrawFn) -> Setting:
    """Draw settings in which ties are frequent, in Fractions or floats."""
    cluster = draw(clusters())
    restart, launch = draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(AMOUNTS))
    mechanics = Mechanics(restart, launch, local_data=draw(st.booleans()))
    setting = Setting(cluster, draw(traces(cluster)), mechanics, Fraction(10))
    return setting.as_(draw(st.sampled_from([float, Fraction])))


@given(setting=drawn(), rule=st.sampled_from([policy(name) for name in INSTALLED] + OPTIONS), cut=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_on_drawn_settings(setting: Setting, rule: Policy, cut: int) -> None:
    try:
        check_engine(rule, setting, cut=cut)
    except Stalled:  # a host is gone for good, or a quota is too small: the engine must say so, too
        with pytest.raises(Stalled):
            list(Engine(rule, setting.trace, setting.cluster, length=setting.length, mechanics=setting.mechanics))
