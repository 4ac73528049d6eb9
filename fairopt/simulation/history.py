"""A `History`: the rounds of a run with their trace and cluster, asked job by job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from fairopt.numbers import counted
from fairopt.problem.cluster import Cluster
from fairopt.problem.trace import Trace
from fairopt.program import Number, short_text
from fairopt.report import Grid, Tabular
from fairopt.simulation.record import Changes, JobRun, Round


@dataclass(frozen=True, eq=False, repr=False)
class History(Tabular):
    """What happened in a run; all measures are computed from it.

    ``rounds`` are in order of time; a round in which no job was present has no record. A job that arrived and is not
    completed when the last record ends is present until then. `to_frame` has a row for each job and round that it ran
    in.

    Units: those of the trace (seconds in files). Errors: `NotInstalled` of `to_frame` without pandas. Source: ours.

    >>> from fairopt import History, run
    >>> from fairopt.datasets import philly_cluster, philly_trace
    >>> trace, cluster = philly_trace(), philly_cluster()
    >>> History.of(trace, cluster, run("srtf", trace, cluster, length=300, rounds=3))
    <History: srtf on <Cluster: 8 hosts, GPUs: 32 K80, 16 P100, 16 V100>: 3 rounds, 9 of 1000 jobs completed by 900>
    """

    trace: Trace
    cluster: Cluster
    rounds: Sequence[Round]

    @classmethod
    def of(cls, trace: Trace, cluster: Cluster, rounds: Iterable[Round]) -> History:
        """Return the history of the records that `fairopt.simulation.run` yields."""
        return cls(trace, cluster, tuple(rounds))

    def __repr__(self) -> str:
        policies = " and ".join({record.policy: None for record in self.rounds}) or "nobody"
        done = sum(len(record.completed) for record in self.rounds)
        jobs = f"{done} of {counted(len(self.trace.jobs), 'job')} completed by {short_text(self.until)}"
        return f"<History: {policies} on {self.cluster!r}: {counted(len(self.rounds), 'round')}, {jobs}>"

    def _table(self) -> Grid:
        ran = [(record, each) for record in self.rounds for each in record.ran]
        columns = {
            "round": [record.index for record, _ in ran],
            **{name: [getattr(each, name) for _, each in ran] for name in ("begin", "end", "gpus")},
            "hosts": [" ".join(f"{host}:{gpus}" for host, gpus in each.spots) for _, each in ran],
            "change": [each.change.value for _, each in ran],
            **{name: [getattr(each, name) for _, each in ran] for name in ("setup", "progress", "completed", "lost")},
        }
        return Grid("job", [each.job for _, each in ran], columns)

    @property
    def changes(self) -> Iterator[Changes]:
        """What changed, round after round; also where nothing did."""
        number, before = {host: at for at, host in enumerate(self.cluster.hosts)}, frozenset[int]()
        for record in self.rounds:
            down = frozenset(number[host] for host in record.down)
            failed, back = tuple(sorted(down - before)), tuple(sorted(before - down))
            yield replace(record.changes, failed=failed, back=back)
            before = down

    @cached_property
    def until(self) -> Number:
        """When the last round ends; 0 for no rounds."""
        end: Number = self.rounds[-1].end if self.rounds else 0
        return end

    @cached_property
    def row(self) -> Mapping[str, int]:
        """The row of each job of the trace."""
        return {name: row for row, name in enumerate(self.trace.jobs.names)}

    @cached_property
    def arrival(self) -> Mapping[str, Number]:
        """When each job of the trace arrives."""
        return dict(zip(self.trace.jobs.names, self.trace.jobs.arrival, strict=True))

    @cached_property
    def ran(self) -> Mapping[str, tuple[JobRun, ...]]:
        """For each job that arrived, the rounds that it ran in, rising; () where it never did."""
        of: dict[str, list[JobRun]] = {
            name: [] for name, arrival in self.arrival.items() if self.rounds and arrival <= self.rounds[-1].begin
        }
        for record in self.rounds:
            for ran in record.ran:
                of[ran.job].append(ran)
        return {name: tuple(rounds) for name, rounds in of.items()}

    @cached_property
    def completion(self) -> Mapping[str, Number | None]:
        """For each job that arrived, when it was completed; None where it was not."""
        return {name: ran[-1].end if ran and ran[-1].completed else None for name, ran in self.ran.items()}

    @cached_property
    def first_start(self) -> Mapping[str, Number | None]:
        """For each job that arrived, when it first got GPUs; None where it never did."""
        return {name: ran[0].begin if ran else None for name, ran in self.ran.items()}

    @cached_property
    def unschedulable(self) -> Mapping[str, str]:
        """The jobs that fit no type of the cluster, with the reason."""
        return {name: why for record in self.rounds for name, why in record.unschedulable.items()}
