"""Pictures of README, docs/index.md and docs/house.md: ``python docs/readme_pictures.py`` writes them."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from textwrap import wrap

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from fairopt import Market, allocate, audit, discovery, frontier, plot
from fairopt.backends.exact import Exact
from fairopt.cli import comparison_tables
from fairopt.compare import compare
from fairopt.datasets import oef_example
from fairopt.experiment.plot import COLOURS
from fairopt.models import CooperativeOEF
from fairopt.problem import Entitlements, Gangs
from fairopt.properties import Answer, EnvyFreeness, ParetoEfficiency, SharingIncentive, StrategyProofness

STATIC = Path(__file__).parent / "_static"
#: Dark grey on white, and a red and a green that colour-blind people tell apart by their lightness.
THEME = TerminalTheme(
    (255, 255, 255),
    (36, 41, 47),
    [(36, 41, 47), (176, 58, 0), (0, 110, 80)] + [(36, 41, 47)] * 5,
)


def table() -> str:
    """Return the picture of the comparison that the README begins with."""
    market = oef_example()
    properties = [each for each in discovery.properties(Market) if each.asked_of(market)]
    rows = list(compare(market, None, properties))
    printed = io.StringIO()
    os.environ["COLUMNS"] = "200"  # as wide as it likes, whatever the terminal
    with contextlib.redirect_stdout(printed):
        comparison_tables.compared(market, rows, properties)
    lines = [line.rstrip() for line in printed.getvalue().splitlines()]
    begin = lines.index("")
    end = lines.index("", begin + 1)
    console = Console(record=True, width=max(map(len, lines[begin:end])) + 1, file=io.StringIO())
    for line in lines[begin:end]:
        text = Text(line)
        text.highlight_regex(r"\bNO [\d.e+-]+", "bold red")
        text.highlight_regex(r"\byes\b", "green")
        console.print(text, soft_wrap=True)
    return console.export_svg(title="fairopt compare oef_example.toml", theme=THEME)


def finding() -> Figure:
    """Return the picture of an allocation of cooperative OEF, and of one that nobody likes less and somebody more."""
    market = Market.of([[1, 1, 3], [1, 2, 2], [1, 3, 5]], capacity=[1, 1, 1])
    decided = allocate(CooperativeOEF(), market, Exact())
    witness = ParetoEfficiency().check(market, decided.shares).witness
    better = market.utility(witness.allocation)
    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots()
    for at, (label, values, colour) in enumerate(
        (("cooperative OEF", decided.utilities, COLOURS[0]), ("another allocation", better, COLOURS[1]))
    ):
        places = [row + 0.4 * at - 0.2 for row in range(len(market.users))]
        bars = axes.barh(places, [float(each) for each in values], 0.38, color=colour, label=label)
        axes.bar_label(bars, [str(each) for each in values], padding=4)
    axes.set_yticks(range(len(market.users)), market.users)
    axes.invert_yaxis()
    axes.set_xlabel("throughput")
    axes.margins(x=0.12)
    axes.set_title("Speedups (1, 1, 3), (1, 2, 2), (1, 3, 5), one GPU of each type", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper right")
    return figure


#: The policies whose shares the home page shows, and the verdicts beside them.
HOME = ("equal-split", "max-efficiency", "max-min", "oef-cooperative")
ASKED = (SharingIncentive(), EnvyFreeness(), ParetoEfficiency(), StrategyProofness())
#: The words and the colour of an answer.
ANSWERS = {Answer.HOLDS: ("yes", "#006e50"), Answer.FAILS: ("NO", "#b03a00"), Answer.NOT_REFUTED: ("?", "#57606a")}


def shares(policy: str) -> Figure:
    """Return the picture of a policy's shares on Table 1 of the OEF paper, above its verdicts and what shows each."""
    [row] = compare(oef_example(), [policy], ASKED)
    figure = Figure(figsize=(4.6, 4.4), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=[1, 1.15])
    plot.shares(row.outcome, ax=above)
    above.set_title(policy, loc="left", fontweight="bold")
    above.set_xlabel("GPUs; at the end: throughput, equal share = 1", fontsize=9)
    above.set_xlim(0, 1.6)
    below.set_axis_off()
    place = 0.97
    for each in ASKED:
        verdict = row.verdicts[each.name]
        says, colour = ANSWERS[verdict.answer]
        why = verdict.shown_by or ("no lie was found that pays" if says == "?" else "")
        below.text(0, place, says, color=colour, fontweight="bold", va="top", fontsize=9.5)
        below.text(0.11, place, each.asks(), va="top", fontsize=9.5)
        lines = wrap(why, 54)
        below.text(0.11, place - 0.115, "\n".join(lines), va="top", fontsize=8.5, color="#57606a")
        place -= 0.15 + 0.115 * len(lines)
    return figure


