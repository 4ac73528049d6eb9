"""Slurm's tree of associations, with shares and past usage; Fair Tree's ranking of its users, level by level.

And multifactor priority: the classic fair-share factor, a power of two, exactly; and the weighted sum of factors.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from math import floor

from fairopt.problem.entitlements import Entitlements
from fairopt.program import INFINITY, Number
from fairopt.report import ResultForm, Statement

#: `AssociationTree.above` of the associations directly below the root.
ROOT = -1


@dataclass(frozen=True)
class AssociationTree:
    """Associations below a root, N of them, in the order in which they are listed; the first ``users`` are users.

    ``account`` (N,): the account in which each is, `ROOT` for the root. ``above`` (N,): in which it shares, the nearest
    that is not Fairshare=parent itself. ``share`` (N,): RawShares; None for Fairshare=parent, which has none of its
    own. ``usage`` (N,): RawUsage, and ``total`` the root's. ``listed`` (N,): the associations in the order of the list.

    Errors: none. Source: Slurm 284c3b95, src/common/assoc_mgr.c: _set_assoc_parent_and_user (fs_assoc_ptr),
    _set_children_level_shares (shares of a level), _normalize_assoc_shares_fair_tree.

    >>> AssociationTree.of((ROOT, ROOT), (3, 1), (10, 30), users=2).level_shares(0)
    4
    """

    account: tuple[int, ...]
    above: tuple[int, ...]
    share: tuple[Number | None, ...]
    usage: tuple[Number, ...]
    users: int
    total: Number
    listed: tuple[int, ...]
    below: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls,
        above: Sequence[int],
        share: Sequence[Number | None],
        usage: Sequence[Number],
        *,
        users: int,
        total: Number | None = None,
        listed: Sequence[int] | None = None,
    ) -> AssociationTree:
        """Return the tree; accounts with Fairshare=parent hand what is in them on to the account that they are in."""
        order = tuple(range(len(above)) if listed is None else listed)
        shares_in = []
        for node in range(len(above)):
            at = above[node]
            while at != ROOT and share[at] is None:
                at = above[at]
            shares_in.append(at)
        below: list[list[int]] = [[] for _ in range(len(above) + 1)]
        for node in order:
            below[shares_in[node]].append(node)  # the root's are the last
        root = sum(usage[node] for node in range(len(above)) if above[node] == ROOT) if total is None else total
        children = tuple(map(tuple, below))
        return cls(tuple(above), tuple(shares_in), tuple(share), tuple(usage), users, root, order, children)

    @classmethod
    def from_entitlements(cls, owed: Entitlements) -> tuple[AssociationTree, list[int]]:
        """Return the tree of entitlements, and the node (N,) of each of its associations.

        A single group that all others are in is the root. Tier 1 with weight 0 is Fairshare=parent.
        """
        tops = owed.tops
        root = tops[0] if len(tops) == 1 and tops[0] >= len(owed.users) else None
        nodes = [node for node in range(len(owed.nodes)) if node != root]
        at = {node: place for place, node in enumerate(nodes)}
        parent = owed.parent.tolist()
        weights, tiers, usage = owed.borrow_weight.tolist(), owed.tier.tolist(), owed.usage.tolist()
        tree = cls.of(
            [at.get(parent[node], ROOT) for node in nodes],
            [None if tiers[node] > 0 and not weights[node] else weights[node] for node in nodes],
            [usage[node] for node in nodes],
            users=len(owed.users),
            total=None if root is None or not usage[root] else usage[root],
        )
        return tree, nodes

    def level_shares(self, node: int) -> Number:
        """Return the shares of an association and of those beside it."""
        return sum(self.share[each] or 0 for each in self.below[self.above[node]])

    def fair_part(self) -> list[Fraction]:
        """Return S (N,), shares over those of the level; 0 where the level has none, or for Fairshare=parent."""
        parts: list[Fraction] = [Fraction(0)] * len(self.above)
        for level in self.below:
            shares = sum(self.share[each] or 0 for each in level)
            for each in level if shares else ():
                parts[each] = Fraction(self.share[each] or 0) / Fraction(shares)
        return parts

    def machine_usage(self) -> list[Fraction]:
        """Return what part of all usage each association's is (N,), at most 1; 0 where there is none."""
        of_all = (Fraction(quotient(used, self.total)) if self.total else Fraction(0) for used in self.usage)
        return [min(each, Fraction(1)) for each in of_all]

    @cached_property
    def downwards(self) -> tuple[int, ...]:
        """All associations (N,), each after the one in which it shares."""
        order = list(self.below[ROOT])
        for node in order:
            order += self.below[node]
        return tuple(order)

    @cached_property
    def effective(self) -> tuple[Fraction, ...]:
        """Effective usage (N,): usage of the machine, corrected by what the account's other members used.

        Source: Slurm, doc/html/classic_fair_share.shtml, "The Slurm Fair-Share Formula": U_E = U_A + (U_E of the parent
        - U_A) x S / S of all siblings; priority_multifactor.c, _set_assoc_usage_efctv and _set_usage_efctv.
        """
        usage = self.machine_usage()
        for node in self.downwards:
            above, share, siblings = self.above[node], self.share[node], self.level_shares(node)
            if above != ROOT:
                part = 1 if share is None or not siblings else Fraction(share) / Fraction(siblings)
                usage[node] += (usage[above] - usage[node]) * part
        return tuple(usage)

    @cached_property
    def machine_part(self) -> tuple[Fraction, ...]:
        """What part of the whole machine each association's shares are (N,): the product down the tree.

        Source: Slurm, doc/html/classic_fair_share.shtml, "Normalized Shares"; src/common/assoc_mgr.c,
        _normalize_assoc_shares_traditional: with Fairshare=parent it is the account's.
        """
        own = self.fair_part()
        parts = [Fraction(1)] * (len(own) + 1)  # the last is the root's
        for node in self.downwards:
            parts[node] = parts[self.above[node]] * (1 if self.share[node] is None else own[node])
        return tuple(parts[:-1])


