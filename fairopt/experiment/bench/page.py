"""The page of a benchmark: HTML that needs no other file, made from the records alone.

The same records give the same bytes. Every number of a table leads to its measurements, which stand at the end of the
page with their numbers among the records; these name the instance by hash and the environment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from fairopt.discovery import library
from fairopt.errors import BadInput
from fairopt.experiment import words
from fairopt.experiment.bench import tables
from fairopt.experiment.bench.kinds import Instance
from fairopt.experiment.bench.pictures import growth_picture, growth_words, profile_picture, profile_words
from fairopt.experiment.bench.records import WORDS, Record
from fairopt.experiment.bench.results import Study, studies, to_answer, wall
from fairopt.experiment.bench.timing import Growth, fit, geometric_mean, to_the_best
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Environment
from fairopt.experiment.page import rendered, svg
from fairopt.experiment.statistics import SAMPLES
from fairopt.experiment.words import seconds_text
from fairopt.numbers import counted


def report(records: Iterable[Record], title: str = "Benchmark") -> str:
    """Return the page of measurements and their environments.

    Others are compared with the first contender that a goal of the specification names, else with who solved most.

    Errors: `BadInput` if nothing was measured, and for a measurement that cannot be (place "record 3"); `NotInstalled`
    without Jinja2, SciPy or matplotlib.
    """
    found = studies(records)
    names = list(dict.fromkeys(name for study in found for name in study.contenders))
    numbers = {name: number for number, name in enumerate(names)}
    return rendered(
        "page.html",
        __package__,
        "a report",
        {
            "seconds": words.seconds_text,
            "bytes": words.bytes_text,
            "factor": words.factor_text,
            "part": words.part_text,
            "power": words.power_text,
            "tiny": words.tiny_text,
            "thousands": words.thousands,
            "settings": words.settings_text,
            "versions": words.versions_text,
            "status": WORDS.__getitem__,
            "libraries": tables.libraries,
        },
        NOTHING=words.NOTHING,
        samples=SAMPLES,
        what=_what,
        outcomes=tables.outcomes,
        to_answer=to_answer,
        wall=wall,
        geometric_mean=geometric_mean,
        unsolved=tables.unsolved,
        title=title,
        summary=_summary(found),
        studies=found,
        baselines=[study.baseline for study in found],
        timed=[study for study in found if study.reference_walls],
        steadiness_of=tables.steadiness,
        environments=list(_environments(found)),
        profile=partial(_profile, numbers=numbers),
        growths=partial(_growths, numbers=numbers),
    )


def require_libraries() -> None:
    """Refuse a page that could not be made. Errors: `NotInstalled` without Jinja2, SciPy or matplotlib."""
    library("jinja2", "a report")
    library("scipy.stats", "a report")
    library("matplotlib", "a report")


def _summary(found: Sequence[Study]) -> dict[str, Any]:
    rows = [row for study in found for row in study.rows]
    statuses = Counter(row.status for row in rows)
    ended = ", ".join(f"{statuses[each]:,} {WORDS[each]}" for each in TrialStatus if statuses[each])
    contenders = counted(len({name for study in found for name in study.contenders}), "contender")
    instances = counted(len({(key.name, key.digest) for study in found for key in study.instances}), "instance")
    begun = sorted(row.started for row in rows)
    return {
        "measured": f"{counted(len(rows), 'measurement')} ({ended}) of {contenders} on {instances}",
        "first": begun[0],
        "last": begun[-1],
        "machines": list(dict.fromkeys(study.machine for study in found)),
    }


def _environments(found: Iterable[Study]) -> Iterator[tuple[Environment, str]]:
    """Yield each environment, with the digest of an earlier one of the same specification, or ""."""
    first: dict[str, str] = {}
    for each in {each.digest: each for study in found for each in study.environments}.values():
        same = first.setdefault(each.spec_text, each.digest)
        yield each, "" if same == each.digest else same


def _what(study: Study) -> str:
    rows = study.rows
    memory = max((row.memory_limit for row in rows if row.memory_limit is not None), default=None)
    at_once = study.concurrent
    parts = [
        f"Task {study.task} (specification {study.name})",
        counted(len(study.contenders), "contender"),
        counted(len(study.instances), "instance"),
        f"up to {counted(max(len(cell.rows) for cell in study.cells.values()), 'repeat')}",
        "no time limit recorded" if study.limit is None else f"time limit {words.seconds_text(study.limit)}",
        "no memory limit" if memory is None else f"memory limit {words.bytes_text(memory)}",
        f"{counted(max(row.threads for row in rows), 'thread')} a contender",
        "one measurement at a time" if at_once == 1 else f"up to {at_once} measurements at once, which slow each other",
    ]
    return "; ".join(parts) + f". On {study.machine}."


def _profile(study: Study, numbers: Mapping[str, int]) -> str:
    seconds = np.array([study.seconds(name, to_answer) for name in study.present])
    solved = np.array([study.solved(name) for name in study.present])
    found = dict(zip(study.present, to_the_best(seconds, solved), strict=True))
    description = "; ".join(f"{name}: fastest on {profile_words(each)}" for name, each in found.items())
    title = f"Performance profile of {study.title}, {study.anchor}"
    return svg(partial(profile_picture, found, numbers), title, "a report", description)


def _growths(study: Study, numbers: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """Yield for each group of more than one size a picture, and what was fitted or why nothing could be."""
    by_group: dict[str, list[Instance]] = {}
    for (group, _), of in study.columns.items():
        by_group.setdefault(group, []).extend(each for each in of if each.size > 0)
    for group, of in by_group.items():
        cells = {name: [(float(each.size), study.cell(name, each)) for each in of] for name in study.present}
        solved = {
            name: sorted((size, cell.median(to_answer)) for size, cell in each if cell.solved)
            for name, each in cells.items()
        }
        failed = {
            name: sorted({size for size, cell in each if cell.rows and not cell.solved}) for name, each in cells.items()
        }
        fitted = {name: _fitted(points) for name, points in solved.items() if points or failed[name]}
        if len({each.size for each in of}) < 2 or not fitted:
            continue
        described = "; ".join(
            f"{name}: {seconds_text(points[-1][1])} at size {points[-1][0]:g} {growth_words(fitted[name])}".strip()
            for name, points in solved.items()
            if points
        )
        draw = partial(growth_picture, solved, failed, fitted, numbers, study.limit)
        title = f"Time over size on {group}, {study.title}, {study.anchor}"
        picture = svg(draw, title, "a report", described or "nothing was solved")
        yield {"name": group, "picture": picture, "fitted": fitted}


def _fitted(points: Sequence[tuple[float, float]]) -> Growth | BadInput:
    try:
        return fit([size for size, _ in points], [seconds for _, seconds in points])
    except BadInput as error:  # too few sizes: the table says so
        return error
