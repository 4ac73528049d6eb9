"""Fig. 9 to 11: leases, and who is served unfairly under whom, by studies of real jobs of Venus.

ASTRAEA does not say at which intervals the fairness of tenants is calculated, nor from when on a job counts as waiting:
what its published simulator does is one reading. There a job is first seen in a round of 10 s, and fairness counts from
then; a tenant's is that of the last 24 hours by Eq. (8), told every hour; starting a job again costs 20 s and a
checkpoint 5 s, which are added up after the run. Source: github.com/yzs981130/Astraea_Artifacts,
simulation/alg/scheduler/lease.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

import numpy as np

from fairopt.bench.report.words import digits
from fairopt.ledger import Finding, PrintedAndFound, Ruling
from fairopt.proofs.ledger.cases import PrintedRatio, RatioCase, parts, readings, ruling
from fairopt.proofs.ledger.levels import FoundShare, PrintedShare, Readings, cases, levels, percentages
from fairopt.proofs.ledger.studying import WHOLE, Extent, ends, results_of
from fairopt.proofs.ledger.wording import listed, percent
from fairopt.simulation.gpu_time import LOSS
from fairopt.studies.results import StudyResults
from fairopt.studies.spec import StudySetting
from fairopt.studies.statistics import Estimate, mean_of
from fairopt.studies.traces import EstimationError, drawn

FAIRNESS, LEASES = "astraea-fairness", "astraea-leases"
LEASE, INTERVAL = 900, 10
OVERHEAD = 0.8
#: Seconds of the published simulator.
CHECKPOINT, RESTART = 5, 20
JOBS: Readings = {"jobs": "sharing_loss"}
TENANTS: Readings = {
    "each hour": "tenant_loss_hour",
    "last 24 hours": "tenant_loss_day",
    "since the first arrival": "tenant_loss_begun",
    "last 24 hours, Eq. (16)": "tenant_loss_quota",
}


def jobfair(extent: Extent = WHOLE) -> Finding:
    """Fig. 10: jobs that are served below 0.95."""
    results = results_of(FAIRNESS, extent)
    printed = _printed(results, JOBS, {"ASTRAEA": 7.1, "Themis": 19.7, "YARN-CS": 73.6}, "jobs below 0.95")
    claims = _times(results, JOBS, {"Themis": 2.8, "YARN-CS": 10.3}, "fewer jobs below 0.95 than under")
    return Finding(
        ruling(claims),
        f"{_played(results)} {_inside(printed)} {_ahead(claims)} Where GPUs are free at once, a job loses only the "
        f"time to the next interval. Counted from its arrival, this alone puts {_by_intervals(results)} of these jobs "
        f"below 0.95 at intervals of {INTERVAL} s, whoever decides: nobody could come to 7.1%. Here a job arrives "
        "when an interval begins, as in the published simulator.",
        _table(printed, claims),
    )


def tenantfair(extent: Extent = WHOLE) -> Finding:
    """Fig. 11: cases in which a tenant is served below 1."""
    results = results_of(FAIRNESS, extent)
    shares = {"ASTRAEA": 5.2, "AlloX": 6.9, "Gandiva_fair": 8.0, "Tiresias-L": 49.0, "YARN-CS": 44.6}
    printed = _printed(results, TENANTS, shares, "cases below 1")
    times = {name: share / shares["ASTRAEA"] for name, share in shares.items() if name != "ASTRAEA"}
    claims = _times(results, TENANTS, times, "fewer cases below 1 than under")
    return Finding(
        ruling(claims),
        f"{_played(results)} {_inside(printed)} {_ahead(claims)} A case is a tenant at a full hour, while jobs come. "
        f"Over which time is not said: {'; '.join(TENANTS)}. By Eq. (8) a tenant to whom nothing is due is no case; by "
        "Eq. (16) it counts as served unfairly. Where a run has no unfair case there is no ratio.",
        _table(printed, claims),
    )


def lease(extent: Extent = WHOLE) -> Finding:
    """Fig. 9: completion times, fairness and overhead by the length of leases."""
    results = results_of(LEASES, extent)
    own, time = f"{LEASE} s", {"mean JCT": "jct_mean"}
    claims = [
        PrintedRatio("JCT shorter at 900 s than at 300 s", 1, [*cases(results, "300 s", [own], time)]),
        PrintedRatio("JCT shorter at 900 s than at 3600 s", 1, [*cases(results, "3600 s", [own], time)]),
        PrintedRatio("JCT at 1200 s shorter than at 900 s", 1, [*cases(results, own, ["1200 s"], time)]),
        PrintedRatio("fewer jobs below 0.95 at 900 s than at 3600 s", 1, [*cases(results, "3600 s", [own], JOBS)]),
    ]
    overhead = [
        PrintedShare(f"overhead {OVERHEAD}% of the mean JCT, added up", OVERHEAD, [*_added_up(results)]),
        PrintedShare(f"overhead {OVERHEAD}%, as JCT with restarts over without", OVERHEAD, [*_by_runs(results)]),
    ]
    # "approximately": as little, or less
    little = [each for each in overhead[0].levels if each.estimate.low <= OVERHEAD]
    holds = little or any(claim.holding for claim in claims)
    return Finding(
        Ruling.QUALIFIED if holds else Ruling.REFUTED,
        f"{_played(results)} {_best(results)} {_ahead(claims)} The overhead at {LEASE} s, added up as {CHECKPOINT} s "
        f"for each end of a lease before the job's and {RESTART} s for each start after a stop (as in the published "
        f"simulator), is {_spread(overhead[0])}; as what completion times lose where each start after a stop takes "
        f"{RESTART} s, {_spread(overhead[1])}. Unfair cases of "
        f"tenants, over the last 24 hours: {_by_lease(results)}.",
        _table(overhead, claims),
    )


# -- what is printed ---------------------------------------------------------------------------------------------
def _printed(results: StudyResults, measures: Readings, shares: dict[str, float], what: str) -> list[PrintedShare]:
    return [
        PrintedShare(f"{share}% {what} under {name}", share, [*levels(results, readings(results, name), measures)])
        for name, share in shares.items()
    ]


def _times(results: StudyResults, measures: Readings, factors: dict[str, float], what: str) -> list[PrintedRatio]:
    ours = readings(results, "ASTRAEA")
    return [
        PrintedRatio(f"{factor:.3g} times {what} {name}", factor, [*cases(results, name, ours, measures)])
        for name, factor in factors.items()
    ]


def _added_up(results: StudyResults) -> Iterator[FoundShare]:
    """Yield the overhead as the published simulator's counts give it."""
    for setting in results.settings:
        if setting.costs.restart:
            runs = results.played(f"{LEASE} s", setting)
            values = {
                each.seed: _overhead(setting, each.seed, each.observed.measures) for each in runs if each.observed
            }
            yield FoundShare(setting.names, percentages(values, setting.source.resampled))


