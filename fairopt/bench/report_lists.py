"""The lists of a report: what was measured, one by one, on what, where, and how steady the machine was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fairopt.bench.records import Clock, Environment, Measurement, Status
from fairopt.bench.report_html import Html, element, header, joined, row, table
from fairopt.bench.report_studies import Row, Study, plain
from fairopt.bench.report_words import NOTHING, WORDS, bytes_text, count, factor_text, part_text, seconds_text
from fairopt.bench.statistics import noise
from fairopt.errors import BadInput


def unsolved(study: Study) -> Html | None:
    """Return what was not solved with its message, measurements that say the same in one row; None for nothing."""
    same: dict[tuple[str, Status, str], dict[str, list[Row]]] = {}
    for each in study.rows:
        if not each.measured.solved:
            key = each.measured.called, each.measured.status, _message(each.measured)
            same.setdefault(key, {}).setdefault(each.measured.instance.name, []).append(each)
    if not same:
        return None
    rows = [
        row(
            called,
            element("td", WORDS[status], class_="bad"),
            element("td", message, class_="message"),
            element("td", _which(places), class_="small-text"),
            number=False,
        )
        for (called, status, message), places in sorted(same.items(), key=lambda item: item[0][0])
    ]
    number = sum(len(each) for places in same.values() for each in places.values())
    head = header("contender", "status", "message", "instances, with the numbers of the records")
    return table(f"Not solved: {count(number, 'measurement')}; those that say the same share a row", [head], rows)


def _which(places: Mapping[str, Sequence[Row]]) -> Html:
    """Return instances, each with links to its measurements."""
    parts = []
    for number, (name, rows) in enumerate(places.items()):
        links = [joined(" " if place else "", element("a", str(each.number), href=f"#r{each.number}"))
                 for place, each in enumerate(rows)]  # fmt: skip
        parts.append(joined("; " if number else "", f"{name} (", *links, ")"))
    return joined(*parts)


def steadiness(listed: Sequence[Study]) -> Html | None:
    """Return how much the reference job varied in each study; None where none was timed."""
    rows = []
    for study in listed:
        walls = [each.measured.reference_job.wall for each in study.rows if each.measured.reference_job is not None]
        if not walls:
            continue
        try:
            found = noise(walls)
        except BadInput as error:
            rows.append(row(study.name, element("td", str(error), colspan="6", class_="bad")))
            continue
        at_once = max(each.measured.concurrent for each in study.rows)
        ranges = seconds_text(found.median), f"{seconds_text(found.least)} to {seconds_text(found.most)}"
        parts = part_text(found.spread), factor_text(found.worst)
        machine = element("td", study.machine, class_="message")
        rows.append(row(study.name, machine, str(found.runs), *ranges, *parts, str(at_once)))
    if not rows:
        return None
    names = ("runs", "median", "range", "5th to 95th percentile, part of median", "slowest / fastest", "at once")
    numbers = (element("th", each, scope="col", class_="n") for each in names)
    head = header("specification", "machine", *numbers)
    return table("The reference job: one unchanging piece of work, timed right before each measurement", [head], rows)


def everything(study: Study) -> Html:
    """Return every measurement, a row each; other tables link here."""
    rows = [_measured(each) for each in study.rows]
    numbers = ("repeat", "build", "solve", "certify", "CPU", "peak", "over base", "violation", "gap", "reference job")
    head = header(
        "record",
        "contender",
        "instance",
        "status",
        *(element("th", each, scope="col", class_="n") for each in numbers),
        "started",
        "environment",
    )
    return table(f"Every measurement of {study.name}: wall time a stage, CPU time of all stages", [head], rows)


def contenders(study: Study) -> Html:
    """Return what took part: the registered name, the settings and the versions of libraries with which it ran."""
    rows = []
    for name in study.contenders:
        all_ = [each.measured for each in study.of(name)]
        settings = ", ".join(f"{key}={plain(value)}" for key, value in sorted(all_[0].settings.items()))
        versions = dict.fromkeys(f"{key} {each.libraries[key]}" for each in all_ for key in sorted(each.libraries))
        cells = element("code", all_[0].contender), settings or NOTHING, ", ".join(versions) or NOTHING
        rows.append(row(name, *cells, count(len(all_), "measurement"), number=False))
    head = header("contender", "registered as", "settings", "libraries", "measured")
    return table("What took part, with the settings and versions that it ran with", [head], rows)


def instances(study: Study) -> Html:
    """Return the instances with the hashes of their content."""
    rows = [
        row(
            each.name,
            each.family,
            element("td", f"{each.size:,}", class_="n"),
            element("td", str(each.seed), class_="n"),
            ", ".join(f"{name}={plain(value)}" for name, value in each.parameters.items()) or NOTHING,
            element("code", each.digest),
            number=False,
        )
        for each in study.instances
    ]
    return table(
        "What was asked: the seed and parameters draw the same instance anywhere",
        [header("instance", "family", "size", "seed", "parameters", "content hash")],
        rows,
    )


def environment(each: Environment) -> Html:
    """Return all that is known of where measurements were made."""
    pairs: list[tuple[str, object]] = [
        ("CPU", f"{each.cpu}, {count(each.cores, 'core')}"),
        ("memory", bytes_text(each.memory_bytes)),
        ("system", each.system),
        ("Python", each.python),
        ("threads pinned", ", ".join(f"{name}={value}" for name, value in sorted(each.threads.items())) or "no"),
        ("libraries", ", ".join(f"{name} {version}" for name, version in sorted(each.libraries.items())) or NOTHING),
        ("commit", joined(element("code", each.commit or "unknown"), ", with changes" if each.dirty else None)),
        ("command", element("code", each.command)),
        ("digest", element("code", each.digest)),
    ]
    rows = [row(name, element("td", value, class_="message")) for name, value in pairs]
    return table(f"Environment {each.digest[:12]}", [], rows)


def _measured(each: Row) -> Html:
    measured, judged = each.measured, each.measured.judgement
    clocks = [measured.seconds.build, measured.seconds.solve, measured.seconds.certify]
    cpu = math.fsum(clock.cpu for clock in clocks if clock is not None) if any(clocks) else math.nan
    over = None
    if measured.peak_bytes is not None and measured.base_bytes is not None:
        over = max(measured.peak_bytes - measured.base_bytes, 0)
    numbers = [
        str(measured.repeat),
        *(_wall(clock) for clock in clocks),
        seconds_text(cpu),
        bytes_text(measured.peak_bytes),
        bytes_text(over),
        *((NOTHING, NOTHING) if judged is None else (_part(judged.violation), _part(judged.gap))),
        _wall(measured.reference_job),
    ]
    return row(
        str(each.number),
        element("td", measured.called),
        element("td", measured.instance.name),
        element("td", WORDS[measured.status], class_=None if measured.solved else "bad"),
        *numbers,
        element("td", measured.started),
        element("td", element("a", measured.environment[:12], href=f"#e{measured.environment}")),
        id=f"r{each.number}",
    )


def _wall(clock: Clock | None) -> str:
    return NOTHING if clock is None else seconds_text(clock.wall)


def _part(value: float) -> str:
    return NOTHING if math.isnan(value) else f"{value:.1e}" if value else "0"


def _message(measured: Measurement) -> str:
    note = "" if measured.judgement is None else measured.judgement.note
    return "; ".join(part for part in (measured.message, note) if part) or NOTHING
