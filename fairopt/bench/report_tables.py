"""The tables of what comes out of a benchmark; each time leads to its measurements, by a link within the page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from fairopt.bench.growth import Growth
from fairopt.bench.records import InstanceKey, Measurement, Status
from fairopt.bench.report_goals import outcomes
from fairopt.bench.report_html import Html, element, header, joined, row, table
from fairopt.bench.report_studies import Cell, Seconds, Study, building, certifying, solving, to_answer
from fairopt.bench.report_words import NOTHING, WORDS, bytes_text, count, factor_text, seconds_text
from fairopt.bench.statistics import median_of, ratios
from fairopt.errors import BadInput


def goals(study: Study) -> Html | None:
    """Return goal, measured, how, and whether it was reached; None where the specification states no goal."""
    found = outcomes(study)
    if not found:
        return None
    words = {True: ("reached", "good"), False: ("not reached", "bad"), None: ("not decided", "soft")}
    rows = [
        row(
            each.goal.text,
            each.goal.contender + (f" against {each.goal.against}" if each.goal.against else ""),
            element("td", each.asked, class_="tight"),
            each.measured if each.instance is None else _link(study, each.goal.contender, each.instance, each.measured),
            joined(each.how, element("small", f"worst: {each.instance.name}") if each.instance else None),
            element("td", words[each.reached][0], class_=words[each.reached][1]),
            number=False,
        )
        for each in found
    ]
    head = header("goal", "contender", "asked", "measured", "how", "")
    return table("Goals: the worst of the instances that a goal is about decides", [head], rows, "goals")


def seconds(study: Study) -> Html:
    """Return contenders by instance sizes: seconds to the answer, their parts, memory, and what was not solved."""
    columns = study.columns
    groups: dict[str, int] = {}
    for group, _ in columns:
        groups[group.name] = groups.get(group.name, 0) + 1
    above = [element("th", name, scope="colgroup", colspan=across, class_="group") for name, across in groups.items()]
    below = [
        element("th", f"size {size:,}", element("small", count(len(of), "instance")), scope="col", class_="n")
        for (_, size), of in columns.items()
    ]
    head = [
        element("tr", element("th", "contender", scope="col", rowspan="2"), *above),
        element("tr", *below),
    ]
    best = {key: _best(study, of) for key, of in columns.items()}
    rows = []
    for name in study.contenders:
        cells = [_cell(study, name, of, best[key]) for key, of in columns.items()]
        rows.append(row(name, *cells))
    caption = (
        "Wall seconds to a verified answer: build + solve, medians. Below them: the parts, then the time of certifying "
        "(where a contender gives evidence) and the peak memory of the process. The fastest is shaded."
    )
    return table(caption, head, rows)


def means(study: Study, baseline: str) -> Html:
    """Return shifted geometric means, and ratios against the baseline."""
    beside = [row.measured.reference_job for row in study.rows if row.measured.reference_job is not None]
    usual = median_of([each.wall for each in beside])

    def corrected(measured: Measurement) -> float | None:
        clock, answer = measured.reference_job, measured.to_answer
        return answer * usual / clock.wall if clock and clock.wall and answer is not None else answer

    def mean_text(name: str, of: Seconds) -> str:
        mean = study.mean(name, of)
        return NOTHING if mean is None else seconds_text(mean.seconds)

    def order(name: str) -> tuple[float, int]:
        mean = study.mean(name, to_answer)
        return (math.inf if mean is None else mean.seconds), study.contenders.index(name)

    rows = []
    for name in sorted(study.present, key=order):
        solved = study.solved(name)
        rows.append(
            row(
                name,
                element("td", f"{int(solved.sum())} of {solved.size}", _untried(study, name), class_="n"),
                element("td", element("span", mean_text(name, to_answer), class_="main"), class_="n"),
                mean_text(name, solving),
                mean_text(name, corrected),
                *_ratio_cells(study, name, baseline),
            )
        )
    head = header(
        "contender",
        *(
            element("th", *names, scope="col", class_="n")
            for names in (
                ("instances solved",),
                ("to the answer",),
                ("solve only",),
                ("corrected", element("small", "by the reference job")),
                (f"× as fast as {baseline}", element("small", "geometric mean; 95% interval")),
                ("worst and best instance",),
                ("pairs", element("small", f"only it / only {baseline} solved")),
            )
        ),
    )
    limit = "no time limit is recorded" if study.limit is None else f"time limit {seconds_text(study.limit)}"
    caption = (
        f"Shifted geometric means over {count(len(study.instances), 'instance')} (shift {seconds_text(study.shift)}; "
        f"what was not solved counts at the limit: {limit}), and speed relative to {baseline} on instances "
        "that both solved."
    )
    return table(caption, [head], rows)


def growths(found: Mapping[str, Growth | BadInput], of: str) -> Html:
    """Return the exponents with their intervals, or why there are none."""
    rows = []
    for name, each in found.items():
        if isinstance(each, BadInput):
            rows.append(row(name, element("td", each.problem, colspan="4", class_="soft")))
        else:
            rows.append(
                row(
                    name,
                    f"{each.exponent:.2f}",
                    f"{each.low:.2f} to {each.high:.2f}",
                    f"{each.error:.2f}",
                    f"{count(each.points, 'instance')} of {each.sizes} sizes, {each.smallest:,g} to {each.largest:,g}",
                )
            )
    head = header(
        "contender",
        *(element("th", name, scope="col", class_="n") for name in ("exponent", "95% interval", "standard error")),
        element("th", "fitted over", scope="col", class_="n"),
    )
    caption = (
        f"Growth on {of}: seconds to the answer = c · size^exponent, by least squares in logarithms; "
        "it says nothing of sizes beyond those fitted over."
    )
    return table(caption, [head], rows)


def _cell(study: Study, name: str, of: Sequence[InstanceKey], best: float) -> Html:
    cells = [study.cell(name, each) for each in of]
    rows = [each for cell in cells for each in cell.rows]
    if not rows:
        return element("td", element("span", "not measured", class_="soft"), class_="n")
    answer = _median(cells, to_answer)
    lines: list[object] = []
    if not math.isnan(answer):
        certify = _median(cells, certifying)
        memory = max((each.measured.peak_bytes or 0 for each in rows if each.measured.solved), default=0)
        extra = [] if math.isnan(certify) else [f"certify {seconds_text(certify)}"]
        lines = [
            element("a", seconds_text(answer), href=f"#r{rows[0].number}", class_="main"),
            element("small", f"{seconds_text(_median(cells, building))} + {seconds_text(_median(cells, solving))}"),
            element("small", " · ".join([*extra, bytes_text(memory) if memory else NOTHING])),
        ]
    for status in Status:
        failed = [each for each in rows if each.measured.status is status is not Status.SOLVED]
        if failed:
            lines.append(element("a", WORDS[status], href=f"#r{failed[0].number}", class_="bad"))
            lines.append(element("small", f"{len(failed)} of {count(len(rows), 'run')}"))
    fastest = all(cell.solved for cell in cells) and answer == best
    return element("td", *lines, class_="n best" if fastest else "n")


def _best(study: Study, of: Sequence[InstanceKey]) -> float:
    """Return the least median among contenders that solved all instances of a column; infinity for none."""
    listed = [[study.cell(name, each) for each in of] for name in study.contenders]
    return min((_median(cells, to_answer) for cells in listed if all(each.solved for each in cells)), default=math.inf)


def _median(cells: Sequence[Cell], of: Seconds) -> float:
    found = [cell.median(of) for cell in cells]
    return median_of([each for each in found if not math.isnan(each)])


def _ratio_cells(study: Study, name: str, baseline: str) -> list[object]:
    if name == baseline:
        return [element("td", "the baseline", class_="n soft", colspan="3")]
    # the other way round than seconds: how many times as fast, so that larger is better
    found = ratios(
        np.asarray(study.seconds(baseline, to_answer)),
        study.seconds(name, to_answer),
        study.solved(baseline),
        study.solved(name),
    )
    only = f" ({found.theirs} / {found.ours})" if found.theirs or found.ours else ""
    if not found.pairs:
        return [NOTHING, NOTHING, f"0{only}"]
    sure = "" if math.isnan(found.low) else f"{factor_text(found.low)} to {factor_text(found.high)}"
    return [
        element("td", element("span", factor_text(found.mean), class_="main"), element("small", sure), class_="n"),
        f"{factor_text(found.least)} to {factor_text(found.most)}" if found.pairs > 1 else NOTHING,
        f"{found.pairs}{only}",
    ]


def _untried(study: Study, name: str) -> Html | None:
    """Return how many instances a contender was never tried on, which count as not solved; None for none."""
    cells = [study.cell(name, each) for each in study.instances]
    untried = sum(set(cell.statuses) <= {Status.SKIPPED} for cell in cells)
    return element("small", f"{untried} not tried") if untried else None


def _link(study: Study, contender: str, instance: InstanceKey, words: str) -> Html:
    rows = study.cell(contender, instance).rows
    return element("a", words, href=f"#r{rows[0].number}") if rows else element("span", words)
