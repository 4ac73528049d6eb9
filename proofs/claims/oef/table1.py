"""OEF Table 1: which properties each policy guarantees, cell by cell; the two modes of OEF are rows of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.datasets import oef_eq6
from fairopt.models import CooperativeOEF, MaxEfficiency, MaxMin, NonCooperativeOEF, SecondPriceTrading
from fairopt.policy import Formulated
from fairopt.problem import Market
from fairopt.proofs.claims.oef.theorems import no_optimum_has
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.citing import Stored, counterexample, theorem
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.measuring import decide, extent, gains_of_lie
from fairopt.proofs.ledger.proving import SharingIncentiveEfficiency
from fairopt.proofs.ledger.wording import listed, rows, speedups
from fairopt.properties import Answer, EnvyFreeness, ParetoEfficiency, SharingIncentive
from fairopt.properties.property import AllocationProperty

MAX_MIN, TRADING, COOPERATIVE, NONCOOPERATIVE = MaxMin(), SecondPriceTrading(), CooperativeOEF(), NonCooperativeOEF()
#: The table as printed: Pareto-efficiency, envy-freeness, sharing incentive, strategy-proofness, optimal efficiency.
COLUMNS = ("PE", "EF", "SI", "SP", "optimal efficiency")
PRINTED = {
    "Gavel": (False, False, True, False, False),
    "Gandiva_fair": (True, False, True, False, False),
    "OEF": (True, True, True, True, True),
}


#: Readings of the one row that the table gives OEF, which has two modes: which of the modes must keep a property.
#: Sec. 3.2 gives them different ones, and Pareto efficiency to both.
EACH = "each mode keeps every tick"
SECTION_3_2 = "each mode keeps the ticks that Sec. 3.2 gives it"
SOME = "each tick is kept by some mode"
COOPERATIVE_ROW, NONCOOPERATIVE_ROW = "OEF, cooperative", "OEF, non-cooperative"
MODES = {COOPERATIVE_ROW: COOPERATIVE, NONCOOPERATIVE_ROW: NONCOOPERATIVE}
#: Readings of "optimal efficiency", the last column: Sec. 2.3.2 takes "various fairness considerations into account",
#: Eq. (4) takes none.
WITH_FAIRNESS = "optimal with the fairness that a mode promises, as in Sec. 2.3.2"
OF_ALL = "optimal among all allocations, as in Eq. (4)"
GIVEN = {
    "PE": (COOPERATIVE_ROW, NONCOOPERATIVE_ROW),
    "EF": (COOPERATIVE_ROW,),
    "SI": (COOPERATIVE_ROW,),
    "SP": (NONCOOPERATIVE_ROW,),
    "optimal efficiency": (COOPERATIVE_ROW, NONCOOPERATIVE_ROW),
}


@dataclass(frozen=True)
class TableCell:
    """A cell: whether the policy guarantees the property, and why.

    ``when`` is the condition of a yes, or the condition under which what is no in general is yes.
    """

    guaranteed: bool
    why: str
    when: str = ""

    def __str__(self) -> str:
        if self.guaranteed:
            return f"yes{f', {self.when},' if self.when else ''} ({self.why})"
        return f"no{f' in general, but yes {self.when},' if self.when else ''} ({self.why})"

    def as_printed(self, printed: bool) -> bool:
        """Whether the cell is as printed, in general or under a condition."""
        return self.guaranteed is printed


@dataclass(frozen=True)
class Reading:
    """What comes of a reading of the table: which cells are otherwise than printed, which so under a condition only."""

    name: str
    wrong: tuple[str, ...]
    conditional: tuple[str, ...]

    def __str__(self) -> str:
        count = "1 cell is" if len(self.wrong) == 1 else f"{len(self.wrong)} cells are"
        text = f"{self.name}: {count} otherwise than printed"
        return f"{text} ({', '.join(self.wrong)})" if self.wrong else text


def table_1() -> Finding:
    """Table 1 against what is proved and refuted."""
    table = {
        "Gavel": tuple(_gavel()),
        "Gandiva_fair": tuple(_gandiva()),
        COOPERATIVE_ROW: tuple(_cooperative()),
        NONCOOPERATIVE_ROW: tuple(_noncooperative()),
    }
    lines = [
        f"{name}: " + "; ".join(f"{c} {cell}" for c, cell in zip(COLUMNS, cells, strict=True)) + "."
        for name, cells in table.items()
    ]
    alone = table | {name: (*table[name][:-1], _less_than_eq_4(mode)) for name, mode in MODES.items()}
    readings = [
        _read(name, f"{name}, {optimal}", cells)
        for optimal, cells in ((WITH_FAIRNESS, table), (OF_ALL, alone))
        for name in (EACH, SECTION_3_2, SOME)
    ]
    neither = listed(f"{name} {alone[name][-1].why}" for name in MODES)
    modes = [name for name, cells in table.items() if name.startswith("OEF") and all(c.guaranteed for c in cells)]
    conditional = list(dict.fromkeys(cell for reading in readings for cell in reading.conditional))
    return Finding(
        verdict_of(readings),
        f"The table has one row for OEF's two modes, and 'optimal' has two meanings; so it may be read in "
        f"{len(readings)} ways. "
        f"{'. '.join(map(_capital, readings))}. As printed under a condition only: {', '.join(conditional)}. "
        f"{listed(modes) if modes else 'No mode of OEF'} has all five properties; by Theorem 3.2 no rule could. "
        f"{' '.join(lines)} Among all allocations neither mode is optimal: "
        f"{neither}. Every no is for every optimum, but for PE of Gavel, where the optimum shown is one of "
        "several; with Gavel's own bound on shares the only optimum of Eq. (3) lacks PE (oef-eq3-pareto). Yes and no "
        "are about all markets without demands.",
    )


def verdict_of(readings: Sequence[Reading]) -> Ruling:
    """Return the verdict: true under every reading, under none, or under some of them or under conditions."""
    wrong = [bool(reading.wrong) for reading in readings]
    if all(wrong):
        return Ruling.REFUTED
    return Ruling.QUALIFIED if any(wrong) or any(each.conditional for each in readings) else Ruling.REPRODUCED


def _read(reading: str, said: str, table: Mapping[str, Sequence[TableCell]]) -> Reading:
    """Return what of the table is otherwise than printed under a reading of OEF's row, which is called ``said``."""
    wrong, conditional = [], []
    for at, column in enumerate(COLUMNS):
        for name in ("Gavel", "Gandiva_fair", *_modes_asked(reading, column, table)):
            cell, printed = table[name][at], PRINTED[name.partition(",")[0]][at]
            if not cell.as_printed(printed):
                wrong.append(f"{column} of {name}")
            elif cell.when:
                conditional.append(f"{column} of {name}")
    return Reading(said, tuple(wrong), tuple(conditional))


