"""ASTRAEA's two-phase selection: by hand, against the algorithm written out, and under everything that can happen."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction as F
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt.backends import Highs
from fairopt.errors import BadInput, NotCapable
from fairopt.models.ltgf.ltgf import (
    LongTermGpuTimeFairness,
    new_jobs_first,
    renew_long_jobs,
    rho_order,
    rho_orders,
    urgent_first,
)
from fairopt.policy import decide
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.queue import Queue, Spots
from fairopt.problem.trace import Outage, Trace
from fairopt.program import INFINITY
from fairopt.proofs.claims.ltgf.literal import replay
from fairopt.simulation import Consolidated, History, Mechanics, Request, run, snapshot_from, snapshot_text
from fairopt.simulation.gpu_time import Window, job_fairness, tenant_fairness
from fairopt.simulation.placement import fewest_hosts, take

LTGF = LongTermGpuTimeFairness


def played(policy: LTGF, jobs: Jobs, cluster: Cluster, length: int = 10, **kw: Any) -> History:
    trace = Trace(jobs, kw.pop("outages", ()))
    return History.of(trace, cluster, run(policy, trace, cluster, length=length, **kw))


def who(history: History) -> list[list[str]]:
    return [[ran.job for ran in record.ran] for record in history.rounds]


def of_gpus(*hosts: int) -> Cluster:
    return Cluster.of(["G"] * len(hosts), list(hosts))


def figure_6(tenants: Sequence[str] | None = None, gpus: Sequence[int] = (6, 3, 3)) -> Jobs:
    return Jobs.of(gpus=gpus, work=[40] * 3, types=["G"], tenant=tenants)


# -- by hand -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("tenants", [None, ["A", "B", "C"]])
@pytest.mark.parametrize("adjusted", [False, True])
def test_figure_6(tenants: Sequence[str] | None, adjusted: bool) -> None:
    history = played(LTGF(adjusted=adjusted), figure_6(tenants), of_gpus(6))
    small = ["j2", "j3"]
    assert who(history) == [["j1"], small, small, ["j1"], small, small, ["j1"], ["j1"]]
    # a third of all GPU time each, in the first hour
    assert set(job_fairness(history, tenants=False, window=Window(0, 60)).values()) == {1}


def test_a_job_that_does_not_fit_holds_its_tenant_up() -> None:
    jobs = figure_6(gpus=(3, 6, 3))
    assert who(played(LTGF(), jobs, of_gpus(6)))[:2] == [["j1"], ["j2"]]  # the third would have fitted beside the first
    assert who(played(LTGF(backfill=True), jobs, of_gpus(6)))[:2] == [["j1", "j3"], ["j2"]]
    apart = figure_6(["A", "B", "C"], (3, 6, 3))
    history = played(LTGF(), apart, of_gpus(6))
    assert who(history)[:2] == [["j1", "j3"], ["j2"]]  # another tenant's is not held up
    schedule = decide(LTGF(), Queue.fresh(apart, of_gpus(6), length=10))
    assert schedule.notes == {1: "selected, and did not fit"}


def test_eq_16_credits_who_lent() -> None:
    """A used 1 of its 4 GPUs for half an hour; after a round of its large job it is ahead of B by (8), not by (16)."""
    jobs = Jobs.of(
        gpus=[1, 6, 6],
        work=[30, 60, 90],
        arrival=[0, 0, 30],
        tenant=["A", "B", "A"],
        types=["G"],
        names=["a", "B", "A"],
    )
    both = [["a", "B"]] * 3
    by_8, by_16 = (who(played(LTGF(adjusted=adjusted), jobs, of_gpus(8))) for adjusted in (False, True))
    # at 40: A (30+60)/(30+40) or 90/160; B 180/160 either way
    assert by_8[:5] == [*both, ["A"], ["B"]]
    assert by_16[:5] == [*both, ["A"], ["A"]]


def test_the_lease_is_added_to_what_a_tenant_held() -> None:
    # A leads after its first job of the round by as much as the lease is long, so B gets the other GPUs
    jobs = Jobs.of(gpus=[2, 2, 2, 2], work=[40] * 4, tenant=["A", "A", "B", "B"], types=["G"])
    assert who(played(LTGF(), jobs, of_gpus(4)))[0] == ["j1", "j3"]
    heavy = replace(jobs, tenant_weight=np.array([F(3), F(1)], dtype=object))
    # A is due 3 and B 1: 20/3 < 20/1, so A is ahead of B twice after the first of each
    assert who(played(LTGF(), heavy, of_gpus(8)))[0] == ["j1", "j2", "j3", "j4"]
    assert who(played(LTGF(), heavy, of_gpus(6)))[0] == ["j1", "j2", "j3"]


def test_leases_are_kept_renewed_and_lost() -> None:
    # 2 GPUs; each job holds for two rounds; whoever is served least gets the next lease
    jobs = Jobs.of(gpus=[2, 2], work=[80, 80], types=["G"])
    history = played(LTGF(lease=20), jobs, of_gpus(2))
    assert [names[0] for names in who(history)[:6]] == ["j1", "j1", "j2", "j2", "j1", "j1"]
    assert history.rounds[0].ran[0].lease == 20
    assert [ran.change.value for record in history.rounds[:5] for ran in record.ran] == [
        "start", "stay", "start", "stay", "resume",
    ]  # fmt: skip
    # a lease that ends within a round holds until the next
    assert [names[0] for names in who(played(LTGF(lease=15), jobs, of_gpus(2)))[:4]] == ["j1", "j1", "j2", "j2"]
    # nobody else wants the GPUs: renewed, in place
    alone = played(LTGF(lease=20), Jobs.of(gpus=[2], work=[70], types=["G"]), of_gpus(2, 2))
    assert {ran.change.value for record in alone.rounds[1:] for ran in record.ran} == {"stay"}
    assert [record.ran[0].lease for record in alone.rounds] == [20, 20, 40, 40, 60, 60, 80]


def test_zero_over_zero() -> None:
    order = [
        rho_order(F(0), F(0), F(1)),
        rho_order(F(0), F(5), F(1)),
        rho_order(F(1), F(2), F(1)),
        rho_order(F(2), F(0), F(4)),
        rho_order(F(2), F(0), F(1)),
    ]
    assert sorted(order) == order
    assert order[0] == order[1] == (0, 0)
    assert rho_order(F(2), F(0), F(0)) == (INFINITY, INFINITY)


def test_preferences() -> None:
    jobs = Jobs.of(gpus=[2] * 3, work=[100, 100, 30], arrival=[0, 0, 30], priority=[0, 7, 0], types=["G"])
    cluster = of_gpus(2)

    def first(*preferences: Any, rounds: int = 6) -> list[str]:
        return [names[0] for names in who(played(LTGF(preferences=preferences), jobs, cluster, rounds=rounds))]

    # at 50 the first two held 40 and were due 30 + 2/3 * 20; the third held 20 and was due 2/3 * 20
    assert first() == ["j1", "j2", "j1", "j3", "j2", "j1"]
    assert first(new_jobs_first) == first()
    assert first(urgent_first) == ["j2"] * 6
    assert first(partial(renew_long_jobs, terms=2)) == ["j1", "j2", "j1", "j1", "j1", "j1"]
    assert first(new_jobs_first, partial(renew_long_jobs, terms=1)) == ["j1", "j2", "j2", "j3", "j3", "j3"]
    with pytest.raises(BadInput, match="at least 1"):
        first(partial(renew_long_jobs, terms=0))


def test_bad_options() -> None:
    with pytest.raises(BadInput, match="ltgf, lease"):
        LTGF(lease=0)
    with pytest.raises(BadInput, match="lease"):
        LTGF(lease="soon")
    queue = Queue.fresh(figure_6(), of_gpus(6), length=10)
    with pytest.raises(NotCapable, match="ltgf"):
        decide(LTGF(), queue, Highs())
    evaluated = LTGF.as_evaluated()
    assert (evaluated.lease, evaluated.adjusted, evaluated.preferences) == (900, True, (new_jobs_first,))


# -- against the algorithm written out -----------------------------------------------------------------------------
def drawn(rng: random.Random, *, whole_rounds: bool = False) -> Jobs:
    count = rng.randint(2, 9)
    tenants = [rng.choice("ABC") for _ in range(count)]
    return Jobs.of(
        gpus=[rng.choice([1, 1, 2, 2, 3, 4, 6, 7]) for _ in range(count)],
        work=[10 * rng.randint(1, 6) if whole_rounds else rng.randint(1, 60) for _ in range(count)],
        arrival=sorted(rng.choice([0, 0, F(rng.randint(0, 500), 7)]) for _ in range(count)),
        tenant=tenants,
        tenant_weight={name: rng.randint(1, 3) for name in set(tenants)},
        weight=[rng.choice([1, 1, 2]) for _ in range(count)],
        types=["G"],
    )


def test_new_jobs_go_first_anyway() -> None:
    """A job that never ran has rho 0 and one that ran has more: Sec. 5.2.1's first preference changes nothing."""
    for seed in range(15):
        jobs = drawn(random.Random(seed))
        alike = [
            played(policy, jobs, of_gpus(4, 2)).rounds
            for policy in (LTGF(lease=20), LTGF(lease=20, preferences=(new_jobs_first,)))
        ]
        assert alike[0] == alike[1]


