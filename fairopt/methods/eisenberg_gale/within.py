"""Nash welfare within rows and bounds, as demands are: shares near the optimum, in Fractions, and what is proved of it.

A draft in floats says which rows and bounds are tight. Within those, utilities are linear in a few numbers, for which
Newton's method finds where the gradient is 0, to as many digits as asked. Prices, or duals of a linear program, then
prove how near it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from fairopt.backends.exact import Exact
from fairopt.backends.exact.sums import as_fractions
from fairopt.deadline import left
from fairopt.methods.eisenberg_gale.bounds import Equilibrium, UtilityBounds, around_optimum
from fairopt.problem import Market
from fairopt.program import INFINITY, Array, Program, objects

#: Rows and variables of a draft count as tight where they are as near to a bound, in units of all GPUs of a type.
NEAR = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-9, 1e-12)
#: A draft's numbers have denominators of at most this, so that what is rational has few digits.
SIMPLE = 10**6
#: Newton's steps at most; from a draft in floats it takes six or seven.
MOST_STEPS = 40
#: Bits of precision by digit asked for: the gap is the square of what utilities are off by.
BITS, SPARE = 7, 64
NOTHING = np.array(Fraction(0))


def near_within(
    program: Program, speedup: Array, weight: Array, draft: Array, digits: int
) -> tuple[Array, UtilityBounds] | None:
    """Return exact shares near a ``draft`` (n, k) in floats, to so many ``digits`` or as near as it comes, and bounds.

    ``program``: the rows and bounds that shares keep, in Fractions; its variables are the shares. ``speedup`` (n, k)
    and ``weight`` (n,) are Fractions. None where nothing near the draft keeps all rows.
    """
    program = program.as_(Fraction)
    best: tuple[Array, UtilityBounds] | None = None
    size = _sizes(program)
    for shares in chain.from_iterable(
        _near_shares(program, speedup, weight, draft, near * size, digits) for near in NEAR
    ):
        found = _proved(program, speedup, weight, shares, digits)
        if found and (best is None or found.error < best[1].error):
            best = shares, found
        if best and best[1].error * 10**digits <= 1:
            break
    return best


def near_equilibrium(
    program: Program, market: Market, draft: Array, prices: Array, digits: int
) -> tuple[Array, Equilibrium] | None:
    """Return exact shares near a ``draft`` (n, k) in floats, and prices and demand duals that prove how near they are.

    The same as `near_within` for the rows of a ``market`` in Fractions without entitlements; ``prices`` (k,) in floats
    say what types cost that nothing else has a price for. Users that are equal by weight get equal shares by weight.
    """
    program = program.as_(Fraction)
    found: list[tuple[Array, Equilibrium]] = []
    size, demands = _sizes(program), _demand_rows(program, market)
    for near in NEAR:
        loose: set[int] = set()
        while True:
            count = len(loose)
            for each in _near_shares(program, market.speedup, market.weight, draft, near * size, digits, loose):
                shares = _alike(market, each)
                if not min((market.speedup * shares).sum(axis=1)) > 0:
                    continue
                own, demand_duals = _from_holdings(market, shares, prices)
                proof = Equilibrium.near(market, shares, own, np.maximum(demand_duals, NOTHING))
                found.append((shares, proof))
                if proof.error * 10**digits <= 1:
                    return found[-1]
                # who would rather have less than its demand does not reach it
                loose |= {demands[i] for i in np.flatnonzero(demand_duals < 0).tolist()}
            if len(loose) == count:
                break
    if not found:
        return None
    shares, proof = min(found, key=lambda each: each[1].error)
    linear = _proved(program, market.speedup, market.weight, shares, digits)
    if linear is not None:
        own, rents = objects([Fraction(0)] * len(market.types)), objects([Fraction(0)] * len(market.users))
        block = program.row_block("capacity")
        assert linear.duals is not None
        own[np.arange(len(own)) if block.kept is None else block.kept] = linear.duals[block.span]
        for user, row in demands.items():
            rents[user] = linear.duals[row]
        proof = min(proof, Equilibrium.near(market, shares, own, rents), key=lambda each: each.error)
    return shares, proof


def _demand_rows(program: Program, market: Market) -> dict[int, int]:
    """Return the row of each user's demand, by user."""
    if market.demand is None:
        return {}
    block = program.row_block("demand")
    users = np.arange(len(market.users)) if block.kept is None else block.kept
    return dict(zip(users.tolist(), range(block.span.start, block.span.stop), strict=True))


