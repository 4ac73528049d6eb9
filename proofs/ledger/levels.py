"""Printed numbers such as "7.1% of jobs", and what a study finds of them in each of its settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairopt.experiment.statistics import Estimate, mean_of
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import StudySetting
from fairopt.experiment.words import digits
from fairopt.proofs.ledger.cases import RatioCase, parts
from fairopt.proofs.ledger.entries import PrintedAndFound
from fairopt.proofs.ledger.studying import between, intervals, ratio

#: Measures by what tables call the reading.
Readings = Mapping[str, str]


@dataclass(frozen=True)
class FoundShare:
    """A number in one setting and reading; ``where`` as that of a `RatioCase`, ``estimate`` in percent."""

    where: Mapping[str, str]
    estimate: Estimate


@dataclass(frozen=True)
class PrintedShare:
    """A printed number, in percent, and the ``levels`` that were found."""

    said: str
    number: float
    levels: Sequence[FoundShare]

    @property
    def inside(self) -> list[FoundShare]:
        """The levels whose interval holds the printed number; without an interval, the level itself must be it."""
        return [each for each in self.levels if _reaches(each.estimate, self.number)]

    def line(self) -> PrintedAndFound:
        """Return the line of the table."""
        estimates, inside = [each.estimate for each in self.levels], self.inside
        where = f" ({parts(inside, self.levels)})" if 0 < len(inside) < len(self.levels) else ""
        holds = f"within the interval in {len(inside)} of {len(self.levels)}{where}"
        return PrintedAndFound(self.said, f"{between(estimates)}%", intervals(estimates), holds)


def _reaches(estimate: Estimate, number: float) -> bool:
    return estimate.low <= number <= estimate.high or digits(estimate.value) == digits(number)


def percentages(values: Mapping[int, float], resampled: bool) -> Estimate:
    """Return the mean of parts, by seed, in percent; an interval ends at 0 and 100."""
    found = mean_of([*values.values()], resampled)
    return Estimate(100 * found.value, max(100 * found.low, 0.0), min(100 * found.high, 100.0))


def levels(results: StudyResults, policies: Iterable[str], measures: Readings) -> Iterator[FoundShare]:
    """Yield a number of readings of a policy in each setting, where it is known."""
    for policy in policies:
        for setting in results.settings:
            for reading, measure in measures.items():
                if values := results.outcomes(policy, setting, measure):
                    found = percentages(values, setting.source.resampled)
                    yield FoundShare({**_where(results, setting), "policy": policy, "reading": reading}, found)


def cases(results: StudyResults, over: str, unders: Iterable[str], measures: Readings) -> Iterator[RatioCase]:
    """Yield how a policy's number compares with that of others, which are the paper's side, in each setting."""
    for under in unders:
        for setting in results.settings:
            for reading, measure in measures.items():
                found = ratio(results, setting, measure, over, under)
                if found is not None and found.ratio.value > 0:
                    yield RatioCase({**_where(results, setting), "policy": under, "reading": reading}, found)


def _where(results: StudyResults, setting: StudySetting) -> dict[str, str]:
    """Return what a setting is, part by part; the parts are the same for all studies of one generator."""
    names = {**setting.names, "load": f"load {setting.load:g}" if setting.load else ""}
    told = names.pop("error") or "lengths as they are"
    length = f"intervals of {results.spec.length:g} s"
    return {**{name: value for name, value in names.items() if value}, "length": length, "error": told}
