"""OEF's theorems on the cooperative and the non-cooperative mode: Sec. 4.4 and 5.

A counterexample is a stored certificate, accepted by ``proofs/verify.py``, that speaks of every optimum; each is
decided a second time here, over the optimal face of the market that it holds (`fairopt.properties.over_optima`). What
holds for all sizes is a theorem of Coq.
"""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.evidence import throughput_of
from fairopt.models import CooperativeOEF, MaxEfficiency, NonCooperativeOEF
from fairopt.policy import Formulated
from fairopt.policy.optima import is_extreme
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import COUNTEREXAMPLES, bounded, bounded_refutation, counterexample, theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, extent, gains_of_lie, holds, only_optimum
from fairopt.proofs.ledger.searching import as_in_oef, ordered_by_ratios
from fairopt.proofs.ledger.wording import both, rows, speedups
from fairopt.properties import AdjacentTypes, Answer, EnvyFreeness, ParetoEfficiency, SharingIncentive
from fairopt.properties.over_optima import over_optima
from fairopt.properties.property import AllocationProperty

COOPERATIVE, NONCOOPERATIVE = CooperativeOEF(), NonCooperativeOEF()
#: Markets with ties, weights and zeros, on which what Coq proves is computed as well.
PROBES = (
    Market.of([[1, 2], [1, 5]], [1, 1]),
    Market.of([[1, 2, 3], [1, 4, 5], [1, 5, 6]], [1, 1, 1]),
    Market.of([[1, 2], [1, 2], [1, 3]], [2, 1], weight=[1, 2, "1/2"]),
    Market.of([[1, 0], [0, 1], [1, 1]], [1, 2]),
    Market.of([[3, 1, 2], [1, 1, 1], [2, 0, 5], [0, 1, 4]], [3, 1, 2], weight=[2, 1, 1, 3]),
)


def no_optimum_has(asked: AllocationProperty, policy: Formulated, market: Market) -> bool:
    """Whether every optimum lacks a property, decided over the whole optimal face."""
    verdict = over_optima(policy, allocate(policy, market, Exact()), asked).some
    return verdict.exact and verdict.answer is Answer.FAILS


def cooperative_guarantees() -> Finding:
    """Theorem 5.1: envy-free, sharing-incentive, optimal."""
    proof = theorem("SharingIncentive", "cooperative_oef_sharing_incentive")
    full = theorem("SharingIncentive", "cooperative_oef_nothing_left_over")
    for market in PROBES:
        decision = allocate(COOPERATIVE, market, Exact())
        for asked in (EnvyFreeness(), SharingIncentive()):
            if over_optima(COOPERATIVE, decision, asked).every.answer is not Answer.HOLDS:
                return Finding(Ruling.REFUTED, f"Not {asked.name} in every optimum on {speedups(market)}.")
    market = PROBES[0]
    alone, fair = (decide(policy, market).objective for policy in (MaxEfficiency(), COOPERATIVE))
    require(alone > fair, f"more than cooperative OEF's total is possible on {speedups(market)}")
    return Finding(
        Ruling.PROVED,
        "Sec. 2.3.2 calls optimal efficiency the highest overall training throughput, 'while also taking various "
        "fairness considerations into account'. So read it is proved. For all numbers of users and types, weights, and "
        "speedups that may be 0, every optimum of Eq. (10) is envy-free, sharing-incentive and of the largest total "
        f"among envy-free allocations ({proof}). The step that the printed proof takes for granted, that an optimum "
        f"leaves nothing over, is proved as well ({full}). It is not the largest total of all, Eq. (4), which no "
        f"envy-free rule could promise: on {speedups(market)}, the cooperative mode totals {both(fair)}, and "
        f"{both(alone)} is possible (both optima certified). Computed as well, for every optimum, on {len(PROBES)} "
        "markets with ties, weights and zeros: no envy, and nobody below its fair share.",
    )


