"""Work conservation over time: no gang waits for which GPUs of one type are free."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.problem import Queue
from fairopt.program import number_text
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.runs.run_property import BOTH, ONE, RunProperty, jobs, scripted
from fairopt.properties.verdict import Answer
from fairopt.simulation import History


class WorkConservationOverTime(RunProperty):
    """In no round does a gang wait that would fit on free GPUs of one type that it can use.

    Decided at the beginning of each round, for jobs that are there then; hosts that are down have no GPUs. The margin
    is the GPU-time that the gang could have held. A failure shows a job that waits for ``gpus`` in the round from
    ``begin`` on, and the type of which as many, or more, are ``free``.

    Source: work conservation, Gandiva_fair Sec. 3.3; gangs are all or nothing, FFT Sec. 4.1.
    """

    name = "work_conservation_over_time"
    head = "no useful GPU idle"
    broken = "GPUs idle that {who} could use"
    source = "Gandiva_fair Sec. 3.3"
    definition = "d_j > free GPUs of i in the round, for every job j that waits in it and every type i that it can use"
    unit = "GPU-time"
    looked_at = "rounds"
    instances = (
        CitedInstance(
            "two GPUs in use, and the third job waits",
            None,
            lambda: scripted(jobs([1, 1, 1], [10, 10, 10]), {"a": ONE, "b": ONE}, {"c": ONE}),
            Answer.HOLDS,
        ),
        CitedInstance(
            "one GPU is free while a job waits for one",
            None,
            lambda: scripted(jobs([1, 1], [10, 10]), {"a": ONE}, {"b": ONE}),
            Answer.FAILS,
        ),
        CitedInstance(
            "one GPU is free while a gang waits for two",
            None,
            lambda: scripted(jobs([1, 2], [10, 10]), {"a": ONE}, {"b": BOTH}),
            Answer.HOLDS,
        ),
    )

    def cases(self, history: History) -> Iterator[SlackCase]:
        """Yield the rounds, each with the largest gang that would fit."""
        jobs, cluster = history.trace.jobs, history.cluster
        suits = Queue.fresh(jobs, cluster, length=1).suits
        rows = {name: row for row, name in enumerate(jobs.names)}
        hosts = {host: at for at, host in enumerate(cluster.hosts)}
        for record in history.rounds:
            left = cluster.gpus * [host not in record.down for host in cluster.hosts]
            for host, gpus in (spot for ran in record.ran for spot in ran.spots):
                left[hosts[host]] -= gpus
            free = np.bincount(cluster.gpu_type, weights=left, minlength=len(cluster.types)).astype(np.int64)
            waiting = [rows[name] for name in record.waiting if name not in record.unschedulable]
            fits = {row: np.flatnonzero(suits[row] & (jobs.gpus[row] <= free)) for row in waiting}
            able = [row for row in waiting if len(fits[row])]
            length = record.end - record.begin
            if not able:
                yield self.case(0 * length, length)
                continue
            row = max(able, key=lambda row: int(jobs.gpus[row]))
            size, kind = int(jobs.gpus[row]), int(fits[row][0])
            shown = {"type": cluster.types[kind], "gpus": size, "free": int(free[kind])}
            yield self.case(-size * length, size * length, job=jobs.names[row], begin=record.begin, **shown)

    def says(self, case: SlackCase) -> str:
        """Return who waits when, and what is free, in a sentence."""
        at = number_text(case.begin)
        return f"{case.job} waits for {case.gpus} GPUs at {at}, and {case.free} of {case.type} are free"

    def fails(self, case: SlackCase, history: History) -> bool:
        """Whether the job waits in that round, can run on the type, and as many GPUs of it are free as are said."""
        jobs, cluster = history.trace.jobs, history.cluster
        record = next(record for record in history.rounds if record.begin == case.begin)
        row, kind = jobs.names.index(case.job), cluster.types.index(case.type)
        hosts = zip(cluster.hosts, cluster.gpu_type, cluster.gpus.tolist(), strict=True)
        has = {host: gpus for host, of, gpus in hosts if of == kind}
        there = sum(gpus for host, gpus in has.items() if host not in record.down)
        used = sum(gpus for ran in record.ran for host, gpus in ran.spots if host in has)
        able = jobs.throughput[row, kind] > 0 and jobs.memory[row] <= cluster.memory[kind]
        return bool(case.job in record.waiting and able and jobs.gpus[row] <= there - used == case.free)
