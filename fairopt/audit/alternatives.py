"""What policies would give on the same market, and who gains and who loses by it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from fairopt import discovery
from fairopt.audit.accounts import EntitlementAccounts
from fairopt.audit.reasons import are
from fairopt.compare import verify
from fairopt.discovery import AnyPolicy
from fairopt.errors import FairoptError, NotCapable
from fairopt.methods.whole_gpus import whole
from fairopt.policy import Allocation, Policy, Trait, decide
from fairopt.policy.decide import exact_or_floats
from fairopt.policy.decision import DecisionReason
from fairopt.problem import Market
from fairopt.program import Array, Number, number_text
from fairopt.properties import AllocationProperty, Verdict
from fairopt.report import Key, ResultForm, by_name

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
    ``after``: the market with the gangs that run then. ``verdicts``: properties of it, where they were asked.
    """

    policy: str
    shares: Array | None = None
    gains: dict[str, dict[str, Number]] = field(default_factory=dict)
    grounds: DecisionReason | None = None
    error: str = ""
    rounded: bool = False
    after: Market | None = None
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

    def total(self, user: str) -> Number:
        """Return how many GPUs a user gains in all."""
        return sum(self.gains.get(user, {}).values())

    @property
    def overbooked(self) -> tuple[str, ...]:
        """Of which types it gives more than there is, in words: a rule that counts quotas may, and gangs would wait."""
        if self.after is None or self.shares is None:
            return ()
        rows = zip(self.after.types, self.after.capacity, self.shares.sum(axis=0), strict=True)
        return tuple(
            f"{number_text(given)} {kind} are given out, and there {are(there)} {number_text(there)}"
            for kind, there, given in rows
            if given > there
        )


def own_rules(source: str) -> list[str]:
    """Return the policies that are a scheduler's own: of its name, or of a name that begins with it."""
    return [name for name in discovery.names(discovery.POLICIES) if name == source or name.startswith(f"{source}-")]


def chosen(market: Market, named: AnyPolicy | Sequence[AnyPolicy] | None, source: str) -> list[Policy]:
    """Return the named policies, else those that decide by entitlements and support all that the market says.

    On a market of many users or gangs these are the rules of its own scheduler only. Errors: `BadInput` for no policy.
    """
    if named is not None:
        return discovery.policies_of(named, Market)
    own = own_rules(source)
    said = market.entitlements
    assert said is not None
    large = is_large(market)
    names = [name for name in discovery.names(discovery.POLICIES) if name in own or not large]
    found = [discovery.policy(name) for name in names]
    return sorted(
        (each for each in found if Trait.ENTITLED in each.traits and said.said <= each.supports),
        key=lambda each: each.name not in own,
    )


def alternatives(
    accounts: EntitlementAccounts,
    policies: Sequence[Policy],
    properties: Sequence[AllocationProperty],
    watch: Callable[[str], None],
) -> Iterator[Alternative]:
    """Yield what each policy gives, with the ``properties`` that this has; ``watch`` is told of each before."""
    for policy in policies:
        watch(f"{policy.name} decides")
        found = alternative(accounts.market, policy)
        if found.after is not None and properties:
            found = replace(found, verdicts=verify(found.after, found.shares, properties))
        yield found


def _decided(policy: Policy, market: Market) -> Allocation:
    if market.exact:
        try:
            return exact_or_floats(policy, market)
        except NotCapable:
            _log.info("%s has no exact decision on this market; now in floats", policy.name)
    return decide(policy, market)


def alternative(market: Market, policy: Policy) -> Alternative:
    """Return what a policy gives on a market, or why it gives nothing."""
    said, k = market.entitlements, len(market.types)
    assert said is not None
    try:
        decision = _decided(policy, market)
    except FairoptError as error:
        return Alternative(policy.name, error=str(error))
    grounds = decision.evidence if isinstance(decision.evidence, DecisionReason) else None
    shares, after, rounded = decision.shares, decision.leaves(market), False
    if grounds is None:
        made = whole(market, shares)
        rounded, shares, after = not np.array_equal(made.shares, shares), made.shares, made.market
    more = shares - said.held[:, :k]
    gains: dict[str, dict[str, Number]] = {}
    for i, j in zip(*np.nonzero(more), strict=True):
        gains.setdefault(market.users[i], {})[market.types[j]] = more[i, j]
    return Alternative(policy.name, shares, gains, grounds, rounded=rounded, after=after)