def adjacent_types() -> Finding:
    """Theorem 5.2: neighbouring types only."""
    found = {mode: _gap(f"oef-thm5.2-{mode}") for mode in ("cooperative", "noncooperative")}
    markets = {mode: market for mode, (market, _) in found.items()}
    refuted = no_optimum_has(AdjacentTypes(), COOPERATIVE, markets["cooperative"]) and no_optimum_has(
        AdjacentTypes(), NONCOOPERATIVE, markets["noncooperative"]
    )
    if not refuted:
        return Finding(Ruling.OPEN, "The stored certificates and the optimal face disagree.")
    ordered = theorem("Exchange", "noncooperative_oef_adjacent_types")
    two = theorem("Exchange", "two_users_adjacent_types")
    three = bounded_refutation("adjacent-coop-normalised-ordered-every", "3x3")
    other, said = _gap("oef-thm5.2-cooperative-ordered")
    if not (as_in_oef(other) and ordered_by_ratios(other) and no_optimum_has(AdjacentTypes(), COOPERATIVE, other)):
        return Finding(Ruling.OPEN, "The stored certificate for users in order and the optimal face disagree.")
    one = found["noncooperative"][1]
    return Finding(
        Ruling.QUALIFIED,
        "As stated it is false in both modes, even where every user has speedup 1 on the slowest type and more on "
        f"each faster one, and whatever optimum is chosen. Cooperative: on {speedups(markets['cooperative'])}, "
        f"{found['cooperative'][1]} (oef-thm5.2-cooperative). Non-cooperative: on "
        f"{speedups(markets['noncooperative'])}, {one} (oef-thm5.2-noncooperative). The printed proof takes the users "
        "to be ordered by all ratios of their speedups between two types. Read so, it is true in the non-cooperative "
        f"mode, for all sizes, positive speedups and strict order ({ordered}), and in the cooperative mode for two "
        f"users, any number of types and any units ({two}): who holds two types holds all GPUs of each type between "
        f"them, so that it skips none but one without GPUs. For {other.shape[0]} users and {other.shape[1]} types it "
        f"is false there: on {speedups(other)}, users are in that order, and {said} (oef-thm5.2-cooperative-ordered). "
        f"So says another search ({three}).",
    )


def _gap(name: str) -> tuple[Market, str]:
    """Return the market of three stored certificates, and what they say of one user's shares in every optimum."""
    named = {path.stem.removeprefix(f"{name}-") for path in COUNTEREXAMPLES.glob(f"{name}-*-T*.json")}
    slow, fast = sorted(each for each in named if re.fullmatch(r"least-T\d", each))
    (between,) = (each for each in named if re.fullmatch(r"most-T\d", each))
    left, right, none = (counterexample(f"{name}-{which}") for which in (slow, fast, between))
    market = left.market
    user = int(np.flatnonzero((left.table("weights") != 0).any(axis=1))[0])
    for each, which, sense in ((left, slow, "minimize"), (right, fast, "minimize"), (none, between, "maximize")):
        unit = np.zeros(market.shape, dtype=int)
        unit[user, market.types.index(which[-2:])] = 1
        same = each.market == market and each.data["sense"] == sense and (each.table("weights") == unit).all()
        require(same, f"{each.name} ranges over one user's share of {which[-2:]}")
    gap = min(left.number("value"), right.number("value")) > 0 == none.number("value")
    require(gap and slow[-2:] < between[-2:] < fast[-2:], f"{name} is a gap")
    least = f"at least {left.number('value')} of {slow[-2:]} and {right.number('value')} of {fast[-2:]}"
    return market, f"{market.users[user]} holds {least} and nothing of {between[-2:]} in every optimum"


