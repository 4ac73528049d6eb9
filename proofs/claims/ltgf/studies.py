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

from fairopt.experiment.statistics import Estimate, mean_of
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import StudySetting
from fairopt.experiment.studies.traces import drawn
from fairopt.experiment.words import digits
from fairopt.proofs.ledger.cases import PrintedRatio, RatioCase, parts, readings, ruling
from fairopt.proofs.ledger.entries import Finding, PrintedAndFound, Ruling
from fairopt.proofs.ledger.levels import FoundShare, PrintedShare, Readings, cases, levels, percentages
from fairopt.proofs.ledger.studying import WHOLE, Extent, ends, results_of
from fairopt.proofs.ledger.wording import listed, percent
from fairopt.simulation.gpu_time import LOSS
from fairopt.workloads import WorkEstimates

#: The studies: rivals in intervals of 60 s, leases in those, both in the paper's of 10 s, Themis with wrong lengths.
FAIRNESS, LEASES, INTERVALS, ESTIMATES = "astraea-fairness", "astraea-leases", "astraea-intervals", "astraea-estimates"
#: The paper's two weeks on its 100 hosts.
SIZE = "astraea-whole"
OWN = "ASTRAEA"
LEASE, INTERVAL = 900, 10
LENGTHS = (300, LEASE, 1200, 3600)
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


#: Fig. 10 and 11: percent of jobs served below 0.95, of cases of a tenant served below 1; and how many times ASTRAEA's.
UNFAIR_JOBS = {OWN: 7.1, "Themis": 19.7, "YARN-CS": 73.6}
UNFAIR_JOBS_TIMES = {"Themis": 2.8, "YARN-CS": 10.3}
UNFAIR_TENANTS = {OWN: 5.2, "AlloX": 6.9, "Gandiva_fair": 8.0, "Tiresias-L": 49.0, "YARN-CS": 44.6}
UNFAIR_TENANTS_TIMES = {name: share / UNFAIR_TENANTS[OWN] for name, share in UNFAIR_TENANTS.items() if name != OWN}


def jobfair(extent: Extent = WHOLE) -> Finding:
    """Fig. 10: jobs that are served below 0.95."""
    studies, wrong = _both(FAIRNESS, extent), results_of(ESTIMATES, extent)
    told = (*studies, wrong)
    themis = _printed(told, JOBS, {"Themis": UNFAIR_JOBS["Themis"]}, "jobs below 0.95")
    own, static = _printed(studies, JOBS, {OWN: UNFAIR_JOBS[OWN], "YARN-CS": UNFAIR_JOBS["YARN-CS"]}, "jobs below 0.95")
    printed = [own, *themis, static]
    claims = _times(told, JOBS, UNFAIR_JOBS_TIMES, "fewer jobs below 0.95 than under")
    errors = listed(each.label for each in wrong.spec.errors)
    return Finding(
        ruling(claims),
        f"{_played(*told)} {_inside(printed)} {_ahead(claims)} The paper tells Themis lengths 'with a reasonable "
        f"estimation error rate' (Sec. 6.1.5), not which; played are {errors} as well: jobs below 0.95 under Themis "
        f"are {_range(wrong, 'Themis')}% there, {_range(studies[0], 'Themis', wrong)}% with the true ones. The others "
        "of these three go by no lengths. Where GPUs are free at once, a job loses only the time to the next interval. "
        f"Counted from its arrival, this alone puts {_by_intervals(studies[0])} of these jobs below 0.95 at intervals "
        f"of {INTERVAL} s, whoever decides: nobody could come to 7.1%. Here a job arrives when an interval begins, as "
        "in the published simulator. What would turn it: which quotas tenants have (as requested, ASTRAEA is "
        "never behind Themis for sure; as seen, or equal, never ahead) and how many jobs there are "
        "(ltgf-jobfair-whole).",
        _table(printed, claims),
    )


def tenantfair(extent: Extent = WHOLE) -> Finding:
    """Fig. 11: cases in which a tenant is served below 1."""
    studies = _both(FAIRNESS, extent)
    printed = _printed(studies, TENANTS, UNFAIR_TENANTS, "cases below 1")
    claims = _times(studies, TENANTS, UNFAIR_TENANTS_TIMES, "fewer cases below 1 than under")
    return Finding(
        ruling(claims),
        f"{_played(*studies)} {_inside(printed)} {_ahead(claims)} Gandiva_fair is played in intervals of 60 s only: "
        "its quantum is minutes, and in intervals shorter than a restart its turns would end before they begin. A case "
        f"is a tenant at a full hour, while jobs come. Over which time is not said: {'; '.join(TENANTS)}. By Eq. (8) a "
        "tenant to whom nothing is due is no case; by Eq. (16) it counts as served unfairly. Where a run has no unfair "
        "case there is no ratio. What would turn it: over which time fairness is told (by Eq. (16) none of "
        "the printed numbers comes out).",
        _table(printed, claims),
    )


