"""The searches of `fairopt.methods.efficient_faces` for many programs in floats, side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from fairopt.deadline import left
from fairopt.errors import NotSolved
from fairopt.methods.efficient_faces import EfficientFaces, TreeNode, improving_circle, seem_efficient
from fairopt.program import INFINITY, Array
from fairopt.program.batched import Programs

#: Solves some of the programs again, by their places, with other upper bounds (some, variables): their optimal points,
#: infinity where there is none, and NaN where none was found.
Again: TypeAlias = Callable[[Array, Array], Array]


def many_efficient(programs: Programs, speedups: Array, points: Array, again: Again | None) -> Array:
    """Return the best points whose shares are Pareto-efficient (cases, variables), NaN where a search finds none.

    ``points`` are the programs' optima, NaN where none is known; ``speedups`` (cases, n, k) say whose throughput the
    shares are. All searches take a step at a time together; a program that ``again`` does not decide is solved alone.
    Without ``again`` an optimum that is not efficient is left out.
    """
    block = programs.template.variable_block("share")
    n, k = block.shape
    shares = points[:, block.span].reshape(-1, n, k)
    found, searches = points.copy(), {}
    others = np.flatnonzero(~seem_efficient(speedups, shares))
    if again is None:
        found[others] = np.nan
        return found
    for case in others.tolist():
        search = EfficientFaces(programs.program(case), speedups[case])
        circle = improving_circle(search.speedup, shares[case])
        search.keep(TreeNode(frozenset(), float(programs.cost[case] @ points[case]), None, shares[case], circle))
        searches[case] = search, search.steps(lambda: np.zeros((n, k)), n * k * min(n, k))
    while searches:
        left()
        tasks = []
        for case, (search, steps) in list(searches.items()):
            try:
                tasks += [(case, *wanted) for wanted in next(steps)]
            except StopIteration:
                efficient = search.value > -INFINITY
                found[case, block.span] = search.shares.ravel() if efficient else np.nan
                del searches[case]
        of = np.array([case for case, _, _ in tasks], dtype=np.int64)
        upper = programs.upper[of]
        for place, (_, without, _) in enumerate(tasks):
            for user, kind in without:
                upper[place, block.first + user * k + kind] = 0.0
        solved = again(of, upper)
        none = np.asarray(np.isinf(solved).any(axis=1))
        solved[none] = np.nan
        shares = solved[:, block.span].reshape(-1, n, k)
        kept = seem_efficient(speedups[of], shares)
        values = (programs.cost[of] * solved).sum(axis=1)
        for place, (case, without, parent) in enumerate(tasks):
            if case not in searches:  # an earlier program of it has no answer
                continue
            search = searches[case][0]
            if none[place]:
                search.keep(TreeNode(without, -INFINITY, None))
            elif np.isnan(values[place]):
                try:
                    search.solve(without, parent)
                except NotSolved:  # decided alone, which says why
                    found[case] = np.nan
                    del searches[case]
            else:
                circle = None if kept[place] else improving_circle(search.speedup, shares[place])
                search.keep(TreeNode(without, float(values[place]), None, shares[place], circle))
    return found
