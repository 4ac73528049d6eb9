"""A workload that may start with fewer pods does so where it cannot start with all: partial admission."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from fairopt.errors import BadInput
from fairopt.models import Kueue
from fairopt.models.kueue import flavors
from fairopt.models.kueue.flavors import Mode
from fairopt.models.kueue.quotas import CohortQuotas
from fairopt.models.kueue.state import Preempts, Rules, State
from fairopt.models.kueue.work import QueuedWork
from fairopt.problem import Entitlements, Gangs, Market
from fairopt.problem.entitled_rows import Good


def market(quota: int, text: str, gpus: int = 10, cpu: int = 20) -> Market:
    """A gang that asks for GPUs and cores, and may start with fewer pods; one of high priority asks for 2 after it."""
    gangs = Gangs.of(
        ["x", "x"],
        [gpus, 2],
        users=["x"],
        types=["A"],
        tier=[0, 1],
        since=[0, 1],
        other={"cpu": [cpu, 0]},
        settings=[{"fewer_pods": text}, {}],
    )
    goods = {Good("cpu", "any"): 100}
    owed = Entitlements.of(["x"], ["A"], guarantee={"x": [quota, 100]}, goods=goods, gangs=gangs)
    return Market.of([[1]], [quota], users=["x"], types=["A"], entitlements=owed)


@pytest.mark.parametrize(("quota", "held"), [(12, 10), (9, 7), (6, 4), (4, 2), (3, 0)])
def test_it_starts_with_as_many_pods_as_fit(quota: int, held: int) -> None:
    """The other one takes 2 of the quota first; 8 of the 10 pods may be missing, and each takes 2 cores."""
    given = market(quota, "8: gpu 1, cpu 2")
    shares, grounds = Kueue().compute(given, None)
    assert shares.tolist() == [[2 + held]]
    assert grounds.gangs.gpus.tolist() == [held or 10, 2]
    assert grounds.gangs.other[:, 0].tolist() == [2 * (held or 10), 0]
    assert list(grounds.waits) == ([] if held else ["g1"])


def test_pod_sets_lose_pods_in_proportion() -> None:
    """Of 6 and 3 spare pods that take 1 and 2 are gone 5 * 6 // 9 = 3 and 5 * 3 // 9 = 1 at step 5: 20 - 3 - 2 = 15."""
    shares, _ = Kueue().compute(market(17, "6: gpu 1; 3: gpu 2", gpus=20, cpu=0), None)
    assert shares.tolist() == [[2 + 15]]


def test_parts_of_a_core_are_counted_exactly() -> None:
    _, grounds = Kueue().compute(market(7, "9: gpu 1, cpu 1/2", cpu=5), None)
    assert grounds.gangs.other[:, 0].tolist() == [Fraction(5, 2), 0]


@pytest.mark.parametrize("text", ["many", "3: gpu", "3: gpu x", "x: gpu 1", "1: gpu 1/0"])
def test_what_says_something_else_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="fewer_pods"):
        Kueue().compute(market(9, text), None)


def test_the_most_pods_are_found_that_fit_or_for_which_others_can_go() -> None:
    """As a search that tries one number of pods after another; one more pod is never easier to place here."""
    some = 0
    for seed in range(200):
        dice = Random(seed)
        quota = [[dice.randint(0, 8)], [dice.randint(0, 8)], [0]]
        quotas = CohortQuotas([2, 2, -1], ["gpu"], quota, [[None]] * 3, [[None]] * 3, [Fraction(1)] * 3)
        rules = Rules(reclaim_within_cohort=Preempts.ANY, within_cluster_queue=Preempts.LOWER_PRIORITY)
        state = State(quotas, lambda _: rules, fair=False)  # noqa: B023
        for number in range(dice.randint(0, 5)):
            needs = {0: ([(0, dice.randint(1, 3))], [])}
            state.add(QueuedWork(f"runs {number}", dice.randrange(2), dice.randrange(3), 0, number, needs, flavor=0))
        pods, least = dice.randint(2, 9), dice.randint(1, 2)
        needs_of = {step: {0: (((0, pods - step),), ())} for step in range(pods - least + 1)}
        work = QueuedWork("asks", 0, 1, 1, 9, needs_of[0], fewer=(pods - least, needs_of.__getitem__))
        found = flavors.assign(state, work)
        tried = (flavors.assign(state, QueuedWork("asks", 0, 1, 1, 9, needs)) for needs in needs_of.values())
        want = next((each for each in tried if each.mode is Mode.FIT or each.targets), None)
        got = found if found.mode is Mode.FIT or found.targets else None
        assert (got and (got.needs, got.targets)) == (want and (want.needs, want.targets)), seed
        some += bool(found.step)
    assert some > 20
