"""FIFO with quotas and Tiresias: cases by hand, and what must hold in every round of sampled runs."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from drawn_seeds import counts

from fairopt.errors import BadInput, FairoptError
from fairopt.models.baselines.fifo_quota import FifoQuota, quotas
from fairopt.models.baselines.tiresias import LeastAttainedService, ShortestServiceQueues
from fairopt.policy import Policy
from fairopt.problem import Cluster, Jobs, Outage, Trace
from fairopt.proofs.verifier.runs import decide as judge
from fairopt.simulation import Round, run
from fairopt.testing.round_samples import sample_settings
from fairopt.testing.round_suite import round_suite

ONE = Cluster.uniform({"V100": (1, 1)})
FOUR = Cluster.uniform({"V100": (1, 4)})
TWO_TYPES = Cluster.uniform({"K80": (1, 1), "V100": (1, 1)})


def played(policy: Policy, jobs: Jobs, cluster: Cluster, length: int = 10, **more: object) -> list[Round]:
    outages = more.pop("outages", ())
    return list(run(policy, Trace(jobs, outages), cluster, length=length, **more))  # type: ignore[arg-type]


def who(rounds: list[Round]) -> list[str]:
    """Return who ran in each round, names in a row."""
    return [" ".join(sorted(ran.job for ran in record.ran)) for record in rounds]


@pytest.mark.parametrize("settings", counts(1, 3))
@pytest.mark.parametrize(
    "policy",
    [
        FifoQuota(pooled=True),
        FifoQuota(overtake=True),
        LeastAttainedService(thresholds=None),
        LeastAttainedService(thresholds=(200, 900), promote=Fraction(3, 2)),
        LeastAttainedService(thresholds=(100,), by_start=True),
        ShortestServiceQueues(random=True, seed=3),
        ShortestServiceQueues(gpu_time=False, per_gpu=True),
    ],
    ids=repr,
)
def test_the_other_readings_conform(policy: Policy, settings: int) -> None:
    round_suite(judge, settings=settings).run([policy]).require_complete()


# ---------------------------------------------------------------- FIFO with quotas


def test_quotas_by_hand() -> None:
    assert quotas([1, 1, 2], 9) == (2, 2, 5)
    assert quotas([1, 3], 2) == (0, 2)  # halves both: to the larger weight
    assert quotas([1, 1, 1], 2) == (1, 1, 0)
    assert quotas([0.5, 1.5], 8) == (2, 6)


def test_quotas_are_whole_add_up_and_lie_next_to_the_proportion() -> None:
    random = Random(1)
    for _ in range(300):
        weights = [Fraction(random.randint(1, 9), random.randint(1, 4)) for _ in range(random.randint(1, 9))]
        gpus = random.randint(1, 40)
        given = quotas(weights, gpus)
        assert sum(given) == gpus
        assert all(abs(one - weight * gpus / sum(weights)) < 1 for one, weight in zip(given, weights, strict=True))


def test_a_tenant_waits_before_its_own_quota_while_the_other_half_is_idle() -> None:
    jobs = Jobs.of(
        gpus=[2, 2, 1, 1], work=[20, 10, 10, 10], types=["V100"], tenant=list("AAAB"), arrival=[0, 0, 0, 1000]
    )
    assert who(played(FifoQuota(), jobs, FOUR)) == ["j1", "j1", "j2", "j3", "j4"]


def test_head_of_line_blocks_unless_it_may_be_overtaken() -> None:
    six = Cluster.uniform({"V100": (1, 6)})
    jobs = Jobs.of(
        gpus=[2, 2, 1, 1], work=[20, 10, 10, 10], types=["V100"], tenant=list("AAAB"), arrival=[0, 0, 0, 1000]
    )
    assert who(played(FifoQuota(), jobs, six)) == ["j1", "j1", "j2 j3", "j4"]
    assert who(played(FifoQuota(overtake=True), jobs, six)) == ["j1 j3", "j1", "j2", "j4"]


def test_a_job_larger_than_its_quota_borrows_what_is_idle_or_is_reported_for_ever() -> None:
    jobs = Jobs.of(gpus=[1, 3, 2], work=[20, 20, 30], types=["V100"], tenant=list("AAB"))
    lent = played(FifoQuota(), jobs, FOUR)
    # j2 waits until its tenant runs nothing, and until B has left enough
    assert who(lent) == ["j1 j3", "j1 j3", "j3", "j2", "j2"]
    assert lent[0].notes == {"j2": "larger than the quota of 'A': V100: needs 3 GPUs of 2"}
    strict = played(FifoQuota(borrow=False), jobs, FOUR, rounds=6)
    assert who(strict) == ["j1 j3", "j1 j3", "j3", "", "", ""]
    assert all("j2" in record.notes and "j2" in record.waiting for record in strict)


def test_quotas_are_of_each_type_or_of_gpus_of_any() -> None:
    cluster = Cluster.uniform({"K80": (1, 2), "V100": (1, 2)})
    jobs = Jobs.of(
        gpus=[1, 1, 1],
        work=[10, 10, 10],
        types=["K80", "V100"],
        throughput=[[1, 2]] * 3,
        tenant=list("AAB"),
    )
    apart = played(FifoQuota(), jobs, cluster, rounds=1)
    assert {ran.job: ran.types for ran in apart[0].ran} == {"j1": ("V100",), "j2": ("K80",), "j3": ("V100",)}
    pooled = played(FifoQuota(pooled=True), jobs, cluster, rounds=1)
    assert {ran.job: ran.types for ran in pooled[0].ran} == {"j1": ("V100",), "j2": ("V100",), "j3": ("K80",)}


@pytest.mark.parametrize("settings", counts(10, 25))
@pytest.mark.parametrize("pooled", [False, True])
def test_quotas_are_exceeded_by_a_sole_borrower_only(pooled: bool, settings: int) -> None:
    borrowed = 0
    for setting in sample_settings(settings, seed=11):
        jobs, cluster = setting.trace.jobs, setting.cluster
        weights = jobs.tenant_weight.tolist()
        row = {name: at for at, name in enumerate(jobs.names)}
        for borrow in (False, True):
            policy = FifoQuota(pooled=pooled, borrow=borrow)
            for record in run(policy, setting.trace, cluster, length=60, rounds=60):
                for tenant in range(len(jobs.tenants)):
                    own = [ran for ran in record.ran if jobs.tenant[row[ran.job]] == tenant]
                    used = {name: sum(ran.gpus for ran in own if ran.types == (name,)) for name in cluster.types}
                    quota = {
                        name: quotas(weights, int(size))[tenant]
                        for name, size in zip(cluster.types, cluster.capacity, strict=True)
                    }
                    if pooled:
                        used, quota = {"": sum(used.values())}, {"": quotas(weights, sum(cluster.capacity))[tenant]}
                    over = [name for name in used if used[name] > quota[name]]
                    assert borrow or not over
                    for name in over:
                        borrowed += 1
                        assert len([ran for ran in own if pooled or ran.types == (name,)]) == 1
    assert borrowed > settings / 2


# ---------------------------------------------------------------- Tiresias-L


def test_least_attained_service_alternates() -> None:
    jobs = Jobs.of(gpus=[1, 1], work=[30, 30], types=["V100"])
    assert who(played(LeastAttainedService(thresholds=None), jobs, ONE)) == ["j1", "j2"] * 3


def test_queues_make_steps_of_it() -> None:
    jobs = Jobs.of(gpus=[1, 1], work=[40, 40], types=["V100"])
    rounds = played(LeastAttainedService(thresholds=(20,)), jobs, ONE)
    assert who(rounds) == ["j1", "j1", "j2", "j2", "j1", "j1", "j2", "j2"]
    assert who(played(LeastAttainedService(thresholds=()), jobs, ONE)) == ["j1"] * 4 + ["j2"] * 4


def test_service_has_two_dimensions() -> None:
    # 40 GPU-seconds after one round: the gang falls behind the small jobs that had 10 each
    jobs = Jobs.of(gpus=[4, 1, 1], work=[20, 30, 30], types=["V100"])
    rounds = played(LeastAttainedService(thresholds=(20,)), jobs, FOUR)
    assert who(rounds) == ["j1", "j2 j3", "j2 j3", "j1", "j2 j3"]


def test_a_starving_job_is_promoted() -> None:
    jobs = Jobs.of(gpus=[1] * 8, work=[40] + [10] * 7, types=["V100"], arrival=[0, *range(20, 90, 10)])
    never = who(played(LeastAttainedService(thresholds=(20,)), jobs, ONE))
    assert never == ["j1", "j1", "j2", "j3", "j4", "j5", "j6", "j7", "j8", "j1", "j1"]
    # it ran 20 and has waited 40 at 60: back to the front, for 20 more, which it does not outlive
    promoted = who(played(LeastAttainedService(thresholds=(20,), promote=2), jobs, ONE))
    assert promoted == ["j1", "j1", "j2", "j3", "j4", "j5", "j1", "j1", "j6", "j7", "j8"]


def test_first_in_by_arrival_or_by_start() -> None:
    jobs = Jobs.of(gpus=[1, 2, 1], work=[20, 10, 40], types=["V100"])
    two = Cluster.uniform({"V100": (1, 2)})
    assert who(played(LeastAttainedService(), jobs, two)) == ["j1 j3", "j1 j3", "j2", "j3", "j3"]
    assert who(played(LeastAttainedService(by_start=True), jobs, two)) == ["j1 j3", "j1 j3", "j3", "j3", "j2"]
    assert who(played(LeastAttainedService(skip=False), jobs, two)) == ["j1", "j1", "j2", "j3", "j3", "j3", "j3"]


@pytest.mark.parametrize("traces", counts(10, 30))
def test_nobody_with_less_attained_waits_for_somebody_with_more(traces: int) -> None:
    random = Random(2)
    for _ in range(traces):
        count = random.randint(2, 12)
        jobs = Jobs.of(
            gpus=[1] * count,
            work=[random.randint(1, 90) for _ in range(count)],
            types=["V100"],
            arrival=[random.randint(0, 60) for _ in range(count)],
        )
        cluster = Cluster.uniform({"V100": (random.randint(1, 3), 1)})
        attained = dict.fromkeys(jobs.names, Fraction(0))
        for record in played(LeastAttainedService(thresholds=None), jobs, cluster):
            most = max((attained[ran.job] for ran in record.ran), default=0)
            assert all(attained[name] >= most for name in record.waiting)
            for ran in record.ran:
                attained[ran.job] += ran.gpus * (ran.end - ran.begin)


def test_a_job_stays_on_its_type_while_it_is_served() -> None:
    jobs = Jobs.of(gpus=[1, 1], work=[40, 60], types=["K80", "V100"], throughput=[[1, 2]] * 2)
    rounds = played(LeastAttainedService(), jobs, TWO_TYPES)
    assert [ran.types for record in rounds for ran in record.ran if ran.job == "j2"] == [("K80",)] * 6
    assert not any(record.migrations for record in rounds)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: LeastAttainedService(thresholds=(20, 10)), "that rise"),
        (lambda: LeastAttainedService(thresholds=(0,)), "that rise"),
        (lambda: LeastAttainedService(promote=0), "above 0, or None"),
        (lambda: ShortestServiceQueues(seed=-1), "a whole number from 0"),
    ],
)
def test_options_that_cannot_be_meant(make: object, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make()  # type: ignore[operator]


# ---------------------------------------------------------------- Tiresias, as FFT adapted it


def four_jobs() -> Jobs:
    return Jobs.of(gpus=[1] * 4, work=[40] * 4, types=["K80", "V100"], throughput=[[1, 2]] * 4)


def test_each_joins_the_queue_with_least_left_and_stays_in_it() -> None:
    rounds = played(ShortestServiceQueues(), four_jobs(), TWO_TYPES, length=20)
    # sums (K80, V100) when each joins: (0, 0), (0, 20), (40, 20), (40, 40); equal sums go to the faster
    assert who(rounds) == ["j1 j2", "j2 j3", "j4"]
    assert {ran.types for record in rounds for ran in record.ran if ran.job == "j4"} == {("V100",)}
    assert dict(rounds[0].after.state.of) == {"j1": 1, "j2": 0, "j3": 1, "j4": 1}  # K80 is 0, V100 is 1


def test_sums_can_be_taken_for_each_gpu() -> None:
    cluster = Cluster.uniform({"K80": (1, 4), "V100": (1, 1)})
    first = played(ShortestServiceQueues(per_gpu=True), four_jobs(), cluster, rounds=1)[0]
    # (0, 0), (0, 20), (10, 20), (20, 20)
    assert dict(first.after.state.of) == {"j1": 1, "j2": 0, "j3": 0, "j4": 1}


def test_the_shortest_remaining_service_goes_first_in_gpu_time_or_time() -> None:
    jobs = Jobs.of(gpus=[4, 1], work=[10, 30], types=["V100"])
    assert who(played(ShortestServiceQueues(), jobs, FOUR)) == ["j2", "j2", "j2", "j1"]
    assert who(played(ShortestServiceQueues(gpu_time=False), jobs, FOUR)) == ["j1", "j2", "j2", "j2"]


def test_a_newcomer_with_less_left_preempts() -> None:
    jobs = Jobs.of(gpus=[1, 1], work=[40, 10], types=["V100"], arrival=[0, 10])
    assert who(played(ShortestServiceQueues(), jobs, ONE)) == ["j1", "j2", "j1", "j1", "j1"]


def test_random_queues_are_seeded_and_of_types_that_a_job_fits() -> None:
    jobs = Jobs.of(gpus=[1] * 40, work=[10] * 40, types=["K80", "V100"], throughput=[[1, 2]] * 39 + [[0, 1]])

    def joined(seed: int) -> dict[str, float]:
        policy = ShortestServiceQueues(random=True, seed=seed)
        return dict(played(policy, jobs, TWO_TYPES, rounds=1)[0].after.state.of)

    assert joined(0) == joined(0) != joined(1)
    assert all(joined(seed)["j40"] == 1 for seed in range(8))
    assert 8 < list(joined(0).values()).count(0) < 32


def test_a_queue_whose_hosts_are_down_is_left_or_waited_for() -> None:
    jobs = Jobs.of(gpus=[1], work=[40], types=["K80", "V100"], throughput=[[1, 2]])
    outages = (Outage("V100-1", Fraction(10), Fraction(60)),)
    leaves = played(ShortestServiceQueues(), jobs, TWO_TYPES, outages=outages)
    assert [ran.types for record in leaves for ran in record.ran] == [("V100",), ("K80",), ("K80",)]
    waits = played(ShortestServiceQueues(wait_for_hosts=True), jobs, TWO_TYPES, outages=outages)
    assert who(waits) == ["j1", "", "", "", "", "", "j1"]


def test_no_job_changes_its_type_while_hosts_are_up() -> None:
    for setting in sample_settings(20, seed=12, outages=False):
        for record in run(ShortestServiceQueues(), setting.trace, setting.cluster, length=60):
            assert all(not ran.before or ran.before == ran.types for ran in record.ran)


def test_a_back_end_is_refused() -> None:
    from fairopt.backends import Highs

    for policy in (FifoQuota(), LeastAttainedService(), ShortestServiceQueues()):
        with pytest.raises(FairoptError, match="algorithm of its own"):
            next(run(policy, Trace(four_jobs()), TWO_TYPES, length=10, backend=Highs()))


def test_hosts_that_are_down_do_not_change_quotas() -> None:
    jobs = Jobs.of(gpus=[2, 2], work=[20, 20], types=["V100"], tenant=["A", "B"])
    cluster = Cluster.uniform({"V100": (2, 2)})
    rounds = played(FifoQuota(), jobs, cluster, outages=(Outage("V100-1", Fraction(0), Fraction(20)),))
    assert who(rounds) == ["j1", "j1", "j2", "j2"]
