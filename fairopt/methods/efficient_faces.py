"""The largest objective of a linear program among its Pareto-efficient shares: branch and bound over efficient faces.

An allocation is Pareto-efficient if and only if it maximises a sum of throughputs with positive weights. Such
allocations are a union of faces of the polytope of all allocations, which is not convex. Shares are in one of them if
and only if no trade in a circle improves them. In such a trade user i(t) gives some of a type j(t) that it holds to
user i(t + 1), for all t around the circle, and

    prod_t v[i(t + 1), j(t)] > prod_t v[i(t), j(t)].

With the right amounts nobody loses by it and somebody gains. Where there is none, the largest products along paths are
weights of a sum of throughputs that the shares maximise, so that they are Pareto-efficient. All GPUs that somebody can
use must be given out, and to users that can use them, and there are no demands: these would allow other trades.

So of every circle that improves an optimum an efficient allocation lacks one pair of a user and a type: that is what
the search branches over. Each node is a linear program. In Fractions the result is the best; in floats it is what a
solver says, up to rounding, ten times as fast.

Source: Varian, Equity, Envy, and Efficiency, 1974; for divisible goods Bogomolnaia, Moulin, Sandomirskiy and
Yanovskaya, Competitive Division of a Mixed Manna, Econometrica 2017, Sec. 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from heapq import heappop, heappush
from typing import Any

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.exact import Exact
from fairopt.backends.exact.checks import dual_bound
from fairopt.backends.solution import Solution, Status
from fairopt.deadline import left
from fairopt.errors import NotSolved, OutOfTime
from fairopt.numbers import RATIONALS, kind_of_numbers
from fairopt.program import INFINITY, Array, Number, Program
from fairopt.program.program import Block, Rows

#: A user and a type of GPU that it holds.
Pair = tuple[int, int]
#: What one unit becomes on a path of trades, and who gives what on it.
_Path = tuple[Number, tuple[Pair, ...]]
Pairs = frozenset[Pair]
#: A part of a share, or of a product of speedups, that may be rounding; what a speedup of zero counts as.
ROUNDED, NOTHING = 1e-9, 1e-300


@dataclass(frozen=True, eq=False)
class TreeNode:
    """The program without some pairs (user, type): ``bound`` is its optimum, minus infinity where it has no point.

    ``circle`` is a trade that improves the ``shares`` of that optimum, so that every efficient point lacks one of its
    pairs; None where these are efficient. ``dual`` are multipliers of the rows that prove the bound. A program without
    a point has those of the program that it comes from, and ``contradiction`` proves that it has none. Where many are
    searched side by side in floats, nodes have no multipliers.
    """

    without: Pairs
    bound: Number
    dual: Array | None
    shares: Array | None = None
    circle: tuple[Pair, ...] | None = None
    contradiction: Array | None = None


class EfficientFaces:
    """A search for the best efficient ``shares`` (n, k), their ``value``, and the ``bound`` on all efficient ones.

    ``weights`` (n,) are those of a sum of throughputs that the shares maximise. The shares are the best of all where
    the value is the bound. ``nodes``, by what they go without, are the proof of the bound: those in ``branched`` stand
    for the nodes that go without one pair more of their circle, and the others are bounded by multipliers (`proofs`).
    Before an efficient point was found, the value is minus infinity, and there are no shares.
    """

    def __init__(self, program: Program, speedup: Array) -> None:
        self.program, self.speedup = program, speedup
        self.nodes: dict[Pairs, TreeNode] = {}
        self.branched: set[Pairs] = set()
        #: Whether the first descent has ended.
        self.dived = False
        self._open: list[tuple[Number, int, TreeNode]] = []
        self._best: TreeNode | None = None
        self._pushed = 0

    @property
    def shares(self) -> Array:
        """The best efficient shares."""
        assert self._best is not None
        assert self._best.shares is not None
        return self._best.shares

    @property
    def weights(self) -> Array:
        """The weights of the best shares."""
        weights = efficient_weights(self.speedup, self.shares)
        assert weights is not None
        return weights

    @property
    def value(self) -> Number:
        """The best value so far."""
        return -INFINITY if self._best is None else self._best.bound

    @property
    def bound(self) -> Number:
        """What no efficient point is above: the largest bound of an open node, at least the value."""
        while self._open and self._open[0][-1].without in self.branched:
            heappop(self._open)
        return max(self.value, -self._open[0][0] if self._open else -INFINITY)

    @property
    def is_open(self) -> bool:
        """Whether some node may hold better points than the best so far."""
        rounding: Number = 0 if self.program.exact else abs(float(self.value)) * ROUNDED
        return self.bound > self.value + rounding

    def summary(self) -> dict[str, Any]:
        """Return what was found, and how many programs were solved for it."""
        return {"value": self.value, "bound": self.bound, "weights": self.weights, "programs": len(self.nodes)}

    def proofs(self) -> Iterator[tuple[TreeNode, Array]]:
        """Yield the nodes that were not branched, with multipliers that prove them to be at most ``bound``."""
        for without, node in self.nodes.items():
            dual = node.dual
            if without in self.branched:
                continue
            assert dual is not None
            if node.contradiction is not None:
                program = without_pairs(self.program, without)
                nothing = replace(program, cost=program.cost * 0, offset=Fraction(0))
                now, less = dual_bound(program, dual), dual_bound(nothing, node.contradiction)
                assert now is not None
                assert less is not None
                dual = dual + max(Fraction(0), (self.bound - now) / less) * node.contradiction
            yield node, dual

    def steps(self, held: Callable[[], Array], nodes: int | None = None) -> Iterator[list[tuple[Pairs, TreeNode]]]:
        """Yield which programs are solved next, by what they go without, each with the node that it comes from.

        Each must be a node (`solve`, or `keep`) before more are asked for, the root (no pairs) before the first. The
        first descent branches at the best node that forbids nothing of ``held``, and so on, down to an efficient one.
        """
        node = self.nodes[frozenset()]
        kept = held() if node.circle is not None else self.speedup
        while node.circle is not None:
            yield self._children(node)
            self.branched.add(node.without)
            children = [self.nodes[node.without | {pair}] for pair in node.circle]
            free = [child for child in children if not any(kept[pair] for pair in child.without)]
            if not free:
                break
            node = max(free, key=lambda child: child.bound)
        self.dived = True
        while self.is_open and not (nodes and len(self.nodes) >= nodes):
            node = self._open[0][-1]
            yield self._children(node)
            self.branched.add(node.without)

    def _children(self, node: TreeNode) -> list[tuple[Pairs, TreeNode]]:
        """Return the programs without one pair more of the node's circle each that were not solved before."""
        every = (node.without | {pair} for pair in node.circle or ())
        return [(without, node) for without in every if without not in self.nodes]

    def solve(self, without: Pairs, parent: TreeNode | None = None) -> None:
        """Solve a program, and keep the node; the root has no parent."""
        left()
        program, answer = self._few.solved(without)
        if answer.status is Status.INFEASIBLE and parent is not None:
            contradiction = None if answer.farkas is None else -answer.farkas
            self.keep(TreeNode(without, -INFINITY, parent.dual, contradiction=contradiction))
            return
        answer.require_optimal()
        assert answer.dual is not None
        shares = program.variable("share", answer.point)
        circle = improving_circle(self.speedup, shares)
        value = program.arithmetic(program.value(answer.point))
        self.keep(TreeNode(without, value, answer.dual, shares, circle))

    def keep(self, node: TreeNode) -> None:
        """Keep a node: it is open, or may be the best so far."""
        self.nodes[node.without] = node
        if node.circle is not None:
            self._pushed += 1
            heappush(self._open, (-node.bound, self._pushed, node))
        elif node.bound > self.value:
            self._best = node

    @cached_property
    def _few(self) -> _FewRows:
        return _FewRows(self.program)


