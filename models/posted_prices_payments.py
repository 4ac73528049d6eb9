"""Who pays whom: gain as you contribute, exact to the last fraction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from fairopt.problem.batch import Batch
from fairopt.schedules import Admission, Payment


def payments(batch: Batch, admissions: Sequence[Admission]) -> Iterator[Payment]:
    """Yield what each job that runs beyond its tenant's own share pays for each of its slots, and to whom.

    A job's cost is spread over its slots evenly; a slot's part is divided among all tenants in proportion to what they
    leave unused then, workers and PS apart, the payer's own included. Unused is what is left before the jobs that
    borrow are counted: q^u minus the jobs that run within u's own share. Costs are taken as the fractions that the
    floats are, so that incomes add up to costs exactly.

    Source: Astraea (posted prices) Eq. (2), several types Eq. (11).
    """
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or each.own or schedule is None:
            continue
        workers = Fraction(each.worker_cost) / schedule.duration
        ps = Fraction(each.ps_cost) / schedule.duration
        for slot in range(schedule.first, schedule.last + 1):
            left_workers, left_ps = unused(batch, admissions, slot, schedule.worker_type, schedule.ps_type)
            incomes = tuple(a + b for a, b in zip(_divide(workers, left_workers), _divide(ps, left_ps), strict=True))
            yield Payment(each.job, slot, workers, ps, incomes)


def unused(
    batch: Batch, admissions: Sequence[Admission], slot: int, worker: int, ps: int
) -> tuple[list[int], list[int]]:
    """Return what each tenant leaves unused of its own in a slot: workers (U,) and PS (U,) of the given types."""
    left_workers, left_ps = batch.worker_quota[:, worker].copy(), batch.ps_quota[:, ps].copy()
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or not each.own or schedule is None or not schedule.first <= slot <= schedule.last:
            continue
        tenant = batch.jobs.tenant[each.job]
        workers, count = schedule.count()
        left_workers[tenant] -= workers if schedule.worker_type == worker else 0
        left_ps[tenant] -= count if schedule.ps_type == ps else 0
    return np.maximum(left_workers, 0).tolist(), np.maximum(left_ps, 0).tolist()


def _divide(amount: Fraction, parts: Sequence[int]) -> list[Fraction]:
    total = sum(parts)
    return [amount * part / total if total else Fraction(0) for part in parts]
