"""How a report writes numbers and statuses (three digits, and the unit that keeps them short), and its conventions."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fairopt.bench.records import Status
from fairopt.bench.statistics import SAMPLES

#: What a report calls each status that is not "solved".
WORDS: Mapping[Status, str] = {
    Status.SOLVED: "solved",
    Status.WRONG: "wrong",
    Status.TIMEOUT: "time-out",
    Status.MEMORY: "out of memory",
    Status.ERROR: "error",
    Status.MISSING: "not installed",
    Status.SKIPPED: "skipped",
}
#: What stands where there is nothing to say.
NOTHING = "–"
#: What a reader must know to read the page, as terms and sentences.
CONVENTIONS: tuple[tuple[str, str], ...] = (
    (
        "Verified first",
        "An answer counts as solved only where the task's own code, which shares nothing with contenders, "
        "accepted it. An answer that was refused is “wrong”, and its time counts nowhere.",
    ),
    (
        "Medians",
        "Of several repeats the median counts; an instance is solved by a contender where every repeat was.",
    ),
    (
        "To the answer",
        "Build and solve together, wall time: libraries divide the work between the two differently.",
    ),
    (
        "Shifted geometric mean",
        "exp(mean(log(t + s))) − s. What was not solved, whatever the reason, counts at the time limit, and so "
        "does a longer time. That includes what was not tried: sizes beyond those that the specification enters a "
        "contender for, and larger ones after a time-out. Contenders that are not installed take part in nothing.",
    ),
    (
        "Ratios",
        "The geometric mean over the instances that both solved of the baseline's time over the contender's. The "
        f"interval is that of {SAMPLES:,} bootstrap samples of the instances; one pair has none.",
    ),
    (
        "Performance profile",
        "The part of all instances that a contender solved within a factor of the fastest there (Dolan and More "
        "2002). Instances that nobody solved remain among all. It compares with the best only: the order of two "
        "others may change when a third is left out.",
    ),
    (
        "Corrected",
        "Each time multiplied by the median of the reference job over the reference job right before it: what a "
        "steadier machine might have shown. A view, not a measurement.",
    ),
    (
        "Goals",
        "Decided by the worst instance that a goal is about. Seconds include building and certifying. In a ratio,"
        " a contender that ran into its time limit counts with the limit, and the ratio is “more than”.",
    ),
)


def digits(value: float) -> str:
    """Return three digits, without an exponent where it is not needed."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e6:
        whole = math.floor(math.log10(abs(float(f"{value:.2e}")))) + 1
        return f"{value:,.{max(3 - whole, 0)}f}" if whole <= 3 else f"{float(f'{value:.2e}'):,.0f}"
    return f"{value:.2e}"


def seconds_text(value: float) -> str:
    """Return seconds in s, ms or µs; `NOTHING` for NaN."""
    if math.isnan(value):
        return NOTHING
    for least, scale, unit in ((0.9995, 1.0, "s"), (0.9995e-3, 1e3, "ms"), (0.0, 1e6, "µs")):
        if value >= least:
            return f"{digits(value * scale)}\u00a0{unit}" if value else "0\u00a0s"
    return NOTHING


def bytes_text(value: float | None) -> str:
    """Return bytes in MB or GB, of 10^6 and 10^9; `NOTHING` for None and NaN."""
    if value is None or math.isnan(value):
        return NOTHING
    return f"{digits(value / 1e9)}\u00a0GB" if value >= 0.9995e9 else f"{digits(value / 1e6)}\u00a0MB"


def factor_text(value: float) -> str:
    """Return a factor, such as 3.10×; `NOTHING` for NaN."""
    return NOTHING if math.isnan(value) else f"{digits(value)}×"


def part_text(value: float) -> str:
    """Return a part of one in percent."""
    return f"{100 * value:.3g}\u00a0%"


def count(number: int, what: str) -> str:
    """Return a number of things, in the plural where it is not one."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def status_words(statuses: Mapping[Status, int]) -> str:
    """Return how often each status but "solved" came, such as "time-out 2, wrong"."""
    found = [(each, statuses.get(each, 0)) for each in Status if each is not Status.SOLVED and statuses.get(each)]
    return ", ".join(WORDS[each] if number == 1 else f"{WORDS[each]} {number}" for each, number in found)
