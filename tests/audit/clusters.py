"""Small clusters that the tests of audits share."""

from __future__ import annotations

from typing import Any

from fairopt.problem import Entitlements, Gangs, Market

USERS = ("train", "search", "batch", "physics")
TYPES = ("H100", "A100")
#: name, user, gpus, the type on which it runs or None, and the types on which it may run or None for all.
GANGS = (
    ("train-1", "train", 4, "H100", None),
    ("train-2", "train", 4, None, ["H100"]),
    ("batch-1", "batch", 4, "H100", None),
    ("batch-2", "batch", 4, "H100", None),
    ("batch-3", "batch", 2, "H100", None),
    ("search-1", "search", 16, None, ["A100"]),
    ("physics-1", "physics", 24, "A100", None),
)


def cluster(gangs: Any = GANGS, *, fixed: tuple[str, ...] = ("physics-1",), **more: Any) -> Market:
    """16 H100 and 32 A100 in two groups: batch holds 2 H100 that train waits for, physics 8 A100 that ml waits for."""
    names, users, gpus, on, allowed = zip(*gangs, strict=True)
    how = {"guarantee": {"train": [8, 8], "search": [0, 8], "batch": [4, 8], "physics": [4, 8]}} | more
    tier = how.pop("tier_of", {})
    made = Gangs.of(
        users,
        gpus,
        users=USERS,
        types=TYPES,
        names=names,
        on=on,
        allowed=allowed,
        preemptible=[name not in fixed for name in names],
        tier=[tier.get(name, 0) for name in names],
    )
    group = {"train": "ml", "search": "ml", "batch": "science", "physics": "science"}
    owed = Entitlements.of(USERS, TYPES, group=group, gangs=made, **how)
    unknown: Any = {"least": [[0, 0]] * 4, "most": [[None, None]] * 4}
    return Market.of([[1, 1]] * 4, [16, 32], users=USERS, types=TYPES, entitlements=owed, **unknown)
