"""The best total with envy-freeness, sharing incentive and Pareto efficiency: measured tables, and the worst case.

"Best" is the total of the policy `oef-efficient` where its search has ended, so that nothing better has the three
properties: the verifier has accepted the tree. "Equilibrium" is `nash-welfare`. Both are parts of cooperative OEF's
total, the largest without envy. That has sharing incentive too, since all GPUs that somebody can use are given out at
its optimum: equal parts by weight of what is left would make nobody envious, and the total larger.

What dominates cooperative OEF's optimum is envied by somebody: it gives nobody less and somebody more, so it has a
larger total, and the largest total without envy is cooperative OEF's. That is so in all units.

**Two thirds.** One GPU of each of three types, three users with speedups (3u, 0, 2u), (0, 2e, e + 1), (3, 4, 0). Where
u is large, only user 1 counts. Without envy it can have 5/6 of type 1 and, nearly, all of type 3, while the others
halve type 2: 9/2 u for e to infinity. Since 3 (e + 1) 4 > 3 * 2 * 2e, a circle improves who holds (1, 3), (2, 2) and
(3, 1), so that an efficient allocation lacks one of these pairs. Without (1, 3), user 1 has type 1 only, 3u. Without
(3, 1), user 1 has all of type 1, user 3 needs 3/4 of type 2 not to envy it, and user 2, with 1/4 of type 2, needs
e/(e + 1) of type 3 not to envy user 3: that leaves user 1 2u/(e + 1) besides 3u. Without (2, 2), user 3 has all of
type 2, and user 2 would need 2e/(e + 1) of type 3. So the best has 2/3 of the largest total, for u and e to infinity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from itertools import combinations_with_replacement
from random import Random
from statistics import mean, median

from fairopt.certificates import Certificate
from fairopt.datasets import gandiva_market, gandiva_table1, gavel_market, gavel_throughputs, oef_example
from fairopt.discovery import policies
from fairopt.models import CooperativeOEF, EfficientOEF, NashWelfare
from fairopt.policy import Allocation, Trait
from fairopt.problem import Market
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, exactly
from fairopt.proofs.ledger.wording import speedups
from fairopt.properties import AllocationProperty, Answer
from fairopt.properties.shares.envy_freeness import EnvyFreeness
from fairopt.properties.shares.pareto_efficiency import ParetoEfficiency, dominates
from fairopt.properties.shares.sharing_incentive import SharingIncentive
from fairopt.testing.samples import sample_markets

THREE = (EnvyFreeness(), SharingIncentive(), ParetoEfficiency())
USERS = (4, 8, 16)
#: The units of the first user, and how near the circle is to improving nothing, on the worst market that was found.
UNITS, NEAR = 10**9, 10**4
#: By hill climbing, rounded to three digits or four: four users can lose more than three.
FOUR = Market.of(
    [
        [UNITS, 0, 867 * UNITS // 1000, 284 * UNITS // 1000],
        [0, "130.1", "48.6", "125.5"],
        [1, "2.175", 0, "1.285"],
        [0, "3.065", "7.185", "17.39"],
    ],
    ["0.882", "0.466", "1.18", "0.43"],
)


def of_gavel(users: int, random: Random) -> Market:
    """Return users with jobs of Gavel's table, drawn with repetition, and 1 to 8 GPUs of each type."""
    jobs = [entry.name for entry in gavel_throughputs()]
    gpus = {kind: random.randint(1, 8) for kind in ("K80", "P100", "V100")}
    return gavel_market({f"u{i}": random.choice(jobs) for i in range(users)}, gpus)


def of_gandiva(users: int, random: Random) -> Market:
    """Return users with models of Gandiva_fair's Table 1, drawn in the same way."""
    models = [entry.model for entry in gandiva_table1()]
    gpus = {kind: random.randint(1, 8) for kind in ("K80", "P40", "P100", "V100")}
    return gandiva_market(gpus, {f"u{i}": random.choice(models) for i in range(users)})


TABLES: Mapping[str, Callable[[int, Random], Market]] = {"Gavel": of_gavel, "Gandiva_fair": of_gandiva}


