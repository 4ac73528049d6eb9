"""What a job can do with GPUs: throughput by their number, hosts, type and batch, times what that is worth.

A unit of throughput with a batch is so much work, which changes with the work that is done. A job takes the
batch of the largest product. Its course on given GPUs are the speeds by the work from which each holds.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from .reading import ONE, ZERO, Entry, require

#: Work is rounded to a part of this, far below any tolerance.
FINE = 2**128
Course = list[tuple[Fraction, list[Fraction]]]


class Profile:
    """A profile of a trace, and what follows for a number of GPUs on a number of hosts."""

    def __init__(self, entry: Entry, types: int) -> None:
        fields = entry.fields("throughput efficiency restart")
        self.restart = None if fields["restart"].value is None else fields["restart"].amount()
        self.rows: dict[tuple[int, int], dict[Fraction, list[Fraction]]] = {}
        for row in fields["throughput"].items():
            gpus, hosts, batch, *speeds = row.items(3 + types)
            own = self.rows.setdefault((gpus.integer(1), hosts.integer(1)), {})
            require(hosts.integer() <= gpus.integer(), row.place, "more hosts than GPUs")
            require(batch.amount(positive=True) not in own, row.place, "GPUs, hosts and batch stand twice")
            own[batch.amount()] = [each.amount() for each in speeds]
        require(self.rows, entry.place, "no throughput")
        self.sizes = {gpus for gpus, _ in self.rows}
        batches = {each for own in self.rows.values() for each in own}
        worth: dict[Fraction, dict[Fraction, Fraction]] = {}
        for row in fields["efficiency"].items():
            after, batch, factor = row.items(3)
            own_worth = worth.setdefault(after.amount(), {})
            require(batch.amount() in batches, row.place, "there is no such batch")
            require(batch.amount() not in own_worth, row.place, "two factors of a batch begin there")
            own_worth[batch.amount()] = factor.amount(positive=True)
        self.phases = [(ZERO, worth.pop(ZERO, {}))]
        for mark in sorted(worth):
            self.phases.append((mark, self.phases[-1][1] | worth[mark]))

    def hosts(self, gpus: int, hosts: int) -> int:
        """Return the hosts of the rows that count: the most that are not more, else the fewest."""
        known = sorted(on for size, on in self.rows if size == gpus)
        return max([on for on in known if on <= hosts], default=known[0])

    def course(self, gpus: int, hosts: int) -> Course:
        """Return the speeds on each type by the work done from which they hold."""
        rows = self.rows[gpus, self.hosts(gpus, hosts)]
        found: Course = []
        for mark, factors in self.phases:
            worth = ([speed * factors.get(batch, ONE) for speed in speeds] for batch, speeds in rows.items())
            found.append((mark, [max(column) for column in zip(*worth, strict=True)]))
        return found


def made(
    course: list[tuple[Fraction, Fraction]], done: Fraction, time: Fraction, near: bool = False
) -> Fraction:
    """Return the work that is made in a time, from so much on; ``near`` rounds it where speeds change."""
    begin = done
    for (_, speed), (mark, _) in pairwise(course):
        if done < mark:
            step = min(time, (mark - done) / speed)
            done, time = done + step * speed, time - step
    found = done + time * course[-1][1] - begin
    # of numbers that were floats the digits would else grow with each of the speeds
    return Fraction(round(found * FINE), FINE) if near and len(course) > 1 else found


def takes(course: list[tuple[Fraction, Fraction]], done: Fraction, whole: Fraction) -> Fraction:
    """Return the time until so much work is done in all."""
    time = ZERO
    for (_, speed), (mark, _) in pairwise([*course, (whole, ZERO)]):
        end = min(mark, whole)
        if done < end:
            time, done = time + (end - done) / speed, end
    return time
