"""Progressive filling by its definition: who is stuck is asked of each user by itself, not read from multipliers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from plain_lp import Row, Terms, at_least, largest
from plain_market import NOTHING, Given, held, rows

#: How fast each user rises, given who is not stuck.
Rates = Callable[[Given, Sequence[bool]], Sequence[Fraction]]


def alike(market: Given, free: Sequence[bool]) -> list[Fraction]:
    """Return the same rate for all that are free. Source: Radunovic and Le Boudec 2007, Sec. II."""
    return [Fraction(int(each)) for each in free]


def by_weight(market: Given, free: Sequence[bool]) -> list[Fraction]:
    """Return each free user's part of their weights."""
    open_ = [w * each for w, each in zip(market.weight, free, strict=True)]
    return [w / sum(open_) for w in open_]


class Tree(NamedTuple):
    """Groups of users: a weight and the members of each, users by number, groups by name; "" is the whole.

    ``first`` are the groups in which the first member that is free has all.
    """

    members: dict[str, list[int | str]]
    weight: dict[str, Fraction]
    first: Sequence[str] = ()

    def rates(self, market: Given, free: Sequence[bool]) -> list[Fraction]:
        """Return each user's part, divided from the top down. Source: Gavel Sec. 4.3, `_compute_priority_weights`."""
        found = [NOTHING] * len(free)

        def divide(group: str, whole: Fraction) -> None:
            able = [each for each in self.members[group] if self._able(each, free)]
            if group in self.first:
                able = able[:1]
            weights = [market.weight[each] if isinstance(each, int) else self.weight[each] for each in able]
            if group in self.first or not any(weights):
                weights = [Fraction(1) for _ in able]
            for each, weight in zip(able, weights, strict=True):
                own = whole * weight / sum(weights)
                if isinstance(each, int):
                    found[each] = own
                else:
                    divide(each, own)

        divide("", Fraction(1))
        return found

    def _able(self, member: int | str, free: Sequence[bool]) -> bool:
        return free[member] if isinstance(member, int) else any(self._able(each, free) for each in self.members[member])


def levels(market: Given, scale: Sequence[Fraction], rates: Rates) -> list[Fraction]:
    """Return the ratios to ``scale`` at which users are stuck, as all rise at their rates."""
    had, free = [NOTHING for _ in scale], [True for _ in scale]
    while any(free):
        rate = rates(market, free)
        rising = [Row({"t": rate[i] * scale[i]} | _negative(held(market, i)), -scale[i] * had[i]) for i in market.users]
        reached = largest({"t": Fraction(1)}, [*rows(market), *rising]).value
        had = [level + by * reached for level, by in zip(had, rate, strict=True)]
        free = [each and not _stuck(market, i, scale, had) for i, each in enumerate(free)]
    return had


def _stuck(market: Given, user: int, scale: Sequence[Fraction], had: Sequence[Fraction]) -> bool:
    others = [at_least(held(market, i), scale[i] * had[i]) for i in market.users if i != user]
    return largest(held(market, user), [*rows(market), *others]).value <= scale[user] * had[user]


def _negative(terms: Terms) -> Terms:
    return {key: -rate for key, rate in terms.items()}
