"""Pareto-efficient rules: not a convex set, so that the search goes over who may hold what at each profile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np

from fairopt.backends.exact import Exact
from fairopt.backends.solution import Status
from fairopt.certificates import INFEASIBILITY, Certificate, bare_duals
from fairopt.errors import BadInput
from fairopt.methods.efficient_faces import improving_circle
from fairopt.program import Array, Program
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.findings.truthful.profiles import Profiles


def efficient_holders(speedup: Array) -> list[Array]:
    """Return the largest sets of (user, type) that efficient allocations use, as masks (n, k), for positive speedups.

    An allocation is Pareto-efficient if and only if all GPUs are given out, and whoever holds some is allowed to by one
    of these masks: by who holds what alone it is decided whether a trade in a circle improves it
    (`fairopt.methods.efficient_faces.improving_circle`). Errors: `BadInput` for a speedup of 0.

    >>> for holders in efficient_holders(np.array([[2, 1], [1, 1]])):
    ...     print(holders.astype(int).tolist())
    [[1, 1], [0, 1]]
    [[1, 0], [1, 1]]
    """
    if (speedup <= 0).any():
        raise BadInput(f"a speedup is not positive: {speedup.tolist()}", remedy="Give positive speedups")
    n, k = speedup.shape
    sets = [each for each in product([False, True], repeat=n) if any(each)]
    masks = [np.array(columns).T for columns in product(sets, repeat=k)]
    found = [mask for mask in masks if improving_circle(speedup, mask) is None]
    return [one for one in found if not any((one <= other).all() and (one < other).any() for other in found)]


Holders: TypeAlias = dict[int, Array]


@dataclass(frozen=True, eq=False)
class Contradiction:
    """Who may hold what at some profiles, ``holders`` by the number of the profile, and why no rule does so."""

    holders: Holders
    program: Program
    certificate: Certificate


def refute(profiles: Profiles, ask: Callable[[Design], None]) -> tuple[Contradiction, ...] | None:
    """Return a proof that no Pareto-efficient rule at single reports has what ``ask`` asks; None where one has.

    Complete search: profile by profile, each way to be efficient there is tried, until multipliers contradict the rows,
    or what the linear program finds is efficient everywhere. The proof are cases: each way to be efficient falls under
    one, and in none is a choice superfluous.

    >>> chain = Profiles.of([[[2, 1], [1, 1]], [[2, 1], [1, 3]], [[1, 2], [1, 3]]])
    >>> def ask(design):
    ...     design.strategy_proof()
    ...     design.sharing_incentive()
    >>> len(refute(chain, ask))
    3
    >>> refute(chain.some([0, 1]), ask) is None
    True
    """
    ways = [efficient_holders(each) for each in profiles.corners[:, :, 0]]
    cases: list[Contradiction] = []
    open_cases: list[Holders] = [{}]
    while open_cases:
        chosen = open_cases.pop()
        if any(all(chosen.get(p) is holders for p, holders in case.holders.items()) for case in cases):
            continue
        program, shares = _asked(profiles, ask, chosen)
        if isinstance(shares, Certificate):
            for p in list(chosen):  # a choice without which it is impossible as well is no part of the case
                less = {other: holders for other, holders in chosen.items() if other != p}
                found = _asked(profiles, ask, less)
                if isinstance(found[1], Certificate):
                    chosen, (program, shares) = less, found
            assert isinstance(shares, Certificate)
            cases.append(Contradiction(chosen, program, shares))
            continue
        complete = (shares.sum(axis=1) == profiles.capacity).all()
        if complete and all(
            any((each[~holders] == 0).all() for holders in way) for each, way in zip(shares, ways, strict=True)
        ):
            return None
        # in the order of the profiles, so that the cases do not depend on which of several solutions is found
        p = next(p for p in range(len(ways)) if p not in chosen)
        open_cases += [chosen | {p: holders} for holders in reversed(ways[p])]
    return tuple(cases)


def _asked(profiles: Profiles, ask: Callable[[Design], None], chosen: Holders) -> tuple[Program, Array | Certificate]:
    """Return the program of rules with these holders, and the shares (P, n, k) of one, or why there is none."""
    design = Design(profiles, symmetric=False)
    ask(design)
    for p, holders in chosen.items():
        design.efficient(p, holders)
    program = design.program()
    solution = Exact().solve(program)
    if solution.status is Status.INFEASIBLE and solution.farkas is not None:
        return program, Certificate(INFEASIBILITY, program, bare_duals(-solution.farkas))
    return program, design.rule(solution.require_optimal().point)


def fewest(profiles: Profiles, impossible: Callable[[Profiles], bool]) -> Profiles:
    """Return profiles that cannot be made fewer: without any one of them, what was ``impossible`` is not.

    Each is left out in turn, and stays out where the rest is impossible already (a deletion filter). Errors: `BadInput`
    where all together are not impossible.

    >>> chain = Profiles.of([[[2, 1], [1, 1]], [[2, 1], [1, 3]], [[1, 2], [1, 3]]])
    >>> def ask(design):
    ...     design.strategy_proof()
    ...     design.sharing_incentive()
    >>> len(fewest(chain, lambda some: refute(some, ask) is not None).told)
    3
    """
    if not impossible(profiles):
        raise BadInput("what is asked is possible at these profiles", remedy="Give more profiles, or ask for more")
    kept = list(range(len(profiles.told)))
    for p in list(kept):
        rest = [other for other in kept if other != p]
        if rest and impossible(profiles.some(rest)):
            kept = rest
    return profiles.some(kept)