def quotient(top: Number, bottom: Number) -> Number:
    """Return top / bottom, infinity where only the bottom is 0."""
    return Fraction(top) / Fraction(bottom) if bottom else INFINITY if top else Fraction(0)


class Ties(enum.Enum):
    """What becomes of sibling accounts with the same level fair-share."""

    #: Each is gone through on its own, in the order listed; the first user of the next has the rank of the one before.
    CODE = "code"
    #: "Sibling accounts with the same Level Fairshare have their children lists merged before descending".
    DOCUMENTED = "documented"


#: ``level`` (N,): LF of every association, None for accounts with Fairshare=parent. ``rank`` (users,): from the
#: number of users, which is best, down. ``factor`` (users,): FairShare, the rank over the number of users. ``order``:
#: the users as they were come by.
RANKING = ResultForm("What Fair Tree finds.", sentence=lambda it: ", ".join(map(str, it.rank)))


def level_fair_shares(tree: AssociationTree, *, rounded: bool = False) -> list[Number | None]:
    """Return LF = S / U of each association (N,), exactly; or ``rounded``, as the code has it on x86.

    There S is a double, of 53 bits, and U and S / U have the 64 bits of a long double, so that level fair-shares that
    are equal come out different where the bits that S lost are not those that U lost.

    Source: Slurm 284c3b95, src/plugins/priority/multifactor/fair_tree.c, _calc_assoc_fs and
    _ft_set_assoc_usage_efctv: U is usage over the account's usage, 0 where that is 0; LF is 0 without shares, infinity
    without usage or, for users, with Fairshare=parent.

    >>> [str(each) for each in level_fair_shares(AssociationTree.of((ROOT, ROOT), (1, 1), (1, 3), users=2))]
    ['2', '2/3']
    """
    level: list[Number | None] = []
    for node, part in enumerate(tree.fair_part()):
        over = tree.above[node]
        whole = tree.total if over == ROOT else tree.usage[over]
        used = tree.usage[node]
        if tree.share[node] is None:
            level.append(INFINITY if node < tree.users else None)
        elif not part:
            level.append(Fraction(0))
        elif not (whole and used):
            level.append(INFINITY)
        elif rounded:
            level.append(to_bits(to_bits(part, 53) / to_bits(Fraction(used) / Fraction(whole), 64), 64))
        else:
            level.append(part * Fraction(whole) / Fraction(used))
    return level


def to_bits(number: Fraction, bits: int) -> Fraction:
    """Return the positive number rounded to that many binary digits, halves to even.

    >>> to_bits(Fraction(1, 10), 53) == Fraction(0.1)
    True
    """
    shift = bits - number.numerator.bit_length() + number.denominator.bit_length()
    scaled = number * Fraction(2) ** shift  # of one bit more at most, which decides how far to shift
    if scaled >= 2**bits:
        shift, scaled = shift - 1, scaled / 2
    return Fraction(round(scaled)) / Fraction(2) ** shift


