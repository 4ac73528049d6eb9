"""A cluster drawn at random, as large as is asked for, for files of any scheduler."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import count

TYPES = ("a100", "h100", "l40s", "v100")
#: Each GPU comes with so many cores and so much memory (GiB); each node has so many GPUs.
CORES, MEMORY, ON_NODE = 8, 64, 8


@dataclass
class Drawn:
    """A cluster: queues in groups of ten under tops of ten groups, nodes, gangs that run on a node and that wait."""

    queues: list[str]
    group: dict[str, str]
    #: GPUs that a queue is owed, by type.
    owed: dict[str, list[int]]
    #: Name, queue, GPUs, type, priority, moment in seconds, node or None where it waits.
    gangs: list[tuple[str, str, int, str, int, int, str | None]]
    #: Name, type and GPUs in use.
    nodes: dict[str, tuple[str, int]]

    @classmethod
    def of(cls, queues: int, running: int, waiting: int, one_type: bool = False) -> Drawn:
        """Draw a cluster; with one type all gangs of a top ask for the same."""
        draw = random.Random(1)
        names = [f"q{i}" for i in range(queues)]
        group = {name: f"g{i // 10}" for i, name in enumerate(names)}
        group |= {f"g{i}": f"top{i // 10}" for i in range(-(-queues // 10))}
        nodes: dict[str, tuple[str, int]] = {}
        room: dict[str, str] = {}
        numbers = count()
        gangs: list[tuple[str, str, int, str, int, int, str | None]] = []
        for i in range(running + waiting):
            queue, gpus, kind, on = draw.choice(names), draw.choice([1, 1, 2, 4, 8]), draw.choice(TYPES), None
            if one_type:
                kind = TYPES[int(group[group[queue]][3:]) % len(TYPES)]
            if i < running:
                on = room.get(kind)
                if on is None or nodes[on][1] + gpus > ON_NODE:
                    on = room[kind] = f"{kind}-{next(numbers)}"
                    nodes[on] = (kind, 0)
                nodes[on] = (kind, nodes[on][1] + gpus)
            gangs.append((f"j{i}", queue, gpus, kind, draw.choice([0, 100, 1000]), i, on))
        each = [sum(1 for kind, _ in nodes.values() if kind == wanted) * ON_NODE for wanted in TYPES]
        owed = {name: [draw.randint(0, 2 * most // queues) for most in each] for name in names}
        return cls(names, group, owed, gangs, nodes)

    @property
    def groups(self) -> list[str]:
        """The groups, those above after those below."""
        return list(dict.fromkeys(self.group.values()))
