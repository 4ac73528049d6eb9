"""What policies give on the same market, who gains and loses by it, and what a file itself says of a rule's shares."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isclose
from types import MappingProxyType
from typing import Any

import numpy as np

from fairopt import discovery
from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.reasons import are
from fairopt.compare import verify
from fairopt.discovery import AnyPolicy, AnyProperty
from fairopt.errors import BadInput, FairoptError, NotCapable
from fairopt.methods.whole_gpus import whole
from fairopt.numbers import is_number
from fairopt.policy import Allocation, Policy, Trait, decide
from fairopt.policy.decide import exact_or_floats
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Market
from fairopt.program import Array, Number, number_text
from fairopt.properties import AllocationProperty, Verdict
from fairopt.report import Key, ResultForm, Statement, by_name

_log = logging.getLogger(__name__)
#: On a market with more users or gangs, what takes long is done only where it is asked for.
MANY_USERS, MANY_GANGS = 200, 2_000


def is_large(market: Market) -> bool:
    """Return whether a market has so many users or gangs that only its own scheduler's rule is asked by itself."""
    said = market.entitlements
    return len(market.users) > MANY_USERS or (said is not None and len(said.gangs) > MANY_GANGS)


@dataclass(frozen=True, eq=False)
class Alternative:
    """What a policy would give: ``shares`` (n, k) in whole GPUs, None where it could not decide, and why (``error``).

    ``gains``: by user and type, what it would get more than it holds; negative for less. ``grounds``: why, of a
    scheduler's own rule. ``rounded``: whether the policy gives parts of GPUs, which were made whole GPUs and gangs.
    ``market``: where that stands. ``verdicts``: properties of it, where they were asked.
    """

    policy: str
    shares: Array | None = None
    gains: dict[str, dict[str, Number]] = field(default_factory=dict)
    grounds: DecisionReason | None = None
    error: str = ""
    rounded: bool = False
    market: Market | None = None
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    form = ResultForm(
        "What a policy would give.",
        Key("policy", str, "The policy."),
        Key("allocation", list[list[Number]] | None, "GPUs of each type for each user.", lambda each: each.shares),
        Key("gains", by_name(dict), "By user and type: what it would get more than it holds; negative for less."),
        Key("rounded", bool, "Whether the policy gives parts of GPUs, which were made whole GPUs and gangs."),
        Key("properties", dict[str, Verdict], "Verdicts by name.", lambda each: each.verdicts),
        Key("waits", dict[str, str], "Why gangs wait.", lambda each: each.grounds.waits if each.grounds else {}),
        Key("stopped", dict[str, str], "Why gangs stop.", lambda each: each.grounds.stopped if each.grounds else {}),
        Key(
            "shares",
            dict,
            "By what the policy orders users, and its unit.",
            lambda each: {"unit": each.grounds.unit, "of": each.grounds.share} if each.grounds else {},
        ),
        Key("error", str | None, "Why it decides nothing.", lambda each: each.error or None),
    )

    @cached_property
    def after(self) -> Market | None:
        """The market with the gangs that run then."""
        if self.market is None or self.grounds is None or self.market.entitlements is None:
            return self.market
        return replace(self.market, entitlements=self.market.entitlements.running(self.grounds.gangs))

    def total(self, user: str) -> Number:
        """Return how many GPUs a user gains in all."""
        return sum(self.gains.get(user, {}).values())

    @property
    def overbooked(self) -> tuple[str, ...]:
        """Of which types it gives more than there is, in words: a rule that counts quotas may, and gangs would wait."""
        if self.market is None or self.shares is None:
            return ()
        rows = zip(self.market.types, self.market.capacity, self.shares.sum(axis=0), strict=True)
        return tuple(
            f"{number_text(given)} {kind} are given out, and there {are(there)} {number_text(there)}"
            for kind, there, given in rows
            if given > there
        )


def own_rules(source: str, policy: str = "") -> list[str]:
    """Return the policies that are a scheduler's own: of its name, or of a name that begins with it.

    It is only the ``policy`` in force, where that is known.
    """
    own = [name for name in discovery.names(discovery.POLICIES) if name == source or name.startswith(f"{source}-")]
    return [policy] if policy in own else own


