"""OEF Sec. 3.1.2: what optimal efficiency costs. An impossibility is proved by a market on which every choice fails."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from fairopt.evidence import throughput_of
from fairopt.models import CooperativeOEF, MaxEfficiency
from fairopt.policy import Formulated
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.ledger.checking import proved, require
from fairopt.proofs.ledger.citing import bounded, counterexample, theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, extent, gains_of_lie, of_share
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency, below_fair_share, envious
from fairopt.proofs.ledger.searching import as_in_oef, first_by_ratios
from fairopt.proofs.ledger.wording import rows, speedups

ENVY_FREE, FAIR_SHARES, ALONE = CooperativeOEF(), SharingIncentiveEfficiency(), MaxEfficiency()
#: The stored counterexamples to Lemma 3.1: of the first user, the type that it holds and the slower one that it lacks.
PLACES = {"": (2, 1), "-ratios": (1, 0), "-ratios-normalised": (2, 1)}
LARGER = "reports nowhere smaller than the truth, as Sec. 2.3.1 (1) has it"


def not_envy_free_and_strategy_proof() -> Finding:
    """Theorem 3.2: envy-freeness and strategy-proofness exclude each other at optimal efficiency."""
    stored = counterexample("oef-thm3.2")
    market, report = stored.market, stored.table("report").tolist()
    user = market.index(stored.data["user"])
    least, most = gains_of_lie(ENVY_FREE, market, user, report)
    nobody = envious(ALONE)(market)
    require(stored.policy == ENVY_FREE.name, f"{stored.name} speaks of {ENVY_FREE.name}")
    larger = all(told >= true for told, true in zip(report, market.speedup[user], strict=True))
    require(larger, f"the report in {stored.name} is nowhere smaller than the truth")
    if nobody is None or least != stored.number("gain") or least <= 0:
        return Finding(Ruling.OPEN, "The stored certificate and the decisions disagree.")
    proved(nobody[""])
    return Finding(
        Ruling.PROVED,
        f"By one market that no such rule can pass: {speedups(market)}. If optimal means the largest total among "
        f"envy-free allocations, {market.users[user]} gains {_span(least, most)} by reporting {rows([report])}, "
        f"whatever optimum the rule takes before and after (oef-thm3.2; {LARGER}). If it means the largest total of "
        "all, Eq. (4), no optimum is envy-free there to begin with (certified). The printed proof argues from Lemma "
        "3.1, which is false as stated.",
    )


def not_sharing_incentive_and_strategy_proof() -> Finding:
    """Theorem 3.3: the same for sharing incentive."""
    truth, lie = (counterexample(f"oef-thm3.3-{which}") for which in ("truth-most", "lie-least"))
    market, user, report = Market.of([[1, 2], [1, 4]], [1, 1]), 0, (1, 3)
    told = market.misreport(user, report)
    for each, short, end, sense in ((market, "truth", truth, "maximize"), (told, "lie", lie, "minimize")):
        total = counterexample(f"oef-thm3.3-{short}-total")
        written = as_from_the_market(each)
        require(total.data["program"] == written, f"{total.name} holds the program of {speedups(each)}")
        best = total.number("value")
        require(total.number("gap") == end.number("gap") == 0, f"{total.name} and {end.name} are optima")
        ranged = as_from_the_market(each, objective=throughput_of(market, user), sense=sense, total=best)
        require(end.data["program"] == ranged, f"{end.name} holds the program of {speedups(each)}")
    below = below_fair_share(ALONE)(market)
    gain = lie.number("value") - truth.number("value")
    if below is None or gain <= 0:
        return Finding(Ruling.OPEN, "The stored certificates and the decisions disagree.")
    proved(below[""])
    return Finding(
        Ruling.PROVED,
        f"By one market that no such rule can pass: {speedups(market)}. If optimal means the largest total among "
        f"allocations that give everybody its fair share, {market.users[user]} truly gets at most "
        f"{truth.number('value')} by telling the truth and at least {lie.number('value')} by reporting "
        f"{rows([report])}, whatever optimum the rule takes (oef-thm3.3-truth-total, -truth-most, -lie-total, "
        f"-lie-least; {LARGER}). These certificates hold programs as written, not a market; written again here, term "
        "by term, from the market's speedups, GPUs and fair shares, the programs are the same. If it means the largest "
        "total of all, Eq. (4), every optimum leaves somebody below its fair share there to begin with (certified).",
    )


def as_from_the_market(
    market: Market, objective: Array | None = None, sense: str = "maximize", total: Fraction | None = None
) -> dict[str, Any]:
    """Return, as it stands in a certificate, the program of the largest total that gives everybody its fair share.

    Written with no more than the numbers of the market, all speedups being positive: user l's share of type j is
    variable k l + j. With ``total``, only allocations of so large a total are left, and ``objective`` (n, k) times
    shares is what is asked for.
    """
    n, k = market.shape
    speed, weight = market.speedup, market.weight
    one_row: list[tuple[dict[int, Fraction], Fraction | None, Fraction | None]] = []
    one_row += [({k * i + j: Fraction(1) for i in range(n)}, None, market.capacity[j]) for j in range(k)]
    for i in range(n):
        fair = sum(speed[i, j] * market.capacity[j] * weight[i] / sum(weight) for j in range(k))
        one_row.append(({k * i + j: speed[i, j] for j in range(k)}, fair, None))
    if total is not None:
        one_row.append(({k * i + j: speed[i, j] for i in range(n) for j in range(k)}, total, None))
    costs = speed if objective is None else objective
    return {
        "sense": sense,
        "offset": "0",
        "variables": [{"cost": str(cost), "lower": "0", "upper": None, "integer": False} for cost in costs.ravel()],
        "rows": [
            {
                "terms": [[column, str(rate)] for column, rate in sorted(terms.items())],
                "lower": None if low is None else str(low),
                "upper": None if high is None else str(high),
            }
            for terms, low, high in one_row
        ],
    }


def from_the_left() -> Finding:
    """Lemma 3.1: the slowest user fills the types from the slowest on."""
    entries, units, normalised = (
        _not_filled(f"oef-lemma3.1-cooperative{which}", *places) for which, places in PLACES.items()
    )
    market, least, most = entries
    also = _ends(FAIR_SHARES, market, *PLACES[""])
    if not (also[0] > 0 and also[1] < market.capacity[PLACES[""][1]]):
        return Finding(Ruling.OPEN, "With sharing incentive the lemma holds on the stored market.")
    for each, _, _ in (units, normalised):
        require(first_by_ratios(each), f"u1 has the least ratios on {speedups(each)}")
    require(as_in_oef(normalised[0]), f"speedups are 1 on the first type and rise on {speedups(normalised[0])}")
    alone = theorem("Exchange", "max_total_held_by_fastest")
    efficient = theorem("Exchange", "least_ratios_fill_from_left")
    shares = theorem("Exchange", "max_total_sharing_incentive_pareto_efficient")
    equal = theorem("EqualEfficiency", "noncooperative_oef_pareto_efficient")
    two, few = theorem("Exchange", "two_users_fill_from_left"), bounded("lemma3.1-coop-ratios", "3x2")
    return Finding(
        Ruling.QUALIFIED,
        "It depends on what is optimal and on who is slowest. Slowest meaning the least speedup on every type, as "
        "the proof says: at the largest total alone, Eq. (4), it holds emptily, since that user gets nothing on "
        f"which another is faster ({alone}); with the constraints for which the lemma is used it is false. On "
        f"{speedups(market)}, u1 is the slowest and holds, in every optimum, at least {least} of T3 and at most "
        f"{most} of T2 among envy-free allocations (oef-lemma3.1-cooperative-least-T3, -most-T2), at least {also[0]} "
        f"of T3 and at most {also[1]} of T2 with sharing incentive. Slowest meaning the strictly least ratio between "
        f"any two types, it is true of every Pareto-efficient allocation, with positive speedups ({efficient}), so of "
        f"the largest total with sharing incentive ({shares}) and of the non-cooperative mode ({equal}). Among "
        "envy-free allocations it is then false. Where every speedup on the slowest type is 1 and the others rise: on "
        f"{speedups(normalised[0])}, u1 has the least ratios and holds, in every optimum, at least {normalised[1]} of "
        f"T3 and at most {normalised[2]} of T2 (oef-lemma3.1-cooperative-ratios-normalised-least-T3, -most-T2); three "
        f"users on two types are too few ({few}), and so are two on any number of types, in any units ({two}). In "
        f"other units two types are enough. On {speedups(units[0])}, u1 has the least ratio and holds, in every "
        f"optimum, at least {units[1]} of T2 and at most {units[2]} of T1 (oef-lemma3.1-cooperative-ratios-least-T2, "
        "-most-T1).",
    )


def _not_filled(name: str, fast: int, slow: int) -> tuple[Market, Fraction, Fraction]:
    """Return a stored market, and what the first user holds there, at any optimum, of a type and of a slower one.

    The least of the fast one is positive and the most of the slow one not all there is: stored, and computed again.
    """
    some, most = (counterexample(f"{name}-{which}") for which in (f"least-T{fast + 1}", f"most-T{slow + 1}"))
    market = some.market
    require(most.market == market, f"both certificates {name} speak of one market")
    for stored, type, sense in ((some, fast, "minimize"), (most, slow, "maximize")):
        same = stored.policy == ENVY_FREE.name and (stored.table("weights") == of_share(market, 0, type)).all()
        require(same and stored.data["sense"] == sense, f"{stored.name} ranges over the first user's share")
    ends = some.number("value"), most.number("value")
    require(ends == _ends(ENVY_FREE, market, fast, slow), f"{name} gives {ends}")
    require(ends[0] > 0 and ends[1] < market.capacity[slow], f"{name} is a counterexample")
    return market, *ends


def _ends(policy: Formulated, market: Market, fast: int, slow: int) -> tuple[Fraction, Fraction]:
    """Return the least that the first user holds of the fast type, and the most of the slow, over all optima."""
    decision = decide(policy, market)
    some, most = (extent(policy, decision, of_share(market, 0, j)) for j in (fast, slow))
    return some[0], most[1]


def _span(least: Fraction, most: Fraction) -> str:
    return str(least) if least == most else f"{least} to {most}"
