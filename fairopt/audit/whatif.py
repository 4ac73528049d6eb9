"""`whatif`: what changes between two audits: status, reasons for waiting, shares of policies, broken guarantees."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from fairopt.audit.alternatives import (
    Alternative,
    alternative,
    of_own_rules,
    of_part,
    own_rules,
    stops_by_rule,
    waits_by_rule,
)
from fairopt.audit.auditing import Audit, audit_lazily
from fairopt.audit.settings import read_setting, with_settings
from fairopt.audit.status import EntitlementStatus, statuses_by_type
from fairopt.discovery import AnyPolicy
from fairopt.importing.imported import Imported
from fairopt.numbers import counted
from fairopt.policy import Policy
from fairopt.program import Number, number_text
from fairopt.properties.verdict import Verdict
from fairopt.report import SCHEMA_KEY, Grid, Key, ResultForm, Statement, Tabular, by_name, keys_of, listed, part


def _difference(it: Statement) -> str:
    return f"{it.name} on {it.type}: {it.before} becomes {it.after}"


#: What a user or group has on a type, before and after: how it stands.
STATUS_CHANGE = ResultForm("A status that changes.", in_full=True, sentence=_difference)
#: The same, where it is the GPUs that a policy gives it.
GIVEN = ResultForm(
    "What a policy gives differently.",
    Key("policy", str, "The policy."),
    Key("user", str, "The user.", lambda it: it.name),
    *keys_of(str, "type", "The type."),
    *keys_of(Number, "before after", "GPUs."),
    sentence=_difference,
)


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf(Tabular):
    """Two audits side by side; users, groups and types are matched by name."""

    before: Audit
    after: Audit
    settings: tuple[Statement, ...] = ()

    form = ResultForm(
        "What changes.",
        SCHEMA_KEY,
        Key("settings", list[str], "The changes that were asked for.", lambda it: [str(each) for each in it.settings]),
        Key("implied", list[str], "The quotas of groups that follow."),
        Key(
            "footings",
            listed(dict),
            "Users and groups whose status changes.",
            lambda it: it.status_changes,
        ),
        Key("given", listed(dict), "What policies give differently."),
        Key(
            "undecided",
            by_name(dict),
            "Why policies give nothing, before and after, where that changes.",
            lambda it: {policy: _both(was or None, now or None) for policy, (was, now) in it.undecided.items()},
        ),
        Key(
            "reasons",
            by_name(dict),
            "Why users wait, before and after, where that changes.",
            lambda it: {
                name: _both(*(each.reasons.get(name) for each in (it.before, it.after))) for name in it.reasons
            },
        ),
        Key(
            "verdicts",
            by_name(
                ResultForm(
                    "A verdict before and after; null where the property is not asked.",
                    Key("before", {"anyOf": [part("verdict"), {"type": "null"}]}, "The verdict before."),
                    Key("after", {"anyOf": [part("verdict"), {"type": "null"}]}, "The verdict after."),
                )
            ),
            "Verdicts on what is held that change, in answer or margin, by name.",
            lambda it: {name: _both(*pair) for name, pair in it.verdicts.items()},
        ),
        Key("mended", list[str], "What was broken and is no more."),
        Key("broken", list[str], "What is newly broken."),
        Key("before", Audit, "The audit before."),
        Key("after", Audit, "The audit after."),
        beside=[Key("emitted", str, "With --emit: the change as objects of a scheduler.")],
    )

    @cached_property
    def implied(self) -> tuple[str, ...]:
        """The quotas of groups that follow those of their members."""
        old, new = self.before.accounts.said, self.after.accounts.said
        if not self.settings:
            return ()
        asked = {(each.name, each.type) for each in self.settings}
        return tuple(
            f"{old.nodes[node]}.{old.columns[j]}.quota={number_text(new.guarantee[node, j])}"
            for node, j in np.argwhere(old.guarantee != new.guarantee).tolist()
            if (old.nodes[node], old.columns[j]) not in asked
        )

    @cached_property
    def status_changes(self) -> tuple[Statement, ...]:
        """Whose status changes, by type."""
        return tuple(self._status_changes())

    def _status_changes(self) -> Iterator[Statement]:
        old, new = (_by_type(each) for each in (self.before, self.after))
        types = dict.fromkeys((*self.before.market.types, *self.after.market.types))
        for name in dict.fromkeys((*old, *new)):
            before, after = old.get(name, {}), new.get(name, {})
            for kind in types if before != after else ():
                was, now = (each.get(kind, EntitlementStatus.IDLE) for each in (before, after))
                if was is not now:
                    yield STATUS_CHANGE.of(name=name, type=kind, before=was, after=now)

    @cached_property
    def given(self) -> tuple[Statement, ...]:
        """What policies give differently."""
        return tuple(self._given())

    def _given(self) -> Iterator[Statement]:
        for old, new in self.decisions:
            if old.shares is None or new.shares is None:
                continue
            was, now = _by_name(old), _by_name(new)
            for name, kind in dict.fromkeys((*was, *now)):
                first, then = (each.get((name, kind), 0) for each in (was, now))
                if first != then:
                    yield GIVEN.of(policy=old.policy, name=name, type=kind, before=first, after=then)

    @cached_property
    def decisions(self) -> tuple[tuple[Alternative, Alternative], ...]:
        """What each policy gives before and after; where a change bears on some users alone, what it gives these."""
        return tuple(map(self._decided, self.before.rules))

    def _decided(self, policy: Policy) -> tuple[Alternative, Alternative]:
        from fairopt.audit.parts import changed_part  # here, since an audit alone knows of no change

        sides = self.before, self.after
        rows = changed_part(policy, *(each.market for each in sides)) if self.settings else None
        if rows:
            self.before.watch(f"{policy.name} decides")
            one, other = (alternative(each.market.select(rows), policy) for each in sides)
            if one.grounds is not None and other.grounds is not None:
                return one, other
        blank = Alternative(policy.name)
        one, other = (next((own for own in each.alternatives if own.policy == policy.name), blank) for each in sides)
        return one, other

    @cached_property
    def undecided(self) -> dict[str, tuple[str, str]]:
        """Why policies give nothing before, or after, where that changes; "" where they decide."""
        both = {old.policy: (old.error, new.error) for old, new in self.decisions}
        return {policy: (was, now) for policy, (was, now) in both.items() if was != now}

    @cached_property
    def reasons(self) -> dict[str, tuple[str, str]]:
        """Why users wait, before and after, where that changes; "" for one that does not wait."""
        names = dict.fromkeys((*self.before.accounts.first_waiting, *self.after.accounts.first_waiting))
        moved = [name for name in names if not self._stands(name)]
        on_all, on_some = self._bears
        apart = self._waits_apart([name for name in moved if name not in on_some])
        both = {
            name: self._why(name, self._waits if name in on_all else (None, None) if name in on_some else apart)
            for name in moved
        }
        return {name: (was, now) for name, (was, now) in both.items() if was != now}

    def _why(self, name: str, waits: Sequence[Sequence[Mapping[str, str]] | None]) -> tuple[str, ...]:
        """Return why a user waits on each side, with what the scheduler's rules say there of its gangs."""
        return tuple(
            str(each.reason(name, own)) if name in each.accounts.first_waiting else ""
            for each, own in zip((self.before, self.after), waits, strict=True)
        )

    def _waits_apart(self, names: Sequence[str]) -> list[list[Mapping[str, str]]]:
        """Return why gangs wait by the scheduler's own rules: those of users on whom the change does not bear."""
        old, made = self.before, list[Alternative]()
        users = [old.market.users.index(name) for name in names]
        for policy in old.rules if users else ():
            if policy.name in own_rules(old.source, old.policy):
                made.append(of_part(old.market, policy, users))
        return [waits_by_rule(made, old.source, old.policy)] * 2

    def _stands(self, name: str) -> bool:
        """Say whether it is clear, without a look at the whole market, that a user waits for the same reason."""
        gang, accounts = self.before.accounts.first_waiting.get(name), (self.before.accounts, self.after.accounts)
        if gang is None or self.after.accounts.first_waiting.get(name) != gang or not self.settings:
            return False
        on_all, on_some = self._bears
        called, both = accounts[0].gangs.names[gang], [each.account_reason(gang) for each in (self.before, self.after)]
        if name not in on_some:  # what the rules say of it is the same
            return both[0] is both[1] or str(both[0]) == str(both[1])
        before, after = ([each.get(called) for each in own] for own in self._waits)
        return name in on_all and before == after and both[0] is both[1]

    @cached_property
    def _waits(self) -> tuple[list[Mapping[str, str]], ...]:
        """Why gangs wait by the scheduler's own rules, on each side, as far as `decisions` go."""
        return tuple(waits_by_rule(*each) for each in self._by_side)

    @cached_property
    def _bears(self) -> tuple[frozenset[str], frozenset[str]]:
        """The users whom all of the scheduler's own rules decide on in `decisions`, and those whom any decides on.

        All users, where the scheduler has no rule, and between two files.
        """
        whole = frozenset((*self.before.market.users, *self.after.market.users))
        own = [each for side in self._by_side for each in of_own_rules(*side)]
        parts = [frozenset(each.market.users) for each in own if each.market is not None] if self.settings else []
        return whole.intersection(*parts), whole.intersection(chain(*parts)) if parts else whole

    @property
    def _by_side(self) -> list[tuple[Sequence[Alternative], str, str]]:
        """What policies give on each side, who read its files, and the policy in force there."""
        return [
            ([pair[at] for pair in self.decisions] if self.settings else each.alternatives, each.source, each.policy)
            for at, each in enumerate((self.before, self.after))
        ]

    @cached_property
    def stops(self) -> dict[str, tuple[str, str]]:
        """Why the scheduler's own rules stop gangs, before and after, by rule and gang; "" for one that is not stopped.

        Only what changes is there.
        """
        old, new = (
            {f"{rule}, {gang}": why for rule, own in stops_by_rule(*each).items() for gang, why in own.items()}
            for each in self._by_side
        )
        both = {name: (old.get(name, ""), new.get(name, "")) for name in dict.fromkeys((*old, *new))}
        return {name: (was, now) for name, (was, now) in both.items() if was != now}

    @cached_property
    def verdicts(self) -> dict[str, tuple[Verdict | None, Verdict | None]]:
        """The verdicts on what is held that change, in answer or margin, by property; None where none is asked for."""
        names = dict.fromkeys((*self.before.verdicts, *self.after.verdicts))
        both = {name: (self.before.verdicts.get(name), self.after.verdicts.get(name)) for name in names}
        return {name: pair for name, pair in both.items() if _told(pair[0]) != _told(pair[1])}

    @cached_property
    def mended(self) -> tuple[str, ...]:
        """What was broken and is no more."""
        return _only(self.before, self.after)

    @cached_property
    def broken(self) -> tuple[str, ...]:
        """What is newly broken."""
        return _only(self.after, self.before)

    @cached_property
    def overbooked(self) -> tuple[str, ...]:
        """Of which types more is held after the change than there is: whose gangs would go, no file says."""
        accounts = self.after.accounts
        there = zip(self.after.market.types, accounts.market.capacity, accounts.all_held, strict=True)
        return tuple(
            f"{number_text(held)} GPUs of {kind} are held, and there would be {number_text(count)}: some gangs must go"
            for kind, count, held in there
            if held > count
        )

    def __repr__(self) -> str:
        changes = counted(len(self.status_changes), "change")
        return f"<WhatIf: {changes} of status, {len(self.mended)} mended, {len(self.broken)} newly broken>"

    def _table(self) -> Grid:
        rows = self.status_changes
        columns = {"type": [row.type for row in rows], "before": [row.before.value for row in rows]}
        return Grid("user", [row.name for row in rows], columns | {"after": [row.after.value for row in rows]})