@pytest.mark.parametrize("seed", seeds(14, 40))
def test_selects_as_the_algorithm_does(seed: int) -> None:
    rng = random.Random(seed)
    policy = LTGF(lease=rng.choice([None, 10, 25, 40]), adjusted=rng.random() < 0.5)
    outages = tuple(
        Outage(f"h{number}", F(begin := rng.randint(1, 80)), F(begin + rng.randint(1, 40)))
        for number in (1, 2)
        if rng.random() < 0.5
    )
    mechanics = Mechanics(restart=F(rng.randint(0, 3)))
    rounds = 0
    for record, ours, theirs in replay(policy, Trace(drawn(rng), outages), of_gpus(4, 2), 10, mechanics):
        assert sorted(ours) == sorted(theirs), record.index
        rounds += 1
    assert rounds


def test_the_books_are_the_measures() -> None:
    """Where jobs end with rounds, what the policy reckons with is what a history measures up to the same instant."""
    compared = 0
    for seed in range(12):
        rng = random.Random(seed)
        adjusted = seed % 2 == 0
        history = played(LTGF(adjusted=adjusted), drawn(rng, whole_rounds=True), of_gpus(4, 2))
        for number in range(1, len(history.rounds)):
            before, record = History(history.trace, history.cluster, history.rounds[:number]), history.rounds[number]
            if before.until != record.begin:
                continue
            compared += 1
            books = record.after.state
            measured = tenant_fairness(before, demand_cap=not adjusted)
            assert {name: books.held[name] / due if due else None for name, due in books.due.items()} == measured
            of_jobs = job_fairness(before, demand_cap=not adjusted)
            kept = {}
            for name, held, due in zip(books.jobs, books.job_held, books.job_due, strict=True):
                if name in of_jobs:
                    assert of_jobs[name] == held / due
                kept |= {name: held / due} if due else {}
            assert record.costs.get("least job fairness") == min(kept.values(), default=None)
    assert compared > 40


