"""What starts: pending jobs in order of priority, while free GPUs and the limits up the tree allow."""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.models.common.amounts import light
from fairopt.models.common.holdings import Holdings, entitlements_of
from fairopt.problem import Market
from fairopt.program import INFINITY


def start(market: Market, order: Sequence[int], *, backfill: bool) -> Holdings:
    """Return what is held after pending gangs were started in ``order``, by number, and why others wait.

    A job that breaks a limit is passed over. A job for which there are too few free GPUs keeps the types that it could
    take for itself: nobody after it starts there, unless with ``backfill``. What runs is not stopped. Types are tried
    in the market's order. Which host a GPU is in, how long jobs run and reservations are not looked at.

    Source: Slurm 284c3b95, src/slurmctld/job_scheduler.c, _schedule: acct_policy_job_runnable_pre_select, `continue`;
    ESLURM_NODES_BUSY, fail_by_part; ESLURM_ACCOUNTING_POLICY (assoc_limit_stop is off by default). A GPU type is taken
    for a partition. With ``backfill`` jobs are tried as in src/plugins/sched/backfill, without its time limits.
    """
    owed, room = entitlements_of(market), Holdings.at_first(market)
    cap = [light(row) for row in owed.cap.tolist()]
    limited = [any(each < INFINITY for each in row) for row in cap]
    there, taken = [int(each) for each in market.capacity], owed.held[:, : len(market.types)].sum(axis=0)
    room.free[: len(there)] = [all_ - int(each) for all_, each in zip(there, taken, strict=True)]  # whole GPUs
    limits = [[over for over in owed.path(user) if limited[over]] for user in range(len(owed.users))]
    pending = {gang.number: gang for own in room.waiting.values() for gang in own}
    kept: dict[int, str] = {}  # the job for which a type is kept
    for number in order:
        gang = pending[number]
        why, short, need = "", [], int(owed.gangs.gpus[number])
        for kind, takes in gang.takes.items():
            if need > there[kind]:
                continue
            if kind in kept:
                why = why or f"{market.types[kind]} is kept for {kept[kind]}, which goes first"
                continue
            over = ((node, room.beyond(node, takes, cap[node])) for node in limits[gang.queue])
            broken = next(((node, column) for node, column in over if column is not None), None)
            if broken is not None:
                node, column = broken
                held, most = room.held[node][column], cap[node][column]
                why = f"the limit of {room.names[node]}: {most} {room.columns[column]}, of which it holds {held}"
            elif need > room.free[kind]:
                short.append(kind)
                why = f"it needs {need} {market.types[kind]}, and {max(room.free[kind], 0)} are free"
            else:
                room.start(gang, kind)
                break
        else:
            room.waits[gang.name] = why or f"it needs {need} GPUs, more than there are of any type that it may take"
            if not backfill:
                kept |= dict.fromkeys(short, gang.name)
    return room