def best_efficient(
    program: Program,
    speedup: Array,
    held: Callable[[], Array],
    *,
    nodes: int | None = None,
) -> EfficientFaces:
    """Return the shares of the largest objective among the points of a program whose shares are Pareto-efficient.

    ``program`` is linear and maximises; its shares, a block of variables "share" (n, k), give out all GPUs that
    somebody can use. ``speedup`` (n, k) says whose throughput they are. ``held`` returns efficient shares
    (n, k) of the program, or zeros where none are known; it is called where the program's optimum is not efficient.

    The first nodes are a dive that never forbids what is ``held``, so that it ends, after at most n k steps, at
    efficient shares whose objective is at least that of these. Then the node of the largest bound is next, until no
    bound is above the best value, or ``nodes`` programs were solved, or time is over. Errors: `NotSolved` where no
    efficient point was found, or where there is none; `OutOfTime` before the dive has ended.

    >>> from fairopt.models import CooperativeOEF
    >>> from fairopt.problem import Market
    >>> market = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])
    >>> program = giving_out_all(CooperativeOEF().formulate(market, None), market.speedup)
    >>> found = best_efficient(program, market.speedup, lambda: market.speedup * 0)
    >>> print(found.value, found.bound, len(found.nodes))
    52/7 52/7 4
    """
    program = program.as_(program.arithmetic.number)  # bounds that are infinite may be floats still
    search = EfficientFaces(program, speedup)
    try:
        search.solve(frozenset())
        for wanted in search.steps(held, nodes):
            for without, parent in wanted:
                search.solve(without, parent)
    except OutOfTime:
        if not search.dived or search.value == -INFINITY:
            raise
    if search.value == -INFINITY:
        why = "no efficient point was found" if search.is_open else "no point of the program is efficient"
        raise NotSolved(f"{program.name}: {why} ({len(search.nodes)} programs solved)")
    return search


