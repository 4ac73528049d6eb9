"""Pictures of allocations: who gets what, and what a user gains by reporting another speedup.

>>> from fairopt import allocate, plot
>>> from fairopt.datasets import oef_example
>>> from fairopt.models import EqualSplit
>>> figure = plot.shares(allocate(EqualSplit(), oef_example()))
>>> figure.axes[0].get_title(loc="left")
'Who gets what: equal-split'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from fairopt import discovery
from fairopt.by_name import allocate
from fairopt.discovery import AnyPolicy, AnySolver
from fairopt.errors import BadInput, NotSolved, type_of
from fairopt.experiment.plot.figures import COLOURS, HATCHES, LINES, axes_of, figure_of, short_name, with_legend
from fairopt.numbers import counted
from fairopt.policy import Allocation, Policy
from fairopt.policy.decide import Chosen
from fairopt.problem import Market
from fairopt.problem.labels import nearest
from fairopt.program import Array, number_text
from fairopt.properties.misreports.search import CandidateReports
from fairopt.properties.verdict import TOLERANCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The most bars of a picture; with more it cannot be read, and may exceed the size limit of image files.
MOST_USERS = 200
#: The number of panels in a row.
PER_ROW = 3
#: The number of reports in a default sweep, besides those next to a change in the order of users.
REPORTS = 81

OWN_PARTITION = "at each bar's end: throughput, own partition of the cluster = 1"


def shares(decision: Allocation, users: Sequence[str | int] | None = None, *, ax: Axes | None = None) -> Figure:
    """Draw who gets what: a stacked bar for each user, in GPUs, a part for each type.

    At a bar's end stands the user's throughput relative to that on its equal share. ``users`` limits the picture to
    some of them, by name or row, in that order. Errors: `NotInstalled`; `BadInput` for unknown or too many users.

    >>> from fairopt import Market, allocate
    >>> shares(allocate("max-min", Market.of([[1, 2], [1, 5]], [1, 1]))).axes[0].get_title(loc='left')
    'Who gets what: max-min'
    """
    if not isinstance(decision, Allocation):
        raise BadInput(f"got {type_of(decision)}", place="decision", remedy="Give what fairopt.allocate returns")
    rows = _rows(decision.market, users)
    ax = axes_of(ax, 7.5, _height(len(rows)))
    _bars(ax, decision, rows)
    ax.set_title(f"Who gets what: {decision.policy}", loc="left")
    ax.set_xlabel(f"GPUs\n{OWN_PARTITION}")
    return with_legend(ax)


def compare_shares(
    decisions: Sequence[Allocation] | Mapping[str, Allocation], users: Sequence[str | int] | None = None
) -> Figure:
    """Draw who gets what under several policies, a panel for each, on one scale; see `shares`.

    ``decisions`` are of the same users and types; a dictionary gives the panels' titles, else they are the policies'
    names.

    >>> from fairopt import Market, allocate
    >>> market = Market.of([[1, 2], [1, 5]], [1, 1])
    >>> len(compare_shares([allocate(name, market) for name in ("max-min", "equal-split")]).axes)
    2
    """
    listed = list(decisions.values() if isinstance(decisions, Mapping) else decisions)
    titles = list(decisions) if isinstance(decisions, Mapping) else [each.policy for each in listed]
    if not listed:
        raise BadInput("there are no decisions", remedy="Give one for each panel")
    market = listed[0].market
    for decision in listed:
        if (decision.market.users, decision.market.types) != (market.users, market.types):
            differ = f"{decision.policy} decided on {decision.market!r}, {listed[0].policy} on {market!r}"
            raise BadInput(differ, remedy="Compare decisions on the same users and types")
    rows = _rows(market, users)
    down = -(-len(listed) // PER_ROW)
    across = -(-len(listed) // down)
    figure = figure_of(2.0 + 2.8 * across, 1.0 + down * (_height(len(rows)) - 0.3))
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).ravel()
    for panel, decision, title in zip(panels, listed, titles, strict=False):
        _bars(panel, decision, rows)
        panel.set_title(title, loc="left")
    panels[0].set_xlim(0, max(_room(decision, rows) for decision in listed))
    panels[0].locator_params(axis="x", nbins=4)  # ticks that depend on the room left are placed too late to keep apart
    for number, panel in enumerate(panels):
        panel.set_visible(number < len(listed))
        if number + across >= len(listed):  # none stands below
            panel.tick_params(labelbottom=True)
            panel.set_xlabel("GPUs")
    figure.suptitle(f"Who gets what\n{OWN_PARTITION}", fontsize="medium")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 6), frameon=False)
    return figure


def misreport(
    policy: AnyPolicy | Sequence[AnyPolicy],
    market: Market,
    user: str | int,
    type: str,
    reports: Sequence[Any] | Array | None = None,
    backend: AnySolver = None,
    *,
    ax: Axes | None = None,
) -> Figure:
    """Draw what a user truly gains, by what it reports for one type; a line for each policy.

    x is the reported speedup on one GPU of ``type``, y by how many percent the user's true throughput is above that of
    the truthful report. ``reports`` are half to twice the truth by default, with points on both sides of where the
    order of users changes. ``backend`` is for the policies that backends can solve. Both may be names. Where there is
    no answer is a gap.

    Errors: `NotInstalled`; `BadInput` for an unknown user or type, or where the truthful throughput is zero.

    >>> from fairopt import Market
    >>> figure = misreport("max-min", Market.of([[1, 2], [1, 5]], [1, 1], types=["K80", "V100"]), 0, "V100", [1, 2, 3])
    >>> len(figure.axes[0].lines[0].get_xdata())
    2
    """
    market, i = market.as_(float), market.index(user)
    if type not in market.types:
        raise BadInput(f"there is no type {type!r}", remedy=nearest(type, market.types, "type"))
    j = market.types.index(type)
    policies = discovery.policies_of(policy, Market)
    told = _sweep(market, i, j) if reports is None else np.sort(np.array([float(value) for value in reports]))
    solvers = [discovery.solver_of(each, backend if each.has_program else None) for each in policies]
    gains = [true_gains(each, market, i, j, told, by) for each, by in zip(policies, solvers, strict=True)]
    ax = axes_of(ax, 8, 4.2)
    ax.axhline(0, color="0.3", linewidth=1, label="honest level")
    ax.axvline(market.speedup[i, j], color="0.3", linewidth=1, linestyle=":", label=f"truth: {market.speedup[i, j]:g}")
    for number, (each, gain) in enumerate(zip(policies, gains, strict=True)):
        colour, line = COLOURS[number % len(COLOURS)], LINES[number % len(LINES)]
        width = max(2.8 - 0.35 * number, 1.2)  # a line that coincides with a later one shows at its sides
        ax.plot(told, gain, linestyle=line, linewidth=width, color=colour, label=each.name)
        pays = gain > 100 * TOLERANCE
        label = "gain" if len(policies) == 1 and pays.any() else None
        ax.fill_between(told, 0, gain, where=pays, color=colour, alpha=0.2, linewidth=0, label=label)
    low, high = ax.get_ylim()
    ax.set_ylim(min(low, -1), max(high, 1))  # a policy that never rewards is a flat line, not rounding errors
    ax.margins(x=0)
    name = market.users[i]
    of = f" under {policies[0].name}" if len(policies) == 1 else ""
    ax.set_title(f"What {name} gains by misreporting its speed on {type}{of}", loc="left")
    ax.set_xlabel(f"reported speedup on {type} (throughput on one GPU, in {name}'s units)")
    ax.set_ylabel("gain in true throughput (% of the honest one)")
    return with_legend(ax)


def true_gains(policy: Policy, market: Market, user: int, type: int, reports: Array, backend: Chosen | None) -> Array:
    """Return by how many percent (r,) a user's true throughput exceeds the honest one, for each of the reports (r,).

    NaN where the policy has no answer. Errors: `BadInput` where the honest throughput is zero.
    """
    honest = market.utility(_in_floats(policy, market, backend))[user]
    if not honest > 0:
        nothing = f"{policy.name} gives {market.users[user]!r} no throughput when it is honest, so no percentage of it"
        raise BadInput(nothing, remedy="Leave out this policy, or take another user")
    gains = np.full(len(reports), np.nan)
    for place, report in enumerate(reports):
        row = market.speedup[user].copy()
        row[type] = report
        with suppress(NotSolved):
            told = _in_floats(policy, market.misreport(user, row), backend)
            gains[place] = 100 * (market.utility(told)[user] / honest - 1)
    return gains


def _in_floats(policy: Policy, market: Market, backend: Chosen | None) -> Array:
    return np.asarray(allocate(policy, market, backend).shares, dtype=float)


def _sweep(market: Market, user: int, type: int) -> Array:
    truth = market.speedup[user, type]
    low, high = (truth / 2, 2 * truth) if truth > 0 else (0.0, market.speedup[user].max())
    moves = CandidateReports(market, user, None)
    turns = [row[type] for row in moves.boundary() if low < row[type] < high]
    return np.unique([*np.linspace(low, high, REPORTS), truth, *turns])


def _bars(ax: Axes, decision: Allocation, rows: Sequence[int]) -> None:
    market = decision.market.as_(float)
    shares = np.asarray(decision.shares, dtype=float)
    held, ratio = shares[rows], (market.utility(shares) / market.fair_utility())[rows]
    places, left = np.arange(len(rows)), np.zeros(len(rows))
    for j, (name, capacity) in enumerate(zip(market.types, market.capacity, strict=True)):
        colour, hatch = COLOURS[j % len(COLOURS)], HATCHES[j // len(COLOURS) % len(HATCHES)]
        label = f"{name} ({number_text(capacity)})"
        ax.barh(
            places, held[:, j], 0.72, left, label=label, color=colour, hatch=hatch, edgecolor="white", linewidth=0.6
        )
        left = left + held[:, j]
    for place, end, value in zip(places, left, ratio, strict=True):
        ax.annotate(f"{value:.2f}", (end, place), (4, 0), textcoords="offset points", va="center", fontsize="small")
    ax.set_yticks(places, [short_name(market.users[i]) for i in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)  # the first user on top
    ax.set_xlim(0, _room(decision, rows))
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _room(decision: Allocation, rows: Sequence[int]) -> float:
    """Return how long the axis must be for the longest bar and what is written at its end."""
    longest = float(np.asarray(decision.shares, dtype=float)[rows].sum(axis=1).max())
    return 1.15 * longest or 1.0


def _rows(market: Market, users: Sequence[str | int] | None) -> list[int]:
    rows = list(range(len(market.users))) if users is None else [market.index(user) for user in users]
    if not 1 <= len(rows) <= MOST_USERS:
        raise BadInput(
            f"got {counted(len(rows), 'user')} to draw", place="users", remedy=f"Name 1 to {MOST_USERS} of them"
        )
    return rows


def _height(users: int) -> float:
    return 1.2 + 0.26 * max(users, 3)  # inches
