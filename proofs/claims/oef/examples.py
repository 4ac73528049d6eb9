"""OEF Sec. 2.4: what trading and max-min do on speedups (1,2), (1,3), (1,4), recomputed in exact numbers.

Every decision, every range over optima and every verdict on an allocation is certified, and accepted by
``proofs/verify.py``, which knows nothing of the solver.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from fairopt.datasets import oef_example
from fairopt.models import CooperativeOEF, MaxMin, SecondPriceTrading
from fairopt.problem import Market, allocation_from
from fairopt.program import Array
from fairopt.proofs.ledger.checking import NoLongerFollows, require
from fairopt.proofs.ledger.citing import counterexample
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import checked, decide, extent, gains_of_lie, holds, only_optimum, with_demand
from fairopt.proofs.ledger.wording import all_print_as, both, listed, misprints, percent, printed_table, rows
from fairopt.properties import Answer, EnvyFreeness, Feasibility, ParetoEfficiency, SharingIncentive

#: What the paper prints.
EQUATION_1, EFFICIENCY_1 = "1 .09; 0 .47; 0 .44", "1.18 1.41 1.76"
LIE_1, EFFICIENCY_LIE_1 = "1 .11; 0 .45; 0 .44", "1.22 1.35 1.76"
EQUATION_2, EFFICIENCY_2 = "1 0; 0 .5; 0 .5", "1 1.5 2"
EQUATION_3, EFFICIENCY_3 = ".91 .09; .09 .45; 0 .45", "1.09 1.44 1.8"
LIE_3 = ".85 .15"
#: The stored certificates of the least total of max-min, by reading.
FREE, AT_MOST_1 = "no such bound", "shares of a user at most 1"
STORED_3 = {AT_MOST_1: "oef-eq3-envy-bounded-least", FREE: "oef-eq3-envy-least"}
#: The trade of Sec. 2.4 from Eq. (3), whose last number must be .495 for u2 to gain, and u3 as it was.
TRADE_3, TRADE_3_MENDED = "1 .045; 0 .0495; 0 .45", "1 .045; 0 .495; 0 .45"


# -- trading -----------------------------------------------------------------------------------------------------
def eq1() -> Finding:
    """Eq. (1): the allocation by trading, and what it is worth."""
    market = oef_example()
    decision = decide(SecondPriceTrading(), market)
    return _as_printed(market, decision.shares, EQUATION_1, EFFICIENCY_1, "Trading ends at")


def eq1_envy() -> Finding:
    """Sec. 2.4: u3 envies u2 where trading ends."""
    market = oef_example()
    shares = decide(SecondPriceTrading(), market).shares
    pairs = _envious(market, shares)
    others = f"; in the other {6 - len(pairs)} ordered pairs of users there is none"
    return Finding(
        Ruling.REPRODUCED if "u3 of u2" in pairs else Ruling.REFUTED,
        f"At {rows(shares)} envy is felt by {listed(pairs.values()) or 'nobody'}{others}.",
    )


def eq1_lie() -> Finding:
    """Sec. 2.4: u1 reports 2.8 under trading."""
    market = oef_example()
    honest = decide(SecondPriceTrading(), market)
    misreported = decide(SecondPriceTrading(), market.misreport("u1", [1, "2.8"]))
    before, after = ([trade.price for trade in decision.evidence] for decision in (honest, misreported))
    shown = _as_printed(market, misreported.shares, LIE_1, EFFICIENCY_LIE_1, "After the lie trading ends at")
    gain = market.utility(misreported.shares)[0] - honest.utilities[0]
    prices_agree = all_print_as([before[1], after[1]], "2.5 2.9")
    return Finding(
        shown.verdict if prices_agree and gain > 0 else Ruling.REFUTED,
        f"The second trade's price goes from {before[1]} to {after[1]}, and u1 gains {both(gain)} on "
        f"{both(honest.utilities[0])}: trading is not strategy-proof. {shown.evidence}",
    )


def eq2() -> Finding:
    """Eq. (2): the better allocation that nobody envies."""
    market = oef_example()
    stated = printed_table(EQUATION_2)
    traded = decide(SecondPriceTrading(), market).utilities.sum()
    best = decide(CooperativeOEF(), market)
    fair = all(holds(asked, market, stated) for asked in (Feasibility(), EnvyFreeness(), SharingIncentive()))
    total = market.utility(stated).sum()
    is_it = (best.shares == stated).all() and only_optimum(CooperativeOEF(), best)
    agree = fair and total > traded and all_print_as(market.utility(stated), EFFICIENCY_2)
    return Finding(
        Ruling.REPRODUCED if agree else Ruling.REFUTED,
        f"{rows(stated)} is feasible, envy-free and sharing-incentive, and totals {both(total)} against "
        f"{both(traded)} of trading: {percent(total / traded - 1)} more (the paper: 'much higher'). It is "
        f"{'' if is_it else 'not '}the only optimum of cooperative OEF.",
    )


# -- max-min -----------------------------------------------------------------------------------------------------
def _readings() -> dict[str, Market]:
    """Return the two readings of Gavel's policy: its time fractions of a user add up to one at most, or do not."""
    return {AT_MOST_1: with_demand(oef_example(), 1), FREE: oef_example()}


