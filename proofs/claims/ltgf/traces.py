"""ASTRAEA's Table 1 and Sec. 3.1: how long jobs ran in Philly and Venus, and on how many GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from fairopt.datasets.tables import records
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.proofs.ledger.wording import listed, percent, prints_as

HOUR, DAY = 3600, 86_400
#: Table 1 as printed: jobs that ran for less than 10 minutes, an hour, 6 hours, a day and 6 days, in percent.
LIMITS = {"10 min": 600, "1 h": HOUR, "6 h": 6 * HOUR, "1 day": DAY, "6 days": 6 * DAY}
TABLE_1 = {"philly": "40.8 71.6 88.5 94.1 98.5", "venus": "67.3 83.3 90.6 96.2 99.6"}
PAPER_JOBS = 109_734


class JobCount(NamedTuple):
    """Jobs of a trace that are alike: their GPUs, their end, and run times from ``at_least_s`` to below ``below_s``.

    ``below_s`` None means no limit; ``status`` "" means not known. ``clipped`` is the number of ``jobs`` whose run
    times the source cut off at 48 hours. ``gpu_seconds`` is the sum of GPUs times run time.
    """

    trace: str
    gpus: int
    status: str
    at_least_s: int
    below_s: int | None
    jobs: int
    clipped: int
    gpu_seconds: int


def job_counts(trace: str) -> tuple[JobCount, ...]:
    """Return the counts of a trace, "philly" or "venus"; () for another.

    Source: Jeon et al., USENIX ATC 2019 (Philly); Hu et al., SC 2021 (Venus).
    """
    rows = [row for row in records("philly_venus_distributions.csv") if row["trace"] == trace]
    texts = ("trace", "status")
    numbers = [{name: int(text) if text else None for name, text in row.items() if name not in texts} for row in rows]
    return tuple(JobCount(trace, status=row["status"], **each) for row, each in zip(rows, numbers, strict=True))  # type: ignore[arg-type]


def jobs_in(counts: Iterable[JobCount]) -> int:
    """Return the total number of jobs of some counts."""
    return sum(count.jobs for count in counts)


@dataclass(frozen=True)
class Printed:
    """A printed percentage, and what the public table gives: between two ends where run times were clipped."""

    what: str
    printed: str
    low: Fraction
    high: Fraction

    @property
    def agrees(self) -> bool:
        """Whether it is the printed one, to its digits."""
        return self.low == self.high and prints_as(100 * self.low, self.printed)

    @property
    def off(self) -> Fraction:
        """By how many percentage points it is off, at least."""
        printed = Fraction(self.printed)
        return max(100 * self.low - printed, printed - 100 * self.high, Fraction(0))

    def __str__(self) -> str:
        found = percent(self.low) if self.low == self.high else f"{percent(self.low)} to {percent(self.high)}"
        return f"{self.what} {found} ({self.printed}%)"


def distributions() -> Finding:
    """Table 1 and Sec. 3.1, from the jobs that are public."""
    philly, venus = job_counts("philly"), job_counts("venus")
    table = [*_below("Philly", philly, TABLE_1["philly"]), *_below("Venus", venus, TABLE_1["venus"])]
    text = [*_sizes(venus), *_ends(venus)]
    numbers = table + text
    agree = [number for number in numbers if number.agrees]
    worst = max(numbers, key=lambda number: number.off)
    within = max(number.off for number in table)
    every = len(agree) == len(numbers)
    return Finding(
        Ruling.REPRODUCED if every else Ruling.NOT_DECIDABLE_HERE,
        f"Which jobs the paper counted it does not say: {PAPER_JOBS} of Venus, where {jobs_in(venus)} are public; of "
        f"Philly, {jobs_in(philly)} are that ever ran. Over all of these, as the counts in fairopt.datasets have them "
        f"(in brackets: printed), run times below: "
        f"{listed(map(str, table))}. Venus, Sec. 3.1: {listed(map(str, text))}. To the printed digit agree "
        f"{len(agree)} of {len(numbers)}; Table 1 is within {float(within):.2f} percentage points throughout, and the "
        f"largest difference is {float(worst.off):.1f}, in {worst.what}. Run times of "
        f"{sum(count.clipped for count in venus)} jobs of Venus are known only to be at least 48 hours, which leaves "
        f"shares of GPU time out of reach: as clipped, single GPUs have {percent(_time(venus, _single))} (4.7%) and "
        f"jobs of 8 or more {percent(_time(venus, _large))} (85.7%). That long jobs are few and short ones many, and "
        f"that the few large ones take most of the GPU time, is so in both traces: 8 GPUs or more are "
        f"{percent(_part(philly, _large))} of Philly's jobs and {percent(_time(philly, _large))} of its GPU time.",
    )


def _below(name: str, counts: tuple[JobCount, ...], printed: str) -> list[Printed]:
    return [
        _limited(f"{name} {limit}", counts, seconds, text)
        for (limit, seconds), text in zip(LIMITS.items(), printed.split(), strict=True)
    ]


def _limited(what: str, counts: tuple[JobCount, ...], seconds: int, printed: str) -> Printed:
    """Return how many ran for less than ``seconds``; those clipped below it may have run longer."""
    below = [count for count in counts if count.below_s is not None and count.below_s <= seconds]
    clipped = sum(count.clipped for count in below)
    total, sure = jobs_in(counts), jobs_in(below) - clipped
    return Printed(what, printed, Fraction(sure, total), Fraction(sure + clipped, total))


def _sizes(venus: tuple[JobCount, ...]) -> list[Printed]:
    single = tuple(count for count in venus if _single(count))
    day = _limited("", single, DAY, "0")
    return [
        _exactly("1 GPU", venus, _single, "52.5"),
        _exactly("8 GPUs", venus, lambda count: count.gpus == 8, "22.6"),
        _exactly("more", venus, lambda count: count.gpus > 8, "10.3"),
        _limited("of 1 GPU below 1 h", single, HOUR, "87.4"),
        Printed("of 1 GPU a day or more", "2.2", 1 - day.high, 1 - day.low),
    ]


def _ends(venus: tuple[JobCount, ...]) -> list[Printed]:
    """Return how jobs ended, among those of which it is known (September)."""
    known = tuple(count for count in venus if count.status)
    printed = {"COMPLETED": "52.2", "CANCELLED": "27.9", "FAILED": "19.9"}

    def part(status: str) -> Fraction:
        return _part(known, lambda count: count.status == status)

    return [
        Printed(f"{status.lower()} in September", text, part(status), part(status)) for status, text in printed.items()
    ]


def _exactly(what: str, counts: tuple[JobCount, ...], wanted: Callable[[JobCount], bool], printed: str) -> Printed:
    part = _part(counts, wanted)
    return Printed(what, printed, part, part)


def _part(counts: tuple[JobCount, ...], wanted: Callable[[JobCount], bool]) -> Fraction:
    return Fraction(jobs_in(filter(wanted, counts)), jobs_in(counts))


def _time(counts: tuple[JobCount, ...], wanted: Callable[[JobCount], bool]) -> Fraction:
    return Fraction(
        sum(count.gpu_seconds for count in filter(wanted, counts)), sum(count.gpu_seconds for count in counts)
    )


def _single(count: JobCount) -> bool:
    return count.gpus == 1


def _large(count: JobCount) -> bool:
    return count.gpus >= 8
