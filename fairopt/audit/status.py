"""How each user and group stands: STARVED, BORROWING, WITHIN or IDLE, with the numbers by type."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.program import INFINITY, Number
from fairopt.report import Key, ResultForm, Statement, by_name, keys_of


class EntitlementStatus(enum.Enum):
    """How a user or group stands, on a type or altogether; the first that is true."""

    STARVED = "STARVED"  # a gang waits that fits into what it is owed
    BORROWING = "BORROWING"  # it holds more than it is owed
    WITHIN = "WITHIN"  # it holds no more than it is owed, and no gang that fits into that waits
    IDLE = "IDLE"  # it holds nothing and asks for nothing


#: The numbers of `ON_TYPE`, in order.
NUMBERS = ("holds", "fixed", "owed", "cap", "asks", "short", "borrows")
#: In GPUs. ``fixed``: what of ``holds`` cannot be taken back. ``asks``: GPUs of pending gangs that may run here.
#: ``short``: those of them that fit into what is ``owed``, and wait. ``borrows``: what it holds beyond that.
ON_TYPE = ResultForm(
    "How a user or group stands on a type.",
    Key("footing", EntitlementStatus, "The status.", lambda row: row.status),
    *keys_of(Number | None, " ".join(NUMBERS), "GPUs; null for no bound."),
)


def on_type(kind: str, status: EntitlementStatus, *numbers: Number) -> Statement:
    """Return how a user or group stands on a type; ``numbers`` are those of `NUMBERS`."""
    return ON_TYPE.of(type=kind, status=status, **dict(zip(NUMBERS, numbers, strict=True)))


@dataclass(frozen=True)
class NodeStatus:
    """How a user or group stands; ``types`` has the types where any number is not 0, or its cap is finite."""

    name: str
    is_group: bool
    group: str
    status: EntitlementStatus
    types: tuple[Statement, ...]
    weight: Number
    tier: int
    goods: tuple[tuple[str, Number, Number, Number], ...] = ()

    form = ResultForm(
        "How a user or group stands.",
        Key("name", str, "The user or group."),
        Key("kind", Literal["user", "group"], "Which.", lambda row: "group" if row.is_group else "user"),
        Key("group", str | None, "The group that it is in.", lambda row: row.group or None),
        Key(
            "footing",
            str,
            "STARVED, BORROWING, WITHIN or IDLE; the first that is true on some type.",
            lambda row: row.status,
        ),
        Key("weight", Number, "Its weight beside its siblings."),
        Key("priority", int, "Higher goes first.", lambda row: row.tier),
        Key(
            "types",
            by_name(dict),
            "By type: footing, holds, fixed, owed, cap, asks, short, borrows; null for no bound.",
            lambda row: {each.type: each for each in row.types},
        ),
        Key(
            "goods",
            by_name(dict),
            "By good: holds, owed, cap.",
            lambda row: {
                name: dict(zip(("holds", "owed", "cap"), numbers, strict=True)) for name, *numbers in row.goods
            },
        ),
    )

    def on(self, gpu_type: str) -> Statement | None:
        """Return how it stands on a type; None where all is 0."""
        return next((each for each in self.types if each.type == gpu_type), None)


def statuses_by_type(accounts: EntitlementAccounts) -> list[list[EntitlementStatus]]:
    """Return how each node stands on each type (N, k)."""
    k = accounts.k
    columns = (accounts.short, accounts.borrowed, accounts.held[:, :k], accounts.asks)
    rows = zip(*(each.tolist() for each in columns), strict=True)
    return [[_status(*each) for each in zip(*row, strict=True)] for row in rows]


def standing(accounts: EntitlementAccounts) -> list[EntitlementStatus]:
    """Return how each node stands altogether (N)."""
    columns = (accounts.short, accounts.borrowed, accounts.held[:, : accounts.k], accounts.asks)
    return list(map(_status, *((each != 0).any(axis=1).tolist() for each in columns)))


def statuses(accounts: EntitlementAccounts, nodes: Iterable[int] | None = None) -> Iterator[NodeStatus]:
    """Yield how some nodes stand; left out: all, users first.

    >>> from fairopt.problem import Entitlements, Market
    >>> owed = Entitlements.of(["A"], ["H100"], guarantee={"A": [6]}, held={"A": [8]})
    >>> [each] = statuses(EntitlementAccounts(Market.of([[1]], [8], users=["A"], types=["H100"], entitlements=owed)))
    >>> each.status.value, each.types[0].borrows
    ('BORROWING', Fraction(2, 1))
    """
    said, k = accounts.said, accounts.k
    tables = (accounts.held, accounts.owed, said.cap, accounts.fixed, accounts.asks, accounts.short, accounts.borrowed)
    for node in range(len(said.nodes)) if nodes is None else nodes:
        held, owed, cap, fixed, asks, short, borrowed = (each[node].tolist() for each in tables)
        types = tuple(
            on_type(
                kind,
                _status(short[j], borrowed[j], held[j], asks[j]),
                *(held[j], fixed[j], owed[j], cap[j], asks[j], short[j], max(Fraction(0), held[j] - owed[j])),
            )
            for j, kind in enumerate(accounts.market.types)
            if accounts.listed[node, j]
        )
        over = said.parent[node]
        yield NodeStatus(
            said.nodes[node],
            node >= len(said.users),
            "" if over < 0 else said.nodes[over],
            _status(any(short), any(borrowed), any(held[:k]), any(asks)),
            types,
            said.borrow_weight[node],
            int(said.tier[node]),
            tuple(
                (good, held[column], owed[column], cap[column])
                for column, good in enumerate(said.columns)
                if column >= k and (held[column] or owed[column] or cap[column] < INFINITY)
            ),
        )


def _status(short: int, borrows: int, holds: Number, asks: int) -> EntitlementStatus:
    if short:
        return EntitlementStatus.STARVED
    if borrows:
        return EntitlementStatus.BORROWING
    return EntitlementStatus.WITHIN if holds or asks else EntitlementStatus.IDLE