def lease(extent: Extent = WHOLE) -> Finding:
    """Fig. 9: completion times, fairness and overhead by the length of leases."""
    studies = _both(LEASES, extent)
    claims = _by_leases(studies)
    overhead = [
        PrintedShare(f"overhead {OVERHEAD}% of the mean JCT, added up", OVERHEAD, [*_added_up(studies)]),
        PrintedShare(f"overhead {OVERHEAD}%, as JCT with restarts over without", OVERHEAD, [*_by_runs(studies[0])]),
    ]
    # "approximately": as little, or less
    little = [each for each in overhead[0].levels if each.estimate.low <= OVERHEAD]
    holds = little or any(claim.holding for claim in claims)
    return Finding(
        Ruling.QUALIFIED if holds else Ruling.REFUTED,
        f"{_played(*studies)} {_best(studies)} {_ahead(claims)} The overhead at {LEASE} s, added up as {CHECKPOINT} s "
        f"for each end of a lease before the job's and {RESTART} s for each start after a stop (as in the published "
        f"simulator), is {_spread(overhead[0])}; as what completion times lose where each start after a stop takes "
        f"{RESTART} s, {_spread(overhead[1])}. Unfair cases of "
        f"tenants, over the last 24 hours: {_by_lease(studies)}. What would turn it: what a restart costs, how "
        "long an interval is (at 60 s the best lease is 300 s, at 10 s 900 s), and more jobs: leases up to "
        "1200 s differ by less than draws do.",
        _table(overhead, claims),
    )


# -- the same at the paper's size ---------------------------------------------------------------------------------
def jobfair_whole(extent: Extent = WHOLE) -> Finding:
    """Fig. 10 at the paper's size."""
    results = results_of(SIZE, extent)
    printed = _printed([results], JOBS, UNFAIR_JOBS, "jobs below 0.95")
    claims = _times([results], JOBS, UNFAIR_JOBS_TIMES, "fewer jobs below 0.95 than under")
    real = listed(f"{percent(_real(results, name), 1)} under {name}" for name in UNFAIR_JOBS)
    return Finding(
        ruling(claims),
        f"{_played_whole(results)} Of the real trace's jobs, {real} are served below 0.95. {_inside(printed)} "
        f"{_ahead(claims)} What turns it is half a day in place of two weeks, with these quotas or with equal ones "
        "(ltgf-jobfair), and counting a job from its own arrival, which alone puts a third of jobs below 0.95.",
        _table(printed, claims),
    )


def tenantfair_whole(extent: Extent = WHOLE) -> Finding:
    """Fig. 11 at the paper's size."""
    results = results_of(SIZE, extent)
    printed = _printed([results], TENANTS, UNFAIR_TENANTS, "cases below 1")
    claims = _times([results], TENANTS, UNFAIR_TENANTS_TIMES, "fewer cases below 1 than under")
    return Finding(
        ruling(claims),
        f"{_played_whole(results)} {_inside(printed)} {_ahead(claims)} A case is a tenant at a full hour, while jobs "
        f"come, over the time that is told: {'; '.join(TENANTS)} (ltgf-tenantfair). What would turn it: over "
        "which time fairness is told (5.2% comes out since the first arrival only, 49.0% over the last 24 "
        "hours only).",
        _table(printed, claims),
    )


def lease_whole(extent: Extent = WHOLE) -> Finding:
    """Fig. 9 at the paper's size."""
    studies = (results_of(SIZE, extent),)
    claims = _by_leases(studies)
    overhead = PrintedShare(f"overhead {OVERHEAD}% of the mean JCT, added up", OVERHEAD, [*_added_up(studies)])
    little = [each for each in overhead.levels if each.estimate.low <= OVERHEAD]
    return Finding(
        Ruling.QUALIFIED if little or any(claim.holding for claim in claims) else Ruling.REFUTED,
        f"{_played_whole(*studies)} {_best(studies)} {_ahead(claims)} The overhead at {LEASE} s, added up as in "
        f"ltgf-lease, is {_spread(overhead)}. Unfair cases of tenants, over the last 24 hours: "
        f"{_by_lease(studies)}. What would turn it: what a restart costs, with which the overhead grows; "
        "leases up to 1200 s differ by less than draws do.",
        _table([overhead], claims),
    )


