"""Guarantee incentive: nobody would be better off with what it is guaranteed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fairopt.numbers import counted
from fairopt.problem import Entitled, Market
from fairopt.problem.ranges import in_use
from fairopt.program import Array, Number, more_text, number_text
from fairopt.properties.entitlements.cited import NOW, OWED, TEAMS
from fairopt.properties.entitlements.held_and_owed import Asked, asks, most_served, says_who_asks, uses_of
from fairopt.properties.property import CitedInstance, SlackCase
from fairopt.properties.verdict import Answer, Verdict
from fairopt.properties.within_bounds import LinearInSpeedups


class GuaranteeIncentive(LinearInSpeedups):
    """Each user's throughput, of what it asks for, is at least what it would be on its guarantee alone.

    Where the market says of nobody what it holds or asks for, everybody asks for its demand. A failure shows a
    user, its throughput, that of its guarantee, and what is ``missing`` of each type of it.

    Source: sharing incentive (OEF Sec. 2.3.1 (3)) with the guarantee in place of the equal share.

    >>> print(GuaranteeIncentive().check(TEAMS, NOW).witness)
    give team-a 6 H100 of its guarantee: it gets 4, and its guarantee is worth 16
    """

    name = "guarantee_incentive"
    head = "at least its guarantee's worth"
    broken = "{who} gets less than its guarantee is worth"
    source = "OEF Sec. 2.3.1 (3), with the guarantee in place of the equal share"
    definition = "E_l(x_l) >= E_l(guarantee_l) for every user l, of what it asks for"
    needs = frozenset({Entitled.GUARANTEES})
    instances = (
        CitedInstance("made by hand: the tuning runs, and the sweep waits", TEAMS, OWED, Answer.HOLDS),
        CitedInstance("made by hand: batch has what team-a waits for", TEAMS, NOW, Answer.FAILS),
    )

    def compared(self, market: Market, shares: Array) -> Iterator[tuple[int, Array | None, Array | None]]:
        """Yield each user with its shares and its guarantee, both as far as it uses them for what it asks for."""
        owed = guarantees(market)
        for i, asked in enumerate(asks(market)):
            yield i, _served(market, i, asked, shares[i]), _served(market, i, asked, owed[i])

    def _check(self, market: Market, shares: Array, tolerance: Number) -> Verdict:
        owed, fair = guarantees(market), market.fair_utility()
        rows = zip(asks(market), market.speedup, shares, owed, strict=True)
        pairs = [
            tuple((speeds * uses_of(asked, speeds, bundle)).sum() for bundle in bundles)
            for asked, speeds, *bundles in rows
        ]
        worst = min(range(len(pairs)), key=lambda i: (pairs[i][0] - pairs[i][1]) / fair[i])
        got, own = pairs[worst]
        lacks = owed[worst] - shares[worst]
        missing = tuple((market.types[j], lacks[j]) for j in np.flatnonzero(lacks > 0))
        shown = {"user": market.users[worst], "throughput": got, "guaranteed": own, "missing": missing}
        case, effort = self.case(got - own, fair[worst], **shown), counted(len(pairs), "user")
        return self._by_tightest(case, tolerance, exact=market.exact, unit=f"throughput of {case.user}", effort=effort)

    def says(self, case: SlackCase) -> str:
        """Return what to give to whom, and what that is worth, in a sentence."""
        give = " and ".join(f"{number_text(amount)} {name}" for name, amount in case.missing)
        got, own = number_text(case.throughput), more_text(case.guaranteed, case.throughput)
        return f"give {case.user} {give} of its guarantee: it gets {got}, and its guarantee is worth {own}"

    def fails(self, case: SlackCase, market: Market, shares: Array) -> bool:
        """Whether the user gets less out of its shares than out of its guarantee, for what it asks for."""
        i = market.index(case.user)
        asked, speeds = asks(market)[i], market.speedup[i]
        own, owed = (uses_of(asked, speeds, bundle) for bundle in (shares[i], guarantees(market)[i]))
        return bool((speeds * own).sum() < (speeds * owed).sum())


def _served(market: Market, user: int, asked: Asked, bundle: Array) -> Array | None:
    """Return which of a bundle's GPUs (k,) serve what a user asks for, whatever its speedups; None if these decide."""
    assert market.entitlements is not None
    if not says_who_asks(market.entitlements):
        return in_use(market, user, bundle)
    runs = np.where(market.ends[1][user] > 0, bundle, 0)
    if all(len(types) == 1 for types in asked):
        return np.array([min(max(0, there), asked.get((j,), 0)) for j, there in enumerate(runs)], dtype=bundle.dtype)
    if most_served(asked, runs.tolist()) == runs.sum():
        return runs
    return uses_of(asked, market.speedup[user], bundle) if market.known[user] else None


def guarantees(market: Market) -> Array:
    """Return what each user (n, k) is guaranteed, at most what there is."""
    assert market.entitlements is not None
    n, k = market.shape
    return np.asarray(np.minimum(market.entitlements.guarantee[:n, :k], market.capacity))