def test_many_degrees_at_once_are_those_of_each() -> None:
    given = [[F(each) for each in one] for one in product((0, 1, 3), (0, 2), (0, 5))]
    for columns in (np.array(given, dtype=object).T, np.array(given, dtype=float).T):
        told = zip(*rho_orders(*columns), strict=True)
        assert [tuple(each) for each in told] == [rho_order(*each) for each in columns.T.tolist()]


# -- whatever happens ----------------------------------------------------------------------------------------------
def mixed(rng: random.Random) -> tuple[Trace, Cluster]:
    cluster = Cluster.of(["K", "K", "V", "V"], [4, 2, 4, 1])
    count = rng.randint(1, 10)
    jobs = Jobs.of(
        gpus=[rng.choice([1, 1, 2, 4, 6, 9]) for _ in range(count)],
        work=[rng.randint(1, 80) for _ in range(count)],
        throughput=[rng.choice([[1, 2], [1, 0], [0, 1], [3, 1]]) for _ in range(count)],
        arrival=sorted(F(rng.randint(0, 90), 2) for _ in range(count)),
        tenant=[rng.choice("ABC") for _ in range(count)],
        types=["K", "V"],
    )
    outages = [
        Outage(f"h{rng.randint(1, 4)}", F(begin := rng.randint(0, 60)), F(begin + rng.randint(1, 50))) for _ in range(2)
    ]
    return Trace(jobs, tuple(outages)), cluster


