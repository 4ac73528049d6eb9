"""Fig. 7 to 12 and 13(b): completion times, fairness, waits, moves and wrong lengths, by studies of FFT's own set-up.

Each printed number is looked for in every setting and under every reading: see `fairopt.proofs.ledger.cases`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fairopt.experiment.statistics import mean_of
from fairopt.experiment.studies.playing import Observed
from fairopt.experiment.studies.results import StudyResults
from fairopt.proofs.ledger.cases import (
    Outcome,
    PrintedRatio,
    RatioCase,
    held_alike,
    outcomes,
    parts,
    ratio_of,
    readings,
    ruling,
)
from fairopt.proofs.ledger.entries import Finding, PrintedAndFound, Ruling
from fairopt.proofs.ledger.studying import WHOLE, Extent, between, ends, intervals, results_of
from fairopt.proofs.ledger.wording import listed

#: The studies: traces 1, 2 and 9 at several loads; what else is open, at a load of 1; wrong lengths.
TRACES, OPEN, ERRORS = "fft-traces", "fft-open", "fft-errors"
#: What the labels of traces begin with: those of the physical cluster, and those that are simulated.
PHYSICAL, SIMULATED = ("trace 1", "trace 2"), ("trace 6", "trace 9")
#: Definitions of a job's time without the others. The first is that of the measures, the others are in `IDEALS`.
OWN, WHOLE_CLUSTER, N_TIMES = "an own part", "whole cluster", "whole cluster, N times"
#: "The SJF-like policy turns out to be the best policy for minimizing JCT" (Sec. 6.1.4).
BEST_OF_GAVEL = "Gavel, shortest first"
#: A number of a run in each of several readings, by the reading's name; "" where there is one only.
Readings: TypeAlias = Mapping[str, Outcome]


# -- the rows ----------------------------------------------------------------------------------------------------
def jct(extent: Extent = WHOLE) -> Finding:
    """Fig. 7 and 11: completion times and makespans beside those of everybody."""
    studies, time = _both(extent), {"": _measure("jct_mean")}
    claims = [
        PrintedRatio("1.46 times shorter than Gavel's, trace 1", 1.46, _cases(studies, time, "Gavel", PHYSICAL[:1])),
        PrintedRatio("1.37 times, trace 2", 1.37, _cases(studies, time, "Gavel", PHYSICAL[1:])),
        PrintedRatio("2.11 times shorter than PAL's", 2.11, _cases(studies, time, "PAL", PHYSICAL)),
        PrintedRatio("up to 3.15 times shorter than Tiresias's", 3.15, _cases(studies, time, "Tiresias", PHYSICAL)),
        PrintedRatio(
            "up to 5.22 times shorter than AlloX's, trace 1", 5.22, _cases(studies, time, "AlloX", PHYSICAL[:1])
        ),
        PrintedRatio("1.74 times shorter than Gavel's, simulated", 1.74, _cases(studies, time, "Gavel", SIMULATED)),
        PrintedRatio("2.38 times shorter than PAL's, simulated", 2.38, _cases(studies, time, "PAL", SIMULATED)),
        PrintedRatio(
            "3.88 times shorter than Tiresias's, simulated", 3.88, _cases(studies, time, "Tiresias", SIMULATED)
        ),
    ]
    span = {"": _measure("makespan")}
    others = [each for each in studies[0].policies if each not in readings(studies[0], "FFT")]
    beside = [PrintedRatio(name, 1, _cases(studies, time, name)) for name in others]
    spans = [
        PrintedRatio(name, 1, _cases(studies, span, name)) for name in ("SRTF", "AlloX", "Gavel", "Tiresias", "PAL")
    ]
    best = next(each for each in beside if each.said == BEST_OF_GAVEL)
    return Finding(
        ruling(claims),
        f"Mean completion times under Gavel's shortest first, which the paper calls Gavel's best (Sec. 6.1.4), are "
        f"{between([each.ratio for each in best.cases])} times FFT's: FFT is ahead in {len(best.ahead)} of "
        f"{len(best.cases)} cases and behind in {len(best.behind)}. {_in_short(claims)} {_played(studies)} Over "
        f"FFT's are those of {_beside(each for each in beside if each is not best)}. Makespans: {_beside(spans)}. "
        "What would turn it: which reading of a rival is meant, and other lengths of jobs; the paper says of them only "
        "that they are distributed as Philly's.",
        tuple(claim.line() for claim in claims),
    )


def ftf(extent: Extent = WHOLE) -> Finding:
    """Fig. 8 and 12: finish-time fairness, by three definitions of a job's time without the others."""
    studies = _both(extent)
    below = {OWN: _not_worse_off, N_TIMES: _finish_time(N_TIMES, "below")}
    mean = {
        OWN: _measure("finish_time_mean"),
        **{each: _finish_time(each, "mean") for each in (WHOLE_CLUSTER, N_TIMES)},
    }
    most = {OWN: _measure("finish_time_max"), **{each: _finish_time(each, "most") for each in (WHOLE_CLUSTER, N_TIMES)}}
    claims = [
        claim
        for name, share, by_mean, by_most in (("Gavel", 38, 1.64, 1.4), ("Tiresias", 49, 1.67, 2.18))
        for claim in (
            PrintedRatio(
                f"70% of jobs below 1, {share}% under {name}", 70 / share, _cases(studies, below, name, up=True)
            ),
            PrintedRatio(f"mean {by_mean} times less than {name}'s", by_mean, _cases(studies, mean, name)),
            PrintedRatio(f"largest {by_most} times less than {name}'s", by_most, _cases(studies, most, name)),
        )
    ]
    runs = [each.observed for results in studies for each in results.cells if each.observed is not None]
    alone = max(each.finish_times[WHOLE_CLUSTER]["below"] for each in runs)
    return Finding(
        ruling(claims),
        f"{_in_short(claims)} {_played(studies)} The paper's time without the others is that 'in an exclusive cluster' "
        f"(Sec. 6.1.5). On the whole cluster no job can be below 1: {alone:.0%} at most are in these {len(runs)} runs, "
        "where the paper prints 70%. So it means Themis's part 1/N of each type, or N times the time on the whole "
        "cluster. Shares of jobs below 1, means of settings, with a part of 1/N: "
        f"{_levels(studies, _not_worse_off)}. Jobs shorter than a round of five minutes, of which trace 9 has none, "
        "wait for it to begin, whoever decides. What would turn it: what the time without the others is (the "
        "70% come out with a part of 1/N only) and which Gavel is meant (the mean comes out beside max-min "
        "only).",
        tuple(claim.line() for claim in claims),
    )


