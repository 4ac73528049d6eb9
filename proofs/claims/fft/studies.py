"""Fig. 7 to 12 and 13(b): completion times, fairness, waits, moves and wrong lengths, by studies of FFT's own set-up.

Each printed number is looked for in every setting and under every reading: see `fairopt.proofs.ledger.cases`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from fairopt.ledger import Comparison, Finding, Ruling
from fairopt.proofs.ledger.cases import (
    Case,
    Claim,
    Outcome,
    family,
    held_alike,
    outcomes,
    parts,
    ratio_of,
    readings,
    ruling,
)
from fairopt.proofs.ledger.studying import WHOLE, Extent, between, ends, intervals, results_of
from fairopt.proofs.ledger.wording import listed
from fairopt.studies.playing import Observed
from fairopt.studies.results import StudyResults
from fairopt.studies.statistics import mean_of

#: The studies: traces 1, 2 and 9 at several loads; what else is open, at a load of 1; wrong lengths.
TRACES, OPEN, ERRORS = "fft-traces", "fft-open", "fft-errors"
#: What the labels of traces begin with: those of the physical cluster, and those that are simulated.
PHYSICAL, SIMULATED = ("trace 1", "trace 2"), ("trace 6", "trace 9")
#: Definitions of a job's time without the others. The first is that of the measures, the others are in `IDEALS`.
OWN, WHOLE_CLUSTER, N_TIMES = "an own part", "whole cluster", "whole cluster, N times"
#: A number of a run in each of several readings, by the reading's name; "" where there is one only.
Readings: TypeAlias = Mapping[str, Outcome]


# -- the rows ----------------------------------------------------------------------------------------------------
def jct(extent: Extent = WHOLE) -> Finding:
    """Fig. 7 and 11: completion times and makespans beside those of everybody."""
    studies, time = _both(extent), {"": _measure("jct_mean")}
    claims = family(
        [
            Claim("1.46 times shorter than Gavel's, trace 1", 1.46, _cases(studies, time, "Gavel", PHYSICAL[:1])),
            Claim("1.37 times, trace 2", 1.37, _cases(studies, time, "Gavel", PHYSICAL[1:])),
            Claim("2.11 times shorter than PAL's", 2.11, _cases(studies, time, "PAL", PHYSICAL)),
            Claim("up to 3.15 times shorter than Tiresias's", 3.15, _cases(studies, time, "Tiresias", PHYSICAL)),
            Claim("up to 5.22 times shorter than AlloX's, trace 1", 5.22, _cases(studies, time, "AlloX", PHYSICAL[:1])),
            Claim("1.74 times shorter than Gavel's, simulated", 1.74, _cases(studies, time, "Gavel", SIMULATED)),
            Claim("2.38 times shorter than PAL's, simulated", 2.38, _cases(studies, time, "PAL", SIMULATED)),
            Claim("3.88 times shorter than Tiresias's, simulated", 3.88, _cases(studies, time, "Tiresias", SIMULATED)),
        ]
    )
    span = {"": _measure("makespan")}
    rivals = ("SRTF", "AlloX", "Gavel", "Tiresias", "PAL")
    beside = family([Claim(name, 1, _cases(studies, time, name)) for name in rivals])
    spans = family([Claim(name, 1, _cases(studies, span, name)) for name in rivals])
    return Finding(
        ruling(claims),
        f"{_played(studies)} {_together(claims)} Over all settings and readings, mean completion times of others over "
        f"FFT's: {_beside(beside)}. Makespans: {_beside(spans)}.",
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
    claims = family(
        [
            claim
            for name, share, by_mean, by_most in (("Gavel", 38, 1.64, 1.4), ("Tiresias", 49, 1.67, 2.18))
            for claim in (
                Claim(f"70% of jobs below 1, {share}% under {name}", 70 / share, _cases(studies, below, name, up=True)),
                Claim(f"mean {by_mean} times less than {name}'s", by_mean, _cases(studies, mean, name)),
                Claim(f"largest {by_most} times less than {name}'s", by_most, _cases(studies, most, name)),
            )
        ]
    )
    runs = [each.observed for results in studies for each in results.cells if each.observed is not None]
    alone = max(each.finish_times[WHOLE_CLUSTER].below for each in runs)
    return Finding(
        ruling(claims),
        f"{_played(studies)} {_together(claims)} The paper's time without the others is that 'in an exclusive cluster' "
        f"(Sec. 6.1.5). On the whole cluster no job can be below 1: {alone:.0%} at most are in these {len(runs)} runs, "
        "where the paper prints 70%. So it means Themis's part 1/N of each type, or N times the time on the whole "
        "cluster. Shares of jobs below 1, means of settings, with a part of 1/N: "
        f"{_levels(studies, _not_worse_off)}. Jobs shorter than a round of five minutes, of which trace 9 has none, "
        "wait for it to begin, whoever decides.",
        tuple(claim.line() for claim in claims),
    )


def starvation(extent: Extent = WHOLE) -> Finding:
    """Fig. 9: how long jobs wait for their first round."""
    studies, longest, mean = _both(extent), {"": _measure("first_wait_max")}, {"": _measure("first_wait_mean")}
    claims = family(
        [
            Claim("longest wait 2.03 times as long under Gavel", 2.03, _cases(studies, longest, "Gavel")),
            Claim("longest wait 6.35 times as long under Tiresias", 6.35, _cases(studies, longest, "Tiresias")),
            *(
                Claim(f"shorter waits than under {name} (mean)", 1, _cases(studies, mean, name))
                for name in ("Gavel", "Tiresias", "PAL")
            ),
        ]
    )
    return Finding(
        ruling(claims),
        f"{_played(studies)} {_together(claims)} Longest waits in hours, means of settings: "
        f"{_levels(studies, _hours_waited, '')}. Tiresias by least attained service, as its own paper has it, starts "
        "whoever comes; the queues that FFT's paper calls Tiresias go by what remains. FFT as printed counts "
        "compensation in squares of the job's unit of work, here a second, so that it outweighs all other terms.",
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
    claims = family(
        [
            Claim(
                "63% of migrations to faster types, 49% under Gavel", 63 / 49, _cases(studies, faster, "Gavel", up=True)
            ),
            Claim("switches 1.46 times rarer than under Gavel", 1.46, _cases(studies, switches, "Gavel")),
        ]
    )
    return Finding(
        ruling(claims),
        f"{_played(studies)} {_together(claims)} Of migrations between types, these lead to a faster one, means of "
        f"settings: {_levels(studies, _to_faster)}. The paper does not say what counts as a switch.",
        tuple(claim.line() for claim in claims),
    )


def fig13b(extent: Extent = WHOLE) -> Finding:
    """Fig. 13(b): what wrong lengths of jobs cost."""
    results = results_of(ERRORS, extent)
    cases, srtf = list(_wrong(results, "FFT")), [each.ratio for each in _wrong(results, "SRTF")]
    hard = [each for each in cases if each.where["trace"] == "trace 6" or each.where["load"] == "load 2"]
    lines = {
        "at most 1.17 times as long, lengths 30% off": (1.17, cases),
        "1.08 times on traces 6 and 7 (here: load 2)": (1.08, hard),
    }
    table = [_kept(said, most, some) for said, (most, some) in lines.items()]
    within = [all(each.ratio.value <= most for each in some) for most, some in lines.values()]
    any_ = any(each.ratio.value <= most for most, some in lines.values() for each in some)
    over = [each for each in cases if each.ratio.low > 1.17]
    return Finding(
        Ruling.REPRODUCED if all(within) else Ruling.QUALIFIED if any_ else Ruling.REFUTED,
        f"Study {ERRORS}: {len(results.cells)} runs, {len(results.spec.seeds)} seeds; mean completion times with wrong "
        "lengths over those with the true ones. The paper gives neither sign nor distribution of the errors, so that "
        "all are played: even up to 10% and 30%, 30% too long, too short, or either. "
        + (
            f"Above 1.17 for sure: {len(over)} of {len(cases)} ({parts(over, cases)}). "
            if over
            else "None is above 1.17 for sure. "
        )
        + f"SRTF, which goes by lengths alone, changes by factors of {between(srtf)}.",
        tuple(table),
    )


# -- cases -------------------------------------------------------------------------------------------------------
def _both(extent: Extent) -> tuple[StudyResults, ...]:
    return results_of(TRACES, extent), results_of(OPEN, extent)


def _cases(
    studies: Sequence[StudyResults], of: Readings, rival: str, traces: tuple[str, ...] = ("",), *, up: bool = False
) -> list[Case]:
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
                            found.append(Case({**where, "FFT": ours, "rival": theirs, "reading": reading}, result))
    return found


def _wrong(results: StudyResults, name: str) -> Iterator[Case]:
    """Yield completion times with wrong lengths over those with true ones, of each reading of a policy."""
    time, true = _measure("jct_mean"), results.spec.errors[0].label
    settings = {(each.source.label, each.load, each.error.label): each for each in results.settings}
    for policy in readings(results, name):
        for (trace, load, error), setting in settings.items():
            if error != true:
                both = (outcomes(results, policy, each, time) for each in (setting, settings[trace, load, true]))
                if (result := ratio_of(*both)) is not None:
                    yield Case({"trace": trace, "load": f"load {load:g}", "policy": policy, "error": error}, result)


def _measure(name: str) -> Outcome:
    return lambda seen: seen.measures[name]


def _finish_time(ideal: str, field: str) -> Outcome:
    return lambda seen: float(getattr(seen.finish_times[ideal], field)) if ideal in seen.finish_times else None


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
    return (
        f"Studies {named}: {runs} runs of 400 jobs in a day (the paper's 800 come in two) on its cluster, at loads "
        f"{loads}, in {len(readings(studies[0], 'FFT'))} readings of FFT, 3 of Gavel and Tiresias, 2 of PAL. A number "
        "counts as held where FFT is ahead for sure (95%, Holm over all cases) and the interval reaches it."
    )


def _together(claims: Sequence[Claim]) -> str:
    """Say whether one reading of FFT has several of the numbers in one setting."""
    found = list(held_alike(claims, ("FFT", "trace", "load")))
    where, best = max(found, key=lambda each: len(each[1]))
    nowhere = [claim.said for claim in claims if not claim.holding]
    none = sum(not held for _, held in found)
    said = f"Held nowhere: {listed(nowhere)}. " if nowhere else ""
    if not best:
        return said.strip()
    together = f"at most {len(best)} of {len(claims)} are together: {', '.join(where.values())}"
    return (
        f"{said}In {none} of {len(found)} combinations of a reading of FFT, a trace and a load no number is held "
        f"against any reading of the rival; {together}."
    )


def _beside(claims: Sequence[Claim]) -> str:
    return "; ".join(_side(claim) for claim in claims)


def _side(claim: Claim) -> str:
    where = f": {parts(claim.ahead, claim.cases)}" if claim.ahead else ""
    ahead = f"ahead for sure in {len(claim.ahead)} of {len(claim.cases)}{where}"
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


def _kept(said: str, most: float, cases: Sequence[Case]) -> Comparison:
    """Return the line of a bound on ratios."""
    values = [each.ratio for each in cases]
    fine = [each for each in cases if each.ratio.value <= most]
    over = [each for each in cases if each.ratio.low > most]
    where = f" ({parts(fine, cases)})" if len(fine) < len(cases) else ""
    holds = f"within it in {len(fine)} of {len(cases)}{where}, above for sure in {len(over)}"
    return Comparison(said, between(values), intervals(values), holds)