def _modes_asked(reading: str, column: str, table: Mapping[str, Sequence[TableCell]]) -> tuple[str, ...]:
    """Return which modes must keep a property: where one is enough, the one that keeps it best."""
    modes = (COOPERATIVE_ROW, NONCOOPERATIVE_ROW)
    if reading == EACH:
        return modes
    if reading == SECTION_3_2:
        return GIVEN[column]
    cells = {mode: table[mode][COLUMNS.index(column)] for mode in modes}
    return (max(modes, key=lambda mode: (cells[mode].guaranteed, not cells[mode].when)),)


def _capital(reading: Reading) -> str:
    text = str(reading)
    return text[0].upper() + text[1:]


def _gavel() -> Iterator[TableCell]:
    dominated, optimal = (counterexample(f"oef-table1-max-min-zeros{end}") for end in ("", "-optimal"))
    same = (dominated.table("allocation") == optimal.table("allocation")).all()
    require(same and optimal.market == dominated.market, f"{dominated.name} speaks of {optimal.name}")
    require(optimal.policy == MAX_MIN.name, f"{optimal.name} is an optimum of {MAX_MIN.name}")
    efficient = theorem("EqualEfficiency", "gavel_pareto_efficient")
    yield TableCell(
        False,
        f"{efficient}; on {speedups(dominated.market)}, {rows(dominated.table('allocation'))} is optimal and leaves "
        "GPUs idle, oef-table1-max-min-zeros",
        "where all run on the same types and no shares are bounded",
    )
    envy = _fails(MAX_MIN, EnvyFreeness(), counterexample("oef-table1-max-min-envy"))
    two = theorem("EqualEfficiency", "gavel_two_users_envy_free")
    yield TableCell(False, f"{envy.why}; of two users who run on all types nobody envies, {two}")
    yield TableCell(True, theorem("SharingIncentive", "gavel_sharing_incentive"))
    yield _rewards(MAX_MIN, counterexample("oef-table1-max-min-lie"))
    yield _less_than_possible(MAX_MIN, counterexample("oef-table1-max-min-envy").market)


