"""Split stride and Gandiva_fair as their paper describes them, for the simulator of `reference`; GPUs of one type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from reference import Job, Scheduler

ZERO = Fraction(0)


def split_stride(
    users: Sequence[str], weights: Mapping[str, Fraction], hosts: Sequence[int], threshold: Fraction | None = None
) -> Scheduler:
    """Jobs stay on the servers that they came to; a central scheduler takes servers and large jobs by pass.

    With a ``threshold`` of loads, in each quantum one job moves from the most to the least loaded server.

    Source: Gandiva_fair, EuroSys 2020, Sec. 3.1, 3.2 (effective tickets), 3.5 (Migration), Algorithms 1 and 2. Reading:
    a server's pass rises by the GPUs that its small jobs got over their tickets.
    """
    home: dict[str, dict[int, int]] = {}
    passes: dict[str, Fraction] = {}
    servers: dict[int, Fraction] = {}

    def choose(present: Sequence[Job], gpus: int) -> list[Job]:
        there = {job.name: job for job in present}
        for name in set(home) - set(there):
            del home[name]
        total = sum(weights[user] for user in users if any(job.user == user for job in present))

        def part(more: Job | None = None) -> dict[str, Fraction]:
            """Return the part of the time that each user's jobs may have."""
            want = {user: sum(job.gpus for job in present if job.user == user and job.name in home) for user in users}
            if more is not None:
                want[more.user] += more.gpus
            open_, left, got = {user for user in users if want[user]}, Fraction(gpus), dict.fromkeys(users, ZERO)
            while open_:
                level = left / sum(weights[user] for user in open_)
                met = {user for user in open_ if want[user] <= weights[user] * level}
                if not met:
                    return {
                        user: got[user] if user not in open_ else weights[user] * level / want[user] for user in users
                    }
                for user in met:
                    got[user] = Fraction(1)
                    left -= want[user]
                open_ -= met
            return got

        def load(host: int, parts: Mapping[str, Fraction]) -> Fraction:
            wants = [(there[name], spots[host]) for name, spots in home.items() if host in spots]
            return sum((count * parts[job.user] for job, count in wants), ZERO) / hosts[host]

        assert total
        fresh = [job for job in present if job.name not in home]
        while fresh:
            held = {user: sum(there[name].gpus for name in home if there[name].user == user) for user in users}
            user = min({job.user for job in fresh}, key=lambda user: (held[user] / weights[user], users.index(user)))
            job = next(job for job in fresh if job.user == user)
            fresh.remove(job)
            parts, missing, spots = part(job), job.gpus, {}
            small = job.gpus <= max(hosts)
            while missing:
                open_to = [at for at, size in enumerate(hosts) if at not in spots and (not small or size >= job.gpus)]
                host = min(open_to, key=lambda at: (load(at, parts), at))
                spots[host] = min(missing, hosts[host])
                missing -= spots[host]
            home[job.name] = spots
        if threshold is not None:
            _balance(threshold, part(), load)
        return _quantum(present, part())

    def _balance(
        threshold: Fraction, parts: Mapping[str, Fraction], load: Callable[[int, Mapping[str, Fraction]], Fraction]
    ) -> None:
        loads = [load(host, parts) for host in range(len(hosts))]
        high, low = loads.index(max(loads)), loads.index(min(loads))
        gap, best, most = loads[high] - loads[low], None, ZERO
        for name, job in order.items():
            spots = home.get(name, {})
            if gap > threshold and list(spots) == [high] and job.gpus <= hosts[low]:
                tickets = job.gpus * parts[job.user]
                gain = gap - abs(gap - tickets / hosts[high] - tickets / hosts[low])
                if gain > most:
                    best, most = name, gain
        if best is not None:
            home[best] = {low: order[best].gpus}
            passes.pop(best, None)

    order: dict[str, Job] = {}

    def _quantum(present: Sequence[Job], parts: Mapping[str, Fraction]) -> list[Job]:
        tickets = {job.name: job.gpus * parts[job.user] for job in present}
        large = [job for job in present if len(home[job.name]) > 1]
        small: dict[int, list[Job]] = {}
        for job in present:
            if job not in large:
                small.setdefault(next(iter(home[job.name])), []).append(job)
        for name in set(passes) - {job.name for job in present}:
            del passes[name]
        for own in small.values():
            least = min((passes[job.name] for job in own if job.name in passes), default=ZERO)
            for job in own:
                passes.setdefault(job.name, least)
        for host in set(servers) - set(small):
            del servers[host]
        least = min([*servers.values(), *(passes[job.name] for job in large if job.name in passes)], default=ZERO)
        for host in small:
            servers.setdefault(host, least)
        for job in large:
            passes.setdefault(job.name, least)
        free, chosen = list(hosts), []
        turns = [(servers[host], 0, host, own) for host, own in small.items()]
        turns += [(passes[job.name], 1, at, [job]) for at, job in enumerate(large)]
        for _, is_large, host, own in sorted(turns, key=lambda turn: turn[:3]):
            used, ran = 0, []
            for job in sorted(own, key=lambda job: passes[job.name]):
                spots = home[job.name]
                if all(free[at] >= count for at, count in spots.items()):
                    for at, count in spots.items():
                        free[at] -= count
                    used += job.gpus
                    ran.append(job)
            chosen += ran
            if used and not is_large:
                servers[host] += used / sum((tickets[job.name] for job in own), ZERO)
        for job in chosen:
            passes[job.name] += job.gpus / tickets[job.name]
        return chosen

    def remembering(present: Sequence[Job], gpus: int) -> list[Job]:
        order.clear()
        order.update({job.name: job for job in present})
        return choose(present, gpus)

    return remembering