def giving_out_all(program: Program, speedup: Array) -> Program:
    """Return the program with all GPUs given out that somebody can use: its rows "capacity" become equations.

    >>> from fairopt.models import MaxMin
    >>> from fairopt.problem import Market
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> giving_out_all(MaxMin().formulate(market, None), market.speedup).rows.lower.tolist()
    [Fraction(1, 1), Fraction(1, 1), Fraction(0, 1), Fraction(0, 1)]
    """
    rows = program.rows
    lower, block = rows.lower.copy(), program.row_block("capacity")
    lower[block.span] = np.where((speedup > 0).any(axis=0), rows.upper[block.span], lower[block.span])
    return replace(program, rows=replace(rows, lower=lower))


def without_pairs(program: Program, pairs: Pairs) -> Program:
    """Return the program in which these users do not hold these types."""
    block, upper = program.variable_block("share"), program.upper.copy()
    for user, kind in pairs:
        upper[block.first + user * block.shape[1] + kind] = program.arithmetic(0)
    return replace(program, upper=upper)


class _FewRows:
    """A program of which most rows never bind: a row is added as soon as an optimum breaks it."""

    #: The part of the size of a row's terms by which floats may be off.
    _SAFE = 1e-9
    #: With no more rows than these, all are there from the start.
    _FEW = 200

    def __init__(self, program: Program) -> None:
        self.program = program
        self._warm = None if program.exact else Highs(thorough=False).opened()
        self._floats = program.as_(float)
        rows = self._floats.rows
        self._kept = np.asarray((rows.lower == rows.upper) | (len(rows) <= self._FEW))
        if not self._kept.all() and (found := Highs().solve(self._floats)).x is not None:
            self._kept |= self._near(found.x)

    def solved(self, without: Pairs) -> tuple[Program, Solution]:
        """Return the program without some pairs, and its answer, which keeps the rows that were left out, too."""
        program = without_pairs(self.program, without)
        if self._warm is not None:  # a solver that stays is sooner with all rows than a new one with few
            return program, self._warm(program)
        while True:
            answer = Exact().solve(self._cut(program))
            if answer.status is Status.INFEASIBLE:
                assert answer.farkas is not None
                return program, replace(answer, farkas=self._spread(answer.farkas))
            answer.require_optimal()
            near = self._near(answer.point.astype(float)) & ~self._kept
            left_out = replace(program, rows=_rows(program.rows, near)).violations(answer.point) if near.any() else {}
            if not left_out:
                assert answer.dual is not None
                return program, replace(answer, dual=self._spread(answer.dual))
            self._kept |= near

    def _near(self, x: Array) -> Array:
        """Return the rows that a point in floats keeps by no more than rounding, or breaks."""
        rows = self._floats.rows
        terms = rows.value * x[rows.column]
        value, size = (np.bincount(rows.row, each, minlength=len(rows)) for each in (terms, np.abs(terms)))
        safe = size * self._SAFE
        return ~((value - rows.lower > safe) & (rows.upper - value > safe))  # what is no number counts as near

    def _cut(self, program: Program) -> Program:
        count = int(self._kept.sum())
        return replace(program, rows=_rows(program.rows, self._kept), row_blocks=(Block("row", (count,), 0, count),))

    def _spread(self, multipliers: Array) -> Array:
        every = np.full(len(self._kept), Fraction(0), dtype=object)
        every[self._kept] = multipliers
        return every


