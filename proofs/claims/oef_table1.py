"""OEF Table 1: which properties each policy guarantees, cell by cell; the two modes of OEF are rows of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from fairopt.backends.exact import Exact
from fairopt.ledger import Finding, Ruling
from fairopt.models import CooperativeOEF, MaxMin, NonCooperativeOEF, SecondPriceTrading
from fairopt.policy import Formulated, allocate
from fairopt.problem import Market
from fairopt.proofs.claims.citing import Stored, counterexample, rows, speedups, theorem
from fairopt.proofs.claims.measuring import decide, extent, gains_of_lie
from fairopt.proofs.claims.oef_theorems import no_optimum_has
from fairopt.proofs.claims.proving import SharingIncentiveEfficiency
from fairopt.properties import Answer, EnvyFreeness, ParetoEfficiency, SharingIncentive
from fairopt.properties.verdict import Property

MAX_MIN, TRADING, COOPERATIVE, NONCOOPERATIVE = MaxMin(), SecondPriceTrading(), CooperativeOEF(), NonCooperativeOEF()
#: The table as printed: Pareto-efficiency, envy-freeness, sharing incentive, strategy-proofness, optimal efficiency.
COLUMNS = ("PE", "EF", "SI", "SP", "optimal efficiency")
PRINTED = {
    "Gavel": (False, False, True, False, False),
    "Gandiva_fair": (True, False, True, False, False),
    "OEF": (True, True, True, True, True),
}


@dataclass(frozen=True)
class Cell:
    """A cell: whether the policy guarantees the property, and why. ``when`` qualifies a yes; without it none does."""

    guaranteed: bool
    why: str
    when: str = ""

    def __str__(self) -> str:
        answer = "yes" if self.guaranteed else "no"
        return f"{answer}{f', {self.when},' if self.when else ''} ({self.why})"


def table_1() -> Finding:
    """Table 1 against what is proved and refuted."""
    table = {
        "Gavel": tuple(_gavel()),
        "Gandiva_fair": tuple(_gandiva()),
        "OEF, cooperative": tuple(_cooperative()),
        "OEF, non-cooperative": tuple(_noncooperative()),
    }
    lines, wrong, only_then = [], [], []
    for name, cells in table.items():
        lines.append(f"{name}: " + "; ".join(f"{c} {cell}" for c, cell in zip(COLUMNS, cells, strict=True)) + ".")
        for column, cell, printed in zip(COLUMNS, cells, PRINTED[name.partition(",")[0]], strict=True):
            if cell.guaranteed != printed:
                wrong.append(f"{column} of {name}")
            elif cell.when:
                only_then.append(f"{column} of {name}")
    modes = [name for name, cells in table.items() if name.startswith("OEF") and all(c.guaranteed for c in cells)]
    return Finding(
        Ruling.REFUTED if wrong and not modes else Ruling.REPRODUCED,
        f"{len(wrong)} of {sum(map(len, table.values()))} cells are otherwise than printed: {', '.join(wrong)}. As "
        f"printed under a condition only: {', '.join(only_then)}. No mode of OEF has all five properties; by Theorem "
        f"3.2 no rule could. {' '.join(lines)} Every no is for every optimum. The printed no for Gavel's PE rests on "
        "Eq. (3), whose shares are bounded (oef-eq3-pareto). Yes and no are about all markets without demands.",
    )


def _gavel() -> Iterator[Cell]:
    dominated, optimal = (counterexample(f"oef-table1-max-min-zeros{end}") for end in ("", "-optimal"))
    assert (dominated.table("allocation") == optimal.table("allocation")).all()
    assert (optimal.policy, optimal.market) == (MAX_MIN.name, dominated.market)
    efficient = theorem("EqualEfficiency", "max_min_pareto_efficient")
    yield Cell(
        True,
        f"{efficient}; on {speedups(dominated.market)}, {rows(dominated.table('allocation'))} is optimal and leaves "
        "GPUs idle, oef-table1-max-min-zeros",
        "where all run on the same types and no shares are bounded",
    )
    yield _fails(MAX_MIN, EnvyFreeness(), counterexample("oef-table1-max-min-envy"))
    yield Cell(True, theorem("SharingIncentive", "gavel_sharing_incentive"))
    yield _rewards(MAX_MIN, counterexample("oef-table1-max-min-lie"))
    yield _less_than_possible(MAX_MIN, counterexample("oef-table1-max-min-envy").market)


def _gandiva() -> Iterator[Cell]:
    for asked, name in ((ParetoEfficiency(), "dominated"), (EnvyFreeness(), "envy")):
        trace, stored = (counterexample(f"oef-table1-trading-{name}{end}") for end in ("-trace", ""))
        assert trace.market == stored.market
        assert (trace.table("allocation") == stored.table("allocation")).all()
        shares = decide(TRADING, stored.market).shares
        assert asked.check(stored.market, shares).answer is Answer.FAILS
        yield Cell(False, f"{speedups(stored.market)}: {stored.statement}, {stored.name}")
    yield Cell(True, theorem("Trading", "trading_sharing_incentive"))
    yield _rewards(TRADING, counterexample("gandiva-sp-larger"))
    better = counterexample("gandiva-max-better")
    market, shares = better.market, better.table("allocation")
    totals = [decide(TRADING, market).utilities.sum(), market.utility(shares).sum()]
    assert totals[0] < totals[1]
    yield Cell(False, f"{speedups(market)}: {totals[0]}, and {totals[1]} with fair shares kept, gandiva-max-better")


def _cooperative() -> Iterator[Cell]:
    stored = counterexample("oef-thm5.3-cooperative")
    yield _fails(COOPERATIVE, ParetoEfficiency(), stored)
    proof = theorem("SharingIncentive", "cooperative_oef_sharing_incentive")
    yield Cell(True, proof)
    yield Cell(True, proof)
    yield _rewards(COOPERATIVE, counterexample("oef-thm3.2"))
    yield Cell(True, proof, "among envy-free allocations")


def _noncooperative() -> Iterator[Cell]:
    zeros = counterexample("oef-thm5.3-noncooperative-zeros")
    assert no_optimum_has(ParetoEfficiency(), NONCOOPERATIVE, zeros.market)
    efficient = theorem("EqualEfficiency", "noncooperative_oef_pareto_efficient")
    yield Cell(True, f"{efficient}; else {zeros.name}", "where all run on the same types")
    envy, share = (counterexample(f"oef-table1-noncooperative-{what}") for what in ("envy", "share"))
    yield _fails(NONCOOPERATIVE, EnvyFreeness(), envy)
    yield _fails(NONCOOPERATIVE, SharingIncentive(), share)
    smaller = counterexample("oef-thm5.4-smaller")
    _rewards(NONCOOPERATIVE, smaller)  # the other reading of the cell
    honest = theorem("EqualEfficiency", "noncooperative_oef_over_reporting")
    yield Cell(True, f"{honest}; else {smaller.name}", "for reports nowhere smaller than the truth")
    yield _less_than_possible(NONCOOPERATIVE, envy.market)


def _fails(policy: Formulated, asked: Property, stored: Stored) -> Cell:
    """Return the cell of a property that no optimum has on the market of a stored certificate."""
    assert no_optimum_has(asked, policy, stored.market), stored.name
    return Cell(False, f"{speedups(stored.market)}, {stored.name}")


def _rewards(policy: Formulated | SecondPriceTrading, stored: Stored) -> Cell:
    """Return the cell of strategy-proofness where a stored lie pays, whatever optima are chosen."""
    market, user = stored.market, stored.data["user"]
    report = stored.table("report")
    least, _ = gains_of_lie(policy, market, market.index(user), report.tolist())
    assert stored.policy == policy.name
    assert least == stored.number("gain") > 0
    told = f"{user} reports {rows([report])} and gains {least}"
    return Cell(False, f"{speedups(market)}: {told}, {stored.name}")


def _less_than_possible(policy: Formulated, market: Market) -> Cell:
    """Return the cell of optimal efficiency where every optimum's total is below one that is fairer."""
    decision = decide(policy, market)
    most = extent(policy, decision, market.speedup)[1]
    best: list[Fraction] = []
    for other in (COOPERATIVE, SharingIncentiveEfficiency()):
        best.append(Fraction(allocate(other, market, Exact()).utilities.sum()))
    assert most < min(best)
    what = f"{most}; without envy {best[0]}, with sharing incentive {best[1]}"
    return Cell(False, f"{speedups(market)}: total {what}")
