"""The page of a study: HTML that needs no other file, made from its cells alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from html import escape
from typing import Any

import numpy as np

from fairopt.discovery import library
from fairopt.experiment import plot
from fairopt.experiment.page import rendered, svg
from fairopt.experiment.statistics import Estimate
from fairopt.experiment.studies.cells import StudyCell
from fairopt.experiment.studies.playing import MEASURES, POINTS, Observed
from fairopt.experiment.studies.results import StudyResults
from fairopt.experiment.studies.spec import StudySetting
from fairopt.experiment.words import digits
from fairopt.simulation.measures import WORDS

#: What pictures call the measures whose distributions are kept; the value to be marked, if any.
DISTRIBUTIONS = {
    "jct": ("completion time (s)", None),
    "finish_time": ("finish-time fairness (over 1: worse off than alone)", 1.0),
    "ltgf": ("long-term fairness (GPU time held over fair)", 1.0),
}
OVER_TIME = {"utilisation": "utilisation", "queue": "jobs that wait"}


def require_libraries() -> None:
    """Refuse a page that could not be made. Errors: `NotInstalled`."""
    library("jinja2", "a study's page")
    library("scipy.stats", "statistics of a study")
    library("matplotlib", "a study's page", "plot")


def page(results: StudyResults) -> str:
    """Return the page of a study. Errors: `NotInstalled` without Jinja2, SciPy or matplotlib."""
    return rendered(
        "study_page.html",
        "fairopt.experiment",
        "a study's page",
        {"digits": digits, "words": lambda measure: WORDS.get(measure, measure.replace("_", " "))},
        spec=results.spec,
        results=results,
        units=MEASURES,
        means=lambda setting: _means(results, setting),
        pairs=lambda question, setting: results.pairs.get((question, setting), []),
        loads=[*_against_load(results)],
        tradeoffs=[*_tradeoffs(results)],
        pictures=lambda setting: [*_pictures(results, setting)],
    )


def _means(results: StudyResults, setting: StudySetting) -> dict[str, dict[str, Estimate]]:
    """Return the means in a setting, by policy and measure."""
    found: dict[str, dict[str, Estimate]] = {}
    for (where, policy, measure), mean in results.means.items():
        if where == setting:
            found.setdefault(policy, {})[measure] = mean
    return found


def _tradeoffs(results: StudyResults) -> Iterator[tuple[StudySetting, str]]:
    """Yield efficiency against fairness over policies, in each setting: the first two measures that are compared."""
    measures = list(dict.fromkeys(each.measure for each in results.spec.compare))
    if len(measures) < 2:
        return
    across, up = measures[:2]
    for setting in results.settings:
        means = _means(results, setting)
        known = {name: each for name, each in means.items() if across in each and up in each}
        points = {name: (each[across].value, each[up].value) for name, each in known.items()}
        if points:
            caption = f"Each policy's {across} and {up}, as in the table"
            draw = partial(plot.tradeoff, points, _word(across), _word(up))
            yield setting, _figure(caption, draw, results.called(setting))


def _against_load(results: StudyResults) -> Iterator[str]:
    """Yield each measure over the loads, where there are several, for settings that are equal but for the load."""
    if len(results.spec.loads) < 2:
        return
    for measure in dict.fromkeys(each.measure for each in results.spec.compare):
        groups: dict[str, dict[str, list[tuple[float, float, float, float]]]] = {}
        for (setting, policy, of), mean in results.means.items():
            if of == measure:
                rest = ", ".join(value for name, value in setting.names.items() if name != "load" and value)
                point = (float(setting.load or 0), mean.value, mean.low, mean.high)
                groups.setdefault(rest, {}).setdefault(policy, []).append(point)
        for rest, points in groups.items():
            caption = f"{WORDS.get(measure, measure)} over load, with 95% intervals: {rest}"
            yield _figure(caption, partial(plot.against_load, points, _word(measure)))


def _pictures(results: StudyResults, setting: StudySetting) -> Iterator[str]:
    """Yield what a setting looks like: distributions over all seeds; lines with the first seed.

    A tenant and the hosts, a picture for each policy, are shown at the highest load.
    """

    def drawn(caption: str, draw: Callable[[], Any]) -> str:
        return _figure(caption, draw, results.called(setting))

    played = {name: cells for name in results.policies if (cells := results.played(name, setting))}
    for key, (what, level) in DISTRIBUTIONS.items():
        pooled = {name: _pooled(cells, key) for name, cells in played.items()}
        known = {name: values for name, values in pooled.items() if len(values)}
        if known:
            caption = f"{what[0].upper()}{what[1:]}: quantiles of each run, averaged over seeds"
            yield drawn(caption, partial(plot.cdf, known, what, level=level))
    first = {name: _detailed(cells) for name, cells in played.items()}
    seen = {name: each for name, each in first.items() if each is not None}
    for key, what in OVER_TIME.items():
        lines = {name: each.over_time[key] for name, each in seen.items()}
        if lines:
            caption = f"{what[0].upper()}{what[1:]} over time, first seed"
            yield drawn(caption, partial(plot.over_time, lines, what))
    if setting.load is not None and setting.load < max(results.spec.loads):
        return
    for name, each in seen.items():
        tenant = max(each.held, key=lambda tenant: sum(each.entitled[tenant].values), default=None)
        if tenant is not None:
            caption = f"{name}: GPUs that the tenant {tenant} holds, beside its entitlement; first seed"
            yield drawn(caption, partial(plot.tenant_share, each.held[tenant], each.entitled[tenant], tenant))
        if each.bars:
            until = max(bar.end for bar in each.bars) / 3600
            caption = f"{name}: who ran where, a colour for each tenant, in the first {until:.3g} hours; first seed"
            yield drawn(caption, partial(plot.gantt, each.bars, each.hosts))


def _pooled(cells: list[StudyCell], key: str) -> Any:
    found = [each.observed.quantiles[key] for each in cells if each.observed and key in each.observed.quantiles]
    at = np.linspace(0, 1, POINTS)
    return np.mean([np.interp(at, np.linspace(0, 1, len(each)), each) for each in found], axis=0) if found else []


def _detailed(cells: list[StudyCell]) -> Observed | None:
    return next((each.observed for each in cells if each.observed and each.observed.held), None)


def _word(measure: str) -> str:
    unit = {"time": "s"}.get(MEASURES[measure], MEASURES[measure])
    words = WORDS.get(measure, measure)
    return f"{words} ({unit})" if unit else words


def _figure(caption: str, draw: Callable[[], Any], where: str = "") -> str:
    """Return a picture of the page with its words; the title says in which setting it is."""
    title = f"{where}: {caption}" if where else caption
    picture = svg(draw, title, "a study's page")
    return f"<figure>{picture}<figcaption>{escape(caption)}</figcaption></figure>"
