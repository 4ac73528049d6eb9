"""Water filling under many misreports at once: the programs of a round side by side, for all who are fixed alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.batched import points_and_duals
from fairopt.backends.solution import Basis, not_negative
from fairopt.errors import NotSolved
from fairopt.policy.many_programs import reported
from fairopt.problem import Market
from fairopt.program import Array, Program
from fairopt.program.batched import formulated

#: The most numbers of a round's dictionary; larger ones are solved faster one by one.
LARGEST_DICTIONARY = 2**16
#: Groups of fewer cases are left to be decided alone: a program is solved for each group to begin from.
FEWEST = 3


class ManyLevels:
    """Bundles of water filling, whose rounds are given: see `WaterFilling`.

    ``write(speedup, level, fixed)`` formulates a round, ``rising(fixed)`` (n,) is how fast levels rise in it, and
    ``raised(level, rising, reached, stuck)`` are the levels after it; level (cases, n), fixed and stuck alike.
    """

    def __init__(
        self,
        market: Market,
        write: Callable[[Array, Array, Array], Program],
        rising: Callable[[Array], Array],
        raised: Callable[[Array, Array, Array, Array], Array],
    ) -> None:
        self._market, self._write, self._rising, self._raised = market, write, rising, raised
        #: A round's program and its optimal basis, by who is fixed.
        self._like: dict[bytes, tuple[Program, Basis] | None] = {}

    def __call__(self, users: Array, reports: Array) -> Array:
        """Return the bundles (cases, k)."""
        speedup = reported(self._market, users, reports)
        bundles = np.full(reports.shape, np.nan)
        count, n, _ = speedup.shape
        waiting = [(np.arange(count), np.zeros((count, n)), np.zeros(n, dtype=bool))]
        while waiting:
            case, level, fixed = waiting.pop()
            for of, shares, level_, stuck in self._round(speedup[case], level, fixed):
                ended = stuck.all(axis=1)
                mine = case[of]
                bundles[mine[ended]] = shares[ended, users[mine[ended]]]
                patterns, group = np.unique(stuck[~ended], axis=0, return_inverse=True)
                for number, pattern in enumerate(patterns):
                    some = np.flatnonzero(~ended)[group.reshape(-1) == number]
                    if len(some) >= FEWEST:
                        waiting.append((mine[some], level_[some], pattern))
        return bundles

    def _round(self, speedup: Array, level: Array, fixed: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Yield cases, their shares (cases, n, k), their levels (cases, n), and who is fixed now (cases, n)."""
        key = fixed.tobytes()
        if key not in self._like:
            self._like[key] = self._begin(speedup[0], level[0], fixed)
        first = self._like[key]
        if first is None:
            return
        n, k = self._market.shape

        def write(numbers: Array) -> Program:
            return self._write(numbers[: n * k].reshape(n, k), numbers[n * k :], fixed)

        rising = self._rising(fixed)
        for programs in formulated(write, np.hstack([speedup.reshape(len(speedup), -1), level])):
            if programs.template.shape != first[0].shape:
                continue
            points, duals = points_and_duals(programs, *first)
            push = duals[:, programs.template.row_block("least_ratio").span] * rising
            sure = (push > 0).any(axis=1)  # a NaN is not
            points, push, cases = points[sure], push[sure], programs.cases[sure]
            # as in `WaterFilling.decide`: half of an equal part of the duals, which add up to one
            least = np.minimum(0.5 / int((rising > 0).sum()), push.max(axis=1))
            stuck = (push > 0) & (push >= least[:, None])
            reached = points[:, programs.template.variable_block("least_ratio").span]
            levels = self._raised(level[cases], rising, reached, stuck)
            shares = not_negative(points[:, programs.template.variable_block("share").span].reshape(-1, n, k))
            yield cases, shares, levels, stuck | fixed

    def _begin(self, speedup: Array, level: Array, fixed: Array) -> tuple[Program, Basis] | None:
        """Return a program with a basis to start the others from, None where there is none."""
        program = self._write(speedup, level, fixed)
        rows, variables = program.shape
        if rows * variables > LARGEST_DICTIONARY:
            return None
        try:
            basis = Highs().solve(program).basis
        except NotSolved:
            return None
        return None if basis is None else (program, basis)
