"""What users with unequal guarantees compare: what each holds beyond its own guarantee."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairopt.problem import Entitlements, Market
from fairopt.problem.floors import Floors, floors_of, is_entitled
from fairopt.problem.market import NEAR
from fairopt.program import INFINITY, Array


class AboveGuarantees(NamedTuple):
    """What OEF compares on a market.

    * ``floor`` (n, k): the part of each user's guarantee that it can use (`fairopt.problem.floors`). GPUs above it are
      compared.
    * ``worth`` (n, k): what one GPU above the floor counts for a user. That is its speedup. It is 0 on a type of which
      the user's cap leaves no more than its floor. A user whose guarantee meets its demand could only swap: there it is
      the speedup less that of the slowest GPU of its floor, or 0.
    * ``rises`` (n,): who can hold more than its floor.
    * ``pairs`` (n, n): whether user l is compared with user i: everybody with everybody else, but nobody with the
      members of a group that it is not in and that is guaranteed more than its members are.
    * ``level`` (n,): users of one number are in the same such groups, as far as the innermost says.
    """

    floor: Array
    worth: Array
    rises: Array
    pairs: Array
    level: Array

    @classmethod
    def of(cls, market: Market) -> AboveGuarantees:
        """Return what is compared on ``market``, in its numbers. Errors: those of `floors_of`.

        >>> owed = Entitlements.of(["A", "B"], ["K80", "H100"], guarantee={"A": [2, 0]})
        >>> speedup = [[1, 3], [1, 2]]
        >>> market = Market.of(speedup, [4, 4], demand=[2, None], users=["A", "B"], types=owed.types, entitlements=owed)
        >>> AboveGuarantees.of(market).worth.astype(str).tolist()  # A would swap K80s for H100s
        [['0', '2'], ['1', '2']]
        """
        n, everybody = len(market.users), ~np.eye(len(market.users), dtype=bool)
        if not is_entitled(market):
            return cls(
                market.speedup * 0, market.speedup, np.ones(n, dtype=bool), everybody, np.zeros(n, dtype=np.int64)
            )
        floors, owed = floors_of(market), market.entitlements
        assert owed is not None
        floor = floors.floor[:n]
        room = (floors.cap[:n] > floor) & (market.speedup > 0)
        met = floor.sum(axis=1) >= market.limit * (1 if market.exact else 1 - NEAR)
        slowest = np.where(met, np.where(floor > 0, market.speedup, INFINITY).min(axis=1), 0)
        worth = np.where(room, np.maximum(market.speedup - slowest[:, None], 0), market.speedup * 0)
        inside = _guaranteed(owed, floors)
        apart = (~inside[:, :, None] & inside[:, None, :]).any(axis=0)
        level = np.vstack([inside, np.ones(n, dtype=bool)]).argmax(axis=0)
        return cls(floor, worth, room.any(axis=1) & ~met, everybody & ~apart, level)


def _guaranteed(owed: Entitlements, floors: Floors) -> Array:
    """Return (m, n): who is in each group that is guaranteed more than its members are, the inner groups first."""
    users = np.eye(len(owed.users), dtype=np.int64)
    inside, floor, below = owed.total(users) > 0, floors.floor, owed.children
    groups = [node for node in owed.upwards if node >= len(users) and below[node]]
    more = [node for node in groups if (floor[node] > floor[list(below[node])].sum(axis=0)).any()]
    return np.asarray(inside[more])