def pareto_efficiency() -> Finding:
    """Theorem 5.3: nobody can gain without somebody losing."""
    stored = counterexample("oef-thm5.3-cooperative")
    market, better = stored.market, stored.table("better")
    zeros = counterexample("oef-thm5.3-noncooperative-zeros")
    types = counterexample("oef-thm5.3-cooperative-two-types")
    absent = counterexample("oef-thm5.3-cooperative-two-types-zero")
    for each, mode in (
        (stored, COOPERATIVE),
        (types, COOPERATIVE),
        (absent, COOPERATIVE),
        (zeros, NONCOOPERATIVE),
    ):
        policies = {optimum["of"]["policy"] for optimum in each.data["optima"]}
        require(policies == {mode.name}, f"{each.name} speaks of {mode.name}")
    false = all(no_optimum_has(ParetoEfficiency(), COOPERATIVE, each.market) for each in (stored, types, absent))
    also = no_optimum_has(ParetoEfficiency(), NONCOOPERATIVE, zeros.market)
    if not (false and also):
        return Finding(Ruling.OPEN, "The stored certificates and the optimal face disagree.")
    positive = theorem("EqualEfficiency", "noncooperative_oef_pareto_efficient")
    two = theorem("SharingIncentive", "two_users_pareto_efficient")
    small = bounded("pareto-coop-normalised-every", "3x2")
    four = theorem("Counterexamples", "cooperative_oef_two_types_not_pareto_efficient")
    decision = decide(COOPERATIVE, market)
    require(not holds(EnvyFreeness(), market, better), "what dominates the optimum is envied")
    before, after = decision.utilities, market.utility(better)
    return Finding(
        Ruling.REFUTED,
        f"False in the cooperative mode. On {speedups(market)}, the optimum {rows(decision.shares)} gives "
        f"{_numbers(before)}; {rows(better)} gives {_numbers(after)}, and is left out because somebody would envy "
        "somebody. No optimum gives any user more (oef-thm5.3-cooperative). Two users are too few for it, with any "
        f"number of types ({two}). Three users are enough, on two types already where speedups may be in any unit: on "
        f"{speedups(types.market)}, {types.said} (oef-thm5.3-cooperative-two-types). Where the first type's "
        f"speedup is 1, three users on two types are too few ({small}), unless one cannot run there: on "
        f"{speedups(absent.market)}, {absent.said} (oef-thm5.3-cooperative-two-types-zero). With four users two types "
        f"are enough, without a zero ({four}). The printed proof compares with allocations that keep Eq. (10c) only. "
        f"In the non-cooperative mode it is true, for all sizes, where all users run on the same types ({positive}), "
        f"and false where one does not: on {speedups(zeros.market)}, every optimum leaves GPUs over that one user "
        "could use and equality forbids (oef-thm5.3-noncooperative-zeros).",
    )


def strategy_proofness() -> Finding:
    """Theorem 5.4: the non-cooperative mode does not reward lies."""
    proof = theorem("EqualEfficiency", "noncooperative_oef_over_reporting")
    lie = counterexample("oef-thm5.4-smaller")
    market, report = lie.market, lie.table("report")
    user = market.index(lie.data["user"])
    least, _ = gains_of_lie(NONCOOPERATIVE, market, user, report.tolist())
    six, told = Market.of([[1, 2], [1, 5]], [1, 1]), [1, 4]
    other, _ = gains_of_lie(NONCOOPERATIVE, six, 1, told)
    require(lie.policy == NONCOOPERATIVE.name and least == lie.number("gain"), f"{lie.name} gains {least}")
    smaller = (report <= market.speedup[user]).all() and report[0] == market.speedup[user, 0]
    require(smaller, f"the report in {lie.name} is nowhere larger than the truth, and the same on the slowest type")
    without_bound = theorem("UnderReporting", "under_reporting_without_bound")
    exact = theorem("UnderReporting", "under_reporting_gain")
    fast, least_told = 1000, Fraction(101, 100)
    factor = factor_of_under_reporting(2, 2, fast, least_told)
    for n, k in ((2, 2), (2, 3), (3, 2), (3, 4)):
        wanted = (1 + fast * (n - 1)) / (1 + least_told * (n - 1))
        require(factor_of_under_reporting(n, k, fast, least_told) == wanted, f"{n} users on {k} types gain {wanted}")
    larger = [gains_of_lie(NONCOOPERATIVE, each, i, _larger(each, i))[1] for each in PROBES for i in range(2)]
    still, same = counterexample("oef-thm5.2-noncooperative-most-T2").market, [1, Fraction(21, 10), 3]
    unchanged = not any(gains_of_lie(NONCOOPERATIVE, still, 0, same))
    if max(larger) > 0 or least <= 0 or other <= 0 or not unchanged:
        return Finding(Ruling.OPEN, "The theorem, the stored certificate and the decisions disagree.")
    return Finding(
        Ruling.QUALIFIED,
        "True for the lies that Sec. 2.3.1 (1) speaks of, reports that are nowhere smaller than the truth: whatever "
        "the sizes, weights and zeros, with or without speedup 1 on the slowest type, and whatever optima are chosen "
        f"before and after ({proof}; computed as well, {len(larger)} lies). That the liar's throughput then falls, as "
        f"Sec. 2.3.1 has it, is too much said: on {speedups(still)}, u1 changes nothing by reporting {rows([same])}. "
        "The printed proof is another: it leans on Theorem 5.2. False for reports that are nowhere larger, and so "
        f"for any report: on {speedups(market)}, {market.users[user]} gains {least} by reporting {rows([report])}, "
        "whatever optima are chosen (oef-thm5.4-smaller; the slowest type's speedup is kept, so that it is false "
        f"with that normalisation and without). On Eq. (6), u2 gains {other} by reporting {rows([told])} instead of "
        f"(1, 5). And there is no bound on what is gained, for any numbers of users and types from two on, with one "
        f"GPU of each type and speedup 1 on the slowest ({without_bound}). All speedups 1 but those of one user, b on "
        f"every faster type: by reporting r instead of b, 1 < r <= b, it gains the factor (1 + b (n - 1)) / (1 + r (n "
        f"- 1)), whatever optima are chosen ({exact}), on (1, 1), (1, b) nearly (b + 1) / 2. Computed for b = {fast}: "
        f"reporting {least_told} brings {both(factor)} times as much.",
    )


