"""Counterexamples as certificates in ``proofs/counterexamples``: ``python -m fairopt.proofs.claims.counterexamples``.

Each is the first of its candidates, in order of size (`searching`), for which the certificates can be made. The command
searches again, all of them or those named, and writes the files. ``proofs/verify.py`` decides what they prove.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

from fairopt.certificates import Certificate
from fairopt.datasets import oef_example
from fairopt.errors import BadInput
from fairopt.models import CooperativeOEF, MaxMin, NonCooperativeOEF, SecondPriceTrading
from fairopt.problem import Market
from fairopt.proofs.findings.frontier.three_properties import NEAR, UNITS, best_and_most, two_thirds
from fairopt.proofs.findings.truthful import chains
from fairopt.proofs.findings.truthful.design import Design
from fairopt.proofs.ledger import proving
from fairopt.proofs.ledger.checking import proved
from fairopt.proofs.ledger.citing import COUNTEREXAMPLES
from fairopt.proofs.ledger.measuring import with_demand
from fairopt.proofs.ledger.searching import (
    Domain,
    FalseReport,
    false_reports,
    in_order_of_ratios,
    least_ratios_first,
    least_speedups_first,
)

COOPERATIVE, NONCOOPERATIVE, MAX_MIN, TRADING = CooperativeOEF(), NonCooperativeOEF(), MaxMin(), SecondPriceTrading()
#: What OEF assumes of speedups (Sec. 2.3): 1 on the slowest type, larger on each faster one.
AsInOEF = partial(Domain, normalised=True, rising=True)
SMALL = AsInOEF(((2, 2), (2, 3), (3, 2), (3, 3)), 6)
#: Speedups in any units, as the theorems of Sec. 4.4 and 5 are stated, on as few types as there can be.
TWO_TYPES = Domain(((2, 2), (3, 2)), 6)
LIES = AsInOEF(((2, 2),), 6)

#: The certificates that refute something, by what each is about; "" where there is one.
Certificates = Mapping[str, Certificate]


@dataclass(frozen=True)
class Wanted:
    """A counterexample: the first of the candidates, in order, for which the certificates can be made."""

    name: str
    candidates: Callable[[], Iterable[Any]]
    certified: Callable[[Any], Certificates | None]

    def search(self) -> dict[str, Certificate]:
        """Return the certificates by the names of their files. Errors: `BadInput` where no candidate refutes."""
        for candidate in self.candidates():
            found = self.certified(candidate)
            if found is not None:
                return {"-".join(part for part in (self.name, what) if part): each for what, each in found.items()}
        raise BadInput("no candidate is a counterexample", place=self.name, remedy="Widen the domain")


def _lies_of_the_fastest() -> Iterator[FalseReport]:
    """Yield what the user that gains most by the fast type may say too little, where another's bid sets its price."""
    for each in false_reports(AsInOEF(((3, 2),), 6), "smaller"):
        fast = each.market.speedup[:, 1].tolist()
        if each.user == 2 and len(set(fast)) == 3:
            yield each