def _overhead(setting: StudySetting, seed: int, measures: Mapping[str, float | None]) -> float:
    work = drawn(setting.source, setting.place, setting.load, EstimationError(), seed).jobs.work
    checkpoints = sum(ceil(each / LEASE) - 1 for each in work.tolist())
    spent = CHECKPOINT * checkpoints + RESTART * (measures["restarts"] or 0)
    return float(spent / ((measures["jct_mean"] or 0) * len(work)))


def _by_runs(results: StudyResults) -> Iterator[FoundShare]:
    """Yield by which part completion times are longer where restarts cost time."""
    free = {(each.source.label, each.place.label): each for each in results.settings if not each.costs.restart}
    for setting in results.settings:
        if setting.costs.restart:
            both = setting, free[setting.source.label, setting.place.label]
            slow, fast = (results.outcomes(f"{LEASE} s", each, "jct_mean") for each in both)
            values = {seed: slow[seed] / fast[seed] - 1 for seed in slow if seed in fast}
            yield FoundShare(setting.names, _around(values, setting.source.resampled))


def _around(values: dict[int, float], resampled: bool) -> Estimate:
    """Return `percentages` of numbers that may be below 0."""
    found = mean_of([*values.values()], resampled)
    return Estimate(100 * found.value, 100 * found.low, 100 * found.high)