def _near_shares(
    program: Program,
    speedup: Array,
    weight: Array,
    draft: Array,
    near: Array,
    digits: int,
    loose: Collection[int] = (),
) -> Iterator[Array]:
    """Yield exact shares (n, k) near a draft that keep all rows; rows that are ``loose`` do not count as tight."""
    first: list[int] = []
    while True:
        left()
        space = _Space.of(program, speedup, draft, near, loose, first)
        if space is None:
            return
        broken: set[int] = set()
        for shares in space.optima(weight, digits):
            if not program.violations(shares.ravel()):
                yield shares
            elif (fewer := _fewer(program, shares)) is not None:
                yield fewer
            activity = program.rows.activity(shares.ravel())
            beyond = (activity < program.rows.lower) | (activity > program.rows.upper)
            broken |= set(np.flatnonzero(beyond).tolist()) & space.left_out - set(first)
        if not broken:
            return
        first = [*sorted(broken), *first]


def _fewer(program: Program, shares: Array) -> Array | None:
    """Return shares of which less is taken where a row has too much, in proportion; None where that is not enough."""
    rows, x = program.rows, np.maximum(shares.ravel(), program.lower)
    activity = rows.activity(x)
    part = np.array([Fraction(1)] * len(rows))
    over = activity > rows.upper
    part[over] = rows.upper[over] / activity[over]
    least = np.array([Fraction(1)] * x.size)
    np.minimum.at(least, rows.column, part[rows.row])
    found = np.where(least < 1, x * least, x)
    return None if program.violations(found) else found.reshape(shares.shape)


