"""What starts: pending jobs in order of priority, while free GPUs and the limits up the tree allow."""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.models.common.amounts import light
from fairopt.models.common.holdings import Holdings, entitlements_of, takes_of
from fairopt.problem import Market
from fairopt.program import INFINITY


def start(market: Market, order: Sequence[int], *, backfill: bool) -> tuple[list[int], dict[str, str]]:
    """Return on which type each gang (m,) runs after pending ones were started in ``order``, and why others wait.

    A job that breaks a limit is passed over. A job for which there are too few free GPUs keeps the types that it could
    take for itself: nobody after it starts there, unless with ``backfill``. What runs is not stopped. Types are tried
    in the market's order. Which host a GPU is in, how long jobs run and reservations are not looked at.

    Source: Slurm 284c3b95, src/slurmctld/job_scheduler.c, _schedule: acct_policy_job_runnable_pre_select, `continue`;
    ESLURM_NODES_BUSY, fail_by_part; ESLURM_ACCOUNTING_POLICY (assoc_limit_stop is off by default). A GPU type is taken
    for a partition. With ``backfill`` jobs are tried as in src/plugins/sched/backfill, without its time limits.
    """
    owed = entitlements_of(market)
    gangs, room, cap = owed.gangs, Holdings.at_first(market), [light(row) for row in owed.cap.tolist()]
    there, limited = [int(each) for each in market.capacity], [any(each < INFINITY for each in row) for row in cap]
    taken = owed.held[:, : len(there)].sum(axis=0)
    room.free[: len(there)] = [all_ - int(each) for all_, each in zip(there, taken, strict=True)]  # whole GPUs
    limits = [[over for over in owed.path(user) if limited[over]] for user in range(len(owed.users))]
    on, allowed = gangs.on.tolist(), gangs.allowed.tolist()
    user, gpus = gangs.user.tolist(), gangs.gpus.tolist()
    kept: dict[int, str] = {}  # the job for which a type is kept
    waits: dict[str, str] = {}
    for gang in order:
        need, who = gpus[gang], user[gang]
        why, short = "", []
        for kind, may in enumerate(allowed[gang]):
            if not may or need > there[kind]:
                continue
            if kind in kept:
                why = why or f"{market.types[kind]} is kept for {kept[kind]}, which goes first"
                continue
            takes = takes_of(owed, gang, kind)
            over = ((node, room.beyond(node, takes, cap[node])) for node in limits[who])
            broken = next(((node, column) for node, column in over if column is not None), None)
            if broken is not None:
                node, column = broken
                held, most = room.held[node][column], cap[node][column]
                why = f"the limit of {room.names[node]}: {most} {room.columns[column]}, of which it holds {held}"
            elif need > room.free[kind]:
                short.append(kind)
                why = f"it needs {need} {market.types[kind]}, and {max(room.free[kind], 0)} are free"
            else:
                room.add(who, takes)
                on[gang] = kind
                break
        else:
            waits[gangs.names[gang]] = why or f"it needs {need} GPUs, more than there are of any type that it may take"
            if not backfill:
                kept |= dict.fromkeys(short, gangs.names[gang])
    return on, waits
