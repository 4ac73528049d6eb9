"""Rows that a study decides: ``python -m fairopt.proofs.ledger.studying ROW... [--quick] [--write] [--cells FOLDER]``.

The function of such a row takes an `Extent` and returns a `Finding` with a table. Rows of one study share its cells.
``--quick`` plays the first seeds only and says what they give; ``--write`` writes what came out into the ledger's
files; ``--cells`` keeps what was played in a folder and goes on from there.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter

from fairopt.errors import BadInput
from fairopt.experiment.bench.records import environments
from fairopt.experiment.journal import RecordsFile
from fairopt.experiment.runner import place
from fairopt.experiment.statistics import Estimate, PairedResult, compare_drawn, compare_resampled
from fairopt.experiment.studies.cells import KINDS, StudyCell, planned, progress_text, run_study
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import StudySetting, StudySpec
from fairopt.experiment.words import digits
from fairopt.proofs.ledger.checking import require
from fairopt.proofs.ledger.entries import Finding, read_package
from fairopt.proofs.ledger.rewrite import PACKAGE, rewritten

#: Seeds of the quick form.
FEW = 2
#: Seconds between two lines that say how far a study is.
BETWEEN = 30.0


@dataclass(frozen=True)
class Extent:
    """How much of a study is played: its first ``seeds`` (None: all), kept in the folder ``cells`` (None: nowhere)."""

    seeds: int | None = None
    cells: Path | None = None


WHOLE = Extent()


@lru_cache(maxsize=4)
def results_of(study: str, extent: Extent = WHOLE) -> StudyResults:
    """Play a study, by the name or file of its specification, on all cores; each cell is played once.

    Errors: `NoLongerFollows` where a cell failed; those of `run_study`.
    """
    spec = StudySpec.read(study)
    spec = replace(spec, seeds=spec.seeds[: extent.seeds])
    with ExitStack() as stack:
        file, records = None, []
        if extent.cells is not None:
            extent.cells.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(RecordsFile(extent.cells / f"{spec.name}.jsonl", KINDS, _say, place="--cells"))
            records += file.before
        done = {each.key for each in records if isinstance(each, StudyCell)}
        executor, concurrent = stack.enter_context(place(os.cpu_count() or 1, None))
        known, total = environments(records).keys(), len(planned(spec))
        fresh, began = 0, perf_counter()
        said = began - BETWEEN
        for record in run_study(spec, executor, concurrent=concurrent, done=done, known=known):
            records.append(record)
            if file is not None:
                file.add(record)
            fresh, now = fresh + isinstance(record, StudyCell), perf_counter()
            if now - said > BETWEEN and fresh:
                _say(f"{spec.name}: {progress_text(len(done) + fresh, total, 0, now - began, fresh)}")
                said = now
    results = StudyResults(spec, records)
    require(not results.failed, f"all cells of {study} are played; {'; '.join(results.notes)}")
    return results


# -- numbers -----------------------------------------------------------------------------------------------------
def ratio(results: StudyResults, setting: StudySetting, measure: str, over: str, under: str) -> PairedResult | None:
    """Return how outcomes of one policy compare with another's, in pairs of runs of one setting; None without any."""
    first, second = (results.outcomes(each, setting, measure) for each in (over, under))
    seeds = [seed for seed in first if seed in second]
    compare = compare_resampled if setting.source.resampled else compare_drawn
    return compare([first[each] for each in seeds], [second[each] for each in seeds]) if seeds else None


# -- words -------------------------------------------------------------------------------------------------------
def between(values: Sequence[Estimate]) -> str:
    """Return the least and the largest of what was found: "0.81 to 1.32"."""
    return ends(min(each.value for each in values), max(each.value for each in values))


def intervals(values: Sequence[Estimate]) -> str:
    """Return the intervals of the least and the largest of what was found: "[0.75, 0.87] to [1.20, 1.45]"."""
    least, most = (choose(values, key=lambda each: each.value) for choose in (min, max))
    texts = dict.fromkeys(f"[{digits(each.low)}, {digits(each.high)}]" for each in (least, most))
    return " to ".join(texts)


def ends(low: float, high: float) -> str:
    """Return "low to high" in three digits, once where both are the same."""
    return " to ".join(dict.fromkeys((digits(low), digits(high))))


# -- the command -------------------------------------------------------------------------------------------------
def main(arguments: list[str] | None = None) -> int:
    """Recompute the rows that the command line names; return 0."""
    parser = ArgumentParser(prog="python -m fairopt.proofs.ledger.studying", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("id", nargs="+", help="rows that a study decides")
    parser.add_argument("--quick", action="store_true", help=f"play the first {FEW} seeds only")
    parser.add_argument("--write", action="store_true", help="write what comes out into the ledger's files")
    parser.add_argument("--cells", type=Path, metavar="FOLDER", help="keep cells here, and go on from those there")
    options = parser.parse_args(arguments)
    if options.quick and options.write:
        raise BadInput("the quick form is not the ledger's", place="--write", remedy="Leave --quick out")
    extent = Extent(FEW if options.quick else None, options.cells)
    for name, finding, seconds in _findings(options.id, extent):
        said = [f"{name}: {finding.verdict.value} ({seconds:.0f} s)", *map(" | ".join, finding.table), finding.evidence]
        print("\n  ".join(said), flush=True)
        if options.write:
            row = next(row for row in read_package(PACKAGE) if row.id == name)
            print(f"  {rewritten(row, finding, named=True)}", flush=True)
    return 0


def _findings(names: Sequence[str], extent: Extent) -> Iterator[tuple[str, Finding, float]]:
    rows = {row.id: row for row in read_package(PACKAGE) if row.run}
    for unknown in (name for name in names if name not in rows):
        raise BadInput(f"there is no row {unknown!r} that can be computed", place="ROW", remedy="`fairopt claims`")
    for name in names:
        compute: Callable[[Extent], Finding] = rows[name].computation()
        begun = perf_counter()
        yield name, compute(extent), perf_counter() - begun


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