def _rows(rows: Rows, kept: Array) -> Rows:
    """Return the rows that are kept."""
    inside, place = kept[rows.row], np.cumsum(kept) - 1
    return Rows(place[rows.row[inside]], rows.column[inside], rows.value[inside], rows.lower[kept], rows.upper[kept])


def improving_circle(speedup: Array, shares: Array) -> tuple[Pair, ...] | None:
    """Return who gives what in a trade in a circle that improves ``shares`` (n, k), None where there is none.

    Of all improving circles it is one of the shortest, and of these the one that improves most. Numbers are exact;
    in floats a circle improves that does so beyond rounding.

    >>> speedup, shares = np.array([[1, 2], [1, 5]]), np.array([[0, 1], [1, 0]])
    >>> improving_circle(speedup, shares)
    ((1, 0), (0, 1))
    """
    found = _paths(speedup, shares)
    return found if isinstance(found, tuple) else None


def efficient_weights(speedup: Array, shares: Array) -> Array | None:
    """Return positive weights (n,) of a sum of throughputs that ``shares`` (n, k) maximise; None where there are none.

    The largest product from a type is its price, and the weight of a user what it pays for its throughput at least.

    >>> speedup = np.array([[1, 2], [1, 5]])
    >>> efficient_weights(speedup, np.array([[1, 1], [0, 1]])).tolist()
    [Fraction(1, 1), Fraction(2, 5)]
    """
    found = _paths(speedup, shares)
    if isinstance(found, tuple):
        return None
    price = [max(found.get((j, other), Fraction(0)) for other in range(len(speedup.T))) for j in range(len(speedup.T))]
    least = [min(price[j] / Fraction(row[j]) for j in np.flatnonzero(row)) for row in speedup]
    return np.array(least, dtype=object)


def seem_efficient(speedups: Array, shares: Array) -> Array:
    """Return in which cases (cases,) no trade in a circle improves shares (cases, n, k) in floats, beyond rounding.

    >>> speedups, shares = np.array([[[1.0, 2], [1, 5]]] * 2), np.array([[[0.0, 1], [1, 0]], [[1, 0], [0, 1]]])
    >>> seem_efficient(speedups, shares).tolist()
    [False, True]
    """
    held = shares > ROUNDED * shares.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(speedups, NOTHING))
    # [case, j, h]: the most that a user of h gains, as a factor, by some of j for some of h
    best = np.stack(
        [np.where(held[..., h, None], logs - logs[..., h, None], -np.inf).max(axis=1) for h in range(shares.shape[-1])],
        axis=-1,
    )
    for through in range(shares.shape[-1]):
        best = np.maximum(best, best[:, :, through, None] + best[:, through, None, :])
    return np.asarray((best.diagonal(axis1=1, axis2=2) <= ROUNDED).all(axis=1))


def _paths(speedup: Array, shares: Array) -> tuple[Pair, ...] | dict[tuple[int, int], Number]:
    """Return an improving circle, or else the largest product on a path from each type to each other.

    A step from type j to another is a user that gets some of j for some of the other, which it holds.
    """
    types, number = range(len(speedup.T)), kind_of_numbers(speedup) or RATIONALS
    more = 1 + number.tolerance(ROUNDED)
    speed = [list(map(number, row)) for row in speedup.tolist()]
    steps: dict[int, dict[int, tuple[Number, int]]] = {j: {} for j in types}
    for i, held in np.argwhere(shares > number.tolerance(ROUNDED) * shares.sum(axis=0)).tolist():
        for j in types:
            rate = speed[i][j] / speed[i][held]
            if j != held and rate > steps[j].get(held, (0, 0))[0]:
                steps[j][held] = rate, i
    best: dict[tuple[int, int], Number] = {(j, j): number(1) for j in types}
    paths: dict[tuple[int, int], _Path] = {(j, j): (number(1), ()) for j in types}
    for _ in types:
        longer: dict[tuple[int, int], _Path] = {}
        for (j, at), (so_far, pairs) in paths.items():
            for held, (rate, i) in steps[at].items():
                product = so_far * rate
                if product > best.get((j, held), 0) * more and product > longer.get((j, held), (0,))[0]:
                    longer[j, held] = product, (*pairs, (i, held))
        circles = [longer[j, j] for j in types if (j, j) in longer]
        if circles:
            return max(circles)[1]
        paths = longer
        best |= {ends: product for ends, (product, _) in longer.items()}
    return best
