"""Fair Tree's ranking: level fair-shares, and all users in one order."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairopt.models.slurm.tree import ROOT, AssociationTree
from fairopt.program import INFINITY, Number


class Ties(enum.Enum):
    """What becomes of sibling accounts with the same level fair-share."""

    #: Each is gone through on its own, in the order listed; the first user of the next has the rank of the one before.
    CODE = "code"
    #: "Sibling accounts with the same Level Fairshare have their children lists merged before descending".
    DOCUMENTED = "documented"


@dataclass(frozen=True)
class Ranking:
    """What Fair Tree finds.

    ``level`` (N,): LF of every association, None for accounts with Fairshare=parent. ``rank`` (users,): from the number
    of users, which is best, down. ``order``: the users as they were come by.
    """

    level: tuple[Number | None, ...]
    rank: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def factor(self) -> tuple[Fraction, ...]:
        """FairShare (users,): the rank over the number of users."""
        return tuple(Fraction(rank, len(self.rank)) for rank in self.rank)


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


def fair_tree(tree: AssociationTree, ties: Ties = Ties.CODE, *, rounded: bool = False) -> Ranking:
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
    return Ranking(tuple(level), tuple(rank), tuple(order))


def _number(level: Number | None) -> Number:
    """Return the level fair-share as it is sorted: NO_VAL stands for an account with Fairshare=parent."""
    return 0xFFFFFFFE if level is None else level
