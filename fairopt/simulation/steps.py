"""`StepFunction`: functions of time that are constant between events, with their exact integrals."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairopt.program import Array, Number


@dataclass(frozen=True, eq=False)
class StepFunction:
    """A function of time: 0 before ``times[0]``, then ``values[i]`` from ``times[i]`` until ``times[i + 1]``.

    ``times`` rise strictly; the last value holds for ever. Numbers are Fractions or floats, and so are the integrals.

    >>> held = StepFunction.of_changes([(0, 2), (10, -2), (20, 4)])
    >>> held.at(5), held.at(10), held.integral(5, 25)
    (2, 0, 30)
    """

    times: tuple[Number, ...]
    values: tuple[Number, ...]

    @classmethod
    def of_changes(cls, changes: Iterable[tuple[Number, Number]]) -> StepFunction:
        """Return the function that is 0 and changes by the given amounts at the given times, in any order."""
        at: dict[Number, Number] = {}
        for time, change in changes:
            at[time] = at.get(time, 0) + change
        value: Number = 0
        times, values = [], []
        for time in sorted(at):
            if at[time]:
                value += at[time]
                times.append(time)
                values.append(value)
        return cls(tuple(times), tuple(values))

    @classmethod
    def of_windows(cls, windows: Iterable[tuple[Number, Number, Number]]) -> StepFunction:
        """Return the sum of functions that are ``amount`` from begin until end, and else 0: (begin, end, amount)."""
        return cls.of_changes(change for begin, end, amount in windows for change in ((begin, amount), (end, -amount)))

    def at_most(self, most: Number) -> StepFunction:
        """Return the function that is ``most`` where this one is more."""
        return StepFunction(self.times, tuple(min(value, most) for value in self.values))

    def at(self, time: Number) -> Number:
        """Return the value at a time; at an event, the value after it."""
        place = bisect_right(self.times, time)
        return self.values[place - 1] if place else 0

    @cached_property
    def _areas(self) -> tuple[Number, ...]:
        """The integral from the first event to each event."""
        area: Number = 0
        areas = [area]
        for begin, end, value in zip(self.times, self.times[1:], self.values, strict=False):
            area += value * (end - begin)
            areas.append(area)
        return tuple(areas)

    def integral(self, begin: Number, end: Number) -> Number:
        """Return the integral from ``begin`` to ``end``; 0 if ``end`` is not after ``begin``."""
        return self._until(end) - self._until(begin) if begin < end else begin * 0

    def integrals(self, begin: float, ends: Array) -> Array:
        """Return `integral` from ``begin`` to each of the ``ends`` (m,), none before it, in floats."""
        times, values, areas = (np.array(each, dtype=float) for each in (self.times, self.values, self._areas))
        if not len(times):
            return np.zeros(len(ends))
        moments = np.append(begin, ends)
        place = np.searchsorted(times, moments, side="right")
        last = np.maximum(place - 1, 0)
        until = np.where(place, areas[last] + values[last] * (moments - times[last]), 0.0)
        return np.asarray(until[1:] - until[0])

    def _until(self, time: Number) -> Number:
        place = bisect_right(self.times, time)
        if not place:
            return time * 0
        return self._areas[place - 1] + self.values[place - 1] * (time - self.times[place - 1])
