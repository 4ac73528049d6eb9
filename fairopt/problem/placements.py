"""Where jobs run, when most of them run where they did before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from fairopt.program import Array

#: Where a job runs: pairs (host, GPUs there), hosts rising; () where it runs nowhere.
Spots = tuple[tuple[int, int], ...]


class Placements(Mapping[int, Spots]):
    """Placements in which most jobs stay: those of the rows ``stay`` where they ran ``last``, the others at ``moved``.

    All of ``stay`` ran in the round before.
    """

    def __init__(self, last: Sequence[Spots], stay: Array, moved: Mapping[int, Spots]) -> None:
        self.last, self.stay, self.moved = last, stay, moved

    @cached_property
    def _stays(self) -> Array:
        stays = np.zeros(len(self.last), dtype=bool)
        stays[self.stay] = True
        return stays

    def __getitem__(self, row: int) -> Spots:
        if row in self.moved:
            return self.moved[row]
        if not 0 <= row < len(self._stays) or not self._stays[row]:
            raise KeyError(row)
        return self.last[row]

    def __iter__(self) -> Iterator[int]:
        return chain(self.stay.tolist(), self.moved)

    def __len__(self) -> int:
        return len(self.stay) + len(self.moved)
