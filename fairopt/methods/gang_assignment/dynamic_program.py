"""The deviations of least loss by dynamic programming: the state is what each type still lacks.

Group after group deviates or stays. Of two ways that leave the same GPUs lacking, the dearer one is dropped. What is
still to be lost is bounded from below by how each type alone could be filled, exactly, by the groups to come. Only the
best states by that bound are kept; the least bound of those that were given up is what proves the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from fairopt.backends.solution import Solution, Status
from fairopt.methods.gang_assignment.deviations import Deviations, best_moves
from fairopt.program import ROUNDING, Array

#: States kept after a group: more where fewer prove nothing.
WIDTHS = (60, 600, 6400)
#: Groups are taken job by job where they have at most so many, with one type to go to or with several.
ONE_BY_ONE = (2, 8)
#: Larger problems are not tried: so many steps, and so many numbers in the tables of bounds (48 MB).
MOST_STEPS, MOST_NUMBERS = 600, 6_000_000
#: What a sum of a few hundred regrets can be off by, as a part of it.
SUMMED = 2048 * ROUNDING
#: States are told apart by a random projection first.
SEED = 20250102


@dataclass(frozen=True, eq=False)
class _JobStep:
    """A step: ``pieces`` identical jobs, of ``gang`` GPUs in all, stay at ``base`` or go to one of ``to``.

    ``place``: the deviations that these are. Each choice, of which the first is to stay, has a ``change`` (types, ways,
    1) of what lacks, a ``turn`` of its projection and a ``price`` (ways, 1).
    """

    gang: int
    pieces: int
    base: int
    to: Array
    regret: Array
    place: Array
    change: Array
    turn: Array
    price: Array

    @classmethod
    def of(
        cls, gang: int, pieces: int, base: int, to: Array, regret: Array, place: Array, projection: Array
    ) -> _JobStep:
        """Return the step of some jobs; ``projection`` (types,)."""
        types, ways = len(projection), len(to) + 1
        change = np.zeros((types + 1, ways), dtype=np.int64)
        change[to, np.arange(1, ways)] = -gang * pieces
        change[base, 1:] += gang * pieces
        turn, price = (projection @ change[:types])[:, None], np.concatenate([[0.0], regret * pieces])[:, None]
        change = change[:types, :, None]
        return cls(gang * pieces, pieces, base, to, regret * pieces, place, change, turn, price)


def solve_by_states(
    deviations: Deviations, *, start: Array | None = None, slack: float = 0.0, time_limit: float | None = None
) -> Solution | None:
    """Return the moves of least loss among ``deviations``, proven to less than ``slack``; None for too many.

    ``start``: moved jobs that satisfy the rows. The bound holds whatever the status; `Status.LIMIT` says that it is
    less than the loss, by ``slack`` or more, and less than the limit of the deviations. ``time_limit``: seconds.
    """
    ends = None if time_limit is None else perf_counter() + time_limit
    if not deviations.residual.any():
        return best_moves(Status.OPTIMAL, np.zeros(len(deviations), dtype=np.int64), 0.0, 0.0)
    jobs = deviations.priced.groups.count
    steps = _steps(deviations) if len(deviations) else []
    tables = _tables(deviations.residual, steps) if 0 < len(steps) <= MOST_STEPS else None
    if tables is None:
        return None if len(deviations) else best_moves(Status.INFEASIBLE, None, np.inf, np.inf)
    best = np.inf if start is None else float(start @ deviations.regret)
    moved, bound = start, 0.0
    for width in WIDTHS:
        found, loss, above = _search(deviations, steps, tables, width, best - slack, ends)
        bound = max(bound, above * (1 - SUMMED))
        if loss < best:
            if (np.bincount(deviations.group, weights=found, minlength=len(jobs)) > jobs).any():
                break  # a group has moved more jobs than it has, to two types; the loss is a bound still
            moved = found
            best = float(moved @ deviations.regret)
        if bound >= (1 - 3 * SUMMED) * min(best - slack, deviations.limit):
            status = Status.OPTIMAL if moved is not None else Status.INFEASIBLE
            return best_moves(status, moved, best, min(bound, best))
        if ends is not None and perf_counter() > ends:
            break
    return best_moves(Status.LIMIT, moved, best, min(bound, best))


def _steps(deviations: Deviations) -> list[_JobStep]:
    """Return the steps in order, large gangs first: the small ones can fill what these leave."""
    priced, jobs = deviations.priced, deviations.priced.groups.count
    projection = np.random.default_rng(SEED).integers(1, 1 << 62, len(priced.duals))
    order = np.argsort(deviations.group, kind="stable")
    group, first = np.unique(deviations.group[order], return_index=True)
    ends = np.append(first[1:], len(order))
    steps = []
    for each, begin, end in zip(group.tolist(), first.tolist(), ends.tolist(), strict=True):
        own = order[begin:end]
        gang, base, count = int(priced.groups.gang[each]), int(priced.base[each]), int(jobs[each])
        to, regret = deviations.to[own], deviations.regret[own]
        if count <= ONE_BY_ONE[len(own) > 1]:
            steps += [_JobStep.of(gang, 1, base, to, regret, own, projection)] * count
            continue
        # 1, 2, 4, ... jobs at a time reach every number of them; that types do not share one is checked at the end
        pieces = [1 << bit for bit in range((count + 1).bit_length() - 1)]
        pieces += [count - sum(pieces)] * (count > sum(pieces))
        for i in range(len(own)):
            part = slice(i, i + 1)
            steps += [_JobStep.of(gang, n, base, to[part], regret[part], own[part], projection) for n in pieces]
    return sorted(steps, key=lambda step: (-(step.gang // step.pieces), float(step.regret.min())))


def _tables(residual: Array, steps: list[_JobStep]) -> Array | None:
    """Return bounds on the loss from each step on, by what one type lacks: (steps + 1, 2, types, lacks).

    Alone: each type counts the whole regret of what is moved to or from it, and the largest is a bound. Shared: two
    types count half of it each, and the sum is a bound. In the middle a type lacks nothing. None where they would be
    too large.
    """
    types = len(residual)
    reach = np.zeros(types + 1)
    for step in steps:
        reach[step.base] += step.gang
        reach[np.unique(step.to)] += step.gang
    # a state that lacks more than the steps to come can give has no finite bound, so that the table covers the rest
    zero = int(max(float(reach[:types].max()), float(np.abs(residual).max()))) + max(step.gang for step in steps)
    lacks = 2 * zero + 1
    if (len(steps) + 1) * 2 * types * lacks > MOST_NUMBERS:
        return None
    table = np.full((len(steps) + 1, 2, types, lacks), np.inf)
    table[-1, :, :, zero] = 0.0
    for at in range(len(steps) - 1, -1, -1):
        step, after, now = steps[at], table[at + 1], table[at]
        now[:] = after
        gang, base = step.gang, step.base
        least = np.array([[np.inf], [np.inf]])
        for to, regret in zip(step.to.tolist(), step.regret.tolist(), strict=True):
            parts = np.array([[regret], [regret / 2 if to < types and base < types else regret]])
            np.minimum(least, parts, out=least)
            if to < types:
                np.minimum(now[:, to, gang:], after[:, to, :-gang] + parts, out=now[:, to, gang:])
        if base < types:
            np.minimum(now[:, base, :-gang], after[:, base, gang:] + least, out=now[:, base, :-gang])
    return table


def _bound(table: Array, lack: Array) -> Array:
    """Return a bound for each state before a step of this ``table``; ``lack`` (types, states): places in it."""
    alone, shared = table.reshape(2, -1)
    return np.asarray(np.maximum(alone[lack].max(axis=0), shared[lack].sum(axis=0)))


def _search(
    deviations: Deviations, steps: list[_JobStep], tables: Array, width: int, ceiling: float, ends: float | None
) -> tuple[Array, float, float]:
    """Return moves of a loss below ``ceiling``, it, and the least bound of states that ``width`` made it give up."""
    types, lacks = tables.shape[2:]
    lack = (deviations.residual + lacks // 2 + np.arange(types) * lacks)[:, None]
    loss, key = np.zeros(1), np.zeros(1, dtype=np.int64)
    least, history = ceiling, list[tuple[Array, Array]]()
    nothing = np.zeros(len(deviations), dtype=np.int64)
    for at, step in enumerate(steps):
        if ends is not None and perf_counter() > ends:
            bound = float((loss + _bound(tables[at], lack)).min(initial=np.inf))
            return nothing, np.inf, min(least, bound)
        states = len(loss)
        lack = (lack[:, None, :] + step.change).reshape(types, -1)
        key = (key + step.turn).ravel()
        loss = (loss + step.price).ravel()
        reach = loss + _bound(tables[at + 1], lack)
        kept = (reach < ceiling).nonzero()[0]
        if not len(kept):
            return nothing, np.inf, least
        kept = _cheapest(kept[np.lexsort((loss[kept], key[kept]))], key, lack)
        if len(kept) > width:
            part = np.argpartition(reach[kept], width)
            least = min(least, float(reach[kept[part[width:]]].min()))
            kept = kept[part[:width]]
        lack, key, loss = lack[:, kept], key[kept], loss[kept]
        history.append((kept // states, kept % states))
    # only where nothing lacks is the last bound finite, and there one state is left
    moved, place = nothing, int(np.argmin(loss))
    total = float(loss[place])
    for step, (way, before) in zip(reversed(steps), reversed(history), strict=True):
        if way[place]:
            moved[step.place[way[place] - 1]] += step.pieces
        place = int(before[place])
    return moved, total, min(least, total)


def _cheapest(order: Array, key: Array, lack: Array) -> Array:
    """Return the first state in ``order`` of those that lack the same; these stand together there, cheapest first."""
    ordered = key[order]
    like = ordered[1:] == ordered[:-1]
    if not like.any():
        return order
    close = like.nonzero()[0] + 1
    first = np.ones(len(order), dtype=bool)
    first[close] = (lack[:, order[close]] != lack[:, order[close - 1]]).any(axis=0)
    return order[first]