def starvation(extent: Extent = WHOLE) -> Finding:
    """Fig. 9: how long jobs wait for their first round."""
    studies, longest, mean = _both(extent), {"": _measure("first_wait_max")}, {"": _measure("first_wait_mean")}
    claims = [
        PrintedRatio("longest wait 2.03 times as long under Gavel", 2.03, _cases(studies, longest, "Gavel")),
        PrintedRatio("longest wait 6.35 times as long under Tiresias", 6.35, _cases(studies, longest, "Tiresias")),
        *(
            PrintedRatio(f"shorter waits than under {name} (mean)", 1, _cases(studies, mean, name))
            for name in ("Gavel", "Tiresias", "PAL")
        ),
    ]
    return Finding(
        ruling(claims),
        f"{_in_short(claims)} {_played(studies)} Longest waits in hours, means of settings: "
        f"{_levels(studies, _hours_waited, '')}. Tiresias by least attained service, as its own paper has it, starts "
        "whoever comes; the queues that FFT's paper calls Tiresias go by what remains. FFT as printed counts "
        "compensation in squares of the job's unit of work, here a second, so that it outweighs all other "
        "terms. What would turn it: which Tiresias and which PAL are meant (beside least attained service "
        "nothing that is printed of them comes out) and another unit of work.",
        tuple(claim.line() for claim in claims),
    )


