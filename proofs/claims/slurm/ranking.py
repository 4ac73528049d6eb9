"""Fair Tree: what its page says of the ranking, over all small trees, by the code's rule and by the page's."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from fairopt.models.slurm.tree import ROOT, AssociationTree, Ties, fair_tree, level_fair_shares
from fairopt.proofs.claims.slurm import trees
from fairopt.proofs.ledger.checking import found, require
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.report import Statement

Broken = Callable[[AssociationTree, Statement], bool]


def _search(broken: Broken, ties: Ties, most: int) -> tuple[int, int, AssociationTree | None]:
    """Return how many small trees there are, on how many the claim is broken, and the first of these."""
    count, failures, first = 0, 0, None
    for each in trees.small_trees(most):
        count += 1
        if broken(each, fair_tree(each, ties)):
            failures += 1
            first = first or each
    return count, failures, first


def _told(tree: AssociationTree, ties: Ties) -> str:
    return f"{trees.listed(tree)} (shares/usage, members in brackets) gets {trees.factors(tree, ties)}"


def merged_accounts() -> Finding:
    """Ties, third rule: the children of tied sibling accounts are merged before descending."""

    def two(listed: tuple[int, ...]) -> AssociationTree:
        return AssociationTree.of((4, 4, 5, 5, ROOT, ROOT), (1,) * 6, (1, 9, 1, 9, 10, 10), users=4, listed=listed)

    first, swapped = two((4, 0, 1, 5, 2, 3)), two((5, 2, 3, 4, 0, 1))
    code, other = trees.factors(first, Ties.CODE), trees.factors(swapped, Ties.CODE)
    page = trees.factors(first, Ties.DOCUMENTED)
    require(page == trees.factors(swapped, Ties.DOCUMENTED), "by the page's rule the order of the list does not matter")
    require(code != page, "the code's rule gives something else")
    count, apart, _ = _search(lambda tree, ranking: fair_tree(tree, Ties.DOCUMENTED).rank != ranking.rank, Ties.CODE, 4)
    return Finding(
        Ruling.INCONSISTENT,
        "The page says that sibling accounts with the same Level Fairshare 'have their children lists merged before "
        "descending'. _count_tied_accounts breaks out of its loop on `!next_assoc->user`, which is so for every "
        "account, so that it returns 0 and nothing is merged. Accounts A (users a, b) and B (users c, d) with equal "
        f"shares, and usage 1 and 9 in each: by the code {code}; with B listed before A {other}; by the page {page} in "
        f"either order. Of {count} trees of up to 4 associations with shares and usage of 0 and 1 the two rules differ "
        f"on {apart}. Ties need equal shares and usage, no usage at all, or Fairshare=0. Read at 284c3b95; no cluster "
        "was asked. fair_tree.c itself, compiled with stubs for the rest of Slurm, was once run on 80,000 random "
        "trees, and ranked all of them as the rule here does.",
    )


def higher_accounts() -> Finding:
    """The page's first benefit: all users of a higher account go before all of a lower one."""
    count, failures, first = _search(trees.higher_account_not_higher, Ties.CODE, 5)
    tree = found(first, "a tree on which the code breaks it")
    _, merged, _ = _search(trees.higher_account_not_higher, Ties.DOCUMENTED, 5)
    require(not merged, "with merged accounts it holds")
    return Finding(
        Ruling.REFUTED,
        f"Of {count} trees of up to 5 associations with shares and usage of 0 and 1, by the code's tie rule it fails "
        f"on {failures}; with tied accounts merged, as the page has it, on none. The smallest: "
        f"{_told(tree, Ties.CODE)}. Account A has the Level FS infinity and C 0, and their users have the same factor: "
        "C is tied with the account before it, B, which has no users, and so C's first user takes the rank that was "
        "given last, in A. fair_tree.c, compiled with stubs, ranks this tree so too. Read at 284c3b95; no cluster was "
        "asked.",
    )


def tied_user_and_account() -> Finding:
    """Ties, second rule: a user tied with a sibling account has the rank of the account's highest user."""
    count, failures, first = _search(trees.tied_user_not_beside, Ties.CODE, 4)
    _, merged, _ = _search(trees.tied_user_not_beside, Ties.DOCUMENTED, 4)
    tree = found(first, "a tree on which it fails")
    require(merged, "merging accounts does not help")
    require(not _search(_tied_and_full, Ties.CODE, 4)[1], "accounts with users hand the tie on")
    return Finding(
        Ruling.REFUTED,
        f"Of {count} trees of up to 4 associations with shares and usage of 0 and 1 it fails on {failures} by the "
        f"code's rule for tied accounts, and on {merged} with them merged. The smallest: {_told(tree, Ties.CODE)}. "
        "User a and account A have the same Level FS. The tie is handed on to the first child of A only, which here is "
        "an account without users. Where all accounts have users, no failure was found up to this size. "
        "fair_tree.c, compiled with stubs, ranks this tree so too. Read at 284c3b95; no cluster was asked.",
    )