# -- words -------------------------------------------------------------------------------------------------------
def _played(results: StudyResults) -> str:
    spec = results.spec
    size = spec.traces[0].parameters
    places = listed(each.label for each in spec.clusters)
    return (
        f"Study {spec.name}: {len(results.cells)} runs of the first {size['jobs']} jobs of the real excerpt of Venus "
        f"(run times cut to {size['longest_hours']} hours) and of draws of its blocks ({len(spec.seeds)} traces), on "
        f"{places} of 8 GPUs, in intervals of {spec.length:g} s; the paper has 11,304 jobs of two weeks, which are not "
        "public with their tenants, on 100 hosts, where these jobs hardly queue."
    )


def _inside(printed: Sequence[PrintedShare]) -> str:
    found = [each for each in printed if each.inside]
    if not found:
        return "No printed number lies within the interval of any setting."
    return f"Within the interval of some setting: {listed(each.said for each in found)}."


def _ahead(claims: Sequence[PrintedRatio]) -> str:
    said = (
        f"{each.said.rpartition(' times ')[2]} in {_part(each.ahead, each)}, the reverse in {_part(each.behind, each)}"
        for each in claims
    )
    return f"For sure, by whatever factor: {'; '.join(said)}."


def _part(some: Sequence[RatioCase], claim: PrintedRatio) -> str:
    if len(some) in (0, len(claim.cases)):
        return f"all {len(some)} cases" if some else "none"
    where = parts(some, claim.cases)
    return f"{len(some)} of {len(claim.cases)} cases" + ("" if where == "in every part" else f" ({where})")


def _best(results: StudyResults) -> str:
    """Say which lease has the shortest mean completion time in each setting."""
    best = []
    for setting in results.settings:
        outcomes = {each: results.outcomes(each, setting, "jct_mean") for each in results.policies}
        known = {name: mean_of([*values.values()], False).value for name, values in outcomes.items() if values}
        if known:
            least = min(known, key=lambda name: known[name])
            apart = digits(100 * (max(known.values()) / known[least] - 1))
            best.append(f"{least} on {setting.place.label}, {setting.costs.label} (the longest is {apart}% longer)")
    return f"The lease with the shortest mean completion time is {listed(best)}."


def _by_lease(results: StudyResults) -> str:
    """Return how often tenants are served unfairly, by lease."""
    said = []
    for lease in results.policies:
        found = [each.estimate.value for each in levels(results, [lease], {"": TENANTS["last 24 hours"]})]
        said.append(f"{lease} {ends(min(found), max(found))}%")
    return listed(said)


def _spread(printed: PrintedShare) -> str:
    line = printed.line()
    return f"{line.found} {line.interval}"


def _by_intervals(results: StudyResults) -> str:
    """Return the part of the jobs of the trace itself that wait too long for the next interval."""
    setting = next(results.spec.settings())
    source = replace(setting.source, grid=0)
    jobs = drawn(source, setting.place, setting.load, EstimationError(), 0).jobs
    wait = np.ceil(jobs.arrival / INTERVAL) * INTERVAL - jobs.arrival
    return percent(float(np.mean(jobs.work < float(LOSS) * (jobs.work + wait))), 1)


def _table(printed: Sequence[PrintedShare], claims: Sequence[PrintedRatio]) -> tuple[PrintedAndFound, ...]:
    return (*(each.line() for each in printed), *(each.line() for each in claims if each.cases))
