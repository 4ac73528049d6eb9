"""Tickets: a user's per GPU, a node's load, and how small users' unused tickets go to the others."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from fractions import Fraction
from math import lcm
from typing import Generic, TypeVar

from fairopt.problem.numbers import exact
from fairopt.program import INFINITY, Number

#: Tickets of jobs, and passes, are whole numbers of 1/UNIT, so that ties are the same in floats and in Fractions. What
#: is divided by up to 50 stays exact.
UNIT = lcm(*range(1, 51))
#: Passes are compared by the nearest multiple of this many 1/UNIT (3.5e-10 of a GPU for a ticket): what is divided by
#: other numbers is rounded, and so many of a pass's last digits are those of its quanta's rounding.
GRAIN = 2**40

User = TypeVar("User", bound=Hashable)
ONE, NONE = Fraction(1), Fraction(0)


def in_units(tickets: Number) -> int:
    """Return tickets as a whole number of 1/`UNIT`, at least one of them where there are tickets at all.

    Source: Waldspurger and Weihl, Stride Scheduling, MIT/LCS/TM-528, 1995 (integer tickets and strides).
    """
    if tickets == 1:  # most often
        return UNIT
    return max(1, round(exact(tickets, "tickets") * UNIT)) if tickets > 0 else 0


def stride(gpus: int, tickets: int) -> int:
    """Return what a pass rises by in a quantum on ``gpus``: GPUs over tickets; both in 1/`UNIT`.

    >>> stride(2, in_units(4)) == UNIT // 2
    True
    """
    return (2 * gpus * UNIT * UNIT + tickets) // (2 * tickets)


def turn(passed: int | None) -> Number:
    """Return what jobs are ordered by, the least first: a pass but for rounding; who has none, None, comes last.

    >>> turn(UNIT // 3 + UNIT // 3) == turn(2 * UNIT // 3 - 7)
    True
    """
    return INFINITY if passed is None else (passed + GRAIN // 2) // GRAIN


def tickets_per_gpu(tickets: Mapping[User, Number], demand: Mapping[User, int]) -> dict[User, Number]:
    """Return each user's tickets over the GPUs that its jobs want, ``demand``. Source: Gandiva_fair Eq. (1)."""
    return {user: tickets[user] / gpus for user, gpus in demand.items()}


def load_per_gpu(jobs: Iterable[tuple[int, Number]], gpus: int) -> Number:
    """Return a node's tickets per GPU; ``jobs`` are (GPUs, tickets per GPU). Source: Gandiva_fair Eq. (2)."""
    load: Number = sum(wanted * per_gpu / gpus for wanted, per_gpu in jobs)
    return load


def entitled(tickets: Mapping[User, Number], demand: Mapping[User, int], gpus: int) -> dict[User, Number]:
    """Return the mean number of GPUs over time, out of ``gpus``, to which each user of ``demand`` is entitled.

    It is in proportion to tickets, but no user gets more than it can use. At the end all ``gpus`` are handed out, or
    all demands are met. A user without tickets gets nothing.

    Source: Gandiva_fair Sec. 2.1 (inter-user fairness), 3.2 (effective tickets).

    >>> from fractions import Fraction
    >>> entitled({"A": Fraction(1), "B": Fraction(1), "C": Fraction(1)}, {"A": 4, "B": 4, "C": 2}, 8)
    {'A': Fraction(3, 1), 'B': Fraction(3, 1), 'C': Fraction(2, 1)}
    """
    height = level(tickets, demand, gpus)
    met = {user: tickets[user] * 0 + (wanted if tickets[user] > 0 else 0) for user, wanted in demand.items()}
    return met if height is None else {user: min(most, tickets[user] * height) for user, most in met.items()}


def level(tickets: Mapping[User, Number], demand: Mapping[User, int], gpus: int) -> Number | None:
    """Return the GPUs for each ticket of the users whose demand is not met; None where all demands are.

    The user with the least demand for its tickets is satisfied first and leaves the list; the rest is divided again
    among the others.

    The weight readjustment of Chandra and Shenoy does this for threads, each of which can use one processor. A user can
    use as many GPUs as its jobs want, so users are ordered by the ratio of demand to tickets, not by tickets alone.

    Source: Chandra and Shenoy, Hierarchical scheduling for symmetric multiprocessors, IEEE TPDS 19(3), 2008.
    """
    order = sorted((user for user in demand if tickets[user] > 0), key=lambda user: demand[user] / tickets[user])
    left, open_tickets = gpus, sum(tickets[user] for user in order)
    for user in order:
        if demand[user] * open_tickets > tickets[user] * left:
            height: Number = left * ONE / open_tickets  # whole numbers stay exact
            return height
        left -= demand[user]
        open_tickets -= tickets[user]
    return None


def _whole(tickets: Collection[Fraction]) -> list[int]:
    """Return tickets in whole numbers, in the same proportions."""
    unit = lcm(*[each.denominator for each in tickets])
    return [each.numerator * (unit // each.denominator) for each in tickets]


class Level(Generic[User]):
    """The tickets and the demand of users on one type, and the `level`, which is kept as long as it is right."""

    def __init__(self, tickets: Mapping[User, Fraction], gpus: int, demand: Mapping[User, int]) -> None:
        self._tickets = dict(zip(tickets, _whole(tickets.values()), strict=True))
        self.gpus = gpus
        self.demand = dict(demand)
        self._height: Fraction | None = None
        self._known = False

    def add(self, user: User, gpus: int) -> None:
        """Let a user's jobs want so many GPUs more, or fewer."""
        # where a demand that was not met grows, nobody gets more or less
        self._known = self._known and gpus > 0 and self._unmet(user)
        self.demand[user] = self.demand.get(user, 0) + gpus
        if not self.demand[user]:
            del self.demand[user]

    def part(self, user: User, more: int = 0) -> Fraction:
        """Return the part of the time to which a user's jobs are entitled, as if they wanted so many GPUs ``more``.

        Source: Gandiva_fair Eq. (1), Sec. 3.2 (effective tickets, in GPUs).
        """
        return self._part(user, self.demand.get(user, 0) + more, self._at(user, more))

    def parts(self, user: User | None = None, more: int = 0) -> dict[User, Fraction]:
        """Return `part` of all users, as if the jobs of ``user`` wanted so many GPUs ``more``."""
        height = self._at(user, more)
        demand = self.demand if user is None else self.demand | {user: self.demand.get(user, 0) + more}
        return {each: self._part(each, wanted, height) for each, wanted in demand.items()}

    def _part(self, user: User, wanted: int, height: Fraction | None) -> Fraction:
        tickets = self._tickets[user]
        if height is None or not tickets:
            return ONE if tickets else NONE
        given, asked = tickets * height.numerator, wanted * height.denominator
        return ONE if given >= asked else Fraction(given, asked)

    def _at(self, user: User | None, more: int) -> Fraction | None:
        """Return the level, as if the jobs of ``user`` wanted so many GPUs ``more``."""
        if not self._known:
            self._height, self._known = self._found(self.demand), True
        if user is None or not more or self._unmet(user):
            return self._height
        return self._found(self.demand | {user: self.demand.get(user, 0) + more})

    def _found(self, demand: Mapping[User, int]) -> Fraction | None:
        if sum(demand.values()) <= self.gpus:
            return None
        height = level(self._tickets, demand, self.gpus)
        return None if height is None else Fraction(height)

    def _unmet(self, user: User) -> bool:
        if user not in self.demand or self._height is None:
            return False
        return self.demand[user] * self._height.denominator >= self._tickets[user] * self._height.numerator


def effective_tickets(tickets: Mapping[User, Number], demand: Mapping[User, int], gpus: int) -> dict[User, Number]:
    """Return the effective tickets of the users of ``demand``: their total, divided as `entitled` does.

    Source: Gandiva_fair Sec. 3.2 (effective tickets, bonus share).
    """
    share = entitled(tickets, demand, gpus)
    whole, parts = sum(tickets[user] for user in demand), sum(share.values())
    return {user: part * whole / parts if parts > 0 else part for user, part in share.items()}
