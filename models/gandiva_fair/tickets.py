"""Tickets: a user's per GPU, a node's load, and how small users' unused tickets go to the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from math import lcm
from typing import TypeVar

from fairopt.problem.numbers import exact
from fairopt.program import Number

#: Tickets of jobs, and passes, are whole numbers of 1/UNIT, so that ties are the same in floats and in Fractions. What
#: is divided by up to 50 stays exact.
UNIT = lcm(*range(1, 51))

User = TypeVar("User", bound=Hashable)


def in_units(tickets: Number) -> int:
    """Return tickets as a whole number of 1/`UNIT`, at least one of them where there are tickets at all.

    Source: Waldspurger and Weihl, Stride Scheduling, MIT/LCS/TM-528, 1995 (integer tickets and strides).
    """
    return max(1, round(exact(tickets, "tickets") * UNIT)) if tickets > 0 else 0


def stride(gpus: int, tickets: int) -> int:
    """Return what a pass rises by in a quantum on ``gpus``: GPUs over tickets; both in 1/`UNIT`.

    >>> stride(2, in_units(4)) == UNIT // 2
    True
    """
    return (2 * gpus * UNIT * UNIT + tickets) // (2 * tickets)


def tickets_per_gpu(tickets: Mapping[User, Number], demand: Mapping[User, int]) -> dict[User, Number]:
    """Return each user's tickets over the GPUs that its jobs want, ``demand``. Source: Gandiva_fair Eq. (1)."""
    return {user: tickets[user] / gpus for user, gpus in demand.items()}


def load_per_gpu(jobs: Iterable[tuple[int, Number]], gpus: int) -> Number:
    """Return a node's tickets per GPU; ``jobs`` are (GPUs, tickets per GPU). Source: Gandiva_fair Eq. (2)."""
    load: Number = sum(wanted * per_gpu / gpus for wanted, per_gpu in jobs)
    return load


def job_tickets(per_gpu: Number, gpus: int) -> Number:
    """Return a job's tickets. Source: Gandiva_fair Eq. (3)."""
    return per_gpu * gpus


def entitled(tickets: Mapping[User, Number], demand: Mapping[User, int], gpus: int) -> dict[User, Number]:
    """Return the mean number of GPUs over time, out of ``gpus``, to which each user of ``demand`` is entitled.

    It is in proportion to tickets, but no user gets more than it can use. The user with the least demand for its
    tickets is satisfied first and leaves the list; the rest is divided again among the others. At the end all ``gpus``
    are handed out, or all demands are met. A user without tickets gets nothing.

    The weight readjustment of Chandra and Shenoy does this for threads, each of which can use one processor. A user can
    use as many GPUs as its jobs want, so users are ordered by the ratio of demand to tickets, not by tickets alone.

    Source: Gandiva_fair Sec. 2.1 (inter-user fairness), 3.2 (effective tickets); Chandra and Shenoy, Hierarchical
    scheduling for symmetric multiprocessors, IEEE TPDS 19(3), 2008.

    >>> entitled({"A": 1, "B": 1, "C": 1}, {"A": 4, "B": 4, "C": 2}, 8)
    {'A': 3.0, 'B': 3.0, 'C': 2}
    """
    share: dict[User, Number] = {user: tickets[user] * 0 for user in demand}
    order = sorted((user for user in demand if tickets[user] > 0), key=lambda user: demand[user] / tickets[user])
    left: Number = gpus
    open_tickets = sum(tickets[user] for user in order)
    for place, user in enumerate(order):
        if demand[user] * open_tickets > tickets[user] * left:
            share |= {other: tickets[other] * left / open_tickets for other in order[place:]}
            break
        share[user] += demand[user]  # in the numbers of the tickets
        left -= demand[user]
        open_tickets -= tickets[user]
    return share


def effective_tickets(
    tickets: Mapping[User, Number], demand: Mapping[User, int], gpus: int
) -> dict[User, Number]:
    """Return the effective tickets of the users of ``demand``: their total, divided as `entitled` does.

    Source: Gandiva_fair Sec. 3.2 (effective tickets, bonus share).
    """
    share = entitled(tickets, demand, gpus)
    whole, parts = sum(tickets[user] for user in demand), sum(share.values())
    return {user: part * whole / parts if parts > 0 else part for user, part in share.items()}