def held_and_owed() -> Figure:
    """Return the picture of an audit: what each team holds beside what it is owed."""
    names, types = ["language", "speech", "vision"], ["H100"]
    users, sizes = ["language", "language", "speech", "vision", "vision"], [6, 4, 6, 4, 4]
    gangs = Gangs.of(users, sizes, users=names, types=types, on=["H100", "H100", "H100", None, None])
    owed = Entitlements.of(names, types, guarantee={"language": [6], "speech": [6], "vision": [8]}, gangs=gangs)
    found = audit(Market.of([[1]] * 3, [20], users=names, types=types, entitlements=owed), policies=[])
    figure = Figure(figsize=(4.6, 2.6), layout="constrained")
    axes = figure.subplots()
    columns = found._table().columns
    for at in range(len(names)):
        held, due = (float(columns[f"H100 {key}"][at]) for key in ("holds", "owed"))
        within = min(held, due)
        axes.barh(at, within, 0.6, color=COLOURS[0], label="holds, and is owed" if not at else None)
        axes.barh(at, held - within, 0.6, within, color=COLOURS[1], label="holds beyond that" if not at else None)
        axes.plot([due] * 2, [at - 0.38, at + 0.38], color="#24292f", linewidth=2, label=None if at else "owed")
        end = max(held, due) + 0.25
        axes.text(end, at, columns["footing"][at].lower(), va="center", fontsize=9)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlim(0, 13)
    axes.set_xlabel("H100")
    axes.set_title("An audit: who holds what it is owed", loc="left", fontweight="bold", fontsize=10.5)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return figure


def tradeoff() -> Figure:
    """Return the picture of a frontier: how much throughput freedom from envy costs, and where policies are."""
    figure: Figure = plot.frontier(frontier(oef_example(), "total_efficiency", "envy_freeness", policies=[*HOME]))
    return figure


#: The folders that a market comes through, from its file to what is printed: name, what comes out, what may be added.
PATH = (
    ("problem, importing", "a market, a queue, a batch", "an importer"),
    ("models, policy", "what a policy asks for", "a policy"),
    ("program", "that, as rows and columns", ""),
    ("backends, methods", "a point and what proves it", "a backend"),
    ("properties", "verdicts and witnesses", "a property"),
    ("report, cli", "tables, JSON, pages", "a command"),
)
#: Folders beside the path, and those of the path that they stand on.
BESIDE = (
    ("certificates", "evidence for proofs/verify.py", 4),
    ("simulation", "the same, round after round", 3),
    ("compare, frontier, experiment", "many policies, cases, seeds", 5),
    ("audit", "who is owed what", 4),
)


def house() -> Figure:
    """Return the picture of the folders: the path of a market from the left, and what stands on it above."""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots()

    def box(x: float, y: float, name: str, says: str, colour: str) -> None:
        axes.add_patch(Rectangle((x, y), 1.72, 0.8, facecolor=colour, edgecolor="#24292f", linewidth=0.8))
        title = name.replace(", ", ",\n", 1) if len(name) > 20 else name
        axes.text(x + 0.86, y + 0.52, title, ha="center", va="center", fontsize=8.5, fontweight="bold")
        axes.text(x + 0.86, y + 0.16, says, ha="center", va="center", fontsize=7.5)

    for at, (name, says, added) in enumerate(PATH):
        box(2 * at, 0, name, says, "#dbe9f6")
        if at:
            axes.annotate("", (2 * at, 0.4), (2 * at - 0.28, 0.4), arrowprops={"arrowstyle": "->"})
        if added:
            axes.text(2 * at + 0.86, -0.22, f"add {added}: one file", ha="center", fontsize=7.5, color="#6e4a00")
    for at, (name, says, on) in enumerate(sorted(BESIDE, key=lambda each: each[2])):
        box(2 * at + 4, 1.5, name, says, "#f2efe6")
        axes.annotate("", (2 * at + 4.86, 1.5), (2 * on + 0.86, 0.8), arrowprops={"arrowstyle": "->", "alpha": 0.5})
    axes.set_xlim(-0.1, 11.9)
    axes.set_ylim(-0.4, 2.5)
    axes.set_axis_off()
    return figure


def main() -> None:
    """Write all."""
    STATIC.mkdir(exist_ok=True)
    (STATIC / "compare.svg").write_text(table(), encoding="utf-8")
    with mpl.rc_context({"svg.hashsalt": "fairopt"}):
        of_policies = ((f"home-{name}", shares(name)) for name in HOME)
        others = {"finding": finding(), "house": house(), "home-audit": held_and_owed(), "home-frontier": tradeoff()}
        for name, figure in (*of_policies, *others.items()):
            figure.savefig(STATIC / f"{name}.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
