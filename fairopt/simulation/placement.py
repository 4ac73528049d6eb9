"""The choice of hosts for jobs: one protocol for all policies, and the consolidated placement that most use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fairopt.problem.queue import Queue, Spots
from fairopt.program import Array


@dataclass(frozen=True)
class Want:
    """A job that is to run: its row, and the types that its GPUs may have (one, unless types may mix)."""

    row: int
    kinds: tuple[int, ...]


class Placement(Protocol):
    """A way to choose hosts. Jobs that cannot be placed are left out of the answer; nothing is overbooked."""

    def place(self, queue: Queue, wants: Sequence[Want], free: Array) -> Mapping[int, Spots]:
        """Return the `Spots` of those of ``wants`` that fit into ``free`` (H,), which is not changed."""
        ...


@dataclass(frozen=True)
class Consolidated:
    """As few hosts as possible for each job; a job that ran in the round before stays where it is.

    First the jobs that can stay, then the others by falling number of GPUs: onto the fullest single host with room
    (the one that it ran on last, where there is a choice), else onto the emptiest hosts.

    Source: ASTRAEA Sec. 5 (consolidated placement); OEF Sec. 4.3 (priority for jobs with more workers).
    """

    def place(self, queue: Queue, wants: Sequence[Want], free: Array) -> Mapping[int, Spots]:
        """Return the spots of the wants that fit; see `Placement.place`."""
        left = free.copy()
        placed: dict[int, Spots] = {}
        moving = []
        for want in wants:
            if stays(queue, want, left):
                take(left, queue.last[want.row])
                placed[want.row] = queue.last[want.row]
            else:
                moving.append(want)
        for want in sorted(moving, key=lambda want: -int(queue.jobs.gpus[want.row])):
            spots = fewest_hosts(queue, want, left)
            if spots:
                take(left, spots)
                placed[want.row] = spots
        return placed


def stays(queue: Queue, want: Want, left: Array) -> bool:
    """Whether a job ran in the round before, and can continue there: same types, and its GPUs are free."""
    last = queue.last[want.row]
    return (
        bool(queue.running[want.row])
        and set(queue.kinds(last)) <= set(want.kinds)
        and all(left[host] >= gpus for host, gpus in last)
    )


def take(left: Array, spots: Spots) -> None:
    """Take the GPUs of ``spots`` out of ``left`` (H,), in place."""
    for host, gpus in spots:
        left[host] -= gpus


def fewest_hosts(queue: Queue, want: Want, left: Array) -> Spots:
    """Return spots for one job on as few hosts as possible, () where it does not fit.

    It takes the fullest host that can hold all of it; else the emptiest hosts first, which needs the fewest. Ties go to
    hosts where the job ran last, then to the first.
    """
    gpus = int(queue.jobs.gpus[want.row])
    before = {host for host, _ in queue.last[want.row]}
    for kinds in [(kind,) for kind in want.kinds] + ([want.kinds] if len(want.kinds) > 1 else []):
        hosts = [host for kind in kinds for host in queue.cluster.of_type(kind) if left[host] > 0]
        whole = [host for host in hosts if left[host] >= gpus]
        if whole:
            best = min(whole, key=lambda host: (left[host], host not in before, host))
            return ((best, gpus),)
        if sum(int(left[host]) for host in hosts) < gpus:
            continue
        spots, missing = [], gpus
        for host in sorted(hosts, key=lambda host: (-left[host], host not in before, host)):
            here = min(missing, int(left[host]))
            spots.append((host, here))
            missing -= here
            if not missing:
                return tuple(sorted(spots))
    return ()
