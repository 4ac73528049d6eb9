"""Figures of a document, written from results and never by hand: goals, ratios, and where we are slower, in Markdown.

A document has a place for each block that it wants: the lines ``<!-- bench goals: begin -->`` and
``<!-- bench goals: end -->``, or the same with ``speed``; what stands between them is replaced. The block ``resolves``
has the same markers, and is written by ``benchmarks/resolves.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from fairopt.errors import BadInput
from fairopt.experiment.bench.goals import outcomes
from fairopt.experiment.bench.kinds import InstanceKey
from fairopt.experiment.bench.records import Record, status_words
from fairopt.experiment.bench.results import Study, studies, to_evidence
from fairopt.experiment.words import factor_text, seconds_text
from fairopt.problem.files.storage import naming, write_text

#: From this factor on one counts as slower; less may be noise.
SLOWER = 1.05
_REACHED = {True: "reached", False: "**not reached**", None: "not decided"}


@dataclass(frozen=True)
class Against:
    """Another contender's seconds over ours: at least these if ``bound`` by its limit, NaN if it ``failed``."""

    other: str
    factor: float
    bound: bool = False
    failed: str = ""


@dataclass(frozen=True)
class InstanceTimes:
    """One instance: our seconds to the answer and its evidence, and the others."""

    instance: InstanceKey
    seconds: float
    against: list[Against]


def goals(found: Iterable[Study]) -> str:
    """Return the table of all goals: task, goal, measured, how, and whether it was reached."""
    lines = ["| task | goal | measured | asked | |", "|---|---|---:|---:|---|"]
    for study in found:
        for each in outcomes(study):
            cells = [study.task, each.goal.text, each.measured, each.asked, _REACHED[each.reached]]
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
            tried = [each for each in every if any(math.isfinite(one.factor) for one in each.against)]
            most = max(tried, key=lambda each: (_answers(each), each.instance.size), default=None)
            largest = max(tried, key=lambda each: each.instance.size, default=None)
            lines += [_row(study, each, each.against) for each in every if each in (most, largest)]
            faster = [[one for one in each.against if not one.bound and one.factor < 1 / SLOWER] for each in every]
            slower += [_row(study, each, those) for each, those in zip(every, faster, strict=True) if those]
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
        raise BadInput("there is no place for figures", file=str(path), remedy=f"Put {_markers('goals')[0]} into it")
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
        raise BadInput("there is no place for the block", file=file, remedy=f"Put {begin} and {end} into it")
    return f"{before}{begin}\n\n{block.strip()}\n\n{end}{after}"


def measured_on(found: Iterable[Study], command: str) -> str:
    """Return one sentence: what was run, when, on which machine, from which commit."""
    listed = list(found)
    begun = min(row.measured.started for study in listed for row in study.rows)
    used = {each.digest: each for study in listed for each in study.environments}.values()
    commits = dict.fromkeys((each.commit[:12] or "no commit") + (", changed" if each.dirty else "") for each in used)
    where = " and ".join(dict.fromkeys(study.machine for study in listed))
    return f"Measured by `{command}` on {begun[:10]} ({where}; {'; '.join(commits)})."


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- bench {name}: begin -->", f"<!-- bench {name}: end -->"


def _by_family(study: Study) -> dict[str, list[InstanceTimes]]:
    """Return the comparisons by family, on instances that we solved and another contender was measured on.

    We are the specification's first contender, else the first measured.
    """
    ours = study.contenders[0] if study.spec is None else study.spec.contenders[0].label
    found: dict[str, list[InstanceTimes]] = {}
    for instance in study.instances:
        if (cell := study.cell(ours, instance)).solved:
            seconds = cell.median(to_evidence)
            if against := list(_against(study, ours, instance, seconds)):
                found.setdefault(instance.family, []).append(InstanceTimes(instance, seconds, against))
    return found


def _answers(of: InstanceTimes) -> int:
    return sum(math.isfinite(one.factor) and not one.bound for one in of.against)


def _against(study: Study, ours: str, instance: InstanceKey, seconds: float) -> Iterator[Against]:
    for name in study.present:
        cell = study.cell(name, instance)
        if name == ours or not cell.tried:
            continue
        if cell.solved:
            yield Against(name, cell.median(to_evidence) / seconds)
        elif cell.ran_out_of is not None:
            yield Against(name, cell.ran_out_of / seconds, bound=True)
        else:
            yield Against(name, math.nan, failed=status_words(cell.tried))


def _row(study: Study, of: InstanceTimes, against: Iterable[Against]) -> str:
    parameters = of.instance.parameters.items()
    given = ", ".join(f"{name} {value:,}" if type(value) is int else f"{name} {value}" for name, value in parameters)
    ordered = sorted(against, key=lambda one: math.inf if math.isnan(one.factor) else one.factor)
    said = ", ".join(
        f"`{one.other}` " + (one.failed or ("over " if one.bound else "") + factor_text(one.factor)) for one in ordered
    )
    return f"| {study.task} | {of.instance.family} ({given}) | {seconds_text(of.seconds)} | {said} |"