def eq3() -> Finding:
    """Eq. (3): max-min, with and without Gavel's bound."""
    agree, texts = [], []
    for reading, market in _readings().items():
        decision = decide(MaxMin(), market)
        shown = _as_printed(market, decision.shares, EQUATION_3, EFFICIENCY_3, "max-min gives")
        agree.append(shown.verdict)
        only = "the only optimum" if only_optimum(MaxMin(), decision) else "one optimum of several"
        texts.append(f"With {reading}, {shown.evidence} It is {only}.")
    bounded, free = agree
    if bounded is free:
        return Finding(bounded, " ".join(texts))
    return Finding(Ruling.REFUTED if Ruling.REFUTED is bounded else Ruling.QUALIFIED, " ".join(texts))


def eq3_envy() -> Finding:
    """Sec. 2.4: u3 envies u2 under max-min, and the total is below that of trading."""
    traded = decide(SecondPriceTrading(), oef_example()).utilities.sum()
    texts, envies, below = [], [], []
    for reading, market in _readings().items():
        decision = decide(MaxMin(), market)
        pairs = _envious(market, decision.shares)
        # the least total over all optima: no choice among them gets below it
        least, _ = extent(MaxMin(), decision, market.speedup)
        envies.append("u3 of u2" in pairs and only_optimum(MaxMin(), decision))
        below.append(least < traded)
        stored = counterexample(STORED_3[reading])
        same = stored.market == market and stored.policy == MaxMin.name and stored.number("value") == least
        ranged = stored.data["sense"] == "minimize" and (stored.table("weights") == market.speedup).all()
        require(same and ranged, f"{stored.name} gives the least total of max-min")
        texts.append(
            f"with {reading}, envy is felt by {listed(pairs.values())}, and the total is {both(least)} ({stored.name})"
        )
    trace = counterexample("oef-eq3-envy-trading")
    ends = oef_example().utility(trace.table("allocation")).sum()
    require(trace.market == oef_example() and ends == traded, f"{trace.name} ends at a total of {traded}")
    printed = [sum(map(Fraction, text.split())) for text in (EFFICIENCY_3, EFFICIENCY_1)]
    words = (
        f"the printed efficiencies, products of rounded shares, add up to {float(printed[0])} and {float(printed[1])}"
    )
    if all(envies) and all(below):
        verdict = Ruling.REPRODUCED
    else:
        verdict = Ruling.QUALIFIED if any(e and b for e, b in zip(envies, below, strict=True)) else Ruling.REFUTED
    return Finding(
        verdict,
        f"{_sentence(texts)}, at the least in any optimum. Trading totals {both(traded)} ({trace.name}). So u3 "
        f"{'does envy' if all(envies) else 'does not always envy'} u2, but the total is "
        f"{'below' if any(below) else 'above'} trading's under {'a' if any(below) else 'each'} reading; {words}.",
    )


def eq3_lie() -> Finding:
    """Sec. 2.4: u1 reports 2.5 under max-min."""
    agree, texts, gains = [], [], []
    for reading, market in _readings().items():
        misreported = decide(MaxMin(), market.misreport("u1", [1, "2.5"]))
        least, most = gains_of_lie(MaxMin(), market, 0, [1, "2.5"])
        agree.append(all_print_as(misreported.shares[0], LIE_3) and only_optimum(MaxMin(), misreported))
        gains.append(least > 0)
        gain = f"gains {both(least)}" if least == most else f"gains between {both(least)} and {both(most)}"
        decimals = ", ".join(f"{float(share):.3f}" for share in misreported.shares[0])
        texts.append(f"with {reading}, u1 receives {rows(misreported.shares[:1])} = ({decimals}) and {gain}")
    if all(agree) and all(gains):
        verdict = Ruling.REPRODUCED
    else:
        verdict = Ruling.QUALIFIED if all(gains) and any(agree) else Ruling.REFUTED
    return Finding(verdict, f"{_sentence(texts)}, by its true speedups and whatever optimum is chosen.")