def _real(results: StudyResults, policy: str) -> float:
    """Return the part of jobs below 0.95 in the trace as it was."""
    [setting] = results.settings
    return results.outcomes(policy, setting, "sharing_loss")[results.spec.seeds[0]]


def _played_whole(results: StudyResults) -> str:
    jobs, [place] = results.spec.traces[0].parameters["jobs"], results.spec.clusters
    return (
        f"Study {results.spec.name} ({len(results.cells)} runs of {len(results.spec.seeds)} traces, in intervals of "
        f"{results.spec.length:g} s): the first {jobs:,} jobs of two weeks of Venus, run times as they are, with the "
        f"quotas that tenants had, and draws of their blocks, on {place.label} of 8 GPUs."
    )


# -- what is printed ---------------------------------------------------------------------------------------------
def _both(study: str, extent: Extent) -> tuple[StudyResults, ...]:
    """Return a study in intervals of 60 s, and the one in the paper's."""
    return results_of(study, extent), results_of(INTERVALS, extent)


def _printed(
    studies: Sequence[StudyResults], measures: Readings, shares: dict[str, float], what: str
) -> list[PrintedShare]:
    found = {name: [(each, readings(each, name)) for each in studies] for name in shares}
    return [
        PrintedShare(
            f"{share}% {what} under {name}",
            share,
            [level for results, policies in found[name] for level in levels(results, policies, measures)],
        )
        for name, share in shares.items()
    ]


def _times(
    studies: Sequence[StudyResults], measures: Readings, factors: dict[str, float], what: str
) -> list[PrintedRatio]:
    return [
        PrintedRatio(
            f"{factor:.3g} times {what} {name}",
            factor,
            [
                case
                for results in studies
                for rival in readings(results, name)
                for case in cases(results, rival, readings(results, OWN), measures)
            ],
        )
        for name, factor in factors.items()
    ]


def _by_leases(studies: Sequence[StudyResults]) -> list[PrintedRatio]:
    """Return what Fig. 9 and its text say of leases."""
    time: Readings = {"mean JCT": "jct_mean"}
    return [
        PrintedRatio("JCT shorter at 900 s than at 300 s", 1, _leases(studies, 300, LEASE, time)),
        PrintedRatio("JCT shorter at 900 s than at 3600 s", 1, _leases(studies, 3600, LEASE, time)),
        PrintedRatio("JCT at 1200 s shorter than at 900 s", 1, _leases(studies, LEASE, 1200, time)),
        PrintedRatio("fewer jobs below 0.95 at 900 s than at 3600 s", 1, _leases(studies, 3600, LEASE, JOBS)),
    ]


def _leases(studies: Sequence[StudyResults], over: int, under: int, measures: Readings) -> list[RatioCase]:
    """Return how outcomes with leases of ``over`` seconds compare with those of ``under``, whatever the label."""
    return [
        replace(case, where={part: value for part, value in case.where.items() if part != "policy"})
        for results in studies
        for case in cases(results, _lease(results, over), [_lease(results, under)], measures)
    ]


def _lease(results: StudyResults, seconds: int) -> str:
    """Return what a study calls a lease; that of ASTRAEA's comparisons has its name."""
    return called if (called := f"{seconds} s") in results.policies else OWN


def _added_up(studies: Sequence[StudyResults]) -> Iterator[FoundShare]:
    """Yield the overhead as the published simulator's counts give it."""
    for results, setting in ((each, setting) for each in studies for setting in each.settings):
        if setting.mechanics.restart:
            runs = results.played(_lease(results, LEASE), setting)
            values = {
                each.seed: _overhead(setting, each.seed, each.observed.measures) for each in runs if each.observed
            }
            where = {**setting.names, "length": f"intervals of {results.spec.length:g} s"}
            yield FoundShare(where, percentages(values, setting.source.resampled))


def _overhead(setting: StudySetting, seed: int, measures: Mapping[str, float | None]) -> float:
    work = drawn(setting.source, setting.place, setting.load, WorkEstimates(), seed).jobs.work
    checkpoints = sum(ceil(each / LEASE) - 1 for each in work.tolist())
    spent = CHECKPOINT * checkpoints + RESTART * (measures["restarts"] or 0)
    return float(spent / ((measures["jct_mean"] or 0) * len(work)))


