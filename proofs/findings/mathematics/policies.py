"""What is known of each share policy: which properties it has, how efficient it is, what it solves.

Speedups may be zero and in any unit, weights are equal, there are no demands. What a policy has is cited, with who
proved it; what it has not is shown by the first of few small markets on which an exact decision lacks it: at every
optimum for misreports, at the optimum that the policy takes for the others.

Non-cooperative OEF, equal weights, speedups from 1 to R, has at least the part n / ((n - 1) R + 1) of the largest
total U: let t = U / ((n - 1) R + 1), and u_i what users have at that total. Those above t (somebody is, as t <= U / n)
can hand on at least (u_i - t) / R GPUs each and keep t, and each GPU is worth at least 1 to those below. That is
enough: the sum of u_i over those above and of R u_i over those below is at least U = t ((n - 1) R + 1), and so at least
t for each of those above and R t for each of those below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from types import MappingProxyType

import numpy as np

from fairopt import discovery
from fairopt.datasets import gavel_example, oef_example
from fairopt.models import MaxEfficiency, NashWelfare, PartialAllocation
from fairopt.policy import Formulated, Policy
from fairopt.problem import Market
from fairopt.proofs.ledger.checking import NoLongerFollows, found, require
from fairopt.proofs.ledger.citing import theorem
from fairopt.proofs.ledger.entries import Figure, Finding, Measure, Ruling
from fairopt.proofs.ledger.figures import words_of
from fairopt.proofs.ledger.measuring import decide, exactly, gains_of_lie, holds
from fairopt.proofs.ledger.wording import lines, listed, percent, rows, speedups
from fairopt.properties import EnvyFreeness, ParetoEfficiency, SharingIncentive

NAMES = (
    "equal-split",
    "max-efficiency",
    "oef-cooperative",
    "oef-noncooperative",
    "oef-efficient",
    "max-min",
    "water-filling",
    "second-price-trading",
    "nash-welfare",
    "partial-allocation",
)
OF_ALLOCATIONS = MappingProxyType(
    {
        Measure.SHARING_INCENTIVE: SharingIncentive(),
        Measure.ENVY_FREENESS: EnvyFreeness(),
        Measure.PARETO_EFFICIENCY: ParetoEfficiency(),
    }
)
#: Where an allocation that lacks a property is looked for, the smallest first.
SMALL = (
    Market.of([[1, 2], [1, 4]], [1, 1]),
    Market.of([[1, 0], [1, 1]], [1, 2]),
    Market.of([[0, 1], [0, 1], [1, 0]], [1, 1]),
    Market.of([[1, 2], [1, 3], [1, 4]], [1, 1]),
    Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], [1, 1, 1]),
    Market.of([[1, 2, 3], [1, 3, 4]], [2, 1, 2]),
)
#: Random markets on which it is computed what partial allocation leaves to users.
KEPT = 8
#: Random markets on which it is computed what part of the largest total equal throughput leaves.
LEVELS = 20
REPORTS = (Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(6))


@dataclass(frozen=True)
class Proof:
    """Why a policy has a property: a theorem of Coq, or words."""

    words: str
    file: str = ""

    @property
    def cited(self) -> str:
        """The citation."""
        return theorem(self.file, self.words) if self.file else self.words


BY_DEFINITION = Proof("by definition")
#: What each policy has; all else it has not.
HAVE: Mapping[str, Mapping[Measure, Proof]] = MappingProxyType(
    {
        "equal-split": {
            Measure.SHARING_INCENTIVE: BY_DEFINITION,
            Measure.ENVY_FREENESS: BY_DEFINITION,
            Measure.STRATEGY_PROOFNESS: Proof("it reads no report"),
        },
        "max-efficiency": {Measure.PARETO_EFFICIENCY: Proof("max_total_pareto_efficient", "Exchange")},
        "oef-cooperative": dict.fromkeys(
            (Measure.SHARING_INCENTIVE, Measure.ENVY_FREENESS),
            Proof("cooperative_oef_sharing_incentive", "SharingIncentive"),
        ),
        "oef-noncooperative": {},
        "oef-efficient": dict.fromkeys(OF_ALLOCATIONS, Proof("efficient faces with the rows of envy")),
        "max-min": {Measure.SHARING_INCENTIVE: Proof("gavel_sharing_incentive", "SharingIncentive")},
        "water-filling": {
            Measure.SHARING_INCENTIVE: Proof("its first level is max-min's"),
            Measure.PARETO_EFFICIENCY: Proof("a dominating allocation would raise a level"),
        },
        "second-price-trading": {
            Measure.SHARING_INCENTIVE: Proof("second_price_trading_sharing_incentive", "Trading"),
        },
        "nash-welfare": {
            Measure.SHARING_INCENTIVE: Proof("equilibrium_sharing_incentive", "Equilibrium"),
            Measure.ENVY_FREENESS: Proof("equilibrium_envy_free", "Equilibrium"),
            Measure.PARETO_EFFICIENCY: Proof("equilibrium_pareto_efficient", "Equilibrium"),
        },
        "partial-allocation": dict.fromkeys(
            (Measure.ENVY_FREENESS, Measure.STRATEGY_PROOFNESS), Proof("Cole, Gkatzelis and Goel, EC 2013")
        ),
    }
)
ANY = "any, equal weights"


def properties() -> Finding:
    """Each policy and property: a citation, or a market."""
    figures, said = [], []
    for name in NAMES:
        policy, have = discovery.policy(name), HAVE[name]
        words = []
        for measure in (*OF_ALLOCATIONS, Measure.STRATEGY_PROOFNESS):
            told = words_of(measure)
            figures.append(Figure(name, measure, "yes" if measure in have else "no", ANY))
            if measure in have:
                words.append(f"{told} ({have[measure].cited})")
            else:
                words.append(f"no {told} ({found(_lacking(policy, measure), f'{name} lacks {told}')})")
        said.append(f"{name}: {', '.join(words)}")
    return Finding(
        Ruling.QUALIFIED,
        "Any speedups from 0 on, equal weights, no demands; the answers stand in the table of policies below. Each "
        "no is "
        f"an exact decision; proofs that are not Coq's are in words.\n{lines(said)}",
        figures=tuple(figures),
    )


def _lacking(policy: Policy, measure: Measure) -> str | None:
    """Return the first small market on which a policy's exact decision lacks a property, in words."""
    for market in SMALL:
        if measure is Measure.STRATEGY_PROOFNESS:
            if (pays := _lie(policy, market)) is not None:
                return f"{speedups(market)}: {pays}"
        elif not holds(OF_ALLOCATIONS[measure], market, decide(policy, market).shares):
            return speedups(market)
    return None


