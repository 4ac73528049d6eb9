"""Observes the command line on the problems of the golden master, and keeps what it says in a folder.

    .venv/bin/python tests/golden/observe.py FOLDER                          # everything: about 20 minutes on one core
    .venv/bin/python tests/golden/observe.py FOLDER --kind markets --from 0 --to 400
    .venv/bin/python tests/golden/observe.py FOLDER --quick                  # a few problems

A line a problem is written as it is done, so that an interrupted command goes on where it stopped, and several may
write into one folder side by side. What may differ without a meaning (seconds) is left out of what is kept.
`compare.py` compares two folders; `hashes.py` checks one against the hashes that are committed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import clusters
import command_line
import fixed
import generate
import plan
import wide
from generate import Problem
from plan import Step, Tampered, Written

#: Keys whose values are times of this machine.
TIMES = frozenset({"seconds", "cell_seconds", "deciding"})
#: Keys of an algorithm's effort that are times.
PHASES = frozenset({"prepare", "certify"})
_TIMED = re.compile(r"\d[\d.,]*(e[+-]?\d+)? ?(s|ms|µs)\b")
#: One problem in so many is quick; a prime, so that these meet what the plan does in turn.
QUICK = 997
#: A command that takes more seconds of the processor has gone astray; it is cut off, and that is observed.
MOST_SECONDS = 120


#: How many problems there are of each kind that is drawn from seeds.
COUNTS: Mapping[str, int] = {**generate.COUNTS, "clusters": clusters.COUNT, "wide": wide.COUNT}


def problem(kind: str, number: int) -> Problem:
    """Return problem ``number`` of a kind; the same one every time."""
    makers = {"clusters": clusters.cluster, "wide": wide.problem}
    return makers[kind](number) if kind in makers else generate.problem(kind, number)


def steps(made: Problem) -> Iterator[Step | Tampered | Written]:
    """Yield what is done with a problem, in order."""
    match made.kind:
        case "fixed":
            yield from fixed.steps(made)
        case "clusters":
            yield from clusters.steps(made.number, made.facts)
        case "wide":
            yield from wide.steps(made.number, made.facts)
        case _:
            yield from plan.steps(made)


class TookTooLong(BaseException):
    """A command was cut off."""


def observed(made: Problem) -> dict[str, Any]:
    """Return what the commands of the plan say about a problem."""
    observations: list[dict[str, Any]] = []
    with _folder() as folder:
        for name, text in made.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        for each in steps(made):
            if isinstance(each, Tampered):
                _tamper(folder, each)
            elif isinstance(each, Written):
                (folder / each.name).write_text(each.text, encoding="utf-8")
            else:
                observations.append(_observed(folder, each, observations))
    return {"problem": made.name, "observations": observations}


@contextmanager
def _folder() -> Iterator[Path]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def _observed(folder: Path, step: Step, before: list[dict[str, Any]]) -> dict[str, Any]:
    try:
        with _limited():
            status, out, err = command_line.call(step.arguments)
    except TookTooLong:
        status, out, err = -1, "", f"more than {MOST_SECONDS} s"
    if step.save:
        (folder / step.save).write_text(out, encoding="utf-8")
    told = _plain(out)
    found: dict[str, Any] = {"arguments": list(step.arguments), "exit": status, "out": told}
    if err:
        found["err"] = _untimed(err.replace(str(folder), "HERE")).splitlines()
    if step.keep:
        found["files"] = {
            str(path.relative_to(folder)): _plain(path.read_text(encoding="utf-8"))
            for name in step.keep
            for path in sorted([folder / name, *(folder / name).rglob("*")])
            if path.is_file()
        }
    if step.like is not None:
        found["same_as_before"] = told == before[step.like]["out"]
    return found


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TookTooLong

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _plain(text: str) -> Any:
    """Return JSON, JSON lines or the lines of a text, without what a clock says."""
    try:
        return _timeless(json.loads(text))
    except ValueError:
        pass
    lines = text.splitlines()
    if lines and all(line.startswith("{") for line in lines):
        try:
            return [_timeless(json.loads(line)) for line in lines]
        except ValueError:
            pass
    return [_untimed(line).rstrip() for line in lines]


def _timeless(data: Any) -> Any:
    if isinstance(data, dict):
        times = TIMES | PHASES | {"solve"} if data.keys() >= PHASES else TIMES
        return {key: None if key in times else _timeless(value) for key, value in data.items()}
    return [_timeless(each) for each in data] if isinstance(data, list) else data


def _untimed(text: str) -> str:
    return _TIMED.sub("# s", text)


def _tamper(folder: Path, wanted: Tampered) -> None:
    """Write a file again with one number, name or truth value changed."""
    random = Random(f"tampered {wanted.number}")
    try:
        data = json.loads((folder / wanted.source).read_text(encoding="utf-8"))
    except ValueError:  # the command that should have written it refused
        data = {}
    leaves = list(_leaves(data.get(wanted.within, []) if wanted.within else data))
    if leaves:
        holder, key = random.choice(leaves)
        value = holder[key]
        if isinstance(value, bool):
            holder[key] = not value
        elif isinstance(value, str):
            holder[key] = f"{value}1"
        else:
            holder[key] = value + random.choice([1, -1])
    (folder / wanted.target).write_text(json.dumps(data), encoding="utf-8")


def _leaves(data: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from _leaves(value)
        elif value is not None and key not in TIMES:
            yield data, key


# -- folders ---------------------------------------------------------------------------------------------------------
def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what a folder holds, by problem; a line that was cut off is left out."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                data = json.loads(line)
            except ValueError:
                continue
            found[data["problem"]] = _timeless(data)  # again, should what counts as a time have been extended
    return found


def asked_for(kind: str | None, first: int, last: int | None, *, quick: bool) -> Iterator[Problem]:
    """Yield the problems of a kind and a range of numbers; those that are fixed come first."""
    if kind in (None, "fixed"):
        yield from fixed.problems(quick=quick)
    for each, count in COUNTS.items():
        if kind in (None, each):
            for number in range(first, min(count, count if last is None else last)):
                if not quick or number % QUICK == 0:
                    yield problem(each, number)


def main() -> None:
    """Observe what was asked for, but for what the folder holds already."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=["fixed", *COUNTS])
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", dest="last", type=int)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    done = read(asked.folder).keys()
    begun, count = time.process_time(), 0
    name = f"{asked.kind or 'all'}-{asked.first:04d}-{'end' if asked.last is None else f'{asked.last:04d}'}.jsonl"
    with (asked.folder / name).open("a", encoding="utf-8") as stream:
        if stream.tell():  # a line that was cut off ends here
            stream.write("\n")
        for made in asked_for(asked.kind, asked.first, asked.last, quick=asked.quick):
            if made.name in done:
                continue
            stream.write(json.dumps(observed(made), ensure_ascii=False) + "\n")
            stream.flush()
            count += 1
            if count % 20 == 0:
                print(f"{made.name}: {count} problems in {time.process_time() - begun:.0f} CPU s", file=sys.stderr)
    print(f"{count} problems in {time.process_time() - begun:.0f} CPU s", file=sys.stderr)


if __name__ == "__main__":
    main()
