"""What starts: pending jobs in order of priority, while free GPUs and the limits up the tree allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fairopt.numbers import whole_as_int
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Number


@dataclass
class RoomLeft:
    """What is free of each GPU type, and what each node of the tree holds and may hold, as jobs start."""

    names: tuple[str, ...]
    columns: tuple[str, ...]
    free: list[int]
    capacity: list[int]
    held: list[list[Number]]
    cap: list[list[Number]]
    #: for each node those on its way up that have a limit, itself first
    limited: list[list[int]]
    #: for each type the columns in which a job there counts, beside its GPUs, and which of its resources count there
    goods: list[list[tuple[int, int]]]
    #: the job for which a type is kept
    kept: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, market: Market) -> RoomLeft:
        """Return the room that the running jobs leave."""
        owed = market.entitlements
        assert owed is not None
        capacity = [int(each) for each in market.capacity]
        taken = owed.held[:, : len(capacity)].sum(axis=0)
        finite = [any(each < INFINITY for each in row) for row in owed.cap.tolist()]
        return cls(
            names=owed.nodes,
            columns=owed.columns,
            free=[all_ - int(each) for all_, each in zip(capacity, taken, strict=True)],
            capacity=capacity,
            held=_plain(owed.total(owed.held)),
            cap=_plain(owed.cap),
            limited=[[over for over in owed.path(user) if finite[over]] for user in range(len(owed.users))],
            goods=[
                [
                    (column, at)
                    for at, name in enumerate(owed.gangs.resources)
                    if (column := owed.good(name, kind)) is not None
                ]
                for kind in range(len(capacity))
            ],
        )

    def limit(self, user: int, takes: Sequence[tuple[int, Number]]) -> str:
        """Return in words the first limit that a job on its way up would break; "" where it breaks none."""
        for node in self.limited[user]:
            for column, count in takes:
                most = self.cap[node][column]
                if count and self.held[node][column] + count > most:
                    name, what = self.names[node], self.columns[column]
                    return f"the limit of {name}: {most} {what}, of which it holds {self.held[node][column]}"
        return ""

    def take(self, user: int, kind: int, takes: Sequence[tuple[int, Number]]) -> None:
        """Start a job."""
        self.free[kind] -= int(takes[0][1])
        for node in self.limited[user]:
            for column, count in takes:
                self.held[node][column] += count


def _plain(table: Array) -> list[list[Number]]:
    """Return a table with whole numbers as ints."""
    return [[whole_as_int(each) for each in row] for row in table.tolist()]


def start(market: Market, order: Sequence[int], *, backfill: bool) -> tuple[list[int], dict[str, str]]:
    """Return on which type each gang (m,) runs after pending ones were started in ``order``, and why others wait.

    A job that breaks a limit is passed over. A job for which there are too few free GPUs keeps the types that it could
    take for itself: nobody after it starts there, unless with ``backfill``. What runs is not stopped. Types are tried
    in the market's order. Which host a GPU is in, how long jobs run and reservations are not looked at.

    Source: Slurm 284c3b95, src/slurmctld/job_scheduler.c, _schedule: acct_policy_job_runnable_pre_select, `continue`;
    ESLURM_NODES_BUSY, fail_by_part; ESLURM_ACCOUNTING_POLICY (assoc_limit_stop is off by default). A GPU type is taken
    for a partition. With ``backfill`` jobs are tried as in src/plugins/sched/backfill, without its time limits.
    """
    owed = market.entitlements
    assert owed is not None
    gangs, room = owed.gangs, RoomLeft.of(market)  # plain numbers below: Fractions would take ten times as long
    on, allowed = gangs.on.tolist(), gangs.allowed.tolist()
    user, gpus, other = gangs.user.tolist(), gangs.gpus.tolist(), _plain(gangs.other)
    waits: dict[str, str] = {}
    for gang in order:
        need, who = gpus[gang], user[gang]
        why, short = "", []
        for kind, may in enumerate(allowed[gang]):
            if not may or need > room.capacity[kind]:
                continue
            if kind in room.kept:
                why = why or f"{market.types[kind]} is kept for {room.kept[kind]}, which goes first"
                continue
            takes = [(kind, need), *((column, other[gang][at]) for column, at in room.goods[kind])]
            broken = room.limit(who, takes)
            if broken:
                why = broken
            elif need > room.free[kind]:
                short.append(kind)
                why = f"it needs {need} {market.types[kind]}, and {max(room.free[kind], 0)} are free"
            else:
                room.take(who, kind, takes)
                on[gang] = kind
                break
        else:
            waits[gangs.names[gang]] = why or f"it needs {need} GPUs, more than there are of any type that it may take"
            if not backfill:
                room.kept |= dict.fromkeys(short, gangs.names[gang])
    return on, waits