def _lie(policy: Policy, market: Market) -> str | None:
    for user, name in enumerate(market.users):
        for told in REPORTS:
            report = [1, told, *market.speedup[user, 2:]]
            if told != market.speedup[user, 1] and gains_of_lie(policy, market, user, report)[0] > 0:
                return f"{name} reports {rows([report])}"
    return None


def efficiency() -> Finding:
    """The total over the largest: on printed tables, at worst, and what is proved."""
    at_least = theorem("PriceOfEnvy", "sharing_incentive_total")
    figures, said = [], []
    for told, market in (("OEF's example", oef_example()), ("Gavel's example", gavel_example())):
        best = _total(MaxEfficiency(), market)
        parts = {name: _total(discovery.policy(name), market) / best for name in NAMES}
        figures += [Figure(name, Measure.EFFICIENCY, str(part), told) for name, part in parts.items()]
        said.append(f"on {told} " + listed(f"{name} {percent(part, 1)}" for name, part in parts.items()))
    fair = [name for name in NAMES if Measure.SHARING_INCENTIVE in HAVE[name]]
    for n, large in ((2, 1000), (3, 1000), (5, 1000)):
        market = Market.of([*[[1]] * (n - 1), [large]], [1])
        for name in (*fair, "partial-allocation"):
            part = Fraction(n - 1, n) ** (n - 1) if name == "partial-allocation" else Fraction(1)
            total = Fraction(n - 1 + large, n) * part
            require(_total(discovery.policy(name), market) == total, f"{name} on one type, {n} users")
        equal = 1 / (n - 1 + Fraction(1, large))
        require(_total(discovery.policy("oef-noncooperative"), market) == n * equal, "all have the same")
    for name in fair:
        figures.append(Figure(name, Measure.EFFICIENCY_AT_LEAST, "1/n", ANY))
        figures.append(Figure(name, Measure.EFFICIENCY_AT_MOST, "1/n", "one type, in the limit"))
    figures += [
        Figure("max-efficiency", Measure.EFFICIENCY_AT_LEAST, "1", "any"),
        Figure("max-efficiency", Measure.EFFICIENCY_AT_MOST, "1", "any"),
        Figure(
            "oef-noncooperative", Measure.EFFICIENCY_AT_LEAST, "n/((n-1)*R+1)", "speedups from 1 to R, equal weights"
        ),
        Figure("oef-noncooperative", Measure.EFFICIENCY_AT_MOST, "n/((n-1)*R+1)", "one type, speedups 1 and R"),
        Figure("oef-noncooperative", Measure.EFFICIENCY_AT_MOST, "0", "one type, in the limit"),
        Figure("partial-allocation", Measure.EFFICIENCY_AT_LEAST, "(1-1/n)**(n-1)/n", ANY),
        Figure("partial-allocation", Measure.EFFICIENCY_AT_MOST, "(1-1/n)**(n-1)/n", "one type, in the limit"),
    ]
    _require_kept()
    _require_level()
    return Finding(
        Ruling.QUALIFIED,
        f"What is sharing-incentive has at least the n-th part of the largest total ({at_least}), so {listed(fair)} "
        "have.\nNone has more at worst: on one type, n - 1 users of speedup 1 and one of speedup b, each divides "
        "alike, "
        "for a total of (n - 1 + b) / n where b is possible.\n"
        "Non-cooperative OEF has n / (n - 1 + 1/b) there, and no share of the largest total is sure; with speedups "
        "from "
        "1 to R at least n / ((n - 1) R + 1) of it is, which is what it has there with b = R (proof in words: "
        "policies.py; "
        f"checked on {LEVELS} random markets).\n"
        "Partial allocation keeps (1 - 1/n)^(n - 1) of the equal split there, and no less anywhere: so much everybody "
        "keeps of what it has at the largest Nash welfare (proof in words: f in coalitions.py; checked on "
        f"{KEPT} random markets), which is sharing-incentive.\n"
        f"Exact decisions for n = 2, 3, 5 and b = 1000 agree.\n{lines(each.capitalize() for each in said)}",
        figures=tuple(figures),
    )