def chosen(
    market: Market, named: AnyPolicy | Sequence[AnyPolicy] | None, source: str, policy: str = ""
) -> list[Policy]:
    """Return the named policies, else those that decide by entitlements and support all that the market says.

    The scheduler's own are among them; on a market of many users or gangs they are all. Of these it is the ``policy``
    in force, where that is known. Errors: `BadInput` for no policy.
    """
    if named is not None:
        return discovery.policies_of(named, Market)
    own = own_rules(source)
    other = {*own} - {*own_rules(source, policy)}
    said = market.entitlements
    assert said is not None
    large = is_large(market)
    # an installation that is older than the code has no such group
    names = discovery.names(discovery.ENTITLED_POLICIES) or discovery.names(discovery.POLICIES)
    names = [name for name in dict.fromkeys((*own, *names)) if (name in own or not large) and name not in other]
    found = [discovery.policy(name) for name in names]
    return sorted(
        (each for each in found if Trait.ENTITLED in each.traits and said.said <= each.supports),
        key=lambda each: each.name not in own,
    )


def asked_properties(
    market: Market, named: AnyProperty | Sequence[AnyProperty] | None, *, speeds: bool
) -> tuple[AllocationProperty, ...]:
    """Return the named properties, else those that are asked of entitlements; with ``speeds``, all that are asked."""
    if named is None and not speeds:
        if is_large(market):
            return ()
        names = discovery.names(discovery.ENTITLED_PROPERTIES) or discovery.names(discovery.PROPERTIES)
        made = [each for each in map(discovery.property_, names) if issubclass(Market, each.problem)]
    else:
        made = discovery.properties(Market) if named is None else discovery.properties_of(named)
    found = tuple(each for each in made if isinstance(each, AllocationProperty))
    if named is not None:
        if len(found) < len(made):
            other = next(each.name for each in made if each not in found)
            raise BadInput(f"{other} is no property of what is held", place="property", remedy="Leave it out")
        return found
    asked = (each for each in found if each.asked_of(market))
    return tuple(each for each in asked if speeds or (each.needs is not None and not each.needs_speedups))


#: A market, and what policies give on it, by name.
Known = tuple[Market, Mapping[str, "Alternative"]]


def alternatives(
    accounts: EntitlementAccounts,
    policies: Sequence[Policy],
    properties: Sequence[AllocationProperty],
    watch: Callable[[str], None],
    known: Known | None = None,
) -> Iterator[Alternative]:
    """Yield what each policy gives, with the ``properties`` that this has; ``watch`` is told of each before.

    ``known``: what the same policies give on another market.
    """
    for policy in policies:
        watch(f"{policy.name} decides")
        found = changed(accounts.market, policy, known) if known else alternative(accounts.market, policy)
        if properties and found.after is not None:
            found = replace(found, verdicts=verify(found.after, found.shares, properties))
        yield found


def waits_by_rule(found: Sequence[Alternative], source: str, policy: str = "") -> list[Mapping[str, str]]:
    """Return why gangs wait by each of the scheduler's own rules; by the ``policy`` in force, where it is known."""
    return [each.grounds.waits for each in of_own_rules(found, source, policy) if each.grounds]


def stops_by_rule(found: Sequence[Alternative], source: str, policy: str = "") -> dict[str, Mapping[str, str]]:
    """Return which gangs the scheduler's own rules would stop, and why, by rule; the arguments are as before."""
    own = of_own_rules(found, source, policy)
    return {each.policy: each.grounds.stopped for each in own if each.grounds and each.grounds.stopped}


def of_own_rules(found: Sequence[Alternative], source: str, policy: str = "") -> list[Alternative]:
    """Return what the scheduler's own rules give, where they say why; the arguments are as before."""
    own = own_rules(source, policy)
    return [each for each in found if each.policy in own and each.grounds is not None]


def decided(policy: Policy, market: Market) -> Allocation:
    """Return what a policy decides, exactly where it has an exact decision."""
    if market.exact:
        try:
            return exact_or_floats(policy, market)
        except NotCapable:
            _log.info("%s has no exact decision on this market; now in floats", policy.name)
    return decide(policy, market)


