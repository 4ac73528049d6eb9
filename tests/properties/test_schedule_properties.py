"""Properties of plans: each holds where it should, and fails where something was taken away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from itertools import islice, product

import numpy as np
import pytest

from fairopt.errors import BadInput, NotCapable
from fairopt.methods.columns.columns import Times, columns
from fairopt.models.astraea.batch_private import BatchPrivate
from fairopt.models.astraea.offline_optimum import OfflineOptimum
from fairopt.models.astraea.posted_prices import PostedPricePacking
from fairopt.policy import decide
from fairopt.problem.batch import Batch, JobSchedule, slots_for
from fairopt.problem.utilities import Linear
from fairopt.proofs.claims.astraea.batches import example, random_batch, violations
from fairopt.proofs.claims.astraea.example import as_printed, policy
from fairopt.proofs.claims.astraea.properties import two_tenants, within
from fairopt.properties import Answer, Effort
from fairopt.properties.schedules.misreports import BatchMisreport, ScheduleStrategyProofness, small_misreports
from fairopt.properties.schedules.pareto import Exhaustive, ScheduleParetoEfficiency, all_columns
from fairopt.properties.schedules.tenants import (
    BatchSharingIncentive,
    BudgetBalance,
    GainAsYouContribute,
    IndividualRationality,
    RevenueFairness,
    fairness_ratios,
)

ONE_INTERVAL = PostedPricePacking(theta=(16, 16), intervals=1)


def test_the_printed_example() -> None:
    plan = as_printed()
    # from the arrival at 3: 100 - 2 (10 - 3) = 86 for j11, 82 for j12 and j21; 16 paid, of which 8 comes back
    assert plan.gains == (86 + 82 - 16 + 8, 82 + 8)
    for rule in (BudgetBalance(), GainAsYouContribute(), IndividualRationality(), IndividualRationality(False)):
        assert rule.check(plan).answer is Answer.HOLDS
    assert IndividualRationality().check(plan).margin == 82 - 16
    assert IndividualRationality(False).check(plan).margin == 76


def test_revenue_fairness_of_the_printed_example() -> None:
    """Both own half of everything: alpha is the part of the revenue over a half."""
    plan = as_printed()
    assert fairness_ratios(plan) == (Fraction(160, 250) * 2, Fraction(90, 250) * 2)
    verdict = RevenueFairness().check(plan)
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, Fraction(180, 250) - 1)
    assert str(verdict.witness) == "u2 has 18/25 where it should have 1"


def test_what_is_taken_from_an_income_is_missed() -> None:
    plan = as_printed()
    first = plan.payments[0]
    wrong = replace(first, incomes=(first.incomes[0], first.incomes[1] - Fraction(1, 10**9)))
    short = replace(plan, payments=(wrong, *plan.payments[1:]))
    assert BudgetBalance().check(short).margin == -Fraction(1, 10**9)
    assert GainAsYouContribute().check(short).witness.slot == 9
    swapped = replace(first, incomes=first.incomes[::-1])
    moved = replace(plan, payments=(swapped, *plan.payments[1:]))
    assert BudgetBalance().check(moved).answer is Answer.HOLDS
    assert GainAsYouContribute().check(moved).answer is Answer.FAILS


def test_paying_more_than_it_is_worth_is_missed() -> None:
    plan = as_printed()
    dear = replace(plan, payments=tuple(replace(each, workers=each.workers * 8) for each in plan.payments))
    verdict = IndividualRationality().check(dear)
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, 82 - (4 * 24 + 4))


def test_two_of_a_property_are_the_same() -> None:
    for kind in (BudgetBalance, GainAsYouContribute, RevenueFairness):
        assert kind() == kind()


def test_gains_add_up_to_revenue_on_random_batches() -> None:
    for seed in range(30):
        plan = decide(PostedPricePacking(theta=(16, 16)), random_batch(seed))
        assert BudgetBalance().check(plan).answer is Answer.HOLDS
        assert GainAsYouContribute().check(plan).answer is Answer.HOLDS
        assert float(sum(plan.gains)) == pytest.approx(float(plan.revenue))


def test_jobs_on_other_types_take_nothing_from_what_a_tenant_leaves_unused() -> None:
    """Somebody pays while jobs run within their own shares on a type before and on one after, workers and PS."""
    for seed in (10, 36, 168):
        plan = decide(PostedPricePacking(theta=(16, 16)), random_batch(seed, types=(2, 2)))
        assert GainAsYouContribute().check(plan).answer is Answer.HOLDS


@pytest.mark.parametrize(("part", "quota", "needed"), [("workers", "worker_quota", 2), ("ps", "ps_quota", 1)])
def test_where_nobody_leaves_anything_nobody_is_owed_anything(part: str, quota: str, needed: int) -> None:
    """In slot 9 a job runs within u1's own share, and what the other job pays is u2's, by what u2 leaves."""
    plan = as_printed()
    paid = {"workers": 0, "ps": 0, part: 3}
    [payment] = [replace(each, **paid, incomes=(0, 3)) for each in plan.payments if each.slot == 9]
    for left, short in ((0, 3), (1, 0), (2, 0)):
        batch = replace(plan.batch, **{quota: np.array([[needed], [left]])})
        told = replace(plan, batch=batch, payments=(payment,))
        assert GainAsYouContribute().check(told).margin == -short


def test_a_plan_without_decisions_has_no_contributions_to_judge() -> None:
    plan = as_printed()
    for wrong in (
        replace(plan, admissions=()),
        replace(plan, admissions=(), payments=()),
        replace(plan, schedules=plan.schedules[:2], payments=()),
    ):
        with pytest.raises(NotCapable, match="admitted"):
            GainAsYouContribute().check(wrong)


def test_who_owns_nothing_and_who_earns_nothing_have_no_ratio() -> None:
    plan = as_printed()
    poor = replace(plan.batch, worker_quota=np.array([[8], [0]]), ps_quota=np.array([[4], [0]]))
    assert fairness_ratios(replace(plan, batch=poor)) == (Fraction(160, 250), None)
    nothing = replace(plan, schedules=(), admissions=(), payments=())
    assert fairness_ratios(nothing) == (None, None)


def test_batch_sharing_incentive_by_hand() -> None:
    """u1's job takes slot 3 at price 0; for u2's, slot 3 costs 3 + 3, and slot 4 one utility: 14 instead of 15."""
    batch = two_tenants()
    plan = decide(replace(ONE_INTERVAL, rounds=2), batch)
    assert [(each.first, each.last) for each in plan.schedules] == [(5, 5), (6, 6)]
    verdict = BatchSharingIncentive(BatchPrivate(ONE_INTERVAL)).check(plan)
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, -1)
    assert str(verdict.witness) == "u2 has 14 where it should have 15"
    private = decide(BatchPrivate(ONE_INTERVAL), batch)
    assert BatchSharingIncentive(BatchPrivate(ONE_INTERVAL)).check(private).margin == 0


def test_a_lie_about_utility_by_hand() -> None:
    judge = ScheduleStrategyProofness()
    steep = BatchMisreport({1: {"utility": Linear(Fraction(-9), Fraction(20))}})
    found = judge.misreport(ONE_INTERVAL, two_tenants(), steep)
    assert (found.honest, found.misreported, found.gain) == (14, 15, 1)
    assert str(found).endswith("with j2: utility Linear(-9, 20)")
    assert judge.check(ONE_INTERVAL, two_tenants(), [steep]).answer is Answer.FAILS
    assert judge.check(ONE_INTERVAL, two_tenants(), [BatchMisreport({0: {"epochs": 2}})]).answer is Answer.NOT_REFUTED


def test_of_all_lies_the_one_that_pays_most_is_shown() -> None:
    judge, batch = ScheduleStrategyProofness(), two_tenants()
    steep, steeper = (BatchMisreport({1: {"utility": Linear(Fraction(-slope), Fraction(20))}}) for slope in (9, 10))
    useless = BatchMisreport({0: {"epochs": 2}})
    loss = judge.misreport(ONE_INTERVAL, batch, useless).gain
    assert loss < 0
    for lies in ([useless, steep, steeper], [steep, useless], [steeper, steep, useless]):
        verdict = judge.check(ONE_INTERVAL, batch, lies)
        assert (verdict.answer, verdict.margin, verdict.effort) == (Answer.FAILS, -1, f"{len(lies)} lies")
        assert verdict.witness.misreport == next(each for each in lies if each is not useless)  # the first of equals
        assert verdict.exact
    none = judge.check(ONE_INTERVAL, batch, [useless])
    assert (none.answer, none.margin, none.witness) == (Answer.NOT_REFUTED, -loss, None)
    first = judge.check(ONE_INTERVAL, batch, [useless, steep], effort=Effort(evaluations=1))
    assert (first.answer, first.effort) == (Answer.NOT_REFUTED, "1 lies")
    ended = judge.check(ONE_INTERVAL, batch, [useless, steep], effort=Effort(evaluations=9, seconds=1e-9))
    assert ended.effort == "1 lies"
    assert judge.check(ONE_INTERVAL, batch, [useless, steep], effort=Effort(seconds=600)).effort == "2 lies"
    assert judge.check(ONE_INTERVAL, batch, []).margin is None


def test_lies_are_about_one_job_or_about_two_of_a_tenant() -> None:
    batch = two_tenants()
    assert len(list(small_misreports(batch, most=2, together=True))) == 2 * 3
    jobs = replace(batch.jobs, tenant=batch.jobs.tenant * 0)
    own = list(small_misreports(replace(batch, jobs=jobs), most=2, together=True))
    assert [len(each.told) for each in own] == [1] * 6 + [2] * 9
    assert len(list(small_misreports(replace(batch, jobs=jobs), most=2))) == 6
    turned = replace(batch, jobs=replace(batch.jobs, tenant=1 - batch.jobs.tenant))
    assert len(list(small_misreports(turned, most=2, together=True))) == 2 * 3
    true = batch.jobs.utility[0]
    told = [*small_misreports(batch, most=1, utilities=(true, Linear(Fraction(-7), Fraction(9))))]
    assert [each.told for each in told if 0 in each.told] == [{0: {"utility": Linear(Fraction(-7), Fraction(9))}}]
    assert len(list(small_misreports(batch))) == 2 * 15  # up to four epochs and chunks, the truth left out
    kept = small_misreports(two_tenants(epochs=4), keep_work=True)
    assert [each.told for each in kept if 0 in each.told] == [
        {0: {"epochs": 1, "chunks": 4}},
        {0: {"epochs": 2, "chunks": 2}},
    ]
    wide = two_tenants(epochs=4)
    wide = replace(wide, jobs=replace(wide.jobs, chunks=wide.jobs.chunks * 2))
    kept = small_misreports(wide, most=8, keep_work=True)
    assert [each.told[0] for each in kept if 0 in each.told] == [
        {"epochs": 1, "chunks": 8},
        {"epochs": 2, "chunks": 4},
        {"epochs": 8, "chunks": 1},
    ]
    with pytest.raises(BadInput, match="0 tenants"):
        BatchMisreport({}).tenant(batch)


def test_what_a_misreported_demand_yields() -> None:
    """A job told to be shorter than it is gets too few slots, and is worth nothing; one told to be longer ends late."""
    alone = example((0,))
    shorter, longer = BatchMisreport({0: {"epochs": 1}}), BatchMisreport({0: {"epochs": 4}})
    rule, late, early = policy(), ScheduleStrategyProofness(), ScheduleStrategyProofness(early=True)
    assert late.misreport(rule, alone, shorter).misreported == 0
    assert late.misreport(rule, alone, longer).misreported == 100 - 2 * (12 - 3)
    assert (
        early.misreport(rule, alone, longer).misreported
        == late.misreport(rule, alone, longer).honest
        == 100 - 2 * (10 - 3)
    )
    # more chunks than it has let it get more workers, of which it can use no more than before
    many = late.misreport(rule, alone, BatchMisreport({0: {"chunks": 4, "epochs": 1}}))
    assert many.misreported <= many.honest


@pytest.mark.parametrize(("workers", "used"), [(1, 1), (2, 2), (4, 4), (8, 4)])
def test_workers_beyond_the_chunks_are_of_no_use(workers: int, used: int) -> None:
    alone = example((0,))
    batch = replace(alone, jobs=replace(alone.jobs, chunks=alone.jobs.chunks * 0 + 4))
    arrival, time = int(batch.jobs.arrival[0]), batch.slots_per_minibatch(0, True, 0, 0)
    slots = slots_for(batch.minibatches(0), time, used)
    one = JobSchedule(0, arrival, arrival + 999, ((0, workers),), ((0, 1),))
    judge = ScheduleStrategyProofness(early=True)
    assert judge._worth(batch, one) == batch.jobs.utility[0].value(Fraction(slots - 1))
    for spare, worth in ((0, judge._worth(batch, one)), (-1, 0)):
        assert judge._worth(batch, replace(one, last=arrival + slots - 1 + spare)) == worth


def test_the_truth_is_no_lie() -> None:
    for seed in range(10):
        batch = random_batch(seed, jobs=4)
        plan = decide(ONE_INTERVAL, batch)
        assert ScheduleStrategyProofness().gains(batch, plan) == plan.gains


def test_lies_are_checked() -> None:
    with pytest.raises(BadInput, match="2 tenants"):
        ScheduleStrategyProofness().misreport(
            ONE_INTERVAL, two_tenants(), BatchMisreport({0: {"epochs": 2}, 1: {"epochs": 2}})
        )
    with pytest.raises(BadInput, match="CompletionUtility"):
        BatchMisreport({0: {"utility": 3}}).of(two_tenants())
    told = {
        tuple(sorted(what.items())) for each in small_misreports(two_tenants(), most=2) for what in each.told.values()
    }
    assert len(told) == 3  # the truth is (1, 1)
    assert all(
        what["epochs"] * what["chunks"] == 4
        for each in small_misreports(two_tenants(epochs=4), most=4, keep_work=True)
        for what in each.told.values()
        if isinstance(what["epochs"], int) and isinstance(what["chunks"], int)
    )


def test_pareto_efficiency_of_the_printed_example() -> None:
    verdict = ScheduleParetoEfficiency(within(8, 12), most=None).check(as_printed())
    assert (verdict.answer, verdict.margin) == (Answer.FAILS, -6)
    assert (verdict.witness.before, verdict.witness.after) == ((168, 82), (170, 86))
    better = replace(as_printed(), schedules=verdict.witness.schedules, admissions=(), payments=(), evidence=None)
    assert violations(better) == []
    assert ScheduleParetoEfficiency(within(8, 12), most=None).check(better).answer is Answer.HOLDS


def test_the_offline_optimum_is_pareto_efficient() -> None:
    for seed in range(6):
        batch = random_batch(seed, servers=2, jobs=3, latest=1)
        plan = decide(OfflineOptimum(slots=6), batch)
        verdict = ScheduleParetoEfficiency(within(0, 6), most=None).check(plan)
        assert float(verdict.margin or 0) == pytest.approx(0, abs=1e-9)


def test_efficiency_against_all_combinations_of_all_schedules() -> None:
    """What the tenants' total can grow by, with nobody below what it has, out of every choice for every job."""
    seen = Counter[Answer]()
    batches = [two_tenants(), two_tenants(slope=Fraction(0)), two_tenants(slope=Fraction(-30)), two_tenants(epochs=2)]
    batches += [random_batch(seed, servers=1, jobs=2, latest=1) for seed in range(12)]
    for batch in batches:
        every = [[None, *islice(all_columns(batch)(batch, job), 71)] for job in range(len(batch.jobs))]
        if sum(map(len, every)) > 70:
            continue
        honest = decide(ONE_INTERVAL, batch)
        for plan in (
            honest,
            *(replace(honest, schedules=(*honest.schedules[:n],)) for n in range(len(honest.schedules))),
        ):
            before = _by_tenant(batch, plan.schedules)
            chosen = [each for each in product(*every) if fits(batch, [one for one in each if one])]
            worth = (_by_tenant(batch, each) for each in chosen)
            totals = [sum(has) for has in worth if all(a >= b for a, b in zip(has, before, strict=True))]
            verdict = ScheduleParetoEfficiency().check(plan)
            seen[verdict.answer] += 1
            assert float(verdict.margin or 0) == pytest.approx(float(sum(before) - max(totals)), abs=1e-9)
            assert (verdict.answer is Answer.FAILS) == (float(verdict.margin or 0) < -1e-9)
            assert verdict.exact == isinstance(verdict.margin, Fraction)
            if verdict.answer is Answer.FAILS:
                assert verdict.witness.before == pytest.approx(before)
                assert verdict.witness.after == _by_tenant(batch, verdict.witness.schedules)
                assert fits(batch, list(verdict.witness.schedules))
                part = -verdict.margin / abs(sum(before)) if sum(before) else 0
                if part:
                    assert (
                        ScheduleParetoEfficiency().check(plan, tolerance=part * Fraction(101, 100)).answer
                        is Answer.HOLDS
                    )
                    assert (
                        ScheduleParetoEfficiency().check(plan, tolerance=part * Fraction(99, 100)).answer
                        is Answer.FAILS
                    )
            few = sum(map(len, every)) - len(every)
            if not few:
                continue
            assert ScheduleParetoEfficiency(most=few).check(plan).answer is verdict.answer
            less = ScheduleParetoEfficiency(most=few - 1).check(plan)
            assert less.answer is Answer.UNDECIDED
            assert less.reason.startswith(f"there are more than {few - 1} schedules that jobs may have")
    assert seen[Answer.HOLDS] > 1
    assert seen[Answer.FAILS] > 3