def _tied_and_full(tree: AssociationTree, ranking: Statement) -> bool:
    full = all(trees.members(tree, node) for node in range(len(tree.above)))
    return full and trees.tied_user_not_beside(tree, ranking)


def lower_means_lower_ancestor() -> Finding:
    """Overview for end users: a lower FairShare means that the ancestor has a lower Level FS."""
    count, failures, first = _search(trees.lower_without_reason, Ties.CODE, 4)
    _, merged, _ = _search(trees.lower_without_reason, Ties.DOCUMENTED, 4)
    tree = found(first, "a tree on which it fails")
    require(merged, "by the page's rule it fails as well")
    return Finding(
        Ruling.INCONSISTENT,
        "The page's own tie rules are against it: users of accounts, or a user and users of an account, whose Level FS "
        f"is the same are ranked further down. Of {count} trees of up to 4 associations with shares and usage of 0 and "
        f"1 it fails on {failures} by the code's rule and on {merged} by the page's. The smallest: "
        f"{_told(tree, Ties.CODE)}: b is behind a, and the Level FS of a and of A are equal. Where no two siblings are "
        "tied it follows from the order in which the tree is gone through.",
    )


def highest_is_1() -> Finding:
    """Overview for end users: the highest ranked user has 1.0."""
    for ties in Ties:
        count, failures, _ = _search(trees.best_below_1, ties, 4)
        require(not failures, "somebody has 1.0")
    return Finding(
        Ruling.HOLDS_BOUNDED,
        f"So it is on all {count} trees of up to 4 associations with shares and usage of 0 and 1, by the code's rule "
        "for ties and by the page's. The rank begins at the number of users, and the first user come by gets it.",
    )


def equal_level_equal_rank() -> Finding:
    """Ties, first rule, and the benefit that ranking prevents errors due to precision loss."""

    def pair(one: int, other: int) -> AssociationTree:
        return AssociationTree.of((ROOT, ROOT), (one, other), (one, other), users=2)

    pairs = [(one, other) for one in range(1, 21) for other in range(one, 21)]
    apart = [(*each,) for each in pairs if len(set(fair_tree(pair(*each), rounded=True).rank)) > 1]
    for each in pairs:
        require(set(level_fair_shares(pair(*each))) == {Fraction(1)}, "both have used exactly their shares")
        require(set(fair_tree(pair(*each)).rank) == {2}, "in exact numbers they are tied")
    one, other = apart[-1] if (2, 3) not in apart else (2, 3)
    factors = fair_tree(pair(one, other), rounded=True).factor
    # test24.4: account aD, whose members' shares are 40, 50, 30 and 50 of 170 and usage 20, 25, 10 and 25 of 110
    own = AssociationTree.of((ROOT,) * 4, (40, 50, 30, 50), (20, 25, 10, 25), users=4, total=Fraction(110))
    exact, printed = level_fair_shares(own), fair_tree(own, rounded=True).rank
    require(exact[0] == exact[1] == exact[3] and printed[0] < printed[1] == printed[3], "three tied, one apart")
    return Finding(
        Ruling.REFUTED,
        "S is a double (assoc_mgr.c, _normalize_assoc_shares_fair_tree), U and S / U are long double, so that where S "
        "and U are the same fraction their quotient need not be 1, and exact comparison tells equal Level FS apart. "
        f"Two users with {one} and {other} shares and usage {one} and {other}, so that each has used exactly its share "
        f"and has Level FS 1: FairShare {factors[0]} and {factors[1]}. Of {len(pairs)} such pairs with up to 20 shares "
        f"{len(apart)} are told apart. Slurm's own test has a case: in testsuite/expect/test24.4 users uD2, uD3 and "
        f"uDA3 have the Level FS {exact[0]}, printed 1.294118 for all three, and the expected FairShare is 0.238095 "
        "for uD2 and 0.333333 for the others. Computed with 53 and 64 bits, as on x86; the compiled fair_tree.c did "
        "the same on 40,000 random trees made of near ties. Usage in a running cluster is rarely in such proportions. "
        "Read at 284c3b95.",
    )