def alternative(market: Market, policy: Policy) -> Alternative:
    """Return what a policy gives on a market, or why it gives nothing."""
    try:
        decision = decided(policy, market)
    except FairoptError as error:
        return Alternative(policy.name, error=str(error))
    if isinstance(decision.evidence, DecisionReason):
        return _of_rule(market, policy, decision.shares, decision.evidence)
    after, shares = whole(market, decision.shares)
    rounded = not np.array_equal(decision.shares, shares)
    return Alternative(policy.name, shares, _gains(market, shares), None, rounded=rounded, market=after)


def of_part(market: Market, policy: Policy, users: Collection[int]) -> Alternative:
    """Return what a policy gives some users and all on whom that depends, or why it gives nothing."""
    from fairopt.audit.parts import part_of  # here, since an audit alone asks of nobody's part

    return alternative(part_of(policy, market, users), policy)


def changed(market: Market, policy: Policy, known: Known) -> Alternative:
    """Return the `alternative` on a market that differs a little from one on which it is ``known``.

    Only what stands in one part with a change (`Policy.parts`) is decided.
    """
    from fairopt.audit.parts import changed_part, joined  # here, since an audit alone knows of nothing before

    before, found = known[0], known[1].get(policy.name)
    owed = market.entitlements
    rows = changed_part(policy, before, market) if found is not None and found.grounds is not None else None
    if rows is None or owed is None or found is None or found.shares is None or found.grounds is None:
        return alternative(market, policy)
    shares, grounds = found.shares.copy(), found.grounds
    if rows:
        part = alternative(market.select(rows), policy)
        if part.shares is None or part.grounds is None:
            return alternative(market, policy)
        shares[rows], grounds = part.shares, joined(grounds, part.grounds, owed, rows)
    return _of_rule(market, policy, shares, grounds)


def _of_rule(market: Market, policy: Policy, shares: Array, grounds: DecisionReason) -> Alternative:
    """Return what a scheduler's own rule gives."""
    return Alternative(policy.name, shares, _gains(market, shares), grounds, market=market)


def _gains(market: Market, shares: Array) -> dict[str, dict[str, Number]]:
    """Return what each user would get more than it holds, by type."""
    said = market.entitlements
    assert said is not None
    more = shares - said.held[:, : len(market.types)]
    gains: dict[str, dict[str, Number]] = {}
    for i, j in zip(*np.nonzero(more), strict=True):
        gains.setdefault(market.users[i], {})[market.types[j]] = more[i, j]
    return gains


#: Declared values are printed with few digits, or with six decimals: those that differ by less are alike.
PRINTED, DECIMALS = 1e-3, 1e-6


def _declared(it: Statement) -> str:
    said = f"the file says {few_digits(it.stated)}, {it.rule} computes {few_digits(it.computed)}"
    return f"{it.name}, {it.what}: {said}"


#: A value that a file states, beside the same one ``computed`` by a ``rule``; None where nothing computes it.
DECLARED = ResultForm(
    "A value that a file states.",
    Key("differs", bool, "Whether it is another than the one that is computed."),
    in_full=True,
    sentence=_declared,
)


def declared(name: str, what: str, stated: Any, computed: Number | None, rule: str) -> Statement:
    """Return what a file states of a user or group, beside what a rule computes."""
    differs = False
    if computed is not None and is_number(stated):
        one, other = float(stated), float(computed)  # infinity among them
        differs = one != other and not isclose(one, other, rel_tol=PRINTED, abs_tol=DECIMALS)
    return DECLARED.of(name=name, what=what, stated=stated, computed=computed, rule=rule, differs=differs)


def few_digits(value: Any) -> str:
    """Return a number with at most six digits, "" for None, and anything else as it is."""
    return "" if value is None else f"{float(value):.6g}" if is_number(value) else str(value)


def compared(
    accounts: EntitlementAccounts,
    stated_by_file: Mapping[str, Mapping[str, Any]],
    policies: Sequence[Policy],
    counted: Mapping[str, Mapping[str, Number]] = MappingProxyType({}),
) -> Iterator[Statement]:
    """Yield every declared number of users and groups of the market, computed where a rule's values are called so.

    KAI's ``allocated`` is compared with what its pods hold, Volcano's with its running gangs, and what an importer
    ``counted`` of the file's objects with that. The rules see the market as it stands, without what is pending, so that
    they only say what its shares are.
    """
    known = {name: own for name, own in stated_by_file.items() if name in accounts.said.nodes}
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
            [declared(name, what, value, values.get(name), rule) for name, value in stated.items()]
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
