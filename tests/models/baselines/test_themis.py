"""Themis: finish-time fairness by hand, ASTRAEA's Fig. 6(b), leases and offers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from drawn_seeds import counts

from fairopt.errors import BadInput
from fairopt.models.baselines.themis import Themis
from fairopt.models.common.schedulers import Tally, fastest, finish_time_fairness, until_free
from fairopt.policy import decide
from fairopt.problem import Cluster, Jobs, Queue, Trace
from fairopt.program import INFINITY
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import Mechanics, Round, Setting, run
from fairopt.simulation.engine import Engine
from fairopt.testing.round_changes import check_engine
from fairopt.testing.round_suite import round_suite

SIX = Cluster.uniform({"V100": (1, 6)})


def fig6() -> Jobs:
    """Return three jobs of 40 minutes on 6, 3 and 3 GPUs; time is in minutes."""
    return Jobs.of(gpus=[6, 3, 3], work=[40] * 3, types=["V100"])


def played(policy: Themis, jobs: Jobs, cluster: Cluster = SIX, length: int = 10, **more: object) -> list[Round]:
    return list(run(policy, Trace(jobs), cluster, length=length, **more))  # type: ignore[arg-type]


def who(rounds: list[Round]) -> list[str]:
    return [" ".join(sorted(ran.job for ran in record.ran)) for record in rounds]


@pytest.mark.parametrize(
    "policy", [Themis(), Themis(knob=0), Themis(knob=1), Themis(random_rest=False), Themis(average_contention=True)]
)
def test_fig6b_the_large_job_and_the_small_ones_alternate(policy: Themis) -> None:
    rounds = played(policy, fig6())
    assert who(rounds) == ["j1", "j2 j3"] * 4
    held = {name: sum(ran.gpus * (ran.end - ran.begin) for r in rounds[:2] for ran in r.ran if ran.job == name)
            for name in ("j1", "j2", "j3")}  # fmt: skip
    assert {name: gpu_time / 120 for name, gpu_time in held.items()} == {
        "j1": Fraction(1, 2),
        "j2": Fraction(1, 4),
        "j3": Fraction(1, 4),
    }


def test_fig6b_with_gangs_on_their_share_the_small_jobs_go_first() -> None:
    # T_id is 120 for the large job (6 on 2 GPUs) and 60 for the small ones (3 on 2): rho 1/3 and 2/3 at first; when
    # the small ones are nearly done, still 70/120 and 40/60
    rounds = played(Themis(gang_share=True), fig6())
    assert who(rounds) == ["j2 j3"] * 4 + ["j1"] * 4
    assert [record.costs["largest finish-time fairness"] for record in rounds[:4]] == [Fraction(2, 3)] * 4


def test_nobody_is_asked_where_all_jobs_run() -> None:
    one = Queue.fresh(Jobs.of(gpus=[6], work=[1], types=["V100"]), SIX, length=10)
    waits = decide(Themis(), Queue.fresh(fig6(), SIX, length=10))
    alone, leased, mean = (
        decide(policy, one) for policy in (Themis(), Themis(lease=20), Themis(average_contention=True))
    )
    assert (waits.stands, leased.stands, mean.stands, alone.stands) == (None, None, None, INFINITY)
    assert (waits.settled, leased.settled, mean.settled, alone.settled) == (False, False, False, True)
    assert dict(waits.costs) == {"largest finish-time fairness": Fraction(1, 3)}
    assert not alone.costs


def test_who_is_not_on_the_type_that_it_asks_for_first_competes() -> None:
    # the fast type has room for one of two; both run, and in the next round nobody competes: what is said changes
    cluster = Cluster.of(["K80", "V100"], [1, 1])
    jobs = Jobs.of(gpus=[1, 1], work=[60, 60], types=["K80", "V100"], throughput=[[1, 2]] * 2)
    both = decide(Themis(), Queue.fresh(jobs, cluster, length=10))
    assert len(both.placements) == 2
    assert (both.stands, both.settled) == (None, False)
    assert dict(both.costs) == {"largest finish-time fairness": Fraction(1, 2)}
    first, second, *_ = Engine(Themis(), Trace(jobs), cluster, length=10, ask=True)
    assert (bool(first.costs), second.costs) == (True, {})


def test_where_nobody_competes_the_policy_is_asked_once() -> None:
    jobs = Jobs.of(gpus=[2, 2, 1], work=[100, 50, 70], types=["V100"], arrival=[0, 5, 12])
    mechanics = Mechanics(launch=Fraction(10))
    setting = Setting(SIX, Trace(jobs), mechanics, Fraction(10))
    engine = Engine(Themis(), setting.trace, SIX, length=10, mechanics=mechanics)
    assert [len(each.placed) for each in engine if each.placed] == [1, 1, 1]
    assert engine.snapshot().state == Tally()
    check_engine(Themis(), setting)
    check_engine(Themis(), setting.as_(float))


def test_rho_by_hand() -> None:
    queue = Queue.fresh(fig6(), SIX, length=10, now=20)
    queue = replace(queue, remaining=np.array([Fraction(30), Fraction(40), Fraction(20)], dtype=object))
    # (age + left) / (alone * N)
    rows = [0, 1, 2]
    assert finish_time_fairness(queue, rows, [3, 3, 3]) == [Fraction(50, 120), Fraction(60, 120), Fraction(40, 120)]
    assert finish_time_fairness(queue, [1], [Fraction(3, 2)]) == [1]
    # on 6/3 = 2 GPUs a gang of 3 takes half as long again; on 6/1 it takes what it takes alone
    assert finish_time_fairness(queue, [1], [3], gang_share=True) == [1]
    assert finish_time_fairness(queue, [1], [1], gang_share=True) == [Fraction(60, 40)]


def test_estimates_are_of_types_that_a_job_suits() -> None:
    jobs = Jobs.of(
        gpus=[1, 1, 1],
        work=[12] * 3,
        types=["K80", "V100"],
        throughput=[[1, 4], [2, 6], [0, 3]],
        memory=[8, 14, 14],
    )
    cluster = Cluster.of(["K80", "V100"], [1, 1], memory={"K80": 16, "V100": 12})
    queue = Queue.fresh(jobs, cluster, length=1)
    assert fastest(queue).tolist() == [4, 2, 0]
    on_both = replace(queue, last=(((0, 1), (1, 1)), (), ()), setup=np.array([Fraction(2)] * 3, dtype=object))
    assert until_free(on_both, 0) == 2 + 12


def test_who_sharing_delayed_most_is_offered_first() -> None:
    # both have waited 10 minutes; that is more to the short one
    jobs = Jobs.of(gpus=[6, 6, 6], work=[10, 100, 20], types=["V100"])
    rounds = played(Themis(knob=0), jobs)
    assert who(rounds)[:3] == ["j1", "j3", "j3"]
    # and who came first goes first while rho is the same
    assert rounds[0].costs["largest finish-time fairness"] == Fraction(1, 3)
    assert rounds[1].costs["largest finish-time fairness"] == Fraction(10 + 20, 20 * 2)


@pytest.mark.parametrize(("lease", "alternation"), [(20, [1, 1, 2, 2]), (15, [1, 1, 2, 2]), (10, [1, 2]), (30, None)])
def test_a_lease_is_kept_to_the_end_of_its_last_round(lease: int, alternation: list[int] | None) -> None:
    turns = {1: "j1", 2: "j2 j3"}
    expected = ["j1"] * 3 + ["j2 j3"] * 3 + ["j1", "j2 j3"] if alternation is None else None
    rounds = played(Themis(lease=lease), fig6())
    assert who(rounds) == (expected or [turns[each] for each in alternation or []] * (8 // len(alternation or [1])))
    assert rounds[0].ran[0].lease == lease


def test_the_worst_fraction_is_offered_and_the_rest_is_drawn() -> None:
    # one GPU of two goes to the worst job, by rho; the other to one of the others, by lot
    jobs = Jobs.of(gpus=[1] * 12, work=[1000] * 12, types=["V100"], arrival=[0] * 11 + [1])
    two = Cluster.uniform({"V100": (1, 2)})
    drawn = {seed: played(Themis(knob=1, seed=seed), jobs, two, rounds=12) for seed in range(3)}
    again = played(Themis(knob=1, seed=1), jobs, two, rounds=12)
    assert who(again) == who(drawn[1])
    assert len({tuple(who(rounds)) for rounds in drawn.values()}) == 3
    assert all("j1" in record.split() for record in (who(rounds)[0] for rounds in drawn.values()))
    ranked = played(Themis(knob=1, random_rest=False), jobs, two, rounds=5)
    assert who(ranked) == ["j1 j2", "j3 j4", "j5 j6", "j7 j8", "j10 j9"]
    assert who(ranked) == who(played(Themis(knob=0), jobs, two, rounds=5))


def test_contention_is_the_mean_over_the_rounds_that_a_job_has_seen() -> None:
    jobs = Jobs.of(gpus=[6, 6, 7], work=[40, 40, 1], types=["V100"], arrival=[0, 10, 10])
    rounds = played(Themis(average_contention=True), jobs, rounds=2)
    assert not rounds[0].costs  # nobody competes
    # j1: (10 + 30) / (40 * 3/2); j2: 40 / (40 * 2); j3 fits nowhere and does not count
    assert rounds[1].costs["largest finish-time fairness"] == Fraction(2, 3)
    assert rounds[1].after.state == Tally({"j1": (2, 3), "j2": (1, 2)})


@pytest.mark.parametrize("settings", counts(1, 3))
@pytest.mark.parametrize(
    "policy",
    [
        Themis(knob=0, lease=150),
        Themis(knob=1, seed=5, lease=Fraction(61, 2)),
        Themis(average_contention=True, gang_share=True, random_rest=False),
    ],
    ids=repr,
)
def test_the_other_readings_conform(policy: Themis, settings: int) -> None:
    round_suite(judge, settings=settings).run([policy]).require_complete()


@pytest.mark.parametrize("options", [{"knob": 2}, {"knob": -1}, {"lease": 0}, {"seed": -1}])
def test_options_that_cannot_be_meant(options: dict[str, int]) -> None:
    with pytest.raises(BadInput, match="themis"):
        Themis(**options)  # type: ignore[arg-type]
