"""Figures of a document, written from results and never by hand: goals, ratios, and where we are slower, in Markdown.

A document has a place for each block that it wants: the lines ``<!-- bench goals: begin -->`` and
``<!-- bench goals: end -->``, or the same with ``speed``; what stands between them is replaced. The block ``resolves``
has the same markers, and is written by ``benchmarks/resolves.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path

import numpy as np

from fairopt.errors import BadInput
from fairopt.experiment.bench.kinds import Instance
from fairopt.experiment.bench.records import Record, status_words
from fairopt.experiment.bench.results import Cell, Study, studies, to_evidence
from fairopt.experiment.bench.tables import outcomes, ratio
from fairopt.experiment.words import factor_text, seconds_text
from fairopt.problem.files.storage import naming, write_text

#: From this factor on one counts as slower; less may be noise.
SLOWER = 1.05
_REACHED = {True: "reached", False: "**not reached**", None: "not decided"}


#: An instance, our cell of it, and the cells of others with their seconds over ours, by name.
_Compared = tuple[Instance, Cell, dict[str, tuple[Cell, float]]]


def goals(found: Iterable[Study]) -> str:
    """Return the table of all goals: task, goal, measured, how, and whether it was reached."""
    lines = ["| task | goal | measured | asked | |", "|---|---|---:|---:|---|"]
    for study in found:
        for each in outcomes(study):
            cells = [study.task, each.text, each.measured, each.asked, _REACHED[each.reached]]
            lines.append("| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines)


def speed(found: Iterable[Study]) -> str:
    """Return a table of ratios, then one of the contenders that were faster, and where.

    The first contender of a specification is compared with the rest: seconds of build, solve and certify. The first
    table has, of each family, the instance that most others answered, and the largest that any other answered or ran
    out of time on; the second has all instances.
    """
    lines = ["| task | instance | fairopt | seconds of the others over fairopt's |", "|---|---|---:|---|"]
    slower: list[str] = []
    for study in found:
        for every in _by_family(study).values():
            tried = [each for each in every if any(math.isfinite(value) for _, value in each[2].values())]
            most = max(tried, key=lambda each: (_answers(each), each[0].size), default=None)
            largest = max(tried, key=lambda each: each[0].size, default=None)
            lines += [_row(study, *each) for each in every if each in (most, largest)]
            for instance, ours, others in every:
                faster = {name: one for name, one in others.items() if one[0].solved and one[1] < 1 / SLOWER}
                slower += [_row(study, instance, ours, faster)] if faster else []
    if not slower:
        return "\n".join([*lines, "", "No other contender was faster anywhere."])
    return "\n".join([*lines, "", "Who was faster, and took which part of fairopt's seconds:", "", *lines[:2], *slower])


#: What a document may have a place for.
BLOCKS: Mapping[str, Callable[[Iterable[Study]], str]] = {"goals": goals, "speed": speed}


def write_figures(records: Iterable[Record], path: str | PathLike[str], command: str) -> None:
    """Write the blocks that a document has a place for; ``command`` is what made the results.

    Errors: `BadInput` where it has a place for none, or where nothing was measured.
    """
    found = studies(records)
    document = Path(path)
    try:
        text = document.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=str(path), remedy="Give a Markdown file") from error
    wanted = [name for name in BLOCKS if _markers(name)[0] in text]
    if not wanted:
        raise BadInput("markers of figures are missing", file=str(path), remedy=f"Put {_markers('goals')[0]} into it")
    for name in wanted:
        text = put_into(text, name, f"{measured_on(found, command)}\n\n{BLOCKS[name](found)}", str(path))
    with naming(path):
        write_text(path, text)


def put_into(text: str, name: str, block: str, file: str = "") -> str:
    """Return a document with the block of that name written anew. Errors as `put_between`."""
    return put_between(text, *_markers(name), block, file)


def put_between(text: str, begin: str, end: str, block: str, file: str = "") -> str:
    """Return a document with a block between two markers written anew. Errors: `BadInput` where a marker is missing."""
    before, first, rest = text.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise BadInput("the markers of the block are missing", file=file, remedy=f"Put {begin} and {end} into it")
    return f"{before}{begin}\n\n{block.strip()}\n\n{end}{after}"


def measured_on(found: Iterable[Study], command: str) -> str:
    """Return one sentence: what was run, when, on which machine, from which commit."""
    listed = list(found)
    begun = min(row.started for study in listed for row in study.rows)
    used = {each.digest: each for study in listed for each in study.environments}.values()
    commits = dict.fromkeys((each.commit[:12] or "no commit") + (", changed" if each.dirty else "") for each in used)
    where = " and ".join(dict.fromkeys(study.machine for study in listed))
    return f"Measured by `{command}` on {begun[:10]} ({where}; {'; '.join(commits)})."


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- bench {name}: begin -->", f"<!-- bench {name}: end -->"


def _by_family(study: Study) -> dict[str, list[_Compared]]:
    """Return the comparisons by family, on instances that we solved and another contender was measured on.

    We are the specification's first contender, else the first measured.
    """
    ours = study.contenders[0] if study.spec is None else study.spec.contenders[0].label
    found: dict[str, list[_Compared]] = {}
    for instance in study.instances:
        cell = study.cell(ours, instance)
        cells = {name: study.cell(name, instance) for name in study.present if name != ours}
        others = {name: (other, ratio(cell, other)) for name, other in cells.items() if other.tried}
        if cell.solved and others:
            found.setdefault(instance.family, []).append((instance, cell, others))
    return found


def _answers(of: _Compared) -> int:
    return sum(math.isfinite(value) and cell.solved for cell, value in of[2].values())


def _row(study: Study, instance: Instance, ours: Cell, others: Mapping[str, tuple[Cell, float]]) -> str:
    parameters = instance.parameters.items()
    given = ", ".join(f"{name} {value:,}" if type(value) is int else f"{name} {value}" for name, value in parameters)
    said = []
    for name, (cell, value) in sorted(others.items(), key=lambda each: np.nan_to_num(each[1][1], nan=math.inf)):
        failed = status_words(cell.tried) if math.isnan(value) else ""
        said.append(f"`{name}` " + (failed or ("" if cell.solved else "over ") + factor_text(value)))
    seconds = seconds_text(ours.median(to_evidence))
    return f"| {study.task} | {instance.family} ({given}) | {seconds} | {', '.join(said)} |"
