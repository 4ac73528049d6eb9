"""Maximal Nash welfare by exact linear programs, for markets on which floats fail: logarithms become chords."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.deadline import left
from fairopt.problem import Market
from fairopt.problem.share_variables import shares_of
from fairopt.program import Array, Formulation, cast

#: Where chords end around a utility, in steps up and down: near it many, far away a few, so that it can still move far.
STEPS = np.array([1, 2, 3, 4, 6, 9, 14, 21, 32, 48])
#: The first step is this factor; each round takes a quarter of the logarithm of the one before, until it is `LAST`.
FIRST, LAST = np.log(16.0), 1e-9
#: The least utility, as a part of what a user could have alone, is e to the power of this.
LEAST = -60.0
#: The same for the largest: beyond what can be had, so that what a user has alone has a price as well.
MOST = 1.0


def by_chords(market: Market) -> Iterator[tuple[Array, Array, Array]]:
    """Yield shares (n, k), prices (k,) and demand duals (n,) in floats, nearer and nearer to an optimum.

    Each round is a linear program, solved in rationals: sum_i w_i log u_i with the logarithm of each user replaced by
    chords, which are short near the utilities of the round before. Errors: `NotSolved`.

    Source: Dantzig, Charnes and Lemke on separable convex programs, 1954-57; the rounds are ours.
    """
    market, ends = market.as_(Fraction), np.concatenate([-STEPS[::-1], [0], STEPS])
    alone = market.utility(np.tile(market.capacity, (len(market.users), 1)))
    step, middle = FIRST, np.full(len(alone), LEAST / 2)
    while step > LAST:
        left()
        points = np.clip(middle[:, None] + step * ends, LEAST, MOST)
        value = np.concatenate([np.full((len(alone), 1), LEAST - 1), points], axis=1)
        level = np.concatenate([np.zeros((len(alone), 1)), np.exp(points)], axis=1)
        p = Formulation("chords")
        share = shares_of(p, market)
        part = p.variable("part", points.shape, lower=0, upper=1)
        own = (market.speedup / alone[:, None] * share).sum(axis=1)
        p.constrain("worth", own >= (cast(np.diff(level), Fraction) * part).sum(axis=1))
        p.maximize((market.weight[:, None] * cast(np.diff(value), Fraction) * part).sum())
        program = p.program()
        best = Exact().optimum(program)
        shares = program.variable("share", best.point)
        reached = (market.speedup * shares).sum(axis=1) / alone
        middle, step = np.log(np.maximum(reached.astype(float), np.exp(LEAST))), step / 4
        assert best.dual is not None
        prices, demand_duals = best.dual[program.row_block("capacity").span], np.zeros(len(alone))
        if market.demand is not None:
            block = program.row_block("demand")
            demand_duals[np.arange(len(alone)) if block.kept is None else block.kept] = best.dual[block.span].astype(
                float
            )
        yield shares.astype(float), prices.astype(float), demand_duals
