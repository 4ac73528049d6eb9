"""The page of audits of several moments: lines over time, who starved when, and when verdicts changed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from fairopt.audit.page import ANSWERS, OTHERS, audit_page
from fairopt.audit.series import AuditSeries
from fairopt.discovery import library
from fairopt.experiment.page import svg
from fairopt.numbers import four_digits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: So many users have a line each: those that held most at some moment.
LINES = 8


def series_page(found: AuditSeries) -> str:
    """Return the page. Errors: `NotInstalled` without Jinja2 or matplotlib."""
    pictures = [svg(_drawing(found, kind), f"GPUs of {kind} over time", "a page") for kind in found.types]
    longest = sorted(found.names, key=lambda name: -sum(found.starved_seconds(name)))
    shown = [name for name in longest if found.starved(name) or any(found.gpu_seconds(name, "borrows"))]
    return audit_page(
        "series_page.html",
        title=f"From {_said(found.moments[0].at)} to {_said(found.moments[-1].at)}",
        found=found,
        pictures=pictures,
        names=shown[:OTHERS],
        left_out=max(0, len(shown) - OTHERS),
        groups={name for each in found.moments for name, row in each.rows.items() if row.is_group},
        answers=ANSWERS,
        said=_said,
        hours=lambda seconds: four_digits(seconds / 3600),
        most=OTHERS,
    )


def _said(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}" + ("" if at.utcoffset() else " UTC")


def _drawing(found: AuditSeries, kind: str) -> Any:
    """Return what draws who held how much of a type, what it was owed (dashed), and when it starved (a band below)."""

    def draw() -> Figure:
        from fairopt.experiment.plot.figures import (  # here, since it loads matplotlib
            axes_of,
            line_of,
            named,
            short_name,
        )

        dates = library("matplotlib.dates", "a page", "plot")
        users = [name for name in found.names if any(found.line(name, kind, "holds")) or _owed(found, name, kind)]
        users = [name for name in users if not _is_group(found, name)]
        users = sorted(users, key=lambda name: -max(found.line(name, kind, "holds")))[:LINES]
        at = dates.date2num([each.at for each in found.moments])
        ax = axes_of(None, 9.0, 4.2)
        for number, name in enumerate(users):
            how = line_of(number)
            ax.step(at, found.line(name, kind, "holds"), where="post", label=short_name(name), **how)
            owed = [each if each != float("inf") else float("nan") for each in found.line(name, kind, "owed")]
            if any(owed):
                ax.step(at, owed, where="post", color=how["color"], linewidth=0.9, linestyle=":")
            for begun, end in found.starved(name):
                low = -0.02 * (number + 1)
                ends = dates.date2num([begun, end or found.moments[-1].at])
                place: dict[str, Any] = {
                    "transform": ax.get_xaxis_transform(),
                    "clip_on": False,
                    "solid_capstyle": "butt",
                }
                ax.plot(ends, [low, low], color=how["color"], linewidth=4, **place)
        ax.set_ylim(bottom=0)
        ax.set_xlim(float(at[0]), float(at[-1]))
        ax.xaxis_date("UTC")
        ax.tick_params(axis="x", pad=4 + 6 * len(users) / 2)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(ax.xaxis.get_major_locator()))
        return named(ax, f"{kind}: GPUs held; dotted: owed; a bar below: starved", "", "GPUs")

    return draw


def _owed(found: AuditSeries, name: str, kind: str) -> bool:
    return any(found.line(name, kind, "owed"))


def _is_group(found: AuditSeries, name: str) -> bool:
    return any(each.rows[name].is_group for each in found.moments if name in each.rows)
