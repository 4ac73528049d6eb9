"""What a file itself says that can be computed: a scheduler's share values, what its queues hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import isclose
from types import MappingProxyType
from typing import Any

import numpy as np

from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.alternatives import alternative
from fairopt.numbers import is_number
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.program import Number
from fairopt.report import Key, ResultForm

#: Declared values are printed with few digits; those that differ relatively by less are alike.
PRINTED = 1e-3


@dataclass(frozen=True)
class DeclaredValue:
    """A value that a file states, beside the same one ``computed`` by a ``rule``; None where nothing computes it."""

    name: str
    what: str
    stated: Any
    computed: Number | None = None
    rule: str = ""

    form = ResultForm(
        "A value that a file states.",
        Key("differs", bool, "Whether it is another than the one that is computed."),
        in_full=True,
    )

    @property
    def differs(self) -> bool:
        """Whether both are known and are not alike."""
        if self.computed is None or not is_number(self.stated):
            return False
        stated, computed = float(self.stated), float(self.computed)  # infinity among them
        return stated != computed and not isclose(stated, computed, rel_tol=PRINTED)

    @property
    def stated_text(self) -> str:
        """What the file states, as text."""
        return _text(self.stated)

    @property
    def computed_text(self) -> str:
        """What was computed, as text; "" where nothing was."""
        return "" if self.computed is None else _text(self.computed)

    def __str__(self) -> str:
        said = f"the file says {self.stated_text}, {self.rule} computes {self.computed_text}"
        return f"{self.name}, {self.what}: {said}"


def _text(value: Any) -> str:
    """Return a number with at most six digits, and anything else as it is."""
    return f"{float(value):.6g}" if is_number(value) else str(value)


def compared(
    accounts: EntitlementAccounts,
    declared: Mapping[str, Mapping[str, Any]],
    policies: list[Policy],
    counted: Mapping[str, Mapping[str, Number]] = MappingProxyType({}),
) -> Iterator[DeclaredValue]:
    """Yield every declared number of users and groups of the market, computed where a rule's values are called so.

    KAI's ``allocated`` is compared with what its pods hold, Volcano's with its running gangs, and what an importer
    ``counted`` of the file's objects with that. The rules see the market as it stands, without what is pending, so that
    they only say what its shares are.
    """
    known = {name: own for name, own in declared.items() if name in accounts.said.nodes}
    if not known:
        return
    rules: dict[str, list[tuple[str, Mapping[str, Number]]]] = {
        what: [(rule, values)] for what, rule, values in _usage(accounts)
    }
    for what in dict.fromkeys(what for own in counted.values() for what in own):
        by_name = {name: own[what] for name, own in counted.items() if what in own}
        rules.setdefault(what, []).append(("the sum of the file's objects", by_name))
    for policy in policies:
        found = alternative(_as_it_stands(accounts), policy)
        for what, values in found.grounds.stated.items() if found.grounds is not None else ():
            rules.setdefault(what, []).append((policy.name, values))
    for what in dict.fromkeys(what for own in known.values() for what in own):
        stated = {name: own[what] for name, own in known.items() if what in own}
        sides = [
            [DeclaredValue(name, what, value, values.get(name), rule) for name, value in stated.items()]
            for rule, values in rules.get(what, [("", {})])
        ]
        # a file does not say which of a scheduler's rules it runs under
        yield from min(sides, key=lambda rows: sum(row.differs for row in rows))


def _usage(accounts: EntitlementAccounts) -> Iterator[tuple[str, str, Mapping[str, Number]]]:
    """Yield what users and groups hold, by column: what the files call it, what adds it up, and the sums by name."""
    owed = accounts.said
    for called, rule, of_users in (
        ("allocated", "the sum of what runs", owed.held),
        ("allocatedNonPreemptible", "the sum of what runs and stays", owed.fixed),
        ("status.allocated", "the sum of the gangs that run", owed.running_gangs[0]),
    ):
        sums = owed.total(of_users)
        for at, column in enumerate(owed.columns):
            yield f"{called} {column}", rule, dict(zip(owed.nodes, sums[:, at].tolist(), strict=True))


def _as_it_stands(accounts: EntitlementAccounts) -> Market:
    gangs = accounts.gangs
    stays = gangs.select(np.flatnonzero(~gangs.pending))
    return replace(accounts.market, entitlements=replace(accounts.said, gangs=stays))
