"""What several properties of entitlements show by hand: two teams of a company, and what they hold."""

from __future__ import annotations

from fairopt.problem import Entitlements, Gangs, Market

_USERS, _TYPES = ("team-a", "team-b", "batch"), ("A100", "H100")
#: team-a holds 2 H100, waits for 6 and is owed 8; batch is owed none. All GPUs are guaranteed to the group ml.
TEAMS = Market.of(
    [[1, 2], [1, 3], [1, 2]],
    capacity=[4, 10],
    users=_USERS,
    types=_TYPES,
    entitlements=Entitlements.of(
        _USERS,
        _TYPES,
        group={"team-a": "ml", "team-b": "ml"},
        guarantee={"team-a": [0, 8], "team-b": [4, 2]},
        cap={"team-b": [4, 4], "batch": [2, 8]},
        gangs=Gangs.of(
            ["team-a", "team-a", "team-b", "batch", "batch"],
            [2, 6, 4, 6, 2],
            users=_USERS,
            types=_TYPES,
            names=["train", "tune", "serve", "sweep", "bench"],
            allowed=[["H100"], ["H100"], ["A100"], None, ["H100"]],
            on=["H100", None, "A100", "H100", "H100"],
        ),
    ),
)
#: What the teams hold: batch has what team-a waits for.
NOW = ((0, 2), (4, 0), (0, 8))
#: What they are owed: the tuning runs, and the sweep waits.
OWED = ((0, 8), (4, 0), (0, 2))
