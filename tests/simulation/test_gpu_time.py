"""Long-term GPU-time fairness of a run, against hand computation and against the equations written out."""

from __future__ import annotations

import random
from fractions import Fraction as F
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from drawn_seeds import seeds

from fairopt.models.baselines.srtf import ShortestRemainingTimeFirst
from fairopt.problem.cluster import Cluster
from fairopt.problem.jobs import Jobs
from fairopt.problem.trace import Outage, Trace
from fairopt.simulation import History, Mechanics, run
from fairopt.simulation.gpu_time import (
    Window,
    gpu_time,
    job_fairness,
    sharing_loss,
    tenant_fairness,
)
from fairopt.simulation.steps import StepFunction
from fairopt.testing.counted_steps import CountedSteps

#: The most steps: what takes time that grows with the square takes more.
STEPS = 20_000_000


def history(jobs: Jobs, cluster: Cluster, length: Any = 10, outages: tuple[Outage, ...] = (), **kw: Any) -> History:
    trace = Trace(jobs, outages)
    return History.of(trace, cluster, run(ShortestRemainingTimeFirst(), trace, cluster, length=length, **kw))


def of_gpus(gpus: int) -> Cluster:
    return Cluster.uniform({"G": (1, gpus)})


# -- step functions ------------------------------------------------------------------------------------------------
def test_steps() -> None:
    steps = StepFunction.of_changes([(F(5), 2), (F(1), 1), (F(5), -3), (F(8), 4), (F(9), 1), (F(9), -1)])
    assert (steps.times, steps.values) == ((1, 5, 8), (1, 0, 4))
    assert [steps.at(t) for t in (0, 1, 4, 5, 8, 100)] == [0, 1, 1, 0, 4, 4]
    assert steps.integral(F(0), F(10)) == 4 + 8
    assert steps.integral(F(3), F(3)) == steps.integral(F(4), F(2)) == 0
    assert StepFunction((), ()).integral(F(0), F(3)) == 0


def test_integrals_add_up() -> None:
    rng = random.Random(1)
    for _ in range(50):
        steps = StepFunction.of_changes([(F(rng.randint(0, 40), 3), rng.randint(-3, 3)) for _ in range(12)])
        a, b, c = sorted(F(rng.randint(0, 60), 4) for _ in range(3))
        assert steps.integral(a, b) + steps.integral(b, c) == steps.integral(a, c)
        fine = [steps.at(F(n, 12)) * F(1, 12) for n in range(int(a * 12), int(c * 12))]
        assert steps.integral(a, c) == sum(fine)
        floats = StepFunction.of_changes(zip(map(float, steps.times), np.diff(steps.values, prepend=0), strict=True))
        ends = [a, b, c]
        assert floats.integrals(float(a), np.array(ends, dtype=float)).tolist() == pytest.approx(
            [float(steps.integral(a, end)) for end in ends]
        )


# -- by hand -------------------------------------------------------------------------------------------------------
def test_one_tenant_by_hand() -> None:
    # 6 GPUs; SRTF runs the two of 3 GPUs first (20 units), then the one of 6 (30)
    done = history(Jobs.of(gpus=[6, 3, 3], work=[30, 20, 20], types=["G"]), of_gpus(6))
    of_jobs, _ = gpu_time(done, tenants=False)
    assert of_jobs["j1"] == (6 * 30, 20 * 2 + 30 * 6)  # a third of 6 for 20, then all of it
    assert of_jobs["j2"] == (3 * 20, 20 * 2)
    assert job_fairness(done, tenants=False) == {"j1": F(180, 220), "j2": F(3, 2), "j3": F(3, 2)}
    early = Window(F(0), F(10))
    assert job_fairness(done, tenants=False, window=early) == {"j1": 0, "j2": F(3, 2), "j3": F(3, 2)}
    # nothing was fair to those that are done
    late = Window(F(30), F(40))
    assert job_fairness(done, tenants=False, window=late) == {"j1": 1, "j2": None, "j3": None}
    assert sharing_loss(job_fairness(done, tenants=False)) == F(1, 3)
    assert sharing_loss({"a": None}) is None


def test_tenants_by_hand() -> None:
    # 8 GPUs, weights 3 and 1: quotas 6 and 2; A asks for 4 and then 1, B for 4
    jobs = Jobs.of(
        gpus=[4, 4, 1],
        work=[20, 30, 10],
        arrival=[0, 0, 20],
        tenant=["A", "B", "A"],
        tenant_weight={"A": 3},
        types=["G"],
    )
    done = history(jobs, of_gpus(8))
    assert tenant_fairness(done) == {"A": F(4 * 20 + 10, 4 * 20 + 10), "B": F(4 * 30, 2 * 30)}
    assert tenant_fairness(done, demand_cap=False) == {"A": F(90, 6 * 30), "B": 2}
    assert job_fairness(done) == {"j1": 1, "j2": 2, "j3": 1}
    for window in (Window(0, 20), Window(20, 30)):
        assert tenant_fairness(done, window=window) == {"A": 1, "B": 2}