def _both(before: Any, after: Any) -> dict[str, Any]:
    return {"before": before, "after": after}


def _by_type(found: Audit) -> dict[str, dict[str, EntitlementStatus]]:
    """Return how each user and group stands on each type, by their names."""
    rows = statuses_by_type(found.accounts)
    named = zip(found.accounts.said.nodes, rows, strict=True)
    return {name: dict(zip(found.market.types, row, strict=True)) for name, row in named}


def _told(verdict: Verdict | None) -> tuple[Any, ...]:
    return () if verdict is None else (verdict.answer, verdict.margin)


def _by_name(decided: Alternative) -> dict[tuple[str, str], Number]:
    market, shares = decided.market, decided.shares
    assert market is not None
    assert shares is not None
    return {
        (user, kind): shares[i, j]
        for i, user in enumerate(market.users)
        for j, kind in enumerate(market.types)
        if shares[i, j]
    }


def _only(this: Audit, other: Audit) -> tuple[str, ...]:
    there = {(each.name, each.type) for each in other.violations}
    return tuple(str(each) for each in this.violations if (each.name, each.type) not in there)


def whatif(
    given: Any,
    settings: Sequence[str] | Mapping[str, object] = (),
    *,
    after: Any = None,
    importer: str = "",
    policies: AnyPolicy | Sequence[AnyPolicy] | None = None,
    **how: Any,
) -> WhatIf:
    """Return what changes if ``settings`` were made (``team-a.H100.quota=8``), or between two files or markets.

    The other arguments are those of `audit`. Errors: `BadInput` of `audit`, and for settings that name nobody.

    >>> from fairopt.problem import Entitlements, Gangs, Market
    >>> gangs = Gangs.of(["A", "B"], [4, 4], users=["A", "B"], types=["H100"], on=[None, "H100"])
    >>> owed = Entitlements.of(["A", "B"], ["H100"], guarantee={"B": [4]}, gangs=gangs)
    >>> market = Market.of([[1], [1]], [4], users=["A", "B"], types=["H100"], entitlements=owed)
    >>> [each.after.value for each in whatif(market, ["A.H100.quota=4", "B.H100.quota=0"], policies=[]).status_changes]
    ['STARVED', 'BORROWING']
    """
    old = audit_lazily(given, importer, policies, **how)
    asked = [f"{key}={value}" for key, value in settings.items()] if isinstance(settings, Mapping) else settings
    made = tuple(read_setting(each, old.market) for each in asked)
    if after is None:
        changed = Imported(with_settings(old.market, made), policy=old.policy, unread=old.unread)
        same = {key: value for key, value in how.items() if key not in ("speedups", "rates")}
        found = WhatIf(old, audit_lazily(changed, old.source, old.rules, known=old, **same), made)
    else:
        found = WhatIf(old, audit_lazily(after, importer, policies, **how), made)
    _ = found.reasons  # which takes its time, and the decisions before
    return found
