"""Where the restricted program begins when most users could as well buy any type: at a point of the interior.

Where speedups are nearly of rank one, all types are nearly as good a buy at prices of an equilibrium. So these tell
little about who will be in which single-type group, and simplex steps that do not know yet which rows bind make many
detours. A point between all users that is still some way from the optimum tells both: members of a group hold hardly
anything else, and almost the same; rows that bind have large multipliers for their slack. What it tells need not be
right, as it is only where the restricted program begins.

Rows come and go: of the tightest and the violated ones those are left out again whose multipliers are small for their
slack. They hardly change a step, and a step takes time for each row.
"""

from __future__ import annotations

import numpy as np

from fairopt.deadline import remaining
from fairopt.methods.envy_free.interior_point import NewtonStep
from fairopt.methods.envy_free.interior_program import EnvyPairs, InteriorProgram, Point
from fairopt.methods.envy_free.restricted_lp import EnvyRows, RestrictedStart, Users
from fairopt.program import Array

#: For at least so many users and types, as with few the simplex method takes less, and for at most so many users, as a
#: step takes their number to the third power.
FEWEST, TYPES, MOST = 200, 9, 1000
#: Most users could as well buy any type where free ones may at first hold at least this part of all types.
ANY = 0.8
#: Where less time than this is left, in seconds, the first program comes first: its answer can be told.
PATIENT = 20.0
#: The products of numbers and duals add up to at most this part of the total at the end; most steps.
ENOUGH, MOST_STEPS = 3e-4, 20
#: What a step pays for changes: as in `interior_point`, where the gap is small, from its start on.
SOFTER, SOFTEST, HARDER = 3.0, 1e-5, 100.0
#: A step may go this part of the way to where the first number would be 0.
FAR = 1.0
#: So many rows of each user count as tight. Rows stay whose multiplier is, for their slack, at least this part of what
#: the one in the middle has.
TIGHTEST, STEEP = 6, 0.05
#: What a member of a group holds differs by at most this part of all prices from what users who mainly hold the same
#: type do in the middle; at most this part of all users is free.
APART, FREE = 0.05, 0.4
#: So many rows for each free user, and so many pairs within groups for each member.
ROWS, NEAR = 8, 6


def could_buy_any(at: RestrictedStart) -> bool:
    """Return whether most users could as well buy any type at the prices that the start ``at`` was made by."""
    (n, k), known = at.may_hold.shape, at.basis is not None or len(at.rows.envious) > 0
    apt = FEWEST <= n <= MOST and k >= TYPES and not known
    return apt and float(at.may_hold.mean()) >= ANY and remaining() > PATIENT


def interior_start(users: Users) -> RestrictedStart | None:
    """Return a start for users without demands of whom no two are in proportion; None where floats find none.

    Errors: `OutOfTime`.
    """
    program = _FewRows(users, np.arange(len(users.gain)))
    point, pairs = program.start()
    slacks, hold = program.slacks(point), 1.0
    with np.errstate(all="ignore"):
        for _ in range(MOST_STEPS):
            point, pairs = program.joined(*program.steep(point, pairs, slacks), slacks, slacks < 0, best=1.0)
            try:
                point = NewtonStep(program, pairs, point, hold, gap=0.0).stepped(FAR)
            except np.linalg.LinAlgError:
                hold *= HARDER
                continue
            slacks, hold = program.slacks(point), max(SOFTEST, hold / SOFTER)
            if program.total(point.products()) <= ENOUGH * float(users.gain @ point.worth):
                break
    finite = all(np.isfinite(each).all() for each in point)
    return _told(program, point, pairs, slacks + program.margin) if finite else None


class _FewRows(InteriorProgram):
    """The program with fewer rows, as its point need not be near the optimum."""

    tightest = TIGHTEST

    def steep(self, point: Point, pairs: EnvyPairs, slacks: Array) -> tuple[Point, EnvyPairs]:
        """Return the point and the pairs without the rows that hold and hardly change a step."""
        steep = point.envy / point.slack * point.worth[pairs.envious]
        stay = (slacks[pairs.envious, pairs.envied] < 0) | (steep >= STEEP * np.median(steep))
        only = EnvyPairs(pairs.envious[stay], pairs.envied[stay], self.rows, self.margin)
        return point._replace(slack=point.slack[stay], envy=point.envy[stay]), only


def _told(program: InteriorProgram, point: Point, pairs: EnvyPairs, slacks: Array) -> RestrictedStart:
    """Return the start that a point tells: groups, and rows and pairs of the largest multipliers for their slack."""
    users, bundle = program.users, program.held(point)
    n, k = bundle.shape
    worth = bundle * users.value
    mainly, part = worth.argmax(axis=1), worth.max(axis=1) / worth.sum(axis=1)
    usual = np.zeros((k, k))
    for j in np.unique(mainly):
        one = np.flatnonzero(mainly == j)
        usual[j, j] = np.median(bundle[one[part[one] >= np.median(part[one])], j])
    apart = np.abs(bundle - usual[mainly]) @ point.price / point.price.sum()
    single_type = np.where(apart <= max(APART, float(np.quantile(apart, 1 - FREE))), mainly, -1)
    is_free = single_type < 0

    envious, envied = pairs.envious, pairs.envied
    slack = np.maximum(slacks[envious, envied] / point.worth[envious], np.finfo(float).tiny)
    order = np.argsort(-point.envy / slack, kind="stable")
    within = (single_type[envious] >= 0) & (single_type[envious] == single_type[envied])
    near = order[within[order]][: NEAR * int((~is_free).sum())]
    rows = order[~within[order]]
    holder = np.where(is_free, k + np.arange(n), single_type)[envied[rows]]
    _, first = np.unique(envious[rows] * (k + n) + holder, return_index=True)
    first = np.sort(first)[: ROWS * int(is_free.sum())]
    rows, holder = rows[first], holder[first]
    return RestrictedStart(
        single_type,
        (users.value > 0) & is_free[:, None],
        EnvyRows(envious[rows], holder, np.zeros(len(rows), dtype=bool)),
        envious[near],
        envied[near],
        dual=True,
    )
