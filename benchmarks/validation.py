"""Plays Shockwave's published traces under its seven policies and writes what comes out into docs/validation.md.

``python -m fairopt.benchmarks.validation``, or ``make validation``. Interrupted, the same command goes on: what has
been played stands in build/validation, in a table that is named after the code that played it. ``--traces 120`` plays
some of the traces only, and leaves the rows of the others as they are.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

from fairopt.benchmarks.shockwave.jobs import CLUSTERS, HERE, Row, cluster, rows, table, trace
from fairopt.benchmarks.shockwave.policies import policies
from fairopt.models import GavelRounds, Shockwave
from fairopt.policy import Policy
from fairopt.problem import Jobs, Trace
from fairopt.simulation import Mechanics
from fairopt.simulation.engine import Engine

ROOT = Path(__file__).resolve().parent.parent
PAGE, OURS = ROOT / "docs" / "validation.md", HERE / "ours.csv"
ROUND, LOADING = 120, 20
#: Above this ratio a job is treated unfairly. Source: the paper's finish-time fairness is 1; here 1.1.
UNFAIR = 1.1
FIGURES = {"makespan": 0, "mean_jct": 0, "worst": 2, "unfair": 3, "utilisation": 3}
#: What is changed in the 120-job trace to see what it does, one thing at a time.
CHANGES = (
    "renewed at once",
    "no loading",
    "one speed",
    "exact epochs",
    "planned once",
    "parts of rounds",
    "rounds apart",
    "held under AlloX",
)
#: Options of Shockwave that a change sets.
OPTIONS: dict[str, dict[str, Any]] = {
    "exact epochs": {"epoch": 0.0},
    "planned once": {"again": None},
    "parts of rounds": {"most_whole": 0},
    "rounds apart": {"together": False, "gap": 1e-2},
}
_SOLVED = "how well a window is solved: *parts of rounds*, *rounds apart*; three published runs have "
#: Why a figure is off by more than 10%, by policy and figure; what a change does stands in the table of changes.
CAUSES = {
    ("shockwave", "worst"): _SOLVED + "1.64 to 2.00",
    ("shockwave", "unfair"): _SOLVED + "0.025 to 0.050",
    ("min_total_duration", "worst"): "one job; 7.49 *renewed at once*, 5.85 with *no loading*",
    ("gandiva_fair", "worst"): "one job; 1.97 *renewed at once*, 1.76 with *no loading*",
}


def changed(change: str, jobs: list[Row], own: Policy) -> tuple[Policy, Trace, int] | None:
    """Return what is played with a change: the policy, the trace, the time of loading; None where nothing changes."""
    fractions, shockwave = isinstance(own, GavelRounds), isinstance(own, Shockwave)
    if change == "renewed at once":
        return (replace(own, interval=0), trace(jobs), LOADING) if fractions else None
    if change == "no loading":
        return own, trace(jobs), 0
    if change == "one speed":
        return own, trace(jobs, adapt=False), LOADING
    if change == "held under AlloX":
        return replace(own, **({"interval": 0} if fractions else {"epoch": 0.0})), held(jobs), 0
    if not change:
        return own, trace(jobs), LOADING
    return (replace(own, **OPTIONS[change]), trace(jobs), LOADING) if shockwave else None


def held(jobs: list[Row]) -> Trace:
    """Return jobs whose work is the time that each held in the published run under AlloX."""
    work = [ROUND * int(each["allox_rounds"]) for each in table("jobs_120")]
    names = [str(at) for at in range(len(jobs))]
    return Trace(
        Jobs.of(
            names=names,
            tenant=[f"t{name}" for name in names],
            types=["V100"],
            arrival=[job.arrival for job in jobs],
            gpus=[job.gpus for job in jobs],
            work=work,
        )
    ).as_(float)


def play(count: int, name: str, change: str = "") -> dict[str, str] | None:
    """Return the figures of a policy on the trace of so many jobs; None where the change does not concern it."""
    jobs = rows(count)
    played = changed(change, jobs, policies(count, jobs)[name])
    if played is None:
        return None
    policy, jobs_told, loading = played
    mechanics = Mechanics(restart=loading, launch=loading)
    engine = Engine(policy, jobs_told, cluster(count), length=ROUND, mechanics=mechanics, ask=True)
    ends = {row: float(end) for changes in engine for row, end in changes.completed.items()}
    gpus, makespan = CLUSTERS[count][0], max(ends.values())
    taken = [ends[at] - float(job.arrival) for at, job in enumerate(jobs)]
    fair = max(1.0, count / gpus)
    ratios = [each / float(job.alone() * fair) for each, job in zip(taken, jobs, strict=True)]
    work = busy(jobs_told)
    found = {
        "makespan": makespan,
        "mean_jct": sum(taken) / count,
        "worst": max(ratios),
        "unfair": sum(each > UNFAIR for each in ratios) / count,
        "utilisation": float(work) / makespan / gpus,
    }
    return {key: f"{value:.{FIGURES[key]}f}" for key, value in found.items()}


def busy(told: Trace) -> float:
    """Return the GPU-time of all work, without loading."""
    jobs = told.jobs
    return float(sum(jobs.work[row] / jobs.mean_speed(row)[0] * jobs.gpus[row] for row in range(len(jobs))))


def cells(counts: Iterable[int]) -> Iterator[tuple[int, str, str]]:
    """Yield what there is to play: trace, policy, change."""
    ours = policies(120, rows(120))
    names = [each["policy"] for each in table("published") if each["policy"] in ours]
    for count in counts:
        for change in ("", *CHANGES) if count == 120 else ("",):
            yield from ((count, name, change) for name in names)


# -- the page ----------------------------------------------------------------------------------------------------------
def block(ours: Mapping[tuple[int, str, str], Mapping[str, str]]) -> str:
    """Return the tables of the page."""
    published = {(int(each["trace"]), each["policy"]): each for each in table("published")}
    lines = ["| policy | figure | published | ours | ratio | cause |", "|---|---|---|---|---|---|"]
    for (count, name, change), own in ours.items():
        if count == 120 and not change:
            for figure, title in TITLES.items():
                theirs = published[count, name][figure]
                ratio = float(own[figure]) / float(theirs)
                why = CAUSES[name, figure] if abs(ratio - 1) > 0.1 else ""
                lines.append(f"| `{name}` | {title} | {theirs} | {own[figure]} | {ratio:.3f} | {why} |")
    lines += ["", *_orders(ours, published), "", *_whole(ours), "", *_changes(ours)]
    return "\n".join(lines)


def _orders(
    ours: Mapping[tuple[int, str, str], Mapping[str, str]], published: Mapping[tuple[int, str], Mapping[str, str]]
) -> Iterator[str]:
    """Yield which policies come in another order, by figure."""
    names = [name for count, name, change in ours if count == 120 and not change]
    for figure, title in TITLES.items():
        swapped = []
        for one, other in combinations(names, 2):
            theirs = [float(published[120, name][figure]) for name in (one, other)]
            own = [float(ours[120, name, ""][figure]) for name in (one, other)]
            if (theirs[0] - theirs[1]) * (own[0] - own[1]) < 0:
                apart = abs(theirs[0] - theirs[1]) / max(theirs)
                swapped.append(f"`{one}` and `{other}` ({apart:.1%} apart as published)")
        yield f"* {title}: " + ("in the published order." if not swapped else f"but for {', '.join(swapped)}.")


TITLES = {
    "makespan": "makespan, s",
    "mean_jct": "mean completion time, s",
    "worst": "worst finish-time fairness",
    "unfair": "jobs above 1.1",
    "utilisation": "utilisation",
}


def _whole(ours: Mapping[tuple[int, str, str], Mapping[str, str]]) -> Iterator[str]:
    yield f"| jobs, GPUs | policy | {' | '.join(TITLES.values())} | makespan, over Shockwave's |"
    yield "|---|---|" + "---|" * 6
    for (count, name, change), own in ours.items():
        if count != 120 and not change:
            ratio = float(own["makespan"]) / float(ours[count, "shockwave", ""]["makespan"])
            figures = " | ".join(own[figure] for figure in TITLES)
            yield f"| {count}, {CLUSTERS[count][0]} | `{name}` | {figures} | {ratio:.2f} |"


def _changes(ours: Mapping[tuple[int, str, str], Mapping[str, str]]) -> Iterator[str]:
    yield f"| changed | policy | {' | '.join(TITLES.values())} |"
    yield "|---|---|" + "---|" * 5
    for (count, name, change), own in ours.items():
        if change:
            before = ours[count, name, ""]
            ratios = (f"{float(own[figure]) / float(before[figure]):.2f}" for figure in TITLES)
            yield f"| {change} | `{name}` | {' | '.join(ratios)} |"


def known(path: Path) -> dict[tuple[int, str, str], dict[str, str]]:
    """Return what a table of ours says, by trace, policy and change."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as stream:
        whole = [each for each in csv.DictReader(stream) if None not in each.values()]  # an interruption may tear one
    return {(int(each["trace"]), each["policy"], each["change"]): {key: each[key] for key in FIGURES} for each in whole}