def test_the_two_definitions_differ_for_one_tenant() -> None:
    """Eq. (13) divides what the tenant asks for where that is less than all GPUs, Eq. (3) divides all GPUs."""
    done = history(Jobs.of(gpus=[4, 2], work=[10, 10], types=["G"]), of_gpus(8))
    assert gpu_time(done, tenants=False)[0]["j1"] == (40, 40)  # min(4, 8/2)
    assert gpu_time(done)[0]["j1"] == (40, 30)  # min(4, 6/2)
    assert gpu_time(done, demand_cap=False)[0]["j1"] == (40, 40)


def test_what_is_not_there_has_no_fairness() -> None:
    jobs = Jobs.of(gpus=[9, 1, 2], work=[1, 10, 10], tenant=["A", "B", "C"], arrival=[0, 0, 500], types=["G"])
    trace = Trace(jobs)
    begun = History.of(trace, of_gpus(4), run(ShortestRemainingTimeFirst(), trace, of_gpus(4), length=10, rounds=1))
    assert job_fairness(begun) == {"j1": None, "j2": 1}  # too large for the cluster; the third has not come
    assert tenant_fairness(begun) == {"A": None, "B": 1, "C": None}
    assert job_fairness(begun, unschedulable=True, tenants=False) == {"j1": 0, "j2": 1}
    assert gpu_time(begun, tenants=False, unschedulable=True)[0]["j1"] == (0, 20)
    none = History.of(trace, of_gpus(4), ())
    assert set(tenant_fairness(none).values()) == {None}
    assert gpu_time(begun, tenants=False)[1] == {}  # all jobs share as one tenant's


def test_hosts_that_fail() -> None:
    outages = (Outage("G-1", F(4), F(25)), Outage("G-1", F(20), F(30)), Outage("G-2", F(35), float("inf")))
    jobs = Jobs.of(gpus=[2, 2], work=[50, 50], types=["G"])
    done = history(jobs, Cluster.uniform({"G": (2, 2)}), outages=outages)
    [owner] = jobs.tenants
    there = [gpu_time(done, Window(n, n + 1), demand_cap=False, working=True)[1][owner][1] for n in range(40)]
    assert there == [4] * 4 + [2] * 26 + [4] * 5 + [2] * 5
    assert gpu_time(done, Window(0, 40), demand_cap=False)[1][owner][1] == 4 * 40
    # GPUs held until the failure count, though the work was lost
    lost = next(ran for ran in done.ran["j1"] if ran.lost)
    assert (lost.end, lost.progress) == (4, 0)
    assert gpu_time(done, Window(F(0), F(10)), working=True)[0]["j1"][0] == 2 * 4
    # j2 is done at 60 and j1 at 100; half of 4, 2, 4 and 2 GPUs, then the 2 that are left
    assert (done.completion["j2"], done.completion["j1"]) == (60, 100)
    assert gpu_time(done, working=True)[0]["j1"] == (2 * 4 + 2 * 10 + 2 * 40, 2 * 4 + 1 * 26 + 2 * 5 + 1 * 25 + 2 * 40)


# -- the equations written out -------------------------------------------------------------------------------------
def drawn(rng: random.Random) -> tuple[Jobs, Cluster]:
    count = rng.randint(1, 8)
    tenants = [rng.choice("ABC") for _ in range(count)]
    jobs = Jobs.of(
        gpus=[rng.choice([1, 1, 2, 3, 4, 9]) for _ in range(count)],
        work=[rng.randint(1, 60) for _ in range(count)],
        arrival=sorted(F(rng.randint(0, 120), rng.choice([1, 2])) for _ in range(count)),
        tenant=tenants,
        tenant_weight={name: rng.randint(1, 3) for name in set(tenants)},
        weight=[rng.choice([1, 1, 2, F(1, 2)]) for _ in range(count)],
        types=["G"],
    )
    return jobs, Cluster.uniform({"G": (2, rng.randint(2, 3))})


