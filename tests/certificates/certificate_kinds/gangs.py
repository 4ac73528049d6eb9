"""Certificates of what a round of gangs costs at least."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

from certificate_kinds.examples import Truth, certificate, require

WAITS = -1

# -- worked out by hand ------------------------------------------------------------------------------------------------
#: Jobs of 1, 2 and 2 GPUs on two types of 3 and 1. There is room for one gang of 2, and the last one gains most by it.
JOBS: dict[str, Any] = {"gangs": [1, 2, 2], "capacity": [3, 1], "least": 3, "cost": [[0, -1], [-4, None], [-5, None]]}
ONE = {"prices": [0, 0], "reward": 0, "tolls": [[2, 0, "9/2"]]}  # -1, 0 and -1/2, less 9/2
#: A GPU and a half is worth 3 to the second job, so that prices alone prove -8. Two gangs of 2 would need 4 GPUs.
GANGS = certificate(
    "gangs",
    **JOBS,
    types=[1, -1, 0],
    value=-6,
    bound=-6,
    gap=0,
    root={"prices": [2, 0], "reward": 0},  # -1, 0 and -1, less 6
    cases=[{"split": [2, 0, 1]}, ONE, {"prices": [4, 0], "reward": 0, "tolls": [[2, 0, -6]]}],  # -1 - 2 - 3 - 12 + 12
)
#: The same by prices that prove -13/2 only, where costs are whole.
WHOLE_COSTS = GANGS | {
    "cases": [{"split": [2, 0, 1]}, ONE, {"prices": ["7/2", 0], "reward": 0, "tolls": [[2, 0, -6]]}],
    "grain": 1,
}
#: A cost of 1 is paid for a third GPU that must be busy.
BUSY = certificate(
    "gangs",
    gangs=[1, 1, 2],
    capacity=[2, 2],
    least=3,
    cost=[[1, 2], [3, 1], [-2, None]],
    types=[-1, 1, 0],
    value=-1,
    bound=-1,
    gap=0,
    root={"prices": ["1/2", 0], "reward": 1},  # 0, 0 and -3, less 1, plus 3
    cases=[],
)


# -- whether what they state is so -------------------------------------------------------------------------------------
def _gangs(data: Mapping[str, Any]) -> None:
    gangs, capacity, least = data["gangs"], data["capacity"], data["least"]
    cost = [{i: Fraction(each) for i, each in enumerate(row) if each is not None} for row in data["cost"]]

    def total(types: tuple[int, ...]) -> Fraction | None:
        """Return the cost of an assignment, None where it is none."""
        runs = [(job, i) for job, i in enumerate(types) if i != WAITS]
        busy = [sum(gangs[job] for job, at in runs if at == i) for i in range(len(capacity))]
        if any(used > room for used, room in zip(busy, capacity, strict=True)) or sum(busy) < least:
            return None
        return sum((cost[job][i] for job, i in runs), Fraction(0))

    told = tuple(data["types"])
    require(
        len(told) == len(gangs) and all(i == WAITS or i in row for i, row in zip(told, cost, strict=True)), "no job"
    )
    value, bound = Fraction(data["value"]), Fraction(data["bound"])
    require(total(told) == value and value - bound == Fraction(data["gap"]), "the assignment costs something else")
    every = product(*([WAITS, *row] for row in cost))
    require(all((found := total(types)) is None or found >= bound for types in every), "less can be had")


TRUTH: dict[str, Truth] = {"gangs": _gangs}