def _by_tenant(batch: Batch, schedules: Iterable[JobSchedule | None]) -> tuple[Fraction, ...]:
    worth = [Fraction(0)] * len(batch.tenants)
    for one in schedules:
        if one is not None:
            done = Fraction(one.last - int(batch.jobs.arrival[one.job]))
            worth[batch.jobs.tenant[one.job]] += batch.jobs.utility[one.job].value(done)
    return tuple(worth)


def test_the_exhaustive_search_against_all_combinations() -> None:
    """Depth first with bounds finds what trying every combination of schedules finds."""
    for seed in range(8):
        batch = random_batch(seed, servers=2, jobs=3, latest=1)
        batch = replace(
            batch, jobs=replace(batch.jobs, utility=tuple(Linear(Fraction(-j - 1), Fraction(9 + j)) for j in range(3)))
        )
        times = Times.of(batch, 4)

        def few(at: Batch, job: int, times: Times = times) -> Iterable[JobSchedule]:
            return sorted(columns(at, job, times), key=lambda each: (each.first, each.last))[:12]

        def worth(one: JobSchedule, batch: Batch = batch) -> Fraction:
            value = batch.jobs.utility[one.job].value(Fraction(one.last))
            return Fraction(value)

        search = Exhaustive(batch, few, worth)
        best = max(
            sum((worth(one) for one in chosen if one), start=Fraction(0))
            for chosen in product(*([None, *few(batch, job)] for job in range(3)))
            if fits(batch, [one for one in chosen if one])
        )
        assert sum(search.tenants(search.largest())) == best


def fits(batch: Batch, schedules: list[JobSchedule]) -> bool:
    """Whether no server gives out more than it has, in any slot."""
    use = Counter[tuple[str, int, int, int]]()
    for one in schedules:
        for what, kind, spots in (("workers", one.worker_type, one.workers), ("ps", one.ps_type, one.ps)):
            for server, count in spots:
                use.update({(what, server, kind, slot): count for slot in range(one.first, one.last + 1)})
    return all(n <= getattr(batch, what)[server, kind] for (what, server, kind, _), n in use.items())
