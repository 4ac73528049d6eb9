"""Competitive equilibrium from equal incomes: the proof that shares maximise Nash welfare."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fairopt.problem import Market
from fairopt.program import Array, Number


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """Prices at which every user, with its weight as its budget, can buy nothing better than its shares.

    Shapes: ``prices`` (k,) of one GPU of each type, in money of which a user has its weight; ``budgets`` (n,);
    ``spending`` (n, k) money of each user on each type. ``rents`` (n,), where some demand binds, is what a user would
    pay for the right to use one more GPU; None where none does. The price of a type without GPUs is the most that
    anybody would pay for one.

    The conditions in `violations` are those of Karush, Kuhn and Tucker for the concave program of Eisenberg and Gale,
    so shares that violate none of them maximise Nash welfare.

    Source: Eisenberg and Gale 1959; Varian 1974 (equal incomes).
    """

    prices: Array
    budgets: Array
    spending: Array
    rents: Array | None = None

    @classmethod
    def of(cls, market: Market, shares: Array, rents: Array | None = None) -> Equilibrium:
        """Return the equilibrium that belongs to these shares; whether it is one, `violations` says.

        The price of a type is the most that anybody would pay at the margin, w_i v_ij / u_i, less the user's rent.
        """
        market = market.as_(Fraction if shares.dtype == object else float)
        pays = market.speedup * (market.weight / (market.speedup * shares).sum(axis=1))[:, None]
        net = pays if rents is None else np.maximum(pays - rents[:, None], 0)
        prices = net.max(axis=0)
        return cls(prices, market.weight, shares * prices, rents)

    @property
    def exact(self) -> bool:
        """Whether the numbers are Fractions."""
        return self.prices.dtype == object

    def violations(self, market: Market, shares: Array, tolerance: Number = 0) -> list[str]:
        """Return what keeps ``shares`` at these prices from being an equilibrium; empty where nothing does.

        No solver is asked. In Fractions a tolerance of 0 is a proof; in floats give one, relative to what there is.
        """
        number = Fraction if self.exact else float
        market = market.as_(number)
        users, types = market.users, market.types
        utility = (market.speedup * shares).sum(axis=1)
        rents = self.budgets * 0 if self.rents is None else self.rents
        rest, money = market.capacity - shares.sum(axis=0), self.budgets.sum()
        limited = market.limit < market.capacity.sum()
        limit = np.where(limited, market.limit, 0)
        room = np.where(limited, limit - shares.sum(axis=1), 0)
        # w_i v_ij <= u_i (p_j + q_i), with equality where i holds any of j
        worth, cost = market.speedup * self.budgets[:, None], (self.prices + rents[:, None]) * utility[:, None]
        scale = worth.max(axis=1, keepdims=True) * tolerance
        unequal = np.abs(self.budgets - market.weight) > tolerance * market.weight
        unbought = np.abs(self.spending - shares * self.prices) > tolerance * market.weight[:, None]
        overpaid = (cost - worth) * shares > scale * market.capacity
        unpaid = np.where(limited, np.abs(room * rents) > tolerance * self.budgets, rents != 0)
        broken: tuple[tuple[str, Array, tuple[tuple[str, ...], ...]], ...] = (
            ("{} has another budget than its weight", unequal, (users,)),
            ("{} on {}: spending is not price times shares", unbought, (users, types)),
            ("{} on {}: negative shares", shares < 0, (users, types)),
            ("{} has a negative price", self.prices < 0, (types,)),
            ("{} has a negative rent", rents < 0, (users,)),
            ("{} is overbooked", rest < -tolerance * market.capacity, (types,)),
            ("{} has a price, but some is left", np.abs(rest * self.prices) > tolerance * money, (types,)),
            ("{} is over its demand", limited & (room < -tolerance * limit), (users,)),
            ("{} has a rent, but is not at its demand", unpaid, (users,)),
            ("{} gets nothing", utility <= 0, (users,)),
            ("{} would rather buy {}", worth > cost + scale, (users, types)),
            (
                "{} holds {}, which is not its best buy",
                overpaid,
                (users, types),
            ),
        )
        return [
            text.format(*(name[int(at)] for name, at in zip(names, place, strict=True)))
            for text, where, names in broken
            for place in np.argwhere(np.asarray(where, dtype=bool))
        ]
