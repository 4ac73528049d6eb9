"""`OwedRoom`: what gangs that wait may still take of what a user or group is owed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairopt.program import Array


@dataclass(eq=False)
class OwedRoom:
    """What a user or group is owed and does not hold, less what gangs took: ``gpus`` (k,), and ``goods`` by column.

    ``caps`` (N, k): whole GPUs that the cap of each node leaves; what gangs took of those inside is ``taken``, by node
    and type.
    """

    gpus: list[int]
    goods: dict[int, Any]
    caps: Array
    taken: dict[tuple[int, int], int] = field(default_factory=dict)

    def take(self, gpus: int, gpu_type: int, goods: Sequence[tuple[int, Any]], inside: Sequence[int]) -> bool:
        """Take GPUs and goods (column, amount) for a gang; False, and nothing is taken, where they do not fit.

        ``inside``: the nodes around the gang that this one is around, below whose caps it must fit.

        >>> import numpy as np
        >>> room = OwedRoom([4], {}, np.array([[2], [9]]))
        >>> room.take(2, 0, (), [0]), room.take(2, 0, (), [0]), room.take(2, 0, (), [])
        (True, False, True)
        """
        amounts = [(column, amount) for column, amount in goods if column in self.goods]
        if gpus > self.gpus[gpu_type] or any(amount > self.goods[column] for column, amount in amounts):
            return False
        after = {(node, gpu_type): self.taken.get((node, gpu_type), 0) + gpus for node in inside}
        if any(count > self.caps[place] for place, count in after.items()):
            return False
        self.gpus[gpu_type] -= gpus
        self.taken |= after
        for column, amount in amounts:
            self.goods[column] -= amount
        return True