def drawn(draws: int) -> Iterator[tuple[str, Market]]:
    """Yield as many markets of each table and number of users, by seeds from 0 on."""
    for table, draw in TABLES.items():
        for users in USERS:
            for seed in range(draws):
                yield f"{table}, {users} users", draw(users, Random(seed))


def parts(market: Market) -> tuple[Fraction, Fraction]:
    """Return the totals of the equilibrium and of the best, as parts of cooperative OEF's; the verifier accepts all."""
    most, best = decide(CooperativeOEF(), market).objective, decide(EfficientOEF(), market)
    require(best.evidence.value == best.evidence.bound, "the search has ended")
    return Fraction(decide(NashWelfare(), market).utilities.sum() / most), Fraction(best.objective / most)


def on_tables(draws: int = 40) -> Finding:
    """How much of cooperative OEF's total the equilibrium and the best have, on throughputs that were measured."""
    by_case: dict[str, list[tuple[Fraction, Fraction]]] = {}
    for case, market in drawn(draws):
        by_case.setdefault(case, []).append(parts(market))
    said = [
        f"{case}: {_spread([y for y, _ in pairs])} and {_spread([b for _, b in pairs])}, all of it in "
        f"{sum(b == 1 for _, b in pairs)} of {len(pairs)}"
        for case, pairs in by_case.items()
    ]
    require(all(y <= b <= 1 for pairs in by_case.values() for y, b in pairs), "equilibrium <= best <= cooperative OEF")
    example = parts(oef_example())
    return Finding(
        Ruling.QUALIFIED,
        "Parts of cooperative OEF's total that the equilibrium and the best allocation with the three properties have "
        f"(least, median), jobs drawn with seeds 0 to {draws - 1}, 1 to 8 GPUs of each type.\n{'; '.join(said)}.\n"
        "OEF's "
        f"running example: {float(example[0]):.4f} and {float(example[1]):.4f}.\nEvery best one is proved so by a tree "
        "that the verifier accepts.",
    )


def against_policies(draws: int = 10) -> Finding:
    """All share policies on these markets: their totals, and which of the three properties their allocations have."""
    plain = [each for each in policies(Market) if Trait.ENTITLED not in each.traits]
    totals: dict[str, list[Fraction]] = {each.name: [] for each in plain}
    holding: Counter[tuple[str, str]] = Counter()
    markets = [market for _, market in drawn(draws)]
    for market in markets:
        most = Fraction(exactly(CooperativeOEF(), market).objective)
        for policy in plain:
            decision = exactly(policy, market)
            totals[policy.name].append(Fraction(decision.utilities.sum()) / most)
            holding.update((policy.name, each.name) for each in THREE if _holds(each, decision))
    order = sorted(totals, key=lambda name: -mean(totals[name]))
    said = [
        f"{name} {float(mean(totals[name])):.4f} ({', '.join(str(holding[name, each.name]) for each in THREE)})"
        for name in order
    ]
    have = [name for name in order if all(holding[name, each.name] == len(markets) for each in THREE)]
    require(have[0] == EfficientOEF.name, "it has the largest total of those with the three properties")
    return Finding(
        Ruling.QUALIFIED,
        f"Mean part of cooperative OEF's total on {len(markets)} markets ({draws} of each kind in own-three-tables), "
        f"and on how many the allocation has {', '.join(each.name for each in THREE)}: {'; '.join(said)}. On all of "
        f"them all three: {', '.join(have)}.",
    )


def what_dominates_is_envied() -> Finding:
    """No Pareto improvement of cooperative OEF's optimum is free of envy."""
    dominated = 0
    for market in sample_markets(100, seed=6, users=(3, 5), types=(3, 4)):
        decision = decide(CooperativeOEF(), market)
        verdict = ParetoEfficiency().check(market, decision.shares)
        if dominates(verdict):
            dominated, witness = dominated + 1, verdict.witness
            envied = EnvyFreeness().check(market, witness.allocation).answer is Answer.FAILS
            require(envied and witness.gains.sum() > 0, "what dominates is envied")
    require(dominated, "some optima are dominated")
    return Finding(
        Ruling.QUALIFIED,
        f"{theorem('PriceOfEnvy', 'improvement_envied')}, checked on the {dominated} of 100 markets of small integers "
        "where cooperative OEF's optimum is dominated: the allocation that dominates it by the largest gain is envied. "
        "So a repair must take something from somebody, as oef-efficient does.",
    )


