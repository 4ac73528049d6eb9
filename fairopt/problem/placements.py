"""Where jobs run, when most of them run where they did before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from fairopt.program import Array

if TYPE_CHECKING:
    from fairopt.problem.queue import Queue, Spots


class Placements(Mapping[int, "Spots"]):
    """Placements in which most jobs stay: those of the rows ``stay`` where they ran last, the others at ``moved``.

    All of ``stay`` ran in the round before.
    """

    def __init__(self, queue: Queue, stay: Array, moved: Mapping[int, Spots]) -> None:
        self.queue, self.stay, self.moved = queue, stay, moved

    @cached_property
    def _stays(self) -> Array:
        stays = np.zeros(len(self.queue), dtype=bool)
        stays[self.stay] = True
        return stays

    def __getitem__(self, row: int) -> Spots:
        if row in self.moved:
            return self.moved[row]
        if not 0 <= row < len(self._stays) or not self._stays[row]:
            raise KeyError(row)
        return self.queue.last[row]

    def __iter__(self) -> Iterator[int]:
        return chain(self.stay.tolist(), self.moved)

    def __len__(self) -> int:
        return len(self.stay) + len(self.moved)
