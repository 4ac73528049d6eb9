"""The report of a benchmark: one HTML page that needs nothing else, made from the records alone.

The same records give the same bytes. Every number of a table leads to the measurements that it is from, which stand at
the end of the page with their numbers among the records; these name the instance by hash and the environment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from fairopt.bench import report_lists as lists
from fairopt.bench import report_tables as tables
from fairopt.bench.growth import Growth, fit
from fairopt.bench.profiles import profiles
from fairopt.bench.records import Environment, InstanceKey, Record, Status
from fairopt.bench.report_html import Html, element, joined, page
from fairopt.bench.report_pictures import Points, Style, growth_picture, profile_picture
from fairopt.bench.report_studies import Group, Study, studies, to_answer
from fairopt.bench.report_words import CONVENTIONS, WORDS, bytes_text, count, seconds_text
from fairopt.errors import BadInput


def write_report(
    records: Iterable[Record], path: str | PathLike[str], title: str = "Benchmark", *, baseline: str | None = None
) -> None:
    """Write the report of measurements and their environments to ``path``.

    ``baseline`` is the contender, as tables call it, that others are compared with; by default the first that a goal
    of the specification names, else the one that solved most.

    Errors: `BadInput` where nothing was measured, where a measurement cannot be (place "record 3"), and for a baseline
    that is nowhere.
    """
    Path(path).write_text(report(records, title, baseline=baseline), encoding="utf-8", newline="\n")


def report(records: Iterable[Record], title: str = "Benchmark", *, baseline: str | None = None) -> str:
    """Return the page; the rest as `write_report`."""
    listed = list(records)
    found = studies(listed)
    names = list(dict.fromkeys(name for study in found for name in study.contenders))
    if baseline is not None and baseline not in names:
        raise BadInput(
            f"there is no contender {baseline!r}", place="baseline", remedy=f"Measured were {', '.join(names)}"
        )
    styles = {name: Style(number) for number, name in enumerate(names)}
    used = {each.digest: each for study in found for each in study.environments}
    return page(
        title,
        element("h1", title),
        _summary(found),
        _contents(found),
        *(_study(study, styles, study.baseline(baseline)) for study in found),
        _noise(found),
        _environments(list(used.values())),
        _conventions(),
        element("h2", "Every measurement", id="measurements"),
        element(
            "p", "“record” is a measurement's place among the records that this page was made from, counted from 1."
        ),
        *(lists.everything(study) for study in found),
    )


def _summary(found: Sequence[Study]) -> Html:
    rows = [each.measured for study in found for each in study.rows]
    statuses = Counter(each.status for each in rows)
    said = ", ".join(f"{statuses[each]:,} {WORDS[each]}" for each in Status if statuses[each])
    begun = sorted(each.started for each in rows)
    places = {(key.name, key.digest) for study in found for key in study.instances}
    machines = dict.fromkeys(study.machine for study in found)
    contenders = len({name for study in found for name in study.contenders})
    return joined(
        element(
            "p",
            f"{count(len(rows), 'measurement')} ({said}) of {count(contenders, 'contender')} on "
            f"{count(len(places), 'instance')}, from ",
            element("span", begun[0][:19], class_="tight"),
            " to ",
            element("span", begun[-1][:19], class_="tight"),
            ".",
        ),
        *(element("p", f"Machine: {each}", class_="soft") for each in machines),
    )


def _contents(found: Sequence[Study]) -> Html:
    several = len({study.machine for study in found}) > 1
    entries = [(study.anchor, _title(study) + (f", on {study.machine}" if several else "")) for study in found]
    entries += [
        ("noise", "How steady the machine was"),
        ("environments", "Environments"),
        ("conventions", "How to read this"),
        ("measurements", "Every measurement"),
    ]
    links = [element("li", element("a", words, href=f"#{anchor}")) for anchor, words in entries]
    return element("nav", element("ul", *links), aria_label="Contents")


def _study(study: Study, styles: Mapping[str, Style], baseline: str) -> Html:
    absent = [name for name in study.contenders if name not in study.present]
    notes = list(study.notes)
    if absent:
        notes.append(f"Not installed, and in no mean or picture: {', '.join(absent)}")
    if study.unmeasured:
        notes.append(
            f"No measurement, which counts as not solved, of {count(study.unmeasured, 'pair')} of contender and "
            "instance: the run may be incomplete"
        )
    return joined(
        element("h2", _title(study), id=study.anchor),
        element("p", _what(study)),
        *(element("p", note, class_="note") for note in notes),
        _part("Goals", tables.goals(study)),
        _part("Seconds by size", tables.seconds(study)),
        _part("Means and ratios", tables.means(study, baseline) if study.present else None),
        _part("Performance profile", _profile(study, styles) if study.present else None),
        _growths(study, styles),
        _part("Not solved", lists.unsolved(study)),
        _part("Contenders", lists.contenders(study)),
        _part("Instances", lists.instances(study)),
    )


def _part(name: str, content: Html | None) -> Html | None:
    return None if content is None else joined(element("h3", name), content)


def _title(study: Study) -> str:
    return study.name if study.spec is None else study.spec.title


def _what(study: Study) -> str:
    rows = [each.measured for each in study.rows]
    repeats = max(sum(1 for _ in cell.rows) for cell in study.cells.values())
    memory = max((each.memory_limit for each in rows if each.memory_limit is not None), default=None)
    at_once = max(each.concurrent for each in rows)
    parts = [
        f"Task {study.task} (specification {study.name})",
        count(len(study.contenders), "contender"),
        count(len(study.instances), "instance"),
        f"up to {count(repeats, 'repeat')}",
        "no time limit recorded" if study.limit is None else f"time limit {seconds_text(study.limit)}",
        "no memory limit" if memory is None else f"memory limit {bytes_text(memory)}",
        f"{count(max(each.threads for each in rows), 'thread')} a contender",
        "one measurement at a time" if at_once == 1 else f"up to {at_once} measurements at once, which slow each other",
    ]
    return "; ".join(parts) + f". On {study.machine}."


def _profile(study: Study, styles: Mapping[str, Style]) -> Html:
    seconds = np.array([study.seconds(name, to_answer) for name in study.present])
    solved = np.array([study.solved(name) for name in study.present])
    named = dict(zip(study.present, profiles(seconds, solved), strict=True))
    title = f"Performance profile of {_title(study)}"
    caption = (
        f"Which part of the {count(len(study.instances), 'instance')} each contender solved within a factor of the "
        "fastest contender on that instance. Further up is better; the left end says how often it was the fastest, the "
        "right end how much it solved."
    )
    picture = profile_picture(named, styles, f"{study.anchor}p", title)
    return element("figure", picture, element("figcaption", caption))


def _growths(study: Study, styles: Mapping[str, Style]) -> Html:
    by_group: dict[Group, list[InstanceKey]] = {}
    for (group, _), of in study.columns.items():
        by_group.setdefault(group, []).extend(each for each in of if each.size > 0)
    parts = []
    for number, (group, of) in enumerate(by_group.items()):
        if len({each.size for each in of}) < 2:
            continue  # one size has no growth: the tables say it all
        series = [_points(study, name, of) for name in study.present]
        series = [each for each in series if each.solved or each.failed]
        if not series:
            continue
        fitted: dict[str, Growth | BadInput] = {}
        for place, each in enumerate(series):
            try:
                grown = fit([size for size, _ in each.solved], [time for _, time in each.solved])
            except BadInput as error:  # too few sizes: said in the table
                fitted[each.name] = error
            else:
                fitted[each.name] = grown
                series[place] = Points(each.name, each.solved, each.failed, grown)
        title = f"Time over size on {group.name}, {_title(study)}"
        picture = growth_picture(series, styles, study.limit, f"{study.anchor}g{number}", title)
        caption = (
            f"Seconds to the answer over the size of the instance, {group.name}. A mark is an instance (median of its "
            "repeats); lines are fitted powers of the size, over the sizes solved, with the "
            "95% interval of the exponent; a thin line only joins marks, of too few sizes for a fit."
        )
        figure = element("figure", picture, element("figcaption", caption))
        parts.append(joined(figure, tables.growths(fitted, group.name)))
    return _part("Growth", joined(*parts)) or Html("") if parts else Html("")


def _points(study: Study, name: str, of: Sequence[InstanceKey]) -> Points:
    solved, failed = [], []
    for each in of:
        cell = study.cell(name, each)
        if cell.solved:
            solved.append((float(each.size), cell.median(to_answer)))
        elif cell.rows:
            failed.append(float(each.size))
    return Points(name, tuple(sorted(solved)), tuple(sorted(set(failed))))


def _noise(found: Sequence[Study]) -> Html:
    said = lists.steadiness(found)
    return joined(
        element("h2", "How steady the machine was", id="noise"),
        said if said is not None else element("p", "No reference job was timed: nothing is known of it."),
    )


def _environments(listed: Sequence[Environment]) -> Html:
    parts = []
    texts: dict[str, str] = {}
    for each in listed:
        text = texts.setdefault(each.spec_text, each.digest)
        source = (
            element("pre", element("code", each.spec_text))
            if text == each.digest
            else element("p", "The specification is that of ", element("a", text[:12], href=f"#e{text}"), ".")
        )
        parts.append(element("section", lists.environment(each), source, id=f"e{each.digest}"))
    return joined(element("h2", "Environments", id="environments"), *parts)


def _conventions() -> Html:
    entries = [joined(element("dt", name), element("dd", text)) for name, text in CONVENTIONS]
    return joined(element("h2", "How to read this", id="conventions"), element("dl", *entries))
