"""Studies as tables: for people, and as files of CSV, Parquet and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import fill
from types import MappingProxyType
from typing import Any

from fairopt.cli.parquet import Column, require_parquet, write_parquet
from fairopt.cli.tables import say, table_of, texts
from fairopt.experiment.statistics import Estimate
from fairopt.experiment.studies.playing import MEASURES
from fairopt.experiment.studies.results import LABELS, StudyResults
from fairopt.experiment.words import digits
from fairopt.numbers import counted
from fairopt.problem.files.storage import naming, require_place, suffix_of, write_text
from fairopt.report import SCHEMA_KEY, Key, ResultForm
from fairopt.simulation.measures import WORDS

#: Fewer seeds than these leave much undecided; the most characters of a line in the head of a column.
FEW_SEEDS, HEAD = 10, 20
_TYPES = {"load": "float64", "seed": "int64"}
#: The columns of a table of cells: name, Arrow type, meaning.
COLUMNS: tuple[Column, ...] = (
    *((name, _TYPES.get(name, "string"), f"{name} of the cell") for name in LABELS),
    ("status", "string", "played or failed"),
    *((name, "float64", unit or "ratio") for name, unit in MEASURES.items()),
)


MERGED = ResultForm(
    "A file of all cells.",
    SCHEMA_KEY,
    Key("written", list[str], "The file."),
    Key("cells", int, "How many it holds."),
)
LISTED = ResultForm("A study.", SCHEMA_KEY, Key("name", str, "The name."), Key("title", str, "What it is about."))


def results(found: StudyResults, *, pairs: bool = False) -> None:
    """Print the means of each setting, in each column the best marked where that is sure, every pair, and notes.

    ``pairs``: also who is better of each pair, by how much, and how sure that is.
    """
    measures = list(dict.fromkeys(each.measure for each in found.spec.compare))
    seeds = len(found.spec.seeds)
    marked = False
    for setting in found.settings:
        say(f"{found.called(setting)}: means of {counted(seeds, 'seed')}, with 95% intervals")
        best = {(question.measure, found.best(question, setting)) for question in found.spec.compare}
        marked |= any(policy is not None for _, policy in best)
        rows = (
            (policy, *(_mean(found.means.get((setting, policy, each)), (each, policy) in best) for each in measures))
            for policy in found.policies
        )
        say(table_of(["policy", *(fill(WORDS.get(each, each.replace("_", " ")), HEAD) for each in measures)], rows))
    every = [pair for listed in found.pairs.values() for pair in listed]
    sure = sum(pair.sure for pair in every)
    if marked:
        say("*: better than every other policy, surely.")
    if every and not pairs:
        say(f"Of {counted(len(every), 'pair')} {sure} differ surely; --pairs shows all.")
    if sure < len(every) and seeds < FEW_SEEDS:
        say(f"With {counted(seeds, 'seed')} much stays undecided; {FEW_SEEDS} or more would tell more.")
    for question in found.spec.compare if pairs else ():
        say(f"{WORDS.get(question.measure, question.measure)} ({question.measure}), {question.better.value} is better:")
        lines = (
            (found.called(setting), pair.verdict, digits(pair.adjusted), str(pair.pairs))
            for setting in found.settings
            for pair in found.pairs.get((question, setting), ())
        )
        say(table_of([*texts("setting", "verdict"), "p (Holm)", "seeds"], lines))
    for note in found.notes:
        say(f"{note}.")


def _mean(mean: Estimate | None, best: bool) -> str:
    return "-" if mean is None else f"{'* ' * best}{mean}"


def require_table(path: Path) -> None:
    """Refuse, before anything is played, a table that cannot be written."""
    require_place(path, "--table")
    with naming(path):
        if suffix_of(path, _WRITERS) == ".parquet":
            require_parquet(path, "--table")


def write_table(found: StudyResults, path: Path) -> None:
    """Write the cells as a table, in the format of the file's suffix."""
    with naming(path):
        _WRITERS[suffix_of(path, _WRITERS)](found, path)


def _csv(found: StudyResults, path: Path) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, [name for name, _, _ in COLUMNS], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found.rows())
    write_text(path, text.getvalue())


def _latex(found: StudyResults, path: Path) -> None:
    """Write the table of means, as a paper prints it, and not every cell."""
    measures = list(dict.fromkeys(each.measure for each in found.spec.compare))
    lines = [_row(["setting", "policy", *measures]), "\\midrule"]
    for setting in found.settings:
        for policy in found.policies:
            cells = [str(found.means.get((setting, policy, measure), "--")) for measure in measures]
            lines.append(_row([found.called(setting), policy, *cells]))
    begin = f"\\begin{{tabular}}{{ll{'r' * len(measures)}}}"
    write_text(path, "\n".join([begin, "\\toprule", *lines, "\\bottomrule", "\\end{tabular}"]) + "\n")


def _row(cells: Sequence[str]) -> str:
    return " & ".join(_escaped(each) for each in cells) + " \\\\"


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "&%$#_{}" else letter for letter in text.replace("\\", "/"))


_WRITERS: Mapping[str, Callable[[StudyResults, Path], Any]] = MappingProxyType(
    {
        ".csv": _csv,
        ".tex": _latex,
        ".parquet": lambda found, path: write_parquet(found.rows(), COLUMNS, path, "--table"),
    }
)
