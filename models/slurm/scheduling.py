"""Which pending jobs Slurm starts, and which it stops for them: the main scheduler, and backfill after it."""

from __future__ import annotations

import numpy as np

from fairopt.models.common.holdings import Holdings
from fairopt.models.slurm.backfill import Backfill
from fairopt.models.slurm.site import SlurmJob, SlurmPartition
from fairopt.models.slurm.starting import JobStarter
from fairopt.program import Array


def scheduled(starter: JobStarter, *, backfill: bool) -> Holdings:
    """Start jobs until nothing changes any more, and return what is held then, and why others wait.

    Each round is of the jobs that wait then. The last starts nothing, and its reasons are those that squeue states:
    those of backfill, where that is on. A job stops others again only KillWait and MessageTimeout after it stopped
    some, which is when nothing else starts any more.
    """
    some = -1
    while some != len(starter.room.started) or starter.made_room:
        if some == len(starter.room.started):
            starter.made_room.clear()
        some = len(starter.room.started)
        starter.line_up()
        while stopped_some(starter) or (backfill and Backfill(starter).run()):
            starter.line_up()
    return starter.room


def stopped_some(starter: JobStarter) -> bool:
    """Start jobs, going through them once in their order, and say whether any was stopped for another.

    Where none was, a second time starts nothing, but where jobs go before each other in a circle. A job that a limit
    stops is passed over. One that finds too little keeps all nodes of its partition from those after it, whatever
    partition these are in; where jobs can be stopped for it, they are.

    Source: Slurm 22.05.8, src/slurmctld/job_scheduler.c, _schedule.
    """
    site, waits = starter.site, starter.room.waits
    starter.makes_room.clear()
    _refused(starter)
    kept: dict[str, str] = {}  # by partition: the job for which its nodes are kept
    taken = np.zeros(len(site.names), dtype=bool)
    for job, part in starter.queue:
        if not starter.waits(job):
            continue
        name = job.gang.name
        if part.name in kept:
            why = f"{part.name or 'the partition'} is kept for {kept[part.name]}, which goes first"
            if name not in starter.stays:  # passed over, it keeps another reason than too little room
                waits[name] = why
            elif name not in waits:
                waits[name] = f"{job.stated}, as Slurm stated before; {why}"
            continue
        if why := starter.limits.on_jobs(job, part):
            waits[name] = why
            starter.stays.add(name)
            continue
        nodes = part.nodes & ~taken
        enough = bool(nodes.sum() >= job.nodes)
        why = part.denies(job) if enough else ""
        why, found = starter.free_for(job, part, nodes) if enough and not why else (why, None)
        if found is not None:
            starter.start(job, part, *found)
        elif why:
            waits[name] = why
            starter.stays.add(name)
        elif not job.gang.takes or (enough and not starter.fits_at_all(job, part.nodes)):
            waits.setdefault(name, f"it needs {_asked(starter, job)}, more than there are of any type that it may take")
        elif enough and not starter.fits_at_all(job, nodes):  # ReqNodeNotAvail, which keeps nothing
            waits[name] = _short(starter, job, part, nodes, kept)
            starter.stays.add(name)
        else:
            if enough:
                starter.stop_for(job, part, nodes)
            waits[name] = _short(starter, job, part, nodes, kept)
            starter.stays.discard(name)
            kept[part.name] = name
            taken |= part.nodes
    return bool(starter.makes_room)


def _refused(starter: JobStarter) -> None:
    """Say of each job why a partition refuses it, unless one of those after that partition does not.

    Source: Slurm 22.05.8, src/slurmctld/job_scheduler.c, build_job_queue, before any job is tried.
    """
    for job in filter(starter.waits, starter.site.jobs.values()):
        refused = False
        for part in job.partitions:
            if why := part.refuses(job):
                starter.room.waits[job.gang.name] = why
                starter.stays.add(job.gang.name)
                refused = True
            elif refused:
                starter.stays.discard(job.gang.name)


def _asked(starter: JobStarter, job: SlurmJob) -> str:
    kinds = [starter.site.types[kind] for kind in job.gang.takes]
    return f"{job.gpus} {kinds[0] if len(kinds) == 1 else 'GPUs'}"


def _short(starter: JobStarter, job: SlurmJob, part: SlurmPartition, nodes: Array, kept: dict[str, str]) -> str:
    """Return in words that too little is free for a job in some nodes of a partition."""
    site = starter.site
    every = list(job.gang.takes)
    kinds = [kind for kind in every if site.total[part.nodes, kind].sum() >= job.gpus] or every
    there = int(np.maximum(site.free[nodes, kinds[-1]], 0).sum())
    words = f"it needs {job.gpus} {site.types[kinds[-1]]}, and {there} are free" + f" in {part.name}" * site.by_node
    others = ((name, site.partitions[other].nodes) for other, name in kept.items() if name != job.gang.name)
    first = next((name for name, own in others if (own & part.nodes).any()), "")
    if first:
        return f"{words}: other nodes are kept for {first}, which goes first"
    if there < job.gpus:
        return words
    cpus = f" with {job.cpus} CPUs" * (job.cpus > 1)
    return f"{words}, but not on {job.nodes} node{'s' * (job.nodes > 1)} together{cpus}"
