"""What several properties cite: OEF's running example and what its equations allocate (OEF Sec. 2.4 and 3.1)."""

from __future__ import annotations

from fairopt.problem import Market

#: Three users, two types, one GPU of each: Eq. (1).
OEF_EXAMPLE = Market.of([[1, 2], [1, 3], [1, 4]], capacity=[1, 1])
#: Second-price trading, Eq. (1).
EQUATION_1 = ((1, "4/45"), (0, "7/15"), (0, "4/9"))
#: Cooperative OEF, Eq. (2).
EQUATION_2 = ((1, 0), (0, "1/2"), (0, "1/2"))
#: Gavel, Eq. (3), where a user's shares sum to at most one.
EQUATION_3 = (("10/11", "1/11"), ("1/11", "5/11"), (0, "5/11"))
#: Maximum efficiency, Eq. (5).
EQUATION_5 = ((1, 0), (0, 0), (0, 1))