def written(found: Mapping[tuple[int, str, str], Mapping[str, str]], path: Path) -> None:
    beside = path.with_suffix(".part")
    with beside.open("w", encoding="utf-8", newline="") as stream:
        out = csv.writer(stream, lineterminator="\n")
        out.writerow(["trace", "policy", "change", *FIGURES])
        out.writerows([*key, *figures.values()] for key, figures in found.items())
    beside.replace(path)


MARKS = "<!-- shockwave: written by benchmarks/validation.py -->", "<!-- shockwave: end -->"


def into(page: str, tables: str) -> str:
    """Return the page with these tables."""
    before, rest = page.split(MARKS[0])
    return f"{before}{MARKS[0]}\n\n{tables}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}"


def code() -> str:
    """Return a digest of all that decides what is played."""
    made = sha256()
    for path in sorted(
        [*(ROOT / "fairopt").rglob("*.py"), *(ROOT / "models").rglob("*.py"), *HERE.glob("*.[pc][ys]*")]
    ):
        if path != OURS and path.is_file():
            made.update(path.read_bytes())
    return made.hexdigest()[:16]


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=int, nargs="+", choices=list(CLUSTERS), default=list(CLUSTERS))
    wanted = list(cells(parser.parse_args(argv).traces))
    folder = ROOT / "build" / "validation"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{code()}.csv"
    played: dict[tuple[int, str, str], Any] = dict(known(path))
    for number, cell in enumerate(wanted, start=1):
        if cell not in played:
            played[cell] = play(*cell)
            written({key: each or dict.fromkeys(FIGURES, "") for key, each in played.items()}, path)
        print(f"{number} of {len(wanted)}: {cell}: {played[cell]}", file=sys.stderr, flush=True)
    ours = known(OURS) | {cell: played[cell] for cell in wanted}
    ours = {cell: ours[cell] for cell in cells(CLUSTERS) if ours.get(cell) and all(ours[cell].values())}
    written(ours, OURS)
    PAGE.write_text(into(PAGE.read_text(encoding="utf-8"), block(ours)), encoding="utf-8")


if __name__ == "__main__":
    main()
