"""Which properties imply which. Tests use the implications, and a reader sees what a failure rules out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fairopt.properties.verdict import Answer, Verdict


@dataclass(frozen=True)
class Implication:
    """An allocation with all the premises has the conclusion, on markets as assumed."""

    premises: frozenset[str]
    conclusion: str
    source: str
    without_demands: bool = False


IMPLICATIONS = (
    Implication(
        frozenset({"feasibility", "envy_freeness", "work_conservation"}),
        "sharing_incentive",
        "OEF Theorem 5.1: add up a user's envy constraints by weight",
        without_demands=True,
    ),
    Implication(
        frozenset({"pareto_efficiency"}), "work_conservation", "OEF footnote 2: a user that gets the idle GPU gains"
    ),
    Implication(frozenset({"guarantee_kept"}), "nobody_starves_while_lent", "who is owed nothing does not starve"),
)


def contradictions(verdicts: Mapping[str, Verdict], *, demands: bool) -> list[Implication]:
    """Return the implications that verdicts on one allocation break; if there are any, a checker is wrong."""
    return [
        implication
        for implication in IMPLICATIONS
        if not (demands and implication.without_demands)
        and implication.premises <= verdicts.keys()
        and implication.conclusion in verdicts
        and all(verdicts[name].answer is Answer.HOLDS for name in implication.premises)
        and verdicts[implication.conclusion].answer is Answer.FAILS
    ]
