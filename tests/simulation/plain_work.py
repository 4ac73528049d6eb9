"""The oracle of speeds that change: what a job does in a time, one speed after the other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairopt.problem import Queue, Spots
from fairopt.program import Number
from fairopt.simulation import Mechanics


def walked(queue: Queue, row: int, spots: Spots, mechanics: Mechanics, time: Number | None) -> Number:
    """Return the work that a job does in a time, at each speed in turn; the time until it is done for None."""
    speed, profile = mechanics.speed(queue, row, spots), queue.jobs.profile(row)
    done = queue.jobs.work[row] - queue.remaining[row]
    after = [mark for mark in (profile.marks if profile else ()) if done < mark < queue.jobs.work[row]]
    if not after:
        return queue.remaining[row] / speed if time is None else time * speed
    until = (after[0] - done) / speed
    if time is not None and time <= until:
        return time * speed
    remaining = queue.remaining.copy()
    left = queue.jobs.work[row] - after[0]
    while queue.jobs.work[row] - left < after[0]:  # floats
        left = np.nextafter(left, 0.0)
    remaining[row] = left
    more = walked(replace(queue, remaining=remaining), row, spots, mechanics, None if time is None else time - until)
    return until + more if time is None else after[0] - done + more