def _by_runs(results: StudyResults) -> Iterator[FoundShare]:
    """Yield by which part completion times are longer where restarts cost time."""
    free = {(each.source.label, each.place.label): each for each in results.settings if not each.mechanics.restart}
    for setting in results.settings:
        if setting.mechanics.restart:
            both = setting, free[setting.source.label, setting.place.label]
            slow, fast = (results.outcomes(f"{LEASE} s", each, "jct_mean") for each in both)
            values = {seed: slow[seed] / fast[seed] - 1 for seed in slow if seed in fast}
            yield FoundShare(setting.names, _around(values, setting.source.resampled))


def _around(values: dict[int, float], resampled: bool) -> Estimate:
    """Return `percentages` of numbers that may be below 0."""
    found = mean_of([*values.values()], resampled)
    return Estimate(100 * found.value, 100 * found.low, 100 * found.high)


# -- words -------------------------------------------------------------------------------------------------------
def _played(*studies: StudyResults) -> str:
    spec = studies[0].spec
    size = spec.traces[0].parameters
    places = listed(each.label for each in spec.clusters)
    names = listed(
        f"{each.spec.name} ({len(each.cells)} runs of {len(each.spec.seeds)} traces, in intervals of "
        f"{each.spec.length:g} s)"
        for each in studies
    )
    return (
        f"Studies {names}: the first {size['jobs']} jobs of the real excerpt of Venus (run times cut to "
        f"{size['longest_hours']} hours) and draws of its blocks, on {places} of 8 GPUs; the paper has 11,304 jobs of "
        "two weeks, which it does not name, on 100 hosts, where these jobs hardly queue (ltgf-jobfair-whole)."
    )


def _range(results: StudyResults, policy: str, like: StudyResults | None = None) -> str:
    """Return the least and the largest share of jobs below 0.95; on the traces only, and draws, that ``like`` has."""
    other = like or results
    same = StudyResults(replace(results.spec, seeds=other.spec.seeds), results.cells)
    traces = {each.source.label for each in other.settings}
    found = [each.estimate.value for each in levels(same, [policy], JOBS) if each.where["trace"] in traces]
    return ends(min(found), max(found))


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
        return ("the one case" if len(some) == 1 else f"all {len(some)} cases") if some else "none"
    where = parts(some, claim.cases)
    return f"{len(some)} of {len(claim.cases)} cases" + ("" if where == "in every part" else f" ({where})")


def _best(studies: Sequence[StudyResults]) -> str:
    """Say which lease has the shortest mean completion time in each setting."""
    best = []
    for results, setting in ((each, setting) for each in studies for setting in each.settings):
        outcomes = {each: results.outcomes(_lease(results, each), setting, "jct_mean") for each in LENGTHS}
        known = {lease: mean_of([*values.values()], False).value for lease, values in outcomes.items() if values}
        if known:
            least = min(known, key=lambda lease: known[lease])
            apart = digits(100 * (max(known.values()) / known[least] - 1))
            where = f"{setting.place.label}, {setting.mechanics.label}, intervals of {results.spec.length:g} s"
            best.append(f"{least} s on {where} (the longest is {apart}% longer)")
    return f"The lease with the shortest mean completion time is {listed(best)}."


def _by_lease(studies: Sequence[StudyResults]) -> str:
    """Return how often tenants are served unfairly, by lease."""
    said = []
    for lease in LENGTHS:
        every = (levels(each, [_lease(each, lease)], {"": TENANTS["last 24 hours"]}) for each in studies)
        found = [level.estimate.value for each in every for level in each]
        said.append(f"{lease} s {ends(min(found), max(found))}%")
    return listed(said)


def _spread(printed: PrintedShare) -> str:
    line = printed.line()
    return f"{line.found} {line.interval}"


def _by_intervals(results: StudyResults) -> str:
    """Return the part of the jobs of the trace itself that wait too long for the next interval."""
    setting = next(results.spec.settings())
    source = replace(setting.source, grid=0)
    jobs = drawn(source, setting.place, setting.load, WorkEstimates(), 0).jobs
    wait = np.ceil(jobs.arrival / INTERVAL) * INTERVAL - jobs.arrival
    return percent(float(np.mean(jobs.work < float(LOSS) * (jobs.work + wait))), 1)


def _table(printed: Sequence[PrintedShare], claims: Sequence[PrintedRatio]) -> tuple[PrintedAndFound, ...]:
    return (*(each.line() for each in printed), *(each.line() for each in claims if each.cases))
