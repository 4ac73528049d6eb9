"""What changed in a run, from the referee's whole records: what an engine must say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from fairopt.problem import Cluster, Spots, Trace
from fairopt.program import Number
from fairopt.simulation.changes import Changes, Placed
from fairopt.simulation.record import PLACED, Change, JobRun, Round


def changes_of(rounds: Iterable[Round], trace: Trace, cluster: Cluster) -> Iterator[Changes]:
    """Yield the changes of the rounds that `fairopt.simulation.run` yields from the beginning of a trace.

    The loading time of those who are placed is not in a record; it is that of the standing, or else what was spent.
    """
    row = {name: at for at, name in enumerate(trace.jobs.names)}
    host = {name: at for at, name in enumerate(cluster.hosts)}
    lease: dict[str, Number] = {}  # of the jobs that run
    down: tuple[str, ...] = ()
    said: dict[str, Any] = {"costs": {}, "notes": {}, "backend": "auto"}
    for record in rounds:
        notes = {row[job]: text for job, text in record.notes.items()}
        says: dict[str, Any] = {"costs": record.costs, "notes": notes, "backend": record.backend}
        ran = {each.job: each for each in record.ran}
        usual = {
            job: lease[job]
            if each.change is Change.STAY and lease.get(job, record.begin) > record.begin
            else record.end
            for job, each in ran.items()
        }
        new = {name: value for name, value in says.items() if said[name] != value}
        arrived = record.after.arrived
        changes = Changes(
            index=record.index,
            begin=record.begin,
            end=record.end,
            arrived=range(arrived - len(record.arrived), arrived),
            failed=tuple(host[name] for name in record.down if name not in down),
            back=tuple(sorted(host[name] for name in down if name not in record.down)),
            misfits={row[job]: why for job, why in record.misfits.items() if job in record.arrived},
            stopped=tuple(sorted(row[job] for job in lease if job not in ran)),
            placed=tuple(_placed(each, row, host) for each in record.ran if each.change in PLACED),
            leases={row[job]: each.lease for job, each in ran.items() if each.lease != usual[job]},
            completed={row[each.job]: each.end for each in record.ran if each.completed},
            lost={row[each.job]: each.end for each in record.ran if each.lost},
            **new,
        )
        lease = {each.job: each.lease for each in record.ran if not each.completed and not each.lost}
        down, said = record.down, says
        if changes != Changes(record.index, record.begin, record.end, range(0)):
            yield changes


def _placed(each: JobRun, row: dict[str, int], host: dict[str, int]) -> Placed:
    spots: Spots = tuple((host[name], gpus) for name, gpus in each.spots)
    return Placed(row[each.job], spots, each.change, each.setup, each.speed)