WANTED = (
    Wanted("oef-thm5.3-cooperative", SMALL.markets, proving.dominated(COOPERATIVE)),
    Wanted("oef-thm5.3-cooperative-two-types", TWO_TYPES.markets, proving.dominated(COOPERATIVE)),
    Wanted(
        "oef-thm5.3-cooperative-two-types-zero",
        lambda: [Market.of([[0, 1], [1, 3], [1, 4]], [1, 1])],
        proving.dominated(COOPERATIVE),
    ),
    Wanted(
        "oef-thm5.3-noncooperative-zeros",
        Domain(((2, 2),), 3, capacities=2, normalised=True, zeros=True).markets,
        proving.dominated(NONCOOPERATIVE),
    ),
    Wanted("oef-thm5.2-cooperative", SMALL.markets, proving.with_gap(COOPERATIVE)),
    Wanted(
        "oef-thm5.2-cooperative-ordered",
        AsInOEF(((2, 3), (3, 3)), 13, in_order_of_ratios, capacities=1).markets,
        proving.with_gap(COOPERATIVE),
    ),
    Wanted("oef-thm5.2-noncooperative", SMALL.markets, proving.with_gap(NONCOOPERATIVE)),
    Wanted("oef-thm5.4-smaller", lambda: false_reports(LIES, "smaller"), proving.rewarded(NONCOOPERATIVE)),
    Wanted("oef-thm3.2", lambda: false_reports(LIES, "larger"), proving.rewarded(COOPERATIVE)),
    Wanted("oef-thm3.3", lambda: false_reports(LIES, "larger"), proving.rewarded_above_fair_shares),
    Wanted(
        "oef-lemma3.1-cooperative",
        AsInOEF(SMALL.shapes, 6, least_speedups_first).markets,
        proving.not_from_the_left(COOPERATIVE),
    ),
    Wanted(
        "oef-lemma3.1-cooperative-ratios",
        Domain(((2, 2), (3, 2)), 6, least_ratios_first).markets,
        proving.not_from_the_left(COOPERATIVE),
    ),
    Wanted(
        "oef-lemma3.1-cooperative-ratios-normalised",
        lambda: [Market.of([[1, 2, 5], [1, 9, 23], [1, 3, 11]], [3, 2, 1])],
        proving.not_from_the_left(COOPERATIVE),
    ),
    Wanted("oef-nonzeros-cooperative", TWO_TYPES.markets, proving.many_nonzeros(COOPERATIVE)),
    Wanted(
        "oef-nonzeros-cooperative-normalised",
        AsInOEF(((2, 2), (3, 2)), 6, capacities=1).markets,
        proving.an_extreme_point_with_many_nonzeros(COOPERATIVE),
    ),
    Wanted("oef-eq3-envy", lambda: [oef_example()], proving.larger_total_than_trading(MAX_MIN)),
    Wanted("oef-eq3-envy-bounded", lambda: [with_demand(oef_example(), 1)], proving.larger_total_than_trading(MAX_MIN)),
    Wanted("oef-table1-max-min-envy", SMALL.markets, proving.envious(MAX_MIN)),
    Wanted("oef-table1-max-min-lie", lambda: false_reports(LIES, "larger"), proving.rewarded(MAX_MIN)),
    Wanted(
        "oef-table1-max-min-zeros",
        Domain(((2, 2), (2, 3), (3, 2)), 2, zeros=True).markets,
        proving.sometimes_dominated(MAX_MIN),
    ),
    Wanted("oef-table1-noncooperative-envy", SMALL.markets, proving.envious(NONCOOPERATIVE)),
    Wanted("oef-table1-noncooperative-share", SMALL.markets, proving.below_fair_share(NONCOOPERATIVE)),
    Wanted("oef-table1-trading-envy", SMALL.markets, proving.envious_after_trading),
    Wanted("oef-table1-trading-dominated", SMALL.markets, proving.dominated_after_trading),
    Wanted("gandiva-sp-larger", lambda: false_reports(LIES, "larger"), proving.rewarded(TRADING)),
    Wanted("gandiva-sp-smaller", lambda: false_reports(LIES, "smaller"), proving.rewarded(TRADING)),
    Wanted("gandiva-sp-winner", _lies_of_the_fastest, proving.rewarded(TRADING)),
    Wanted("gandiva-max", SMALL.markets, proving.larger_total_above_fair_shares),
    Wanted("own-three-worst", lambda: [two_thirds(UNITS, NEAR)], best_and_most),
    Wanted("own-truthful-efficient-2x2", lambda: [chains.TWO_USERS], chains.case_by_case),
    Wanted("own-truthful-efficient-3x2", lambda: [chains.THREE_USERS], chains.case_by_case),
    Wanted("own-truthful-proportional-2x2", lambda: [chains.UNFAIR], chains.largest_level(Design.proportionally_fair)),
    Wanted("own-truthful-total-2x2", lambda: [chains.SMALL_TOTAL], chains.largest_level(Design.large_total)),
)


def main(arguments: list[str] | None = None) -> int:
    """Search the counterexamples that the command line names, or all, and write their certificates; return 0."""
    parser = ArgumentParser(prog="python -m fairopt.proofs.claims.counterexamples")
    parser.add_argument("name", nargs="*", help="counterexamples to search again; all by default")
    names = parser.parse_args(arguments).name
    for unknown in set(names) - {wanted.name for wanted in WANTED}:
        raise BadInput(f"there is no counterexample {unknown!r}", remedy="Take a name from WANTED")
    for wanted in WANTED:
        if names and wanted.name not in names:
            continue
        begun = perf_counter()
        for name, certificate in wanted.search().items():
            print(f"{name}: {proved(certificate)} ({perf_counter() - begun:.1f} s)", flush=True)
            certificate.write(COUNTEREXAMPLES / f"{name}.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