def _require_kept() -> None:
    """Under partial allocation everybody keeps at least (1 - 1/n)^(n - 1) of what Nash welfare gives it."""
    dice = Random(2)
    for _ in range(KEPT):
        n = dice.randint(2, 4)
        market = Market.of([[dice.randint(1, 9) for _ in range(2)] for _ in range(n)], [1, dice.randint(1, 3)])
        kept, whole = (exactly(policy, market).utilities for policy in (PartialAllocation(), NashWelfare()))
        require((kept >= Fraction(n - 1, n) ** (n - 1) * whole).all(), f"what is kept on {market.speedup.tolist()}")


def _require_level() -> None:
    """With speedups from 1 to R non-cooperative OEF has at least n / ((n - 1) R + 1) of the largest total."""
    dice = Random(3)
    for _ in range(LEVELS):
        n, most = dice.randint(2, 4), dice.choice((2, 5, 20))
        speedup = [[dice.choice((1, 1, dice.randint(1, most), most)) for _ in range(2)] for _ in range(n)]
        market = Market.of(speedup, [1, dice.randint(1, 3)])
        level, best = (_total(discovery.policy(name), market) for name in ("oef-noncooperative", "max-efficiency"))
        require(level * ((n - 1) * market.speedup.max() + 1) >= n * best, f"the part that is left on {speedup}")


def _total(policy: Policy, market: Market) -> Fraction:
    return Fraction((market.speedup * decide(policy, market).shares).sum())


#: What is solved by policies that are not one linear program.
SOLVED = MappingProxyType(
    {
        "equal-split": "one division",
        "oef-efficient": "one convex program, at most 2nk min(n, k) linear programs",
        "water-filling": "at most n linear programs",
        "second-price-trading": "at most 2n trades for each of k(k - 1)/2 pairs of types",
        "nash-welfare": "one convex program",
        "partial-allocation": "n + 1 convex programs",
    }
)


def programs() -> Finding:
    """How large the linear program of a policy is, as a formula in users and types."""
    figures = []
    for name in NAMES:
        policy = discovery.policy(name)
        if name in SOLVED:
            figures.append(Figure(name, Measure.COMPLEXITY, SOLVED[name], "any"))
            continue
        variables, constraints = (_formula(policy, which) for which in (0, 1))
        size = f"one linear program, {variables} variables and {constraints} rows"
        figures.append(Figure(name, Measure.COMPLEXITY, size, "any"))
    return Finding(
        Ruling.QUALIFIED,
        "Counted on the programs for 2 to 6 users and 2 to 5 types, of which it is the only formula of its kind; the "
        "others as their methods are described.\n" + lines(f"{each.policy}: {each.value}" for each in figures),
        figures=tuple(figures),
    )


def _formula(policy: Policy, which: int) -> str:
    """Return the number of variables or rows as a sum of n n, n k, n, k and 1, which must fit all sizes."""
    sizes = [(n, k) for n in range(2, 7) for k in range(2, 6)]
    terms = np.array([[n * n, n * k, n, k, 1] for n, k in sizes], dtype=float)
    counts = np.array([_size(policy, n, k)[which] for n, k in sizes], dtype=float)
    factors = np.rint(np.linalg.lstsq(terms, counts, rcond=None)[0])
    require((terms @ factors == counts).all(), f"the size of {policy.name} is such a sum")
    return " ".join(_terms(factors)).removeprefix("+ ")


def _terms(factors: np.ndarray) -> Iterator[str]:
    for factor, term in zip(factors.astype(int).tolist(), ("n^2", "nk", "n", "k", ""), strict=True):
        if factor:
            yield f"{'+' if factor > 0 else '-'} {abs(factor) if abs(factor) != 1 or not term else ''}{term}"


def _size(policy: Policy, n: int, k: int) -> tuple[int, int]:
    if not isinstance(policy, Formulated):
        raise NoLongerFollows(f"{policy.name} is no program")
    market = Market.of([[1 + i + j * (i + 1) for j in range(k)] for i in range(n)], [1] * k)
    program = policy.formulate(market, None)
    return program.shape[1], program.shape[0]
