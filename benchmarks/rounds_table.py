"""All measures of all registered policies of rounds, side by side, on the 1,000-job excerpt of the Philly trace.

    .venv/bin/python benchmarks/rounds_table.py [--write docs/rounds.md] [--floats] [--jobs 1000] [--policy NAME ...]

Each run is in fractions unless --floats says otherwise, its record is replayed by `proofs/verify.py`, and the table
says what that found. A policy that stops has the measures of the rounds until then, and its error below the table.
``--write`` puts the table between the markers of a Markdown file.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from time import perf_counter

from fairopt import discovery
from fairopt.compare import Row, compare
from fairopt.datasets import philly_cluster, philly_trace
from fairopt.experiment.bench.figures import put_between
from fairopt.problem import Queue, Trace
from fairopt.proofs.verifier import runs as verify_run
from fairopt.simulation import History, Mechanics, Setting
from fairopt.simulation.document import document
from fairopt.simulation.measures import UNITS

LENGTH = 300
#: Seconds to stop a job and start it again, as Pollux measured them; the network's part comes from the cluster.
RESTART = 30
BEGIN, END = "<!-- measures: written by benchmarks/rounds_table.py -->", "<!-- measures: end -->"
#: What a replay of a run in floats may be off by.
TOLERANCE = Fraction(1, 10**6)


def verified(run: Row[History], mechanics: Mechanics, floats: bool) -> str:
    """Return what the verifier says of a run."""
    text = json.dumps(document(run.outcome, mechanics, LENGTH, run.policy.name))
    found, _ = verify_run.decide(text, TOLERANCE if floats else Fraction(0))
    return f"{len(found)} violations" if found else "yes"


def table(rows: Sequence[tuple[Row[History], str]], said: str) -> str:
    """Return the Markdown of the table, a row for each measure, and below it what stopped a policy."""
    names = [run.policy.name for run, _ in rows]
    lines = [said, "", f"| measure | unit | {' | '.join(names)} |", f"|---|---|{'---:|' * len(names)}"]
    numbers = [run.metrics.row() for run, _ in rows]
    for name, unit in UNITS.items():
        lines.append(f"| {name} | {unit} | {' | '.join(short(row[name]) for row in numbers)} |")
    lines.append(f"| record replayed | | {' | '.join(verdict for _, verdict in rows)} |")
    stopped = [f"* `{run.policy.name}` stopped: {run.error}" for run, _ in rows if run.error is not None]
    return "\n".join([*lines, *(["", *stopped] if stopped else []), ""])


def short(value: float | None) -> str:
    """Return a number as the table shows it: counts whole, others in four digits."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    return f"{value:.0f}" if value >= 1000 else f"{value:.4g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="a Markdown file with the two markers")
    parser.add_argument("--floats", action="store_true")
    parser.add_argument("--jobs", type=int, default=1000, help="only the first so many jobs")
    parser.add_argument("--policy", action="append", help="a policy's name; all that are registered, if none is given")
    given = parser.parse_args()
    sys.set_int_max_str_digits(0)  # exact numbers may be long
    trace, cluster, mechanics = philly_trace(), philly_cluster(), Mechanics(restart=Fraction(RESTART))
    trace = Trace(trace.jobs.take(range(given.jobs)))
    installed = [each.name for each in discovery.policies(Queue)]
    policies = [discovery.policy(name, Queue) for name in given.policy or installed]
    rows, begun = [], perf_counter()
    setting = Setting(cluster, trace, mechanics, Fraction(LENGTH))
    for run in compare(setting.as_(float) if given.floats else setting, policies, []):
        took, begun = perf_counter() - begun, perf_counter()
        rows.append((run, verified(run, mechanics, given.floats)))
        said = f"{run.policy.name}: {run.metrics.rounds} rounds, {took:.1f} s, {rows[-1][1]} {run.error or ''}"
        print(f"{said} ({perf_counter() - begun:.1f} s to verify)", file=sys.stderr, flush=True)
        begun = perf_counter()
    measured = table(
        rows,
        f"{given.jobs} jobs of the Philly trace (`datasets.philly_trace()`) on {', '.join(_gpus())} "
        f"(`datasets.philly_cluster()`), rounds of {LENGTH} s, {RESTART} s for a restart, numbers in "
        f"{'floats' if given.floats else 'fractions'}; times in seconds:",
    )
    if given.write is None:
        print(measured)
        return
    text = given.write.read_text(encoding="utf-8") if given.write.exists() else f"{BEGIN}\n{END}\n"
    given.write.parent.mkdir(exist_ok=True)
    given.write.write_text(put_between(text, BEGIN, END, measured, str(given.write)), encoding="utf-8")


def _gpus() -> list[str]:
    cluster = philly_cluster()
    return [f"{count} {name}" for name, count in zip(cluster.types, cluster.capacity.tolist(), strict=True)]


if __name__ == "__main__":
    main()
