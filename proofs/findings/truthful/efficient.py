"""No truthful rule is Pareto-efficient and sharing-incentive: two users (also in Coq), three users, more types.

More types: let a market with speedups (a, b) and one GPU of each of two types be given, and k - 1 types that share the
second one's part: speedups (a, b/(k-1), ..., b/(k-1)). A rule for k types makes one for two: give what it gives of the
first type, and the mean of what it gives of the others. Everybody's throughput is the same, for every report, and so is
what can be reached together; so it is strategy-proof, Pareto-efficient and sharing-incentive if the rule for k types
is.
"""

from __future__ import annotations

import numpy as np

from fairopt.backends import Highs
from fairopt.backends.solution import Status
from fairopt.program import Array, Formulation
from fairopt.proofs.findings.truthful.chains import THREE_USERS, TWO_USERS, no_efficient_rule, truthful_and_fair
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.findings.truthful.efficient_rules import efficient_holders, refute
from fairopt.proofs.findings.truthful.profiles import Profiles
from fairopt.proofs.ledger.checking import proved, require
from fairopt.proofs.ledger.citing import counterexample, theorem
from fairopt.proofs.ledger.entries import Finding, Ruling

SPLIT = (
    "With more types than two the same holds: a type that is split into equal ones, on each of which everybody is as "
    "many times slower, changes nothing (proof in words)."
)


def two_users() -> Finding:
    """Two users and two types: three markets, three cases, and Coq for all numbers in this order."""
    cases = _refuted(TWO_USERS, "own-truthful-efficient-2x2")
    every = refute(TWO_USERS, Design.strategy_proof) is None and refute(TWO_USERS, Design.sharing_incentive) is None
    require(every, "without one of the properties there is a rule")
    cited = theorem("Truthful", "no_truthful_efficient_fair_rule"), theorem("Truthful", "three_markets")
    return Finding(
        Ruling.PROVED,
        f"One GPU of each type, and the three markets {_said(TWO_USERS)}: in each of {cases} cases of who may hold "
        "what, exact multipliers contradict the rows (own-truthful-efficient-2x2). So it is for all numbers in this "
        f"order, over any ordered field ({cited[1]}), and no such rule exists ({cited[0]}).\nAny two of the three "
        "markets allow one; so do any two of which one user alone tells two things, since that user may choose first "
        "what leaves the other its fair share.\nKnown without sharing incentive: a truthful efficient rule for two "
        "users gives all to one (Schummer, Social Choice and Welfare 1997).\nAny two of the properties go together: "
        "all to one user, equal split, competitive equilibrium from equal incomes.\nWhere budgets do not bind, this "
        "is what arXiv 2603.00411 says of truthful, feasible envy-free and Pareto-optimal rules: with Pareto "
        f"efficiency, envy-freeness gives sharing incentive.\n{SPLIT}",
    )


def three_users() -> Finding:
    """Three users and two types: five markets, decided by exact cases and by a program with integers."""
    cases = _refuted(THREE_USERS, "own-truthful-efficient-3x2")
    require(not possible_by_integers(THREE_USERS), "no rule by a mixed-integer program")
    require(
        possible_by_integers(THREE_USERS.some([0, 1, 2, 3])), "four markets are possible by a mixed-integer program"
    )
    return Finding(
        Ruling.PROVED,
        f"One GPU of each type, and the five markets {_said(THREE_USERS)}: in each of {cases} cases exact multipliers "
        "contradict the rows (own-truthful-efficient-3x2), and HiGHS finds the program with an integer for each way "
        f"to be efficient infeasible. Any four of the five allow such a rule.\n{SPLIT}",
    )


def _refuted(profiles: Profiles, name: str) -> int:
    """Return the number of cases: all stored, all accepted, and none of the markets superfluous."""
    cases = no_efficient_rule(profiles)
    for number, case in enumerate(cases, start=1):
        stored = counterexample(f"{name}-case{number}")
        require(proved(case.certificate) == stored.statement, f"the stored certificate of case {number}")
        require(case.certificate.to_json()["program"] == stored.data["program"], f"the stored program of case {number}")
    for left_out in range(len(profiles.told)):
        rest = profiles.some([p for p in range(len(profiles.told)) if p != left_out])
        require(refute(rest, truthful_and_fair) is None, f"a rule without market {left_out}")
    return len(cases)


def possible_by_integers(profiles: Profiles) -> bool:
    """Whether HiGHS finds an efficient rule, with an integer for each way to be efficient at each profile."""
    p = Formulation("efficient rule")
    speedup = profiles.corners[:, :, 0]
    count, n, k = speedup.shape
    share = p.variable("share", (count, n, k), lower=0)
    p.constrain("capacity", share.sum(axis=1) == profiles.capacity)
    own = (share * speedup).sum(axis=2)
    p.constrain("fair", own >= speedup @ profiles.capacity / n)
    for i, one in enumerate(profiles.told.tolist()):
        ways = np.array(efficient_holders(speedup[i]))
        chosen = p.variable(f"way {i}", (len(ways),), lower=0, upper=1, integer=True)
        p.constrain(f"one way {i}", chosen.sum() == 1)
        allowed = (chosen[:, None, None] * ways.astype(int)).sum(axis=0)
        p.constrain(f"held {i}", share[i] <= allowed * profiles.capacity)
        for other, told in enumerate(profiles.told.tolist()):
            for user in range(n):
                if told[user] != one[user] and told[:user] + told[user + 1 :] == one[:user] + one[user + 1 :]:
                    lie = (share[other, user] * speedup[i, user]).sum()
                    p.constrain(f"lie {i} {other}", own[i, user] >= lie)
    return Highs().solve(p.program().as_(float)).status is not Status.INFEASIBLE


def _said(profiles: Profiles) -> str:
    def numbers(row: Array) -> str:
        return f"({', '.join(map(str, row))})"

    return "; ".join(" ".join(map(numbers, market)) for market in profiles.corners[:, :, 0])
