"""Who pays whom: gain as you contribute, exact to the last fraction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fairopt.policy import Admission, Payment
from fairopt.problem.batch import Batch
from fairopt.program import Array


def payments(batch: Batch, admissions: Sequence[Admission]) -> Iterator[Payment]:
    """Yield what each job that runs beyond its tenant's own share pays for each of its slots, and to whom.

    A job's cost is spread over its slots evenly; a slot's part is divided among all tenants in proportion to what they
    leave unused then, workers and PS apart, the payer's own included. Unused is what is left before the jobs that
    borrow are counted: q^u minus the jobs that run within u's own share. Costs are taken as the fractions that the
    floats are, so that incomes add up to costs exactly.

    Source: Astraea (posted prices) Eq. (2), several types Eq. (11).
    """
    used = own_use(batch, admissions)
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or each.own or schedule is None:
            continue
        workers = Fraction(each.worker_cost) / schedule.duration
        ps = Fraction(each.ps_cost) / schedule.duration
        nothing = Use(np.zeros_like(batch.worker_quota), np.zeros_like(batch.ps_quota))
        for slot in range(schedule.first, schedule.last + 1):
            now = used.get(slot, nothing)
            left_workers = np.maximum(batch.worker_quota - now.workers, 0)[:, schedule.worker_type].tolist()
            left_ps = np.maximum(batch.ps_quota - now.ps, 0)[:, schedule.ps_type].tolist()
            incomes = tuple(a + b for a, b in zip(_divide(workers, left_workers), _divide(ps, left_ps), strict=True))
            yield Payment(each.job, slot, workers, ps, incomes)


class Use(NamedTuple):
    """What each tenant's jobs use within its own share in one slot: ``workers`` (U, W) and ``ps`` (U, P)."""

    workers: Array
    ps: Array


def own_use(batch: Batch, admissions: Sequence[Admission]) -> dict[int, Use]:
    """Return what is used of tenants' own shares, by slot; slots without any use are left out."""
    used: dict[int, Use] = {}
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or not each.own or schedule is None:
            continue
        tenant = batch.jobs.tenant[each.job]
        workers, ps = schedule.count()
        for slot in range(schedule.first, schedule.last + 1):
            if slot not in used:
                used[slot] = Use(np.zeros_like(batch.worker_quota), np.zeros_like(batch.ps_quota))
            used[slot].workers[tenant, schedule.worker_type] += workers
            used[slot].ps[tenant, schedule.ps_type] += ps
    return used


def _divide(amount: Fraction, parts: Sequence[int]) -> list[Fraction]:
    total = sum(parts)
    return [amount * part / total if total else Fraction(0) for part in parts]