def migrations(extent: Extent = WHOLE) -> Finding:
    """Fig. 10: where migrations lead, and how often jobs switch."""
    studies = _both(extent)
    faster = {"of migrations": _measure("to_faster"), "of migrations between types": _to_faster}
    switches = {
        "stops and starts": _measure("restarts"),
        "migrations": _measure("migrations"),
        "migrations between types": lambda seen: seen.between_types,
    }
    claims = [
        PrintedRatio(
            "63% of migrations to faster types, 49% under Gavel", 63 / 49, _cases(studies, faster, "Gavel", up=True)
        ),
        PrintedRatio("switches 1.46 times rarer than under Gavel", 1.46, _cases(studies, switches, "Gavel")),
    ]
    return Finding(
        ruling(claims),
        f"{_in_short(claims)} {_played(studies)} Of migrations between types, these lead to a faster one, means of "
        f"settings: {_levels(studies, _to_faster)}. The paper does not say what counts as a switch. What would "
        "turn it: what a migration is (of those between types alone the 63% come out nowhere) and which Gavel "
        "is meant (beside shortest first they do not either).",
        tuple(claim.line() for claim in claims),
    )


def fig13b(extent: Extent = WHOLE) -> Finding:
    """Fig. 13(b): what wrong lengths of jobs cost."""
    results = results_of(ERRORS, extent)
    cases, srtf = list(_wrong(results, "FFT")), [each.ratio for each in _wrong(results, "SRTF")]
    hard = [each for each in cases if each.where["trace"] in ("trace 6", "trace 7")]
    lines = {
        "at most 17% longer where lengths are off by up to 30%": (1.17, cases),
        "at most 8% longer on traces 6 and 7": (1.08, hard),
    }
    within = [each.ratio.value <= most for most, some in lines.values() for each in some]
    small, over = (
        [each for each in cases if each.ratio.value <= 1.17],
        [each for each in cases if each.ratio.low > 1.17],
    )
    above = f"; above it with the whole interval {len(over)} ({parts(over, cases)})" if over else ""
    errors = listed(f"'{each.label}'" for each in results.spec.errors[1:])
    return Finding(
        Ruling.REPRODUCED if all(within) else Ruling.QUALIFIED if any(within) else Ruling.REFUTED,
        "Mean completion times with wrong lengths are "
        f"{between([each.ratio for each in cases])} times those with the true ones: within 1.17 in {len(small)} of "
        f"{len(cases)} cases{above}. SRTF, which goes by lengths alone, has {between(srtf)}. Study {ERRORS}: "
        f"{len(results.cells)} runs of {results.spec.traces[0].parameters['jobs']} jobs in two days, as the paper's, "
        f"{len(results.spec.seeds)} seeds, load 1 (trace 7 twice as much). The "
        f"paper gives neither sign nor distribution of the errors; played are {errors}. A job's error stays the same "
        "until it is done. What would turn it: errors that all have one sign; above the bounds is only FFT in "
        "rounds where every length is too short.",
        tuple(_kept(said, most, some) for said, (most, some) in lines.items()),
    )


# -- cases -------------------------------------------------------------------------------------------------------
def _both(extent: Extent) -> tuple[StudyResults, ...]:
    return results_of(TRACES, extent), results_of(OPEN, extent)


def _cases(
    studies: Sequence[StudyResults], of: Readings, rival: str, traces: tuple[str, ...] = ("",), *, up: bool = False
) -> list[RatioCase]:
    """Return FFT beside a rival, in all readings of both, on traces whose labels begin so; ``up``: more is better."""
    found = []
    for results in studies:
        for setting in results.settings:
            if not setting.source.label.startswith(traces):
                continue
            for ours in readings(results, "FFT"):
                for theirs in readings(results, rival):
                    for reading, outcome in of.items():
                        own, other = (outcomes(results, each, setting, outcome) for each in (ours, theirs))
                        result = ratio_of(own, other) if up else ratio_of(other, own)
                        where = {"trace": setting.source.label, "load": f"load {setting.load:g}"}
                        if result is not None:
                            found.append(RatioCase({**where, "FFT": ours, "rival": theirs, "reading": reading}, result))
    return found


def _wrong(results: StudyResults, name: str) -> Iterator[RatioCase]:
    """Yield completion times with wrong lengths over those with true ones, of each reading of a policy."""
    time, true = _measure("jct_mean"), results.spec.errors[0].label
    settings = {(each.source.label, each.load, each.error.label): each for each in results.settings}
    for policy in readings(results, name):
        for (trace, load, error), setting in settings.items():
            if error != true:
                both = (outcomes(results, policy, each, time) for each in (setting, settings[trace, load, true]))
                if (result := ratio_of(*both)) is not None:
                    yield RatioCase(
                        {"trace": trace, "load": f"load {load:g}", "policy": policy, "error": error}, result
                    )