def small_markets(most: int = 6) -> Finding:
    """All markets of three users on three types, one GPU each, speedups rising integers from 1 up to ``most``."""
    rows = [(1, slow, fast) for fast in range(3, most + 1) for slow in range(2, fast)]
    markets = [Market.of(speedup, [1, 1, 1]) for speedup in combinations_with_replacement(rows, 3)]
    lacking: list[tuple[Fraction, Market]] = []
    for market in markets:
        tree = exactly(EfficientOEF(), market).evidence
        require(tree.value == tree.bound, "the search has ended")
        if tree.value < (total := tree.nodes[frozenset()].bound):
            require(parts(market)[1] == tree.value / total, "the verifier accepts what is lacking")
            lacking.append((tree.value / total, market))
    least, there = min(lacking, key=lambda each: each[0])
    return Finding(
        Ruling.HOLDS_BOUNDED,
        f"Decided on all {len(markets)} markets, users in any order: on {len(markets) - len(lacking)} the best has all "
        f"of cooperative OEF's total, on {len(lacking)} less, and at least {least} of it (on {speedups(there)}). The "
        "verifier accepts the trees and optima of those.",
    )


def worst_found() -> Finding:
    """How little of cooperative OEF's total the best with the three properties can have: three users, 2/3."""
    market = two_thirds(UNITS, NEAR)
    equilibrium, best = parts(market)
    tree = exactly(EfficientOEF(), market).evidence
    [circle] = (tree.nodes[without].circle for without in tree.branched)
    require(set(circle) == {(0, 2), (1, 1), (2, 0)}, "the circle is that of the proof")
    require(0 < best - Fraction(2, 3) < Fraction(1, 1000), "the limit is 2/3")
    require(Fraction(1, 2) < equilibrium <= best, "above the bound of the equilibrium")
    of_four, by_four = parts(FOUR)
    require(Fraction(2, 5) < of_four <= by_four < best, "four users lose more than three")
    return Finding(
        Ruling.QUALIFIED,
        "Three users with speedups (3u, 0, 2u), (0, 2e, e + 1), (3, 4, 0), one GPU of each type: the best has "
        f"{float(best):.5f} of cooperative OEF's total for u = 10^9 and e = 10^4 (own-three-worst-best, -most), the "
        f"equilibrium {float(equilibrium):.5f}; the tree of {len(tree.nodes)} programs is accepted by the verifier, "
        "and by hand the limit is 2/3.\nFour users on four types: "
        f"{float(by_four):.4f} (the equilibrium {float(of_four):.4f}) on (u, 0, 0.867 u, 0.284 u), (0, 130.1, 48.6, "
        "125.5), (1, 2.175, 0, 1.285), (0, 3.065, 7.185, 17.39) with 0.882, 0.466, 1.18 and 0.43 GPUs. The best has "
        "always more than 2/(n + 1), as the equilibrium has (own-equilibrium-total), which is 1/2 and 2/5 here. How "
        "little it can have is open.",
    )


def two_thirds(u: int, e: int) -> Market:
    """Return the market of the proof."""
    return Market.of([[3 * u, 0, 2 * u], [0, 2 * e, e + 1], [3, 4, 0]], [1, 1, 1])


def best_and_most(market: Market) -> dict[str, Certificate]:
    """Return what proves the best total with the three properties, and the largest without envy."""
    rules = {"best": EfficientOEF(), "most": CooperativeOEF()}
    return {name: rule.certify(exactly(rule, market)) for name, rule in rules.items()}


def _holds(asked: AllocationProperty, decision: Allocation) -> bool:
    return asked.check(decision.market, decision.shares).answer is Answer.HOLDS


def _spread(values: list[Fraction]) -> str:
    return f"{float(min(values)):.4f}, {float(median(values)):.4f}"