def by_the_equations(done: History, cap: bool, tenants: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the fairness of jobs and tenants, by summing Eq. (1)-(16) over all intervals between events."""
    jobs, whole = done.trace.jobs, int(done.cluster.gpus.sum())
    rows = [row for row, name in enumerate(jobs.names) if jobs.arrival[row] < done.until and jobs.gpus[row] <= whole]
    end = {row: done.completion.get(jobs.names[row]) or done.until for row in rows}
    cuts = {done.until, *jobs.arrival, *end.values()}
    cuts |= {moment for rounds in done.ran.values() for ran in rounds for moment in (ran.begin, ran.end)}
    times = sorted(cut for cut in cuts if cut <= done.until)
    held: dict[Any, F] = {}
    fair: dict[Any, F] = {}
    for since, until in pairwise(times):
        width = until - since
        active = [row for row in rows if jobs.arrival[row] <= since < end[row]]
        runs = {ran.job: ran.gpus for record in done.rounds for ran in record.ran if ran.begin <= since < ran.end}
        for number, name in enumerate(jobs.tenants):
            mine = [row for row in active if jobs.tenant[row] == number]
            asked = sum(int(jobs.gpus[row]) for row in mine)
            own = whole * jobs.tenant_weight[number] / sum(jobs.tenant_weight)
            share = min(asked, own) if cap else own
            fair[name] = fair.get(name, F(0)) + share * width
            held[name] = held.get(name, F(0)) + width * sum(runs.get(jobs.names[row], 0) for row in mine)
            among = mine if tenants else active
            for row in mine:
                part = (share if tenants else whole) * jobs.weight[row] / sum(jobs.weight[other] for other in among)
                fair[row] = fair.get(row, F(0)) + width * min(int(jobs.gpus[row]), part)
                held[row] = held.get(row, F(0)) + width * runs.get(jobs.names[row], 0)
    of = {key: held[key] / value if value else None for key, value in fair.items()}
    of_jobs = {name: of.get(row) for row, name in enumerate(jobs.names) if name in done.ran}
    return of_jobs, {name: of.get(name) for name in jobs.tenants}


@pytest.mark.parametrize("seed", seeds(9, 25))
def test_equals_the_equations(seed: int) -> None:
    rng = random.Random(seed)
    jobs, cluster = drawn(rng)
    mechanics = Mechanics(restart=F(rng.randint(0, 4)), launch=F(1))
    done = history(jobs, cluster, length=rng.choice([5, 7]), mechanics=mechanics, rounds=rng.choice([None, 6]))
    for cap in (True, False):
        of_jobs, of_tenants = by_the_equations(done, cap, True)
        assert job_fairness(done, demand_cap=cap) == of_jobs
        assert tenant_fairness(done, demand_cap=cap) == of_tenants
        assert job_fairness(done, tenants=False, demand_cap=cap) == by_the_equations(done, cap, False)[0]


@pytest.mark.parametrize("seed", range(5))
def test_floats_agree(seed: int) -> None:
    jobs, cluster = drawn(random.Random(seed))
    exact = history(jobs, cluster)
    rough = history(jobs.as_(float), cluster)
    for job, rho in job_fairness(exact).items():
        other = job_fairness(rough)[job]
        assert other == rho if rho is None else other == pytest.approx(float(rho))
    assert tenant_fairness(rough).keys() == tenant_fairness(exact).keys()


def test_quotas_make_the_cluster_and_fair_shares_never_exceed_it() -> None:
    for seed in range(10):
        jobs, cluster = drawn(random.Random(seed))
        done = history(jobs, cluster)
        whole = int(cluster.gpus.sum())
        _, quotas = gpu_time(done, Window(F(0), F(1)), demand_cap=False)
        assert sum(fair for _, fair in quotas.values()) == whole
        for moment in {F(n) for n in range(0, int(done.until), 3)}:
            of_jobs, capped = gpu_time(done, Window(moment, moment + 1))
            tenants = {name: fair for name, (_, fair) in capped.items()}
            assert sum(tenants.values()) <= whole
            for number, name in enumerate(jobs.tenants):
                mine = [job for row, job in enumerate(jobs.names) if jobs.tenant[row] == number]
                assert sum(of_jobs[job][1] for job in mine if job in of_jobs) <= tenants[name]


@pytest.mark.slow
def test_ten_thousand_rounds_take_few_steps() -> None:
    rng = random.Random(7)
    count = 250
    jobs = Jobs.of(
        gpus=[rng.choice([1, 1, 1, 2, 4, 8]) for _ in range(count)],
        work=[rng.randint(1, 300) for _ in range(count)],
        arrival=sorted(rng.randint(0, 2000) for _ in range(count)),
        tenant=[rng.choice("ABCDEFGH") for _ in range(count)],
        types=["G"],
    )
    done = history(jobs, Cluster.uniform({"G": (8, 8)}), length=2)
    assert sum(len(rounds) for rounds in done.ran.values()) > 10_000
    with CountedSteps(STEPS):
        fairness = job_fairness(done)
        tenants = tenant_fairness(done)
    assert len(fairness) == count
    assert None not in {*fairness.values(), *tenants.values()}
