"""Numbers that Slurm publishes: its documents' examples, and the tables of its own tests.

Source: Slurm 284c3b95. A row is (account, user, parent, RawShares, usage), in the order of the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from fairopt.models.slurm.tree import ROOT, AssociationTree

Row = tuple[str, str, str, int | None, int]

#: doc/html/classic_fair_share.shtml, "Example", in hundredths of the machine; testsuite/expect/test24.1.prog.c has the
#: same tree and account G, whose usage of 30 the expected values leave out.
CLASSIC: tuple[Row, ...] = (
    ("A", "", "root", 40, 45),
    ("B", "", "A", 30, 20),
    ("B", "User1", "B", 1, 20),
    ("C", "", "A", 10, 25),
    ("C", "User2", "C", 1, 25),
    ("C", "User3", "C", 1, 0),
    ("D", "", "root", 60, 25),
    ("E", "", "D", 25, 25),
    ("E", "User4", "E", 1, 25),
    ("F", "", "D", 35, 0),
    ("F", "User5", "F", 1, 0),
    ("G", "", "root", 0, 0),
    ("G", "User6", "G", 0, 0),
)
#: Normalized share, effective usage, and fair-share factor to six places.
CLASSIC_FOUND = {
    "User1": ("0.3", "0.3875", "0.408479"),
    "User2": ("0.05", "0.275", "0.022097"),
    "User3": ("0.05", "0.15", "0.125000"),
    "User4": ("0.25", "0.25", "0.500000"),
    "User5": ("0.35", "0.145833", "0.749154"),
}
CLASSIC_ACCOUNTS = {"A": "0.45", "D": "0.25", "B": "0.3875", "C": "0.3", "E": "0.25", "F": "0.145833"}

#: testsuite/expect/test24.4.prog.c; None is SLURMDB_FS_USE_PARENT. Usage of accounts is that of their members.
FAIR_TREE: tuple[Row, ...] = (
    ("aA", "", "root", 40, 45),
    ("aAA", "", "aA", 30, 20),
    ("aAA", "uAA1", "aAA", 1, 20),
    ("aAB", "", "aA", 10, 25),
    ("aAB", "uAB1", "aAB", 1, 25),
    ("aAB", "uAB2", "aAB", 1, 0),
    ("aB", "", "root", 60, 25),
    ("aBA", "", "aB", 25, 25),
    ("aBA", "uBA1", "aBA", 1, 25),
    ("aBB", "", "aB", 35, 0),
    ("aBB", "uBB1", "aBB", 1, 0),
    ("aC", "", "root", 0, 30),
    ("aC", "uC1", "aC", 0, 30),
    ("aD", "", "root", 50, 110),
    ("aDA", "", "aD", None, 45),
    ("aDA", "uDA1", "aDA", None, 10),
    ("aDA", "uDA2", "aDA", 30, 10),
    ("aDA", "uDA3", "aDA", 50, 25),
    ("aD", "uD1", "aD", None, 20),
    ("aD", "uD2", "aD", 40, 20),
    ("aD", "uD3", "aD", 50, 25),
    ("aE", "", "root", 10, 0),
    ("aE", "aE1", "aE", 10, 0),
    ("aE", "aE2", "aE", 10, 0),
    ("root", "u1", "root", 10, 0),
    ("aF", "", "root", 20, 0),
    ("aF", "uF1", "aF", 10, 0),
    ("aF", "uF2", "aF", 20, 0),
    ("aG", "", "root", 8, 20),
    ("aG", "uG1", "aG", 10, 10),
    ("aGA", "", "aG", 10, 10),
    ("aGA", "uGA1", "aGA", 20, 4),
    ("aGA", "uGA2", "aGA", 20, 6),
    ("root", "u2", "root", 10, 10),
)
#: testsuite/expect/test24.4, what `sshare` is to print: NormShares, EffectvUsage, FairShare, LevelFS; "" for nothing.
FAIR_TREE_FOUND = """\
u1 0.048077 0.000000 1.000000 inf
u2 0.048077 0.041667 0.666667 1.153846
aA 0.192308 0.187500 - 1.025641
aAA 0.750000 0.444444 - 1.687500
uAA1 1.000000 1.000000 0.619048 1.000000
aAB 0.250000 0.555556 - 0.450000
uAB1 0.500000 1.000000 0.523810 0.500000
uAB2 0.500000 0.000000 0.571429 inf
aB 0.288462 0.104167 - 2.769231
aBA 0.416667 1.000000 - 0.416667
uBA1 1.000000 1.000000 0.714286 1.000000
aBB 0.583333 0.000000 - inf
uBB1 1.000000 0.000000 0.761905 inf
aC 0.000000 0.125000 - 0.000000
uC1 0.000000 1.000000 0.047619 0.000000
aD 0.240385 0.458333 - 0.524476
uD1 0.240385 0.181818 0.476190 -
uD2 0.235294 0.181818 0.238095 1.294118
uD3 0.294118 0.227273 0.333333 1.294118
aDA 0.240385 0.409091 - -
uDA1 0.240385 0.090909 0.476190 -
uDA2 0.176471 0.090909 0.380952 1.941176
uDA3 0.294118 0.227273 0.333333 1.294118
aE 0.048077 0.000000 - inf
aE1 0.500000 0.000000 1.000000 inf
aE2 0.500000 0.000000 1.000000 inf
aF 0.096154 0.000000 - inf
uF1 0.333333 0.000000 1.000000 inf
uF2 0.666667 0.000000 1.000000 inf
aG 0.038462 0.083333 - 0.461538
uG1 0.500000 0.500000 0.190476 1.000000
aGA 0.500000 0.500000 - 1.000000
uGA1 0.500000 0.400000 0.190476 1.250000
uGA2 0.500000 0.600000 0.095238 0.833333
"""


def tree_of(rows: Sequence[Row]) -> tuple[AssociationTree, list[str]]:
    """Return the tree of a table, and what each of its associations is called: its user, or else its account."""
    people = [row for row in rows if row[1]]
    seq = people + [row for row in rows if not row[1]]
    place = {account: at for at, (account, user, *_) in enumerate(seq) if not user}
    tree = AssociationTree.of(
        [place.get(row[2], ROOT) for row in seq],
        [row[3] for row in seq],
        [Fraction(row[4]) for row in seq],
        users=len(people),
        total=Fraction(100) if rows is CLASSIC else None,
        listed=[seq.index(row) for row in rows],
    )
    return tree, [user or account for account, user, *_ in seq]