def _gandiva() -> Iterator[TableCell]:
    for asked, name in ((ParetoEfficiency(), "dominated"), (EnvyFreeness(), "envy")):
        trace, stored = (counterexample(f"oef-table1-trading-{name}{end}") for end in ("-trace", ""))
        same = trace.market == stored.market and (trace.table("allocation") == stored.table("allocation")).all()
        shares = decide(TRADING, stored.market).shares
        require(same and (shares == stored.table("allocation")).all(), f"trading ends as in {trace.name}")
        require(asked.check(stored.market, shares).answer is Answer.FAILS, f"{stored.name} is a counterexample")
        yield TableCell(False, f"{speedups(stored.market)}: {stored.said}, {stored.name}")
    yield TableCell(True, theorem("Trading", "trading_sharing_incentive"))
    yield _rewards(TRADING, counterexample("gandiva-sp-larger"))
    better = counterexample("gandiva-max-better")
    market, shares = better.market, better.table("allocation")
    totals = [decide(TRADING, market).utilities.sum(), market.utility(shares).sum()]
    require(totals[0] < totals[1], f"{better.name} has a larger total than trading")
    yield TableCell(
        False, f"{speedups(market)}: {totals[0]}, and {totals[1]} with fair shares kept, gandiva-max-better"
    )


def _cooperative() -> Iterator[TableCell]:
    stored = counterexample("oef-thm5.3-cooperative")
    yield _fails(COOPERATIVE, ParetoEfficiency(), stored)
    proof = theorem("SharingIncentive", "cooperative_oef_sharing_incentive")
    yield TableCell(True, proof)
    yield TableCell(True, proof)
    yield _rewards(COOPERATIVE, counterexample("oef-thm3.2"))
    yield TableCell(True, f"the largest total without envy; {proof}")


def _noncooperative() -> Iterator[TableCell]:
    zeros = counterexample("oef-thm5.3-noncooperative-zeros")
    require(no_optimum_has(ParetoEfficiency(), NONCOOPERATIVE, zeros.market), f"{zeros.name} is a counterexample")
    efficient = theorem("EqualEfficiency", "noncooperative_oef_pareto_efficient")
    yield TableCell(True, f"{efficient}; else {zeros.name}", "where all run on the same types")
    envy, share = (counterexample(f"oef-table1-noncooperative-{what}") for what in ("envy", "share"))
    yield _fails(NONCOOPERATIVE, EnvyFreeness(), envy)
    yield _fails(NONCOOPERATIVE, SharingIncentive(), share)
    smaller = counterexample("oef-thm5.4-smaller")
    _rewards(NONCOOPERATIVE, smaller)  # the other reading of the cell
    honest = theorem("EqualEfficiency", "noncooperative_oef_over_reporting")
    yield TableCell(True, f"{honest}; else {smaller.name}", "for reports nowhere smaller than the truth")
    level = theorem("EqualEfficiency", "noncooperative_oef_largest_level")
    yield TableCell(True, f"the largest total at equal throughput, Eq. (9); {level}")


def _fails(policy: Formulated, asked: AllocationProperty, stored: Stored) -> TableCell:
    """Return the cell of a property that no optimum has on the market of a stored certificate."""
    require(no_optimum_has(asked, policy, stored.market), f"no optimum has {asked.name} in {stored.name}")
    return TableCell(False, f"{speedups(stored.market)}, {stored.name}")


def _rewards(policy: Formulated | SecondPriceTrading, stored: Stored) -> TableCell:
    """Return the cell of strategy-proofness where a stored lie pays, whatever optima are chosen."""
    market, user = stored.market, stored.data["user"]
    report = stored.table("report")
    least, _ = gains_of_lie(policy, market, market.index(user), report.tolist())
    pays = stored.policy == policy.name and least == stored.number("gain") > 0
    require(pays, f"the lie of {stored.name} gains {stored.number('gain')} under {policy.name}")
    told = f"{user} reports {rows([report])} and gains {least}"
    return TableCell(False, f"{speedups(market)}: {told}, {stored.name}")


def _less_than_eq_4(mode: Formulated) -> TableCell:
    """Return the cell of optimal efficiency among all allocations: on a market of Eq. (6) Eq. (4) has more."""
    market = oef_eq6()
    most, best = (Fraction(decide(policy, market).objective) for policy in (mode, MaxEfficiency()))
    require(most < best, f"{mode.name} totals less than Eq. (4) on {speedups(market)}")
    return TableCell(False, f"totals {most} of {best} on {speedups(market)}")


def _less_than_possible(policy: Formulated, market: Market) -> TableCell:
    """Return the cell of optimal efficiency where every optimum's total is below one that is fairer."""
    decision = decide(policy, market)
    most = extent(policy, decision, market.speedup)[1]
    best: list[Fraction] = []
    for other in (COOPERATIVE, SharingIncentiveEfficiency()):
        best.append(Fraction(allocate(other, market, Exact()).utilities.sum()))
    require(most < min(best), f"{policy.name} totals less than it could on {speedups(market)}")
    what = f"{most}; without envy {best[0]}, with sharing incentive {best[1]}"
    return TableCell(False, f"{speedups(market)}: total {what}")