def _alike(market: Market, shares: Array) -> Array:
    """Return what users that are equal by weight hold together, divided by weight."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, row in enumerate(market.speedup):
        limited = market.limit[i] < INFINITY
        groups.setdefault((*row, market.limit[i] / market.weight[i] if limited else None), []).append(i)
    evened = shares.copy()
    for users in groups.values():
        if len(users) > 1:
            total = shares[users].sum(axis=0)
            evened[users] = market.weight[users, None] / market.weight[users].sum() * total
    return evened


def _from_holdings(market: Market, shares: Array, draft: Array) -> tuple[Array, Array]:
    """Return prices and demand duals by which users pay for each type that they hold what it is worth to them.

    GPUs that are left over are free, and who could hold more has no demand dual. What these equations leave open costs
    what it does in the ``draft`` (k,). A demand dual is negative where the user would rather have less.
    """
    usable = np.where(market.capacity > 0, market.speedup, NOTHING)
    worth = usable * (market.weight / (usable * shares).sum(axis=1))[:, None]
    limited = market.limit < INFINITY
    loose = [not limit or sum(row) < most for limit, row, most in zip(limited, shares, market.limit, strict=True)]
    over = market.capacity > shares.sum(axis=0)
    price = {int(j): Fraction(0) for j in np.flatnonzero(over)}
    rent = {i: Fraction(0) for i, free in enumerate(loose) if free}
    held = [np.flatnonzero(row).tolist() for row in shares]
    while len(price) < len(market.types):
        before = len(price)
        for i, types in enumerate(held):
            known = next((j for j in types if j in price), None)
            if i not in rent and known is not None:
                rent[i] = worth[i, known] - price[known]
            if i in rent:
                price |= {j: worth[i, j] - rent[i] for j in types if j not in price}
        if len(price) == before:
            open_ = next(j for j in range(len(market.types)) if j not in price)
            price[open_] = Fraction(float(draft[open_]))
    prices = np.maximum(objects(price[j] for j in range(len(market.types))), NOTHING)
    return prices, np.where(limited, (worth - prices).max(axis=1), NOTHING)


def _sizes(program: Program) -> Array:
    """Return what each variable can be at most, in floats, by the rows that it is in; 0 for what must be 0."""
    rows, most = program.rows, program.upper.astype(float)
    high = rows.upper.astype(float)[rows.row] / np.abs(rows.value.astype(float))
    np.minimum.at(most, rows.column, np.where(rows.value > 0, high, INFINITY))
    return most


def _proved(program: Program, speedup: Array, weight: Array, shares: Array, digits: int) -> UtilityBounds | None:
    """Return what a linear program proves of shares that keep all rows; None where they give somebody nothing."""
    own = (speedup * shares).sum(axis=1)
    if not min(own) > 0:
        return None
    bits = BITS * digits + SPARE
    costs = objects(_short(w / u, bits) for w, u in zip(weight, own, strict=True))
    linear = replace(program, cost=(speedup * costs[:, None]).ravel(), logarithms=None, offset=Fraction(0))
    best = Exact().solve(linear)
    if best.objective is None or best.dual is None:
        return None
    terms = [best.objective, *-weight, *(w * (w / (c * u) - 1) for w, c, u in zip(weight, costs, own, strict=True))]
    return around_optimum(weight, costs, terms, best.dual)


@dataclass(frozen=True, eq=False)
class _Space:
    """The shares for which some rows and bounds are tight: ``base`` (v,) and sums of ``moves`` (v, r).

    ``utility`` (n,) is that at the base, and ``changes`` (n, r) what the moves change; these are independent. Rows that
    are ``left_out`` contradict the others.
    """

    shape: tuple[int, ...]
    base: Array
    moves: Any
    utility: Any
    changes: Any
    left_out: set[int]

    @classmethod
    def of(
        cls,
        program: Program,
        speedup: Array,
        draft: Array,
        near: Array,
        loose: Collection[int] = (),
        first: Sequence[int] = (),
    ) -> _Space | None:
        """Return the space of what is tight at a draft, up to ``near`` (v,), but for ``loose`` rows; None: it is empty.

        Of rows that contradict each other, as they may in last digits, those that are named ``first`` stay, then those
        that come first.
        """
        x, rows = draft.ravel(), program.rows
        lower, upper = program.lower.astype(float), program.upper.astype(float)
        x = np.where(near > 0, x, lower)  # a row may leave nothing of it, whatever noise there is in the draft
        at_low, at_high = x <= lower + near, x >= upper - near
        base = np.where(at_low, program.lower, np.where(at_high, program.upper, program.lower * 0))
        inner = np.flatnonzero(~at_low & ~at_high)
        scale = np.bincount(rows.row, np.abs(rows.value.astype(float)) * near[rows.column], minlength=len(rows))
        activity = np.bincount(rows.row, rows.value.astype(float) * x[rows.column], minlength=len(rows))
        low, high = (activity - rows.lower.astype(float) <= scale), (rows.upper.astype(float) - activity <= scale)
        others = np.setdiff1d(np.flatnonzero(low | high), np.array([*loose, *first], dtype=np.int64))
        tight = np.concatenate([np.array(first, dtype=np.int64), others])
        place = {int(j): at for at, j in enumerate(inner)}
        sides = np.where(low, rows.lower, rows.upper)[tight] - rows.activity(base)[tight]
        table = [[fmpq(0)] * len(inner) + [_flint(side)] for side in sides]
        row_of = {int(r): at for at, r in enumerate(tight)}
        for r, j, value in zip(rows.row.tolist(), rows.column.tolist(), rows.value, strict=True):
            if r in row_of and j in place:
                table[row_of[r]][place[j]] = _flint(value)
        reduced, pivots = _reduced(table, len(inner) + 1)
        left_out: set[int] = set()
        if len(inner) in pivots:
            kept = _independent([row[:-1] for row in table])
            left_out = set(np.delete(tight, kept).tolist())
            reduced, pivots = _reduced([table[at] for at in kept], len(inner) + 1)
        if len(inner) in pivots:
            return None
        open_ = [at for at in range(len(inner)) if at not in set(pivots)]
        columns = []
        for at in open_:
            drafted = Fraction(float(x[inner[at]]))
            base[inner[at]] = drafted.limit_denominator(SIMPLE) or drafted  # else users of next to nothing have nothing
            move = dict.fromkeys(range(len(base)), Fraction(0))
            move[int(inner[at])] = Fraction(1)
            move |= {int(inner[p]): -reduced[r][at] for r, p in enumerate(pivots)}
            columns.append([move[j] for j in range(len(base))])
        for r, p in enumerate(pivots):
            base[inner[p]] = reduced[r][-1] - sum((reduced[r][at] * base[inner[at]] for at in open_), Fraction(0))
        changes = [[sum(row, Fraction(0)) for row in speedup * objects(c).reshape(speedup.shape)] for c in columns]
        kept = _independent(changes)
        utility = (speedup * base.reshape(speedup.shape)).sum(axis=1)
        moves, changed = ([each[at] for at in kept] for each in (columns, changes))
        return cls(speedup.shape, base, moves, utility, changed, left_out)

    def optima(self, weight: Array, digits: int) -> list[Array]:
        """Return shares where the gradient within the space is 0: of rational utilities near the root, and its digits.

        There are none where a utility is not positive, or Newton's method does not converge.
        """
        bits = BITS * digits + SPARE
        found = self._newton(weight, bits)
        if found is None:
            return []
        return [self._at(self._simple(found, 2 ** (bits // 3))), self._at(found)]

    def _simple(self, steps: list[Fraction], most: int) -> list[Fraction]:
        """Return steps near these ones that give utilities with denominators of at most ``most``.

        Steps that are simple themselves, and so shares, are taken where they give these utilities.
        """
        count = len(steps)
        if not count:
            return steps
        users = _independent([[change[i] for change in self.changes] for i in range(len(self.utility))])
        rates = fmpq_mat(count, count, [_flint(self.changes[c][i]) for i in users for c in range(count)])

        def changed(by: list[Fraction]) -> list[Fraction]:
            return list(as_fractions((rates * fmpq_mat(count, 1, [_flint(step) for step in by])).entries()))

        before = [self.utility[i] for i in users]
        wanted = [
            (own + change).limit_denominator(most) - own for own, change in zip(before, changed(steps), strict=True)
        ]
        simple = [step.limit_denominator(most) for step in steps]
        if changed(simple) == wanted:
            return simple
        return list(as_fractions(rates.solve(fmpq_mat(count, 1, [_flint(each) for each in wanted])).entries()))

    def _at(self, steps: list[Fraction]) -> Array:
        x = self.base.copy()
        for step, move in zip(steps, self.moves, strict=True):
            x = x + objects(move) * step
        return x.reshape(self.shape)

    def _newton(self, weight: Array, bits: int) -> list[Fraction] | None:
        count, n = len(self.moves), len(self.utility)
        rates = fmpq_mat(n, count, [_flint(self.changes[c][i]) for i in range(n) for c in range(count)])
        steps = [Fraction(0)] * count
        utility = self.utility
        for _ in range(MOST_STEPS):
            left()
            if not min(utility) > 0:
                return None
            if not count:
                return steps
            worth = [_flint(_short(w / u, bits)) for w, u in zip(weight, utility, strict=True)]
            curved = [_flint(_short(w / (u * u), bits)) for w, u in zip(weight, utility, strict=True)]
            turned = rates.transpose()
            gradient = turned * fmpq_mat(n, 1, worth)
            scaled = fmpq_mat(n, count, [rates[i, c] * curved[i] for i in range(n) for c in range(count)])
            move = (turned * scaled).solve(gradient)
            changed = as_fractions((rates * move).entries())
            part = max(abs(d) / u for d, u in zip(changed, utility, strict=True))
            damped = Fraction(1) if 2 * part < 1 else 1 / (2 * Fraction(float(part)))
            steps = [
                Fraction(round((s + damped * m) * 2**bits), 2**bits)
                for s, m in zip(steps, as_fractions(move.entries()), strict=True)
            ]
            totals = as_fractions((rates * fmpq_mat(count, 1, [_flint(s) for s in steps])).entries())
            utility = self.utility + totals
            if part * 2 ** (bits - SPARE // 2) < 1:
                return steps
        return None


def _reduced(table: list[list[Any]], width: int) -> tuple[list[list[Fraction]], list[int]]:
    """Return a table of flint's numbers in reduced row echelon form, without its empty rows, and its pivots."""
    if not table:
        return [], []
    matrix, rank = fmpq_mat(len(table), width, [each for row in table for each in row]).rref()
    entries = as_fractions(matrix.entries())
    rows = [entries[at * width : (at + 1) * width].tolist() for at in range(rank)]
    return rows, [next(at for at, value in enumerate(row) if value) for row in rows]


def _independent(columns: list[list[Fraction]]) -> list[int]:
    """Return which columns are no sums of multiples of those before them."""
    if not columns:
        return []
    table = [[_flint(column[i]) for column in columns] for i in range(len(columns[0]))]
    return _reduced(table, len(columns))[1]


def _flint(value: Any) -> Any:
    if isinstance(value, fmpq):
        return value
    value = Fraction(value)
    return fmpq(value.numerator, value.denominator)


def _short(value: Fraction, bits: int) -> Fraction:
    """Return a number with about so many leading bits."""
    shift = bits - value.numerator.bit_length() + value.denominator.bit_length()
    if shift < 0 or value.denominator.bit_length() <= bits:
        return value
    return Fraction((value.numerator << shift) // value.denominator, 1 << shift)