def eq3_pareto() -> Finding:
    """Sec. 2.4: u1 and u2 can trade under max-min."""
    bounded, free = _readings().values()
    gavel, unbounded = decide(MaxMin(), bounded), decide(MaxMin(), free)
    before = gavel.shares
    own = free.utility(before)
    printed, mended = (allocation_from(printed_table(text).tolist(), free) for text in (TRADE_3, TRADE_3_MENDED))
    # exactly: u1 gives half of what it has of the fast type for all that u2 has of the slow one
    exact = before.copy()
    exact[0] = [before[0, 0] + before[1, 0], before[0, 1] / 2]
    exact[1] = [0, before[1, 1] + before[0, 1] / 2]
    meant = max(abs(exact - mended).ravel()) <= Fraction(1, 200) and (free.utility(exact) >= own).all()
    usable = bounded.utility(exact)[0]  # what u1 can make of more than one GPU within the bound
    breaks_bound = usable < own[0] and holds(Feasibility(), free, exact)
    efficient = {
        "bounded": holds(ParetoEfficiency(), bounded, before),
        "free": holds(ParetoEfficiency(), free, unbounded.shares),
    }
    only = only_optimum(MaxMin(), gavel) and only_optimum(MaxMin(), unbounded)
    wasted = not holds(ParetoEfficiency(), free, before)
    if not (meant and breaks_bound and only and wasted):
        verdict = Ruling.REFUTED
    else:
        verdict = Ruling.QUALIFIED if any(efficient.values()) else Ruling.REPRODUCED
    worth = free.utility(printed)[1]
    # half of u1's fast share, as printed for u1 itself, on top of what Eq. (3) prints for u2
    eq3_printed, trade = printed_table(EQUATION_3), printed_table(TRADE_3)
    intended = eq3_printed[1, 1] + eq3_printed[0, 1] - trade[0, 1]
    misprint = intended == 10 * trade[1, 1] == printed_table(TRADE_3_MENDED)[1, 1] and worth < own[1]
    wrong, right = (text.replace(";", " ").split()[3] for text in (TRADE_3, TRADE_3_MENDED))
    slip = (
        f"{wrong} is a misprint for {right}, which the printed shares of both add up to" if misprint else "a misprint"
    )
    return Finding(
        verdict,
        f"As printed u2 would end at {both(worth)} instead of {both(own[1])}: {slip}. The trade that is meant, "
        f"{rows(exact[:2])} for u1 and u2, leaves u1 at {both(free.utility(exact)[0])} and lifts u2 to "
        f"{both(free.utility(exact)[1])}, but u1 then holds {exact[0].sum()} GPUs, beyond the bound of 1 without "
        f"which Eq. (3) is not max-min at all. Where the bound is Gavel's own and u1 could use more, Eq. (3) is "
        f"{_not(not wasted)}Pareto-efficient, as claimed; where it is the users' (u1 would fall to {both(usable)}), "
        f"Eq. (3) is {_not(efficient['bounded'])}Pareto-efficient; where there is none, max-min is another allocation, "
        f"which is {_not(efficient['free'])}Pareto-efficient. Both allocations are the only optima.",
    )


# -- shared ------------------------------------------------------------------------------------------------------
def _as_printed(market: Market, shares: Array, table: str, efficiencies: str, opening: str) -> Finding:
    """Compare shares and throughputs with what is printed, and say which digits come from rounded shares."""
    own = market.utility(shares)
    from_rounded = market.utility(printed_table(table))
    text = f"{opening} {rows(shares)}, worth {listed(both(value) for value in own)}."
    if not all_print_as(shares, table):
        return Finding(Ruling.REFUTED, f"{text} These are not the printed shares {table}.")
    if all_print_as(own, efficiencies):
        return Finding(Ruling.REPRODUCED, f"{text} All print as in the paper.")
    verdict = Ruling.QUALIFIED if all_print_as(from_rounded, efficiencies) else Ruling.REFUTED
    products = "which are what the rounded shares give" if verdict is Ruling.QUALIFIED else "which nothing explains"
    return Finding(
        verdict, f"{text} The shares print as in the paper; it prints {misprints(own, efficiencies)}, {products}."
    )


def _envious(market: Market, shares: Array) -> dict[str, str]:
    """Return who envies whom, "u3 of u2", with what each has and what it would have."""
    verdict = checked(EnvyFreeness(), market, shares)
    own, values = market.utility(shares), market.values(shares)
    pairs = {
        f"{market.users[i]} of {market.users[j]}": f"{market.users[i]} of {market.users[j]} "
        f"({both(own[i])} of its own, {both(values[i, j])} with the other's)"
        for i, j in np.argwhere(values > own[:, None])
    }
    if (verdict.answer is Answer.FAILS) != bool(pairs):
        raise NoLongerFollows("the checker and the bare definition of envy disagree")
    return pairs


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return text[0].upper() + text[1:]


def _not(value: bool) -> str:
    return "" if value else "not "
