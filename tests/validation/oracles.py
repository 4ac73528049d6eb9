"""More schedulers as their papers describe them, for the simulator of `reference`; readings of fairopt's are marked so.

Only the standard library is used. All of them are for GPUs of one type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, inf

from reference import Job, Scheduler, fifo

ZERO = Fraction(0)


def users_of(jobs: Sequence[Job]) -> list[str]:
    """Return the users of a trace in the order in which it names them."""
    return list(dict.fromkeys(job.user for job in jobs))


def whole_shares(weights: Sequence[Fraction], gpus: int) -> list[int]:
    """Divide GPUs by weight into whole numbers by the largest remainder; ties to the larger weight, then the first."""
    due = [weight * gpus / sum(weights) for weight in weights]
    given = [floor(each) for each in due]
    by_remainder = sorted(range(len(due)), key=lambda at: (-(due[at] - given[at]), -weights[at], at))
    for at in by_remainder[: gpus - sum(given)]:
        given[at] += 1
    return given


def easy(quantum: Fraction) -> Scheduler:
    """FIFO, and who is done by the shadow time, or needs extra GPUs only, may overtake the first that waits.

    Source: Mu'alem and Feitelson, IEEE TPDS 2001, Sec. 3 (shadow time and extra nodes). Reading: GPUs are given out at
    the beginnings of quanta, and so the shadow time is one.
    """

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        chosen = [job for job in present if job.runs]
        waiting = [job for job in present if not job.runs]
        free = gpus - sum(job.gpus for job in chosen)
        while waiting and waiting[0].gpus <= free:
            free -= waiting[0].gpus
            chosen.append(waiting.pop(0))
        if not waiting:
            return chosen
        first, *others = waiting
        quanta = {job.name: ceil(job.left / job.speed / quantum) for job in chosen}

        def free_after(count: int) -> int:
            return free + sum(job.gpus for job in chosen if quanta.get(job.name, inf) <= count)

        shadow = next(count for count in sorted(set(quanta.values())) if free_after(count) >= first.gpus)
        extra = free_after(shadow) - first.gpus
        for job in others:
            in_time = job.left / job.speed <= shadow * quantum
            if job.gpus <= free and (in_time or job.gpus <= extra):
                free -= job.gpus
                extra -= 0 if in_time else job.gpus
                chosen.append(job)
        return chosen

    return choose


def shortest_first(present: Sequence[Job], gpus: int) -> list[Job]:
    """AlloX with jobs of one size on machines that are alike: who runs goes on, the shortest that wait start.

    Source: AlloX, EuroSys 2020, Sec. 4 (the matching of least total completion time, which is by rising length here).
    """
    chosen = [job for job in present if job.runs]
    for job in sorted(present, key=lambda job: job.left / job.speed):
        if not job.runs and sum(each.gpus for each in chosen) + job.gpus <= gpus:
            chosen.append(job)
    return chosen


def themis(lease: Fraction) -> Scheduler:
    """All GPUs without a lease go to jobs by falling rho = (age + remaining) / (time alone times jobs present).

    Source: Themis, NSDI 2020; ASTRAEA Sec. 4.1.2. Reading: a job is an application, and wins its GPUs or none.
    """
    until: dict[str, Fraction] = {}

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        now = present[0].now
        chosen = [job for job in present if job.runs and until[job.name] > now]
        free = gpus - sum(job.gpus for job in chosen)

        def rho(job: Job) -> Fraction:
            return (now - job.arrival + job.left / job.speed) / (job.work / job.speed * len(present))

        for job in sorted((job for job in present if job not in chosen), key=rho, reverse=True):
            if job.gpus <= free:
                free -= job.gpus
                chosen.append(job)
                until[job.name] = now + lease
        return chosen

    return choose


def karma(users: Sequence[str], weights: Mapping[str, Fraction], alpha: Fraction, start: int) -> Scheduler:
    """Slice by slice: the richest who wants more borrows, from the poorest who lends, else from what is shared.

    Source: Karma, OSDI 2023, Algorithm 1. Readings for gangs: a user's jobs run in order of arrival until one does not
    fit into its slices; idle GPUs go to the jobs of the richest that fit; a user pays for what its jobs hold.
    """
    purse = dict.fromkeys(users, start)

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        fair = dict(zip(users, whole_shares([weights[user] for user in users], gpus), strict=True))
        safe = {user: floor(alpha * fair[user]) for user in users}
        shared = gpus - sum(safe.values())
        want = {user: sum(job.gpus for job in present if job.user == user) for user in users}
        for user in users:
            purse[user] += fair[user] - safe[user]
        given = {user: min(want[user], safe[user]) for user in users}
        lends = {user: safe[user] - given[user] for user in users}
        borrows = {user: min(want[user] - given[user], purse[user]) for user in users}
        while any(borrows.values()) and (shared or any(lends.values())):
            rich = min(
                (user for user in users if borrows[user]),
                key=lambda user: (-purse[user], borrows[user], users.index(user)),
            )
            lenders = [user for user in users if lends[user]]
            poor = min(lenders, key=lambda user: (purse[user], lends[user], users.index(user)), default=None)
            purse[rich], given[rich], borrows[rich] = purse[rich] - 1, given[rich] + 1, borrows[rich] - 1
            if poor is None:
                shared -= 1
            else:
                purse[poor], lends[poor] = purse[poor] + 1, lends[poor] - 1
        chosen, free = [], gpus
        for user in users:
            budget = given[user]
            for job in (job for job in present if job.user == user):
                if job.gpus > budget:
                    break
                budget -= job.gpus
                free -= job.gpus
                chosen.append(job)
        for job in sorted((job for job in present if job not in chosen), key=lambda job: -purse[job.user]):
            if job.gpus <= free:
                free -= job.gpus
                chosen.append(job)
        for user in users:
            held = sum(job.gpus for job in chosen if job.user == user)
            paid, owed = max(0, given[user] - safe[user]), max(0, held - safe[user])
            purse[user] = max(0, purse[user] + paid - owed)
        return chosen

    return choose


def ltgf(users: Sequence[str], weights: Mapping[str, Fraction], quantum: Fraction) -> Scheduler:
    """Again and again the tenant with the least GPU-time for what was due to it, and its job of which that holds.

    Source: ASTRAEA, TPDS 2022, Algorithms 1 and 2, Eq. (6)-(8), (13), (14). Readings: a job counts from its arrival,
    and with its GPUs to the end of the quantum in which it ends; 0/0 is 0 where nothing is held, else infinite and
    ordered by GPU-time over the rate at which it is due.
    """
    known: dict[str, Job] = {}

    def end(job: Job) -> Fraction | float:
        """Return when a job is no longer counted."""
        return inf if job.completed is None else quantum * max(ceil(job.completed / quantum), 1)

    def held(job: Job) -> Fraction:
        return job.service + (ZERO if job.completed is None else job.gpus * (Fraction(end(job)) - job.completed))

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        now = present[0].now
        known.update({job.name: job for job in present})

        def rates(at: Fraction) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
            active = [job for job in known.values() if job.arrival <= at < end(job)]
            to_users, to_jobs = {}, {}
            for user in users:
                own = [job for job in active if job.user == user]
                share = min(
                    Fraction(sum(job.gpus for job in own)), gpus * weights[user] / sum(weights[each] for each in users)
                )
                to_users[user] = share
                for job in own:
                    to_jobs[job.name] = min(Fraction(job.gpus), share / len(own))
            return to_users, to_jobs

        moments = {ZERO, now} | {job.arrival for job in known.values()} | {end(job) for job in known.values()}
        times = sorted(Fraction(each) for each in moments if each <= now)
        due = dict.fromkeys(users, ZERO)
        due_to = dict.fromkeys(known, ZERO)
        for since, until in pairwise(times):
            to_users, to_jobs = rates(since)
            for user in users:
                due[user] += to_users[user] * (until - since)
            for name, rate in to_jobs.items():
                due_to[name] += rate * (until - since)
        rate, rate_to = rates(now)

        def degree(had: Fraction, owed: Fraction, rate: Fraction) -> tuple[Fraction | float, Fraction | float]:
            if owed:
                return had / owed, 0
            return (inf, had / rate if rate else inf) if had else (0, 0)

        had = {user: sum((held(job) for job in known.values() if job.user == user), ZERO) for user in users}
        pending = {
            user: sorted(
                (job for job in present if job.user == user),
                key=lambda job: degree(job.service, due_to[job.name], rate_to[job.name]),
            )
            for user in users
            if any(job.user == user for job in present)
        }
        chosen = []
        while pending:
            user = min(pending, key=lambda each: (degree(had[each], due[each], rate[each]), users.index(each)))
            job = pending[user].pop(0)
            fits = job.gpus <= gpus - sum(each.gpus for each in chosen)
            if fits:
                chosen.append(job)
                had[user] += job.gpus * quantum
            if not fits or not pending[user]:
                del pending[user]
        return chosen

    return choose


def virtual_clusters(users: Sequence[str], quota: Mapping[str, int]) -> Scheduler:
    """Each tenant's jobs run as on a cluster of its own, first in, first out.

    Source: HiveD, OSDI 2020, abstract and Sec. 2 (sharing safety).
    """

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        assert sum(quota.values()) <= gpus
        return [job for user in users for job in fifo([job for job in present if job.user == user], quota[user])]

    return choose


def pal(hosts: Sequence[int], speed: Sequence[Fraction], locality: Fraction) -> Scheduler:
    """Least attained service, each job anew on the GPUs for which slowdown times locality is least; nobody overtakes.

    Source: PAL, SC 2024, PM-First and PAL placement. Readings: the GPUs of a host are alike; ties go to where the job
    ran last, then to the host whose free GPUs are nearest to its number, then to the first.
    """
    last: dict[str, set[int]] = {}
    base: dict[str, Fraction] = {}

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        free, chosen = list(hosts), []
        for job in sorted(present, key=lambda job: job.service):
            base.setdefault(job.name, job.speed)
            if sum(free) < job.gpus:
                break
            slow = [max(speed) / each for each in speed]

            def taste(host: int, job: Job = job, slow: list[Fraction] = slow) -> tuple[object, ...]:
                return slow[host], host not in last.get(job.name, set()), abs(free[host] - job.gpus), host

            order = sorted((host for host in range(len(hosts)) if free[host]), key=taste)
            within = [host for host in order if free[host] >= job.gpus]
            across = next(
                value
                for value in sorted(set(slow))
                if sum(free[host] for host in order if slow[host] <= value) >= job.gpus
            )
            spots = {}
            if job.gpus > 1 and within and slow[within[0]] <= across * locality:
                spots[within[0]] = job.gpus
            else:
                missing = job.gpus
                for host in order:
                    spots[host] = min(missing, free[host])
                    missing -= spots[host]
                    if not missing:
                        break
            for host, count in spots.items():
                free[host] -= count
            last[job.name] = set(spots)
            job.speed = base[job.name] * min(speed[host] for host in spots)
            chosen.append(job)
        return chosen

    return choose
