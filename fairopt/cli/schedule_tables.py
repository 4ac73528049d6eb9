"""Schedules of a batch as tables for people; plain text where there is no terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from fairopt.cli.tables import say, some_of, table_of
from fairopt.policy import Admission, Plan
from fairopt.problem.batch import Batch, JobSchedule
from fairopt.program import Number

#: The most violations of a schedule to show.
MOST = 20


def plan(decided: Plan) -> None:
    """Print where and when each job runs, the gains of tenants, and the jobs that do not run."""
    batch, jobs = decided.batch, decided.batch.jobs
    say(
        f"{decided.policy}: {len(decided.schedules)} of {len(jobs)} jobs run, total utility {_short(decided.revenue)}; "
        f"{decided.seconds.build + decided.seconds.solve:.3f} s"
    )
    if decided.proven:
        say(decided.proven)
    admitted = {each.job: each for each in decided.admissions if each.admitted}
    pays: Counter[int] = Counter()
    received: list[Number] = [Fraction(0)] * len(batch.tenants)
    for payment in decided.payments:
        pays[payment.job] += payment.workers + payment.ps  # type: ignore[assignment]
        for tenant, income in enumerate(payment.incomes):
            received[tenant] += income
    several = len(batch.worker_types) > 1 or len(batch.ps_types) > 1
    heads = ("job", "tenant", "arrival", "slots", "share", "workers", "PS", "cost", "utility", "gain", "pays")
    table = table_of([*heads, *(("worker type", "PS type") if several else ())])
    for each in decided.schedules:
        decision = admitted.get(each.job)
        table.add_row(
            jobs.names[each.job],
            batch.tenants[jobs.tenant[each.job]],
            str(jobs.arrival[each.job]),
            f"{each.first}-{each.last}",
            "-" if decision is None else "own" if decision.own else "shared",
            _where(batch, each.workers),
            _where(batch, each.ps),
            *_told(decision),
            _short(pays[each.job]) if decided.admissions else "-",
            *(_types(batch, each) if several else ()),
        )
    say(table)
    if decided.admissions:
        say(
            "cost: at posted prices; utility: counted from the beginning of the job's round; gain: less the cost, "
            "which decides; the total and the tenants' utilities count from arrivals"
        )
    whose = table_of(["tenant", "workers", "PS", "jobs", "run", "utility", "pays", "receives", "gain"])
    for tenant, name in enumerate(batch.tenants):
        own = [job for job in range(len(jobs)) if jobs.tenant[job] == tenant]
        worth = sum((value for job, value in decided.utilities.items() if job in set(own)), start=Fraction(0))
        whose.add_row(
            name,
            *(" + ".join(map(str, quota[tenant])) for quota in (batch.worker_quota, batch.ps_quota)),
            str(len(own)),
            str(sum(job in decided.utilities for job in own)),
            *map(_short, (worth, sum(pays[job] for job in own), received[tenant], decided.gains[tenant])),
        )
    say(whose)
    if decided.unscheduled:
        say(f"not scheduled: {some_of([jobs.names[job] for job in decided.unscheduled])}")


def verdict(violations: Sequence[str], statement: str) -> None:
    """Print what was found in a schedule."""
    for what in violations[:MOST]:
        say(f"REJECTED: {what}")
    say(f"{len(violations)} violations" if violations else f"accepted: {statement}")


def _where(batch: Batch, spots: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"{batch.servers[server]}:{count}" for server, count in spots)


def _told(decision: Admission | None) -> tuple[str, str, str]:
    if decision is None:
        return "-", "-", "-"
    cost = decision.worker_cost + decision.ps_cost
    return _short(cost), _short(decision.utility), _short(decision.gain)


def _types(batch: Batch, schedule: JobSchedule) -> tuple[str, str]:
    return batch.worker_types[schedule.worker_type], batch.ps_types[schedule.ps_type]


def _short(value: Number) -> str:
    """Return a number in six digits; one that is whole up to rounding is shown as whole."""
    return f"{float(value):.6g}"
