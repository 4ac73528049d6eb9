"""Payments between tenants: each gains as it contributes, in exact numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from fairopt.policy import Admission, Payment
from fairopt.problem.batch import Batch
from fairopt.program import Array


def payments(batch: Batch, admissions: Sequence[Admission]) -> Iterator[Payment]:
    """Yield the payments of jobs that run beyond their tenant's own share, slot by slot, with their receivers.

    A job's cost is spread evenly over its slots. Each slot's part is divided among all tenants, the payer included, in
    proportion to what they leave unused in that slot, separately for workers and PS. Unused means q^u minus the use of
    the jobs within u's own share; jobs that borrow do not count. Float costs are taken at their exact values, so that
    incomes sum to costs exactly.

    Source: Astraea (posted prices) Eq. (2), several types Eq. (11).
    """
    used = own_use(batch, admissions)
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or each.own or schedule is None:
            continue
        workers = Fraction(each.worker_cost) / schedule.duration
        ps = Fraction(each.ps_cost) / schedule.duration
        for slot in range(schedule.first, schedule.last + 1):
            now = used[slot]
            left_workers = np.maximum(batch.worker_quota - now.workers, 0)[:, schedule.worker_type].tolist()
            left_ps = np.maximum(batch.ps_quota - now.ps, 0)[:, schedule.ps_type].tolist()
            incomes = tuple(a + b for a, b in zip(_divide(workers, left_workers), _divide(ps, left_ps), strict=True))
            yield Payment(each.job, slot, workers, ps, incomes)


class Use(NamedTuple):
    """What each tenant's jobs use within its own share in one slot: ``workers`` (U, W) and ``ps`` (U, P)."""

    workers: Array
    ps: Array


def own_use(batch: Batch, admissions: Sequence[Admission]) -> Mapping[int, Use]:
    """Return the use of tenants' own shares, by slot; 0 in others."""
    used = defaultdict[int, Use](lambda: Use(np.zeros_like(batch.worker_quota), np.zeros_like(batch.ps_quota)))
    for each in admissions:
        schedule = each.schedule
        if not each.admitted or not each.own or schedule is None:
            continue
        tenant = batch.jobs.tenant[each.job]
        workers, ps = schedule.count()
        for slot in range(schedule.first, schedule.last + 1):
            used[slot].workers[tenant, schedule.worker_type] += workers
            used[slot].ps[tenant, schedule.ps_type] += ps
    return used


def _divide(amount: Fraction, parts: Sequence[int]) -> list[Fraction]:
    total = sum(parts)
    return [amount * part / total if total else Fraction(0) for part in parts]