@pytest.mark.parametrize("seed", seeds(7, 20))
def test_resumes_and_agrees_in_floats(seed: int) -> None:
    rng = random.Random(seed)
    trace, cluster = mixed(rng)
    policy = LTGF(
        lease=rng.choice([None, 12, 30]),
        adjusted=rng.random() < 0.5,
        backfill=rng.random() < 0.5,
        preferences=rng.choice([(), (new_jobs_first,), (partial(renew_long_jobs, terms=2), urgent_first)]),
    )
    whole = list(run(policy, trace, cluster, length=7))  # `run` refuses every broken schedule
    assert {ran.job for each in whole for ran in each.ran if ran.completed} == set(trace.jobs.names) - {
        name for each in whole for name in each.unschedulable
    }
    for record in whole:
        left = set(record.after.state.jobs)
        assert left <= {*record.waiting, *(ran.job for ran in record.ran)}  # who is gone leaves no account
    for stop in {1, len(whole) // 2}:
        text = snapshot_text(whole[stop - 1].after) if stop else ""
        if text:
            again = list(run(policy, trace, cluster, length=7, after=snapshot_from(text, policy.states)))
            assert again == whole[stop:]
    rough = list(run(policy, trace.as_(float), cluster, length=7))
    assert [ran.job for each in rough[:1] for ran in each.ran] == [ran.job for each in whole[:1] for ran in each.ran]


def test_a_lost_cluster_stalls_nobody_else() -> None:
    """The wide job can run on no type while its host is down; its tenant goes on with the others."""
    jobs = Jobs.of(gpus=[6, 2], work=[10, 30], types=["G"])
    history = played(LTGF(), jobs, of_gpus(4, 2), outages=(Outage("h1", F(0), F(20)),))
    assert who(history)[:3] == [["j2"], ["j2"], ["j1"]]


class OneHost(Consolidated):
    """A placement that takes no gang apart."""

    def place(self, queue: Queue, requests: Sequence[Request], free: Any) -> Mapping[int, Spots]:
        left, out = free.copy(), {}
        for request in requests:
            spots = fewest_hosts(queue, request, left)
            if len(spots) == 1:
                take(left, spots)
                out[request.row] = spots
        return out


def test_a_placement_that_asks_for_more_than_a_count() -> None:
    """Line 10: a job that the placement refuses does not count as selected, and its tenant is passed over."""
    jobs = Jobs.of(gpus=[3, 3, 1, 1], work=[20] * 4, tenant=["A", "B", "B", "C"], types=["G"])
    history = played(LTGF(placement=OneHost()), jobs, of_gpus(4, 2), rounds=1)
    assert who(history) == [["j1", "j4"]]
    assert who(played(LTGF(placement=OneHost(), backfill=True), jobs, of_gpus(4, 2), rounds=1)) == [["j1", "j3", "j4"]]
    assert who(played(LTGF(), jobs, of_gpus(4, 2), rounds=1)) == [["j1", "j2"]]


def test_types() -> None:
    cluster = Cluster.of(["K", "V"], [2, 2])
    jobs = Jobs.of(gpus=[2, 2], work=[60, 60], throughput=[[1, 2], [1, 3]], types=["K", "V"])
    history = played(LTGF(), jobs, cluster)
    # the first takes the fast type, the other what is left; both stay there when their leases are renewed
    assert [[ran.types for ran in record.ran] for record in history.rounds][:3] == [[("V",), ("K",)]] * 3