def fair_tree(tree: AssociationTree, ties: Ties = Ties.CODE, *, rounded: bool = False) -> Statement:
    """Return the ranking of all users: level by level from the root, the highest level fair-share first.

    Source: Slurm 284c3b95, fair_tree.c, _calc_tree_fs; `Ties.CODE` as _count_tied_accounts is written (it stops at the
    first account), `Ties.DOCUMENTED` as doc/html/fair_tree.shtml says. Level fair-shares are exact, or
    ``rounded`` as in `level_fair_shares`.

    >>> two = AssociationTree.of((4, 4, 5, 5, ROOT, ROOT), (1,) * 6, (1, 9, 1, 9, 10, 10), users=4)
    >>> [str(each) for each in fair_tree(two).factor], [str(each) for each in fair_tree(two, Ties.DOCUMENTED).factor]
    (['1', '3/4', '3/4', '1/4'], ['1', '1/2', '1', '1/2'])
    """
    level = level_fair_shares(tree, rounded=rounded)
    rank, count = [0] * tree.users, tree.users
    order: list[int] = []

    def visit(siblings: Sequence[int], best: int, tied_above: bool) -> int:
        """Go through siblings; ``best`` is the rank last given. Return the rank last given."""
        # users before accounts with the same level fair-share, else as listed
        line = sorted(siblings, key=lambda node: (-_number(level[node]), node >= tree.users))
        before: Number | None = None
        at = 0
        while at < len(line):
            node = line[at]
            tied = tied_above if at == 0 else _number(level[node]) == before
            before = _number(level[node])
            at += 1
            if node < tree.users:
                best = best if tied else count - len(order)
                rank[node] = best
                order.append(node)
                continue
            inside = list(tree.below[node])
            while ties is Ties.DOCUMENTED and at < len(line) and _number(level[line[at]]) == before:
                inside += tree.below[line[at]]
                at += 1
            best = visit(inside, best, tied)
        return best

    visit(tree.below[ROOT], count, False)
    factor = tuple(Fraction(each, tree.users) for each in rank)
    return RANKING.of(level=tuple(level), rank=tuple(rank), factor=factor, order=tuple(order))


def _number(level: Number | None) -> Number:
    """Return the level fair-share as it is sorted: NO_VAL stands for an account with Fairshare=parent."""
    return 0xFFFFFFFE if level is None else level


@dataclass(frozen=True)
class Exponential:
    """The number 2 ** -``exponent``, for an exponent that is rational and not negative: irrational, and exact.

    >>> Exponential(Fraction(1, 2)) > Exponential(Fraction(2, 3)), float(Exponential(Fraction(2)))
    (True, 0.25)
    """

    exponent: Number

    def __lt__(self, other: Exponential) -> bool:
        return self.exponent > other.exponent

    def __float__(self) -> float:
        return float(2.0 ** -float(self.exponent))

    @lru_cache(maxsize=2**16)  # noqa: B019  small, and asked for again with every job of a user
    def within(self, digits: int) -> tuple[Fraction, Fraction]:
        """Return ends between which the number lies, closer the more ``digits``."""
        if self.exponent == float("inf"):
            return Fraction(0), Fraction(0)
        if self.exponent == int(self.exponent) and self.exponent < 1000:
            exact = Fraction(1, 2 ** int(self.exponent))
            return exact, exact
        if self.exponent >= 1000:
            return Fraction(0), Fraction(1, 2**1000)
        with localcontext() as context:
            context.prec = digits + 10
            top, bottom = Fraction(self.exponent).as_integer_ratio()
            near = Fraction((-(Decimal(top) / Decimal(bottom)) * Decimal(2).ln()).exp())
        off = Fraction(1, 10**digits)
        return max(near - off, Fraction(0)), near + off


def weighted(weight: int, factor: Fraction | Exponential, rest: Fraction) -> int:
    """Return the whole part of weight x factor + rest, exactly: more digits are taken until no doubt is left.

    >>> weighted(1000, Exponential(Fraction(1, 2)), Fraction(1, 3))
    707
    """
    if not isinstance(factor, Exponential):
        return floor(weight * factor + rest)
    digits = 30
    while True:
        low, high = (floor(weight * end + rest) for end in factor.within(digits))
        if low == high:  # an irrational number is no whole one, so that this ends
            return low
        digits *= 2


def classic_factors(tree: AssociationTree, dampening: int = 1) -> list[Exponential]:
    """Return the fair-share factor F = 2 ** (-U_E / S / d) of every association (N,).

    Source: Slurm, doc/html/classic_fair_share.shtml; priority_multifactor.c, _set_assoc_fs_factor: with
    Fairshare=parent the account's values, 0 without shares.

    >>> two = AssociationTree.of((ROOT, ROOT), (3, 1), (30, 10), users=2)
    >>> [float(each) for each in classic_factors(two)]
    [0.5, 0.5]
    """
    used, part = tree.effective, tree.machine_part
    factors = []
    for node in range(len(tree.above)):
        over = node if tree.share[node] is not None else tree.above[node]
        usage, shares = (Fraction(1), Fraction(1)) if over == ROOT else (used[over], part[over])
        factors.append(Exponential(usage / shares / dampening if shares > 0 else INFINITY))
    return factors
