"""Fig. 9 and Sec. 6.3.3: completion times, and workers that wait for slower types, by a study of 50 tenants."""

from __future__ import annotations

from collections.abc import Sequence

from fairopt.experiment.studies.results import StudyResults
from fairopt.numbers import number_text
from fairopt.proofs.ledger.cases import PrintedRatio, parts, ruling
from fairopt.proofs.ledger.entries import Finding, PrintedAndFound
from fairopt.proofs.ledger.levels import Readings, cases, levels
from fairopt.proofs.ledger.studying import WHOLE, Extent, between, ends, results_of
from fairopt.proofs.ledger.wording import listed

STUDY, OWN = "oef-tenants", "OEF"
TIME: Readings = {"mean": "jct_mean"}
#: Sec. 6.3.3 tracks cross-type placements "where higher-end GPU resources remain idle".
WORKERS: Readings = {"workers of mixed gangs": "mixed_types", "workers on the faster GPUs": "held_back"}


def jct(extent: Extent = WHOLE) -> Finding:
    """Fig. 9: mean completion times beside those of trading and of max-min."""
    results = results_of(STUDY, extent)
    claims = [
        _less("17% shorter than under trading, same rounding and placer", 17, results, "trading", TIME),
        _less("19% shorter than under max-min, same rounding and placer", 19, results, "max-min", TIME),
        _less("17% shorter than under Gandiva_fair as a whole", 17, results, "Gandiva_fair", TIME),
        _less("19% shorter than under Gavel's rounds", 19, results, "Gavel", TIME),
    ]
    return Finding(
        ruling(claims),
        f"{_played(results)} Mean completion times over OEF's: {_beside(claims)}. With the same rounding and placer "
        "the schedulers differ by their shares alone, which is what OEF's theory is about. As a whole they differ in "
        "whom they let run first, too.",
        _table(claims),
    )


def straggler(extent: Extent = WHOLE) -> Finding:
    """Sec. 6.3.3: workers that wait for slower GPUs of another type."""
    results = results_of(STUDY, extent)
    claims = [
        _less("14% fewer workers than under trading", 14, results, "trading", WORKERS),
        _less("26% fewer workers than under max-min", 26, results, "max-min", WORKERS),
    ]
    shares = {
        name: [each.estimate.value for each in levels(results, [name], {"": "mixed_types"})]
        for name in (OWN, "trading", "max-min", "Gandiva_fair", "Gavel")
    }
    said = (f"{name} {ends(min(values), max(values))}%" for name, values in shares.items())
    return Finding(
        ruling(claims),
        f"{_played(results)} Workers over OEF's: {_beside(claims)}. GPU-time in gangs on several types, of all: "
        f"{listed(said)}. Gandiva_fair and Gavel, as their papers have them, run each gang on one type, so that none "
        "of their workers waits: the claim can only be about baselines with OEF's placer.",
        _table(claims),
    )


def _less(said: str, percent: float, results: StudyResults, rival: str, measures: Readings) -> PrintedRatio:
    """Return the claim that OEF's number is less by so many percent than a rival's."""
    return PrintedRatio(said, 1 / (1 - percent / 100), [*cases(results, rival, [OWN], measures)])


def _played(results: StudyResults) -> str:
    spec = results.spec
    loads = listed(f"{each:g}" for each in spec.loads)
    return (
        f"Study {spec.name}: {len(results.cells)} runs, {len(spec.seeds)} seeds of 50 tenants with about 20 jobs each "
        f"on the paper's 24 GPUs, until all are done, at loads of {loads} over three days; jobs come "
        f"{listed(each.label for each in spec.traces)}; gangs on several hosts run at "
        f"{listed(number_text(each.spread) for each in spec.mechanics)} of their speed."
    )


def _beside(claims: Sequence[PrintedRatio]) -> str:
    said = []
    for each in claims:
        where = f": {parts(each.ahead, each.cases)}" if 0 < len(each.ahead) < len(each.cases) else ""
        found = between([case.ratio for case in each.cases])
        said.append(
            f"{each.said.partition(' than ')[2]} {found} (OEF ahead for sure in {len(each.ahead)} of "
            f"{len(each.cases)}{where}; behind in {len(each.behind)})"
        )
    return "; ".join(said)


def _table(claims: Sequence[PrintedRatio]) -> tuple[PrintedAndFound, ...]:
    return tuple(each.line() for each in claims)