def factor_of_under_reporting(n: int, k: int, fast: int, told: Fraction) -> Fraction:
    """Return by what factor the first of n users gains that says ``told`` for ``fast``, others being 1 on all types."""
    market = Market.of([[1, *[fast] * (k - 1)], *[[1] * k] * (n - 1)], [1] * k)
    own = throughput_of(market, 0)
    before = extent(NONCOOPERATIVE, decide(NONCOOPERATIVE, market), own)
    lie = decide(NONCOOPERATIVE, market.misreport(0, [1, *[told] * (k - 1)]))
    after = extent(NONCOOPERATIVE, lie, own)
    require(before[0] == before[1] and after[0] == after[1], "the liar gets the same in every optimum")
    return after[0] / before[0]


def _larger(market: Market, user: int) -> list[Fraction]:
    """Return a report with every other speedup half as large again, and 1 where the user cannot run."""
    truth = market.speedup[user]
    return [value * Fraction(3, 2) if j % 2 else value or Fraction(1) for j, value in enumerate(truth)]


def nonzeros() -> Finding:
    """Sec. 4.4: few entries are not zero."""
    proof = theorem("Vertices", "noncooperative_oef_vertex_nonzeros")
    units, normalised = (_many(f"oef-nonzeros-cooperative{which}") for which in ("", "-normalised"))
    two = theorem("Vertices", "two_users_vertex_nonzeros")
    most = theorem("Vertices", "envy_free_vertex_nonzeros")
    return Finding(
        Ruling.QUALIFIED,
        "True for the non-cooperative mode: every extreme point of its optima, or of what Eq. (9b) and (9c) allow, "
        f"has at most n + k - 1 shares that are not zero, for all sizes ({proof}). False for the cooperative mode, "
        f"whose envy rows are up to n (n - 1) more: {units}. With speedup 1 on the slowest type {normalised}. Two "
        f"users are too few for it, with any number of types and positive speedups ({two}). For any sizes an extreme "
        f"point of Eq. (10) has at most k + n (n - 1) ({most}); how many it has, optimal or not: own-vertices.",
    )


def _many(name: str) -> str:
    """Return in words a stored only optimum of cooperative OEF that is an extreme point with too many shares."""
    stored = counterexample(name)
    market, shares = stored.market, stored.table("allocation")
    n, k = market.shape
    count, limit = int((shares > 0).sum()), n + k - 1
    require(stored.policy == COOPERATIVE.name and count > limit, f"{name} has more than {limit} shares")
    require(is_extreme(COOPERATIVE.formulate(market, None), shares.ravel()), f"{name} is an extreme point of Eq. (10)")
    which = "the only" if only_optimum(COOPERATIVE, decide(COOPERATIVE, market)) else "one"
    return (
        f"on {speedups(market)}, {which} optimum, {rows(shares)}, is an extreme point of Eq. (10) (its tight rows have "
        f"rank {n * k}) and has {count} of them, more than {n} + {k} - 1 = {limit} ({name})"
    )


def _numbers(values: Array) -> str:
    return ", ".join(map(str, values))
