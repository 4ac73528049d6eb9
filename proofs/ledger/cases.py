"""Claims of the kind "three times better": in which cases of a study they hold, and the table's line that says so.

A case is judged by its own 95% interval, whatever the number of cases: the paper has the benefit of the doubt. So one
case in forty is ahead by chance where nobody is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from fairopt.experiment.statistics import Estimate, PairedResult, compare_drawn
from fairopt.experiment.studies.playing import Observed
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import StudySetting
from fairopt.proofs.ledger.entries import PrintedAndFound, Ruling
from fairopt.proofs.ledger.studying import between, intervals
from fairopt.proofs.ledger.wording import listed

#: A number of a run; None where it has none.
Outcome = Callable[[Observed], float | None]
#: So many values of a part are listed; of more it is said how many there are.
FEW = 4


@dataclass(frozen=True)
class RatioCase:
    """One comparison of a study. ``where``: what it is of, part by part, such as {"load": "2", "rival": "Gavel"}."""

    where: Mapping[str, str]
    result: PairedResult

    @property
    def ratio(self) -> Estimate:
        """By what factor the paper's side is ahead; below 1 it is behind."""
        return self.result.ratio


@dataclass(frozen=True)
class PrintedRatio:
    """What is printed, ``said``: a side is ahead by ``factor``, in some of the ``cases`` at least."""

    said: str
    factor: float
    cases: Sequence[RatioCase]

    @property
    def holding(self) -> list[RatioCase]:
        """The cases in which it is ahead, and the interval reaches the printed factor."""
        return [each for each in self.ahead if each.ratio.high >= self.factor]

    @property
    def ahead(self) -> list[RatioCase]:
        """The cases whose interval is above 1."""
        return [each for each in self.cases if each.ratio.low > 1]

    @property
    def behind(self) -> list[RatioCase]:
        """The cases whose interval is below 1."""
        return [each for each in self.cases if each.ratio.high < 1]

    def line(self) -> PrintedAndFound:
        """Return the line of the table."""
        values = [each.ratio for each in self.cases]
        holds = self.holding
        reached = f"as printed {len(holds)} ({parts(holds, self.cases)})" if holds else "as printed none"
        counts = f"of {len(self.cases)} cases {len(self.ahead)} ahead, {len(self.behind)} behind, {reached}"
        return PrintedAndFound(self.said, between(values), intervals(values), counts)


class Located(Protocol):
    """What stands somewhere in a study, as a `RatioCase` does."""

    @property
    def where(self) -> Mapping[str, str]:
        """What it is of, part by part."""


def parts(some: Sequence[Located], every: Sequence[Located]) -> str:
    """Return in which parts ``some`` cases lie, where that is not all of them: "load 2; rival Gavel"."""
    said = []
    for part in every[0].where:
        there = list(dict.fromkeys(each.where[part] for each in every))
        held = {each.where[part] for each in some}
        named = [value for value in there if value in held]
        if len(named) < len(there):
            said.append(listed(named) if len(named) <= FEW else f"{len(named)} of {len(there)} of the kind {part}")
    return "; ".join(said) or "in every part"


def ruling(claims: Sequence[PrintedRatio]) -> Ruling:
    """Return the verdict: refuted if no claim holds in any case, reproduced if all hold in all, else qualified."""
    if not any(claim.holding for claim in claims):
        return Ruling.REFUTED
    whole = all(len(claim.holding) == len(claim.cases) for claim in claims)
    return Ruling.REPRODUCED if whole else Ruling.QUALIFIED


def outcomes(results: StudyResults, policy: str, setting: StudySetting, of: Outcome) -> dict[int, float]:
    """Return a number of the runs of a policy in a setting, by seed, where it is known."""
    found = {each.seed: of(each.observed) for each in results.played(policy, setting) if each.observed}
    return {seed: value for seed, value in found.items() if value is not None}


def ratio_of(over: Mapping[int, float], under: Mapping[int, float]) -> PairedResult | None:
    """Return how outcomes by seed compare, in pairs; None where they have no ratio."""
    seeds = [seed for seed in over if seed in under]
    if not seeds:
        return None
    found = compare_drawn([over[seed] for seed in seeds], [under[seed] for seed in seeds])
    return found if found.ratio.value > 0 else None


def readings(results: StudyResults, name: str) -> list[str]:
    """Return the labels of policies that are readings of one, whose first word is its name; or that one label."""
    return [each for each in results.policies if each == name or each.partition(",")[0].split()[0] == name]


def held_alike(
    claims: Sequence[PrintedRatio], alike: Sequence[str]
) -> Iterator[tuple[dict[str, str], list[PrintedRatio]]]:
    """Yield the claims that hold together, for each combination of the parts named ``alike``."""
    every = {tuple(case.where[part] for part in alike) for claim in claims for case in claim.cases}
    for values in sorted(every):
        wanted = dict(zip(alike, values, strict=True))
        fits = [
            claim
            for claim in claims
            if any(all(case.where[part] == value for part, value in wanted.items()) for case in claim.holding)
        ]
        yield wanted, fits
