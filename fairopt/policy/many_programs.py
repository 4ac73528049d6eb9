"""Decides on thousands of misreports at once, by a policy's program: see `Policy.many_bundles`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.batched import points_and_duals, solve_many
from fairopt.backends.batched_tall import solve_nearby
from fairopt.backends.solution import Basis, not_negative
from fairopt.errors import NotSolved
from fairopt.problem import Market
from fairopt.program import Array, Program
from fairopt.program.batched import Programs, formulated, numbers_of

#: Programs with larger dictionaries (in numbers) are solved faster one by one, from HiGHS's sparse matrices. With more
#: rows than variables they take more steps: then larger ones are solved by their tight constraints, up to so many
#: variables.
LARGEST_DICTIONARY, LARGEST_TALL, MOST_VARIABLES = 2**16, 2_000, 160
#: The most numbers of programs held at a time.
HELD = 2**22
#: The relative difference allowed between a program formulated for many cases and the same one formulated alone.
SAME = 1e-12
#: Solves some of the programs again, by their places, with other upper bounds (some, variables).
Again: TypeAlias = Callable[[Array, Array], Array]
#: From programs, their speedups (cases, n, k) and optimal points (cases, variables) to the points that a policy takes,
#: NaN where it is better decided alone; see `fairopt.methods.many_efficient`. Tall programs are not solved again.
Chosen: TypeAlias = Callable[[Programs, Array, Array, Again | None], Array]


class ManyPrograms:
    """Bundles under misreports by one program each, all solved from the optimal ``basis`` of ``like``, the truth's.

    ``chosen`` says which points the policy takes, None for the optima.

    ``write`` formulates the program of an array of speedups (n, k). A formulation that needs more than arithmetic and
    comparisons of its numbers is left to be decided alone.
    """

    def __init__(
        self, write: Callable[[Array], Program], market: Market, like: Program, basis: Basis, chosen: Chosen | None
    ) -> None:
        self._write, self._market, self._like, self._basis, self._chosen = write, market, like, basis, chosen
        self._able, self._compared = True, False
        rows, variables = like.shape
        tall = rows > variables and rows * variables > LARGEST_TALL
        #: Of tall programs, by user: reports by their places, with the bases of their optima.
        self._known = [[(_place(row), basis)] for row in market.speedup] if tall else None

    @classmethod
    def of(cls, write: Callable[[Array], Program], market: Market, chosen: Chosen | None = None) -> ManyPrograms | None:
        """Return the same by the basis that HiGHS finds; None where programs are better solved one by one."""
        program = write(market.speedup)
        rows, variables = program.shape
        small = rows * variables <= LARGEST_DICTIONARY if rows <= variables else variables <= MOST_VARIABLES
        if not small or program.integer.any() or program.logarithms is not None:
            return None
        try:
            basis = Highs().solve(program).basis
        except NotSolved:
            return None
        return None if basis is None else cls(write, market, program, basis, chosen)

    def __call__(self, users: Array, reports: Array) -> Array:
        """Return the bundles (cases, k)."""
        bundles = np.full(reports.shape, np.nan)
        at_once = max(16, HELD // max(1, len(self._like.rows.value)))
        for first in range(0, len(users), at_once):
            some = slice(first, first + at_once)
            self._fill(bundles[some], users[some], reports[some])
        return bundles

    def _fill(self, bundles: Array, users: Array, reports: Array) -> None:
        for programs in self._programs(users, reports) if self._able else ():
            block, who, told = programs.template.variable_block("share"), users[programs.cases], reports[programs.cases]
            points = self._points(programs, who, told)
            if self._chosen is not None:
                again = partial(self._again, programs) if self._known is None else None
                points = self._chosen(programs, reported(self._market, who, told), points, again)
            shares = points[:, block.span].reshape(-1, *block.shape)
            bundles[programs.cases] = not_negative(shares[np.arange(len(who)), who])

    def _again(self, programs: Programs, of: Array, upper: Array) -> Array:
        """Return optimal points of some of the programs, with other upper bounds; infinity where there is no point."""
        more = {name: getattr(programs, name)[of] for name in ("cost", "lower", "value", "row_lower", "row_upper")}
        changed = replace(programs, **more, cases=of, upper=upper)
        return points_and_duals(changed, self._like, self._basis)[0]

    def _points(self, programs: Programs, users: Array, reports: Array) -> Array:
        """Return an optimal point of each program (cases, variables), NaN where none was proved."""
        if self._known is None:
            return solve_many(programs, self._like, self._basis)
        parent = np.full(len(users), -1)
        if not programs.template.same_structure(self._like):
            return solve_nearby(programs, programs.program(0), self._basis, parent, {})[0]
        # each from the basis of the nearest report of the same user known by then
        places, start = _place(reports), dict[int, Basis]()
        for user in np.unique(users):
            mine = np.flatnonzero(users == user)
            known = np.array([place for place, _ in self._known[user]])
            before = _tree(known, places[mine])
            tied = before >= len(known)
            parent[mine[tied]] = mine[before[tied] - len(known)]
            roots = zip(mine[~tied].tolist(), before[~tied].tolist(), strict=True)
            start |= {case: self._known[user][root][1] for case, root in roots}
        points, found = solve_nearby(programs, self._like, self._basis, parent, start)
        for case, basis in found.items():
            self._known[users[case]].append((places[case], basis))
        return points

    def _programs(self, users: Array, reports: Array) -> Iterator[Programs]:
        """Yield the programs of all cases, by their structure, as far as they are shaped like the truth's."""
        speedups = reported(self._market, users, reports)
        try:
            groups = list(formulated(self._write, speedups))
        except (TypeError, AttributeError, ValueError):
            self._able = False
            return
        for each in groups:
            if each.template.shape != self._like.shape:
                continue
            if not self._compared and not _same(each.program(0), self._write(speedups[each.cases[0]])):
                self._able = False
                return
            self._compared = True
            yield each


def reported(market: Market, users: Array, reports: Array) -> Array:
    """Return the speedups (cases, n, k) of a market in floats where each user in turn reports otherwise."""
    speedups = np.repeat(market.speedup[None], len(users), axis=0)
    speedups[np.arange(len(users)), users] = reports
    return speedups


def _place(reports: Array) -> Array:
    """Return where reports (..., k) lie: at their logarithms, zeros far below."""
    return np.asarray(np.log(np.maximum(reports, 1e-9 * reports.max(axis=-1, keepdims=True))))


def _tree(known: Array, points: Array) -> Array:
    """Return to which point each of ``points`` is tied in the shortest forest that grows from ``known`` ones (Prim).

    Known points are counted first.
    """
    gaps = np.square(points[:, None] - known).sum(axis=2)
    near, far = gaps.argmin(axis=1), gaps.min(axis=1)
    left = np.arange(len(points))
    while len(left):
        last = int(left[far[left].argmin()])
        left = left[left != last]
        gap = np.square(points[left] - points[last]).sum(axis=1)
        closer = left[gap < far[left]]
        far[left], near[closer] = np.minimum(gap, far[left]), last + len(known)
    return np.asarray(near)


def _same(one: Program, other: Program) -> bool:
    """Whether two programs have the same structure and, up to rounding, the same numbers."""
    mine, theirs = (np.concatenate(numbers_of(each)).astype(float) for each in (one, other))
    return one.same_structure(other) and np.allclose(mine, theirs, rtol=SAME, atol=0)