def _measure(name: str) -> Outcome:
    return lambda seen: seen.measures[name]


def _finish_time(ideal: str, field: str) -> Outcome:
    return lambda seen: seen.finish_times[ideal][field] if ideal in seen.finish_times else None


def _not_worse_off(seen: Observed) -> float | None:
    worse = seen.measures["worse_off"]
    return None if worse is None else 1 - worse


def _to_faster(seen: Observed) -> float | None:
    share, every = seen.measures["to_faster"], seen.measures["migrations"]
    return share * every / seen.between_types if share is not None and every and seen.between_types else None


def _hours_waited(seen: Observed) -> float | None:
    wait = seen.measures["first_wait_max"]
    return None if wait is None else wait / 3600


# -- words -------------------------------------------------------------------------------------------------------
def _played(studies: Sequence[StudyResults]) -> str:
    runs = sum(len(each.cells) for each in studies)
    named = listed(f"{each.spec.name} ({len(each.spec.seeds)} seeds)" for each in studies)
    loads = listed(f"{each:g}" for each in studies[0].spec.loads)
    jobs = studies[0].spec.traces[0].parameters["jobs"]
    return (
        f"Studies {named}: {runs} runs of {jobs} jobs in two days, as the paper's, on its cluster, at loads {loads}, "
        f"in {len(readings(studies[0], 'FFT'))} readings of FFT, 3 of Gavel and Tiresias, 2 of PAL. A number comes out "
        "in a case where FFT is ahead and the 95% interval reaches it."
    )


def _in_short(claims: Sequence[PrintedRatio]) -> str:
    """Say which numbers come out at all, and whether one reading of FFT has several of them in one setting."""
    held = [claim for claim in claims if claim.holding]
    found = list(held_alike(claims, ("FFT", "trace", "load")))
    where, best = max(found, key=lambda each: len(each[1]))
    none = sum(not some for _, some in found)
    lacking = [f"'{claim.said}'" for claim in claims if not claim.holding]
    return (
        f"Of {len(claims)} printed numbers {len(held)} come out in some case and "
        f"{sum(len(each.holding) == len(each.cases) for each in claims)} in all; for {none} of {len(found)} choices of "
        "FFT's reading, trace and load none does."
        + (f" Nowhere: {listed(lacking)}." if lacking else "")
        + (f" At most {len(best)} come out together: {', '.join(where.values())}." if held else "")
    )


def _beside(claims: Iterable[PrintedRatio]) -> str:
    return "; ".join(_side(claim) for claim in claims)


def _side(claim: PrintedRatio) -> str:
    where = f": {parts(claim.ahead, claim.cases)}" if claim.ahead else ""
    ahead = f"ahead in {len(claim.ahead)} of {len(claim.cases)}{where}"
    found = between([each.ratio for each in claim.cases])
    return f"{claim.said} {found} (FFT {ahead}; behind in {len(claim.behind)})"


def _levels(studies: Sequence[StudyResults], of: Outcome, unit: str = "%") -> str:
    """Return the least and the largest mean of a number over settings, policy by policy; shares in percent."""
    said = []
    for policy in studies[0].policies:
        means = [
            mean_of([*values.values()], resampled=False).value * (100 if unit else 1)
            for results in studies
            for setting in results.settings
            if (values := outcomes(results, policy, setting, of))
        ]
        if means:
            said.append(f"{policy} {ends(min(means), max(means))}{unit}")
    return "; ".join(said)


def _kept(said: str, most: float, cases: Sequence[RatioCase]) -> PrintedAndFound:
    """Return the line of a bound on ratios."""
    values = [each.ratio for each in cases]
    fine = [each for each in cases if each.ratio.value <= most]
    over = [each for each in cases if each.ratio.low > most]
    where = f" (not {parts([each for each in cases if each not in fine], cases)})" if len(fine) < len(cases) else ""
    holds = f"of {len(cases)} cases {len(fine)} within it{where}, {len(over)} above with the whole interval"
    return PrintedAndFound(said, between(values), intervals(values), holds)
