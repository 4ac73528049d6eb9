"""`Profile`: what a job can do with GPUs, by their number and type, its batch, and how much of its work it has done.

A job's throughput is measured with so many GPUs on so many hosts and with a batch. What it gains by a unit of that is
its statistical efficiency, which depends on the batch and changes while the job runs. Their product, the goodput, is
the job's speed: work per unit of time, where work is what the job itself counts, such as epochs. A job takes the batch
of the largest goodput for its GPUs, as the agents of Pollux and Sia do; where its user has set the batch, the profile
has only that one.

An elastic job has rows for several numbers of GPUs; a job whose batches grow by themselves has one number of GPUs, one
batch, and an efficiency that changes.

Source: Pollux, OSDI 2021, Sec. 3 (goodput); Sia, SOSP 2023, Sec. 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

from fairopt.errors import BadInput
from fairopt.numbers import Arithmetic, arithmetic
from fairopt.problem.checks import listed
from fairopt.problem.numbers import amount, exact, shown, whole
from fairopt.program import INFINITY, Number

#: More rows than this are taken for a mistake.
MOST_ROWS = 1_000_000
#: Speeds, rising: the work done from which each holds. () for a speed that does not change.
Course: TypeAlias = tuple[tuple[Number, Number], ...]


@dataclass(frozen=True)
class Profile:
    """What a job can do with GPUs; make it with `Profile.of`, and share it between jobs that are alike.

    * ``throughput``: rows of a number of GPUs, of hosts that these lie on, a batch, and the throughput on each type.
      On more hosts than any row with that number of GPUs has, the row with the most counts.
    * ``efficiency``: rows of the work after which it holds, a batch, and the work that a unit of throughput is. It is
      1 at first, and holds until the next row of the batch.
    * ``restart``: the time to start the job, at first or again, in place of those of `Mechanics`; None for these.

    Errors: `BadInput` that names the row, the value and the remedy.

    >>> profile = Profile.of([[1, 1, 32, 4], [1, 1, 64, 6], [2, 1, 64, 10]], [[0, 64, "1/2"], [100, 64, 1]]).as_(float)
    >>> [(profile.speeds(at), profile.batch(at, 1, 1, 0)) for at in (0, 1)]
    [({1: (4.0,), 2: (5.0,)}, 32.0), ({1: (6.0,), 2: (10.0,)}, 64.0)]
    """

    throughput: tuple[tuple[Any, ...], ...]
    efficiency: tuple[tuple[Number, Number, Number], ...] = ()
    restart: Number | None = None
    _known: dict[tuple[int, int, int], tuple[Number, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _times: dict[tuple[int, int], tuple[list[Number], list[Number]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        throughput: Iterable[Sequence[object]],
        efficiency: Iterable[Sequence[object]] = (),
        restart: object = None,
        place: str = "profile",
    ) -> Profile:
        """Return a profile of validated rows of exact numbers; ``place`` is what messages call it."""
        rows = [listed(row, f"{place}, throughput") for row in listed(throughput, f"{place}, throughput", "rows")]
        more = [listed(row, f"{place}, efficiency") for row in listed(efficiency, f"{place}, efficiency", "rows")]
        if not 0 < len(rows) <= MOST_ROWS or len(more) > MOST_ROWS:
            remedy = f"Give a row for each number of GPUs and batch, at most {MOST_ROWS}"
            raise BadInput(f"{len(rows)} and {len(more)} rows", place=place, remedy=remedy)
        found = {}
        for number, row in enumerate(rows, 1):
            at = f"{place}, throughput, row {number}"
            if len(row) < 4 or len(row) != len(rows[0]):
                remedy = "Give GPUs, hosts, batch, and the throughput on each type"
                raise BadInput(f"got {len(row)} numbers", place=at, remedy=remedy)
            gpus, hosts = (whole(each, f"{at}, {what}") for each, what in zip(row, ("GPUs", "hosts"), strict=False))
            if hosts > gpus:
                raise BadInput(f"{hosts} hosts for {gpus} GPUs", place=at, remedy="Give at most one host for each GPU")
            key = gpus, hosts, amount(row[2], f"{at}, batch", above=True)
            if key in found:
                raise BadInput("these GPUs, hosts and batch stand twice", place=at, remedy="Give one row for each")
            found[key] = tuple(amount(each, at) for each in row[3:])
        batches, held = {batch for _, _, batch in found}, {}
        for number, row in enumerate(more, 1):
            at = f"{place}, efficiency, row {number}"
            if len(row) != 3:
                raise BadInput(f"got {len(row)} numbers", place=at, remedy="Give the work done, the batch, the factor")
            after, batch, factor = amount(row[0], at), exact(row[1], at), amount(row[2], at, above=True)
            if batch not in batches:
                remedy = "Give the throughput with that batch, too"
                raise BadInput(f"there is no batch {shown(row[1])}", place=at, remedy=remedy)
            if (after, batch) in held:
                remedy = "Give one factor for each beginning"
                raise BadInput("two factors of a batch begin there", place=at, remedy=remedy)
            held[after, batch] = factor
        return cls(
            tuple((*key, *speeds) for key, speeds in sorted(found.items())),
            tuple((*key, factor) for key, factor in sorted(held.items())),
            None if restart is None else amount(restart, f"{place}, restart"),
        )

    @classmethod
    def scaled(cls, gpus: int, throughput: Sequence[object], factors: Mapping[int, object]) -> Profile:
        """Return that of a job of ``gpus`` with that throughput (k,), and with other numbers of GPUs a factor on it.

        >>> Profile.scaled(1, [1, 2], {4: 3}).speeds(0)[4]
        (Fraction(3, 1), Fraction(6, 1))
        """
        own = [exact(each, "profile, throughput") for each in throughput]
        sizes = {gpus: 1} | dict(factors)
        worth = {size: exact(factor, f"profile, {size} GPUs") for size, factor in sizes.items()}
        return cls.of([(size, 1, 1, *(factor * each for each in own)) for size, factor in worth.items()])

    @cached_property
    def types(self) -> int:
        """The number of types."""
        return len(self.throughput[0]) - 3

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The numbers of GPUs that the job may run with, rising."""
        return tuple(sorted({row[0] for row in self.throughput}))

    @cached_property
    def marks(self) -> tuple[Number, ...]:
        """The work done after which the efficiency changes, rising; it begins with 0."""
        zero = self.throughput[0][3] * 0
        return (zero, *sorted({after for after, _, _ in self.efficiency if after}))

    @cached_property
    def _rows(self) -> dict[tuple[int, int], list[tuple[Any, ...]]]:
        rows: dict[tuple[int, int], list[tuple[Any, ...]]] = {}
        for gpus, hosts, *more in self.throughput:
            rows.setdefault((gpus, hosts), []).append(tuple(more))
        return rows

    @cached_property
    def _factors(self) -> list[dict[Number, Number]]:
        """The efficiency of each batch, where it is not 1, from each of the marks on."""
        phases: list[dict[Number, Number]] = []
        for mark in self.marks:
            phases.append((phases[-1] if phases else {}) | {b: f for after, b, f in self.efficiency if after == mark})
        return phases

    @cached_property
    def _hosts(self) -> dict[int, list[int]]:
        hosts: dict[int, list[int]] = {}
        for gpus, on in sorted(self._rows):
            hosts.setdefault(gpus, []).append(on)
        return hosts

    def measured(self, gpus: int, hosts: int) -> int:
        """Return the hosts of the row that counts for so many GPUs on so many hosts; the fewest where none does."""
        known = self._hosts[gpus]
        return known[max(bisect_right(known, hosts) - 1, 0)]

    def phase(self, done: Number) -> int:
        """Return which of the `marks` was passed last after so much work."""
        return bisect_right(self.marks, done) - 1

    def speed(self, phase: int, gpus: int, hosts: int) -> tuple[Number, ...]:
        """Return the goodput on each type, in a phase, with so many GPUs, which are among the `sizes`, on hosts."""
        key = phase, gpus, self.measured(gpus, hosts)
        if (found := self._known.get(key)) is None:
            factors, rows = self._factors[phase], self._rows[key[1:]]
            each = [[value * factors.get(batch, 1) for value in speeds] for batch, *speeds in rows]
            found = self._known[key] = tuple(max(column) for column in zip(*each, strict=True))
        return found

    def speeds(self, phase: int) -> dict[int, tuple[Number, ...]]:
        """Return the goodput on each type by the number of GPUs, on as few hosts as were measured."""
        return {gpus: self.speed(phase, gpus, 1) for gpus in self.sizes}

    def factors(self, gpus: int, gpu_type: int) -> Course:
        """Return by the marks after 0 how many times as fast as at first the job is, with so many GPUs on one host."""
        first = self.speed(0, gpus, 1)[gpu_type]
        later = enumerate(self.marks[1:], 1)
        return tuple((mark, self.speed(phase, gpus, 1)[gpu_type] / first) for phase, mark in later)

    def batch(self, phase: int, gpus: int, hosts: int, gpu_type: int) -> Number:
        """Return the batch of the largest goodput; of several the smallest."""
        factors, rows = self._factors[phase], self._rows[gpus, self.measured(gpus, hosts)]
        best: Number = max(rows, key=lambda row: (row[1 + gpu_type] * factors.get(row[0], 1), -row[0]))[0]
        return best

    def time(self, gpus: int, gpu_type: int, work: Number) -> Number:
        """Return the time that so much work takes from the beginning, with so many GPUs of a type on few hosts."""
        key, zero = (gpus, gpu_type), self.marks[0]
        if key not in self._times:
            speeds = [self.speed(phase, gpus, 1)[gpu_type] for phase in range(len(self.marks))]
            times = [zero]
            for (begin, end), speed in zip(pairwise(self.marks), speeds, strict=False):
                times.append(times[-1] + (end - begin) / speed if speed else INFINITY)
            self._times[key] = times, speeds
        times, speeds = self._times[key]
        at = self.phase(work)
        return times[at] + (work - self.marks[at]) / speeds[at] if speeds[at] else INFINITY

    def take(self, columns: Sequence[int]) -> Profile:
        """Return the same for the types in ``columns``, in that order."""
        rows = tuple((*row[:3], *(row[3 + column] for column in columns)) for row in self.throughput)
        return Profile(rows, self.efficiency, self.restart)

    def as_(self, number: type | Arithmetic) -> Profile:
        """Return the same in ``float`` or in ``Fraction``."""
        kind = arithmetic(number)
        rows = tuple((gpus, hosts, *map(kind, more)) for gpus, hosts, *more in self.throughput)
        factors: Any = tuple(tuple(map(kind, row)) for row in self.efficiency)
        return Profile(rows, factors, None if self.restart is None else kind(self.restart))


def made(course: Course, done: Number, time: Number) -> Number:
    """Return the work that is made in some time from so much on, at the speeds of a course.

    >>> made(((0, 1), (10, 3), (70, 2)), 5, 30), takes(((0, 1), (10, 3), (70, 2)), 5, 80)
    (75.0, 30.0)
    """
    begin = done
    for at, (_, speed) in enumerate(course):
        mark = course[at + 1][0] if at + 1 < len(course) else None
        if mark is None or (done < mark and time <= (mark - done) / speed):
            return done + time * speed - begin
        if done < mark:
            time, done = time - (mark - done) / speed, mark
    return done - begin


def takes(course: Course, done: Number, whole: Number) -> Number:
    """Return the time until so much work is done in all, at the speeds of a course."""
    time = done * 0
    for at, (_, speed) in enumerate(course):
        end = min(course[at + 1][0], whole) if at + 1 < len(course) else whole
        if done < end:
            time, done = time + (end - done) / speed, end
    return time
