"""The same file in other units: what is read must be the same, so that a unit that is read wrongly is seen.

The judge is arithmetic of units that is written down here: 64Gi are 65536Mi, 2500m of a CPU are 2500000u, 256G of Slurm
are 262144M, and 1-02:00:00 are 26 hours.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

from inputs import folder, import_with, imported
from trials import Ending, Fault, Kind

from fairopt.errors import BadInput

_KEYS = "memory|cpu|ephemeral-storage|nvidia.com/gpu|nominalQuota|borrowingLimit|total|borrowed"


class Rule(NamedTuple):
    """What is found in a text, and in which other ways it may be said; all groups but ``before`` are said anew."""

    found: re.Pattern[str]
    ways: Callable[[re.Match[str]], Sequence[str]]


def _of_kubernetes(found: re.Match[str]) -> Sequence[str]:
    count, unit = int(found["count"]), found["unit"]
    ways = {
        "Ti": [f"{count * 1024}Gi", f"{count * 1024**4}"],
        "Gi": [f"{count * 1024}Mi", f"{count * 1024**2}Ki", f"{count * 1024**3}"],
        "Mi": [f"{count * 1024}Ki", f"{count * 1024**2}"],
        "m": [f"{count * 1000}u", f"{count * 1000}000n"],
        "k": [f"{count * 1000}", f"{count}e3"],
    }
    return [f"{found['before']}{way}" for way in ways[unit]]


def _bare(found: re.Match[str]) -> Sequence[str]:
    return [f"{found['before']}{found['count']}{way}" for way in ("000m", "e0", ".0")]


def _of_slurm(found: re.Match[str]) -> Sequence[str]:
    count = int(found["count"])
    ways = {"G": [f"{count * 1024}M", f"{count * 1024**2}K"], "M": [f"{count}", f"{count * 1024}K"]}
    return [f"{found['before']}{way}" for way in ways[found["unit"]]]


def _days(found: re.Match[str]) -> Sequence[str]:
    return [f"{found['before']}{int(found['days']) * 24 + int(found['hours'])}:{found['rest']}"]


def _hours(found: re.Match[str]) -> Sequence[str]:
    return [f"{found['before']}0-{found['hours']}:{found['rest']}"]


KUBERNETES = (
    Rule(
        re.compile(rf'(?P<before>(?:{_KEYS})"?: "?)(?P<count>\d+)(?P<unit>Ti|Gi|Mi|m|k)(?="?[\s,}}]|"?$)'),
        _of_kubernetes,
    ),
    Rule(re.compile(rf'(?P<before>(?:{_KEYS})"?: ")(?P<count>\d+)(?=")'), _bare),
)
SLURM = (
    Rule(re.compile(r"(?P<before>\bmem=)(?P<count>\d+)(?P<unit>[GM])(?=[,|\s])"), _of_slurm),
    Rule(re.compile(r"(?P<before>[=|])(?P<days>\d+)-(?P<hours>\d\d):(?P<rest>\d\d:\d\d)(?=[\s|])"), _days),
    Rule(re.compile(r"(?P<before>[=|])(?P<hours>\d\d):(?P<rest>\d\d:\d\d)(?=[\s|])"), _hours),
)
RULES = {"kueue": KUBERNETES, "kai": KUBERNETES, "volcano": KUBERNETES, "armada": KUBERNETES, "slurm": SLURM}


@cache
def files() -> dict[tuple[str, str], tuple[str, Any]]:
    """Return the samples in which a unit is told, and what is read of each."""
    found = {}
    for importer, rules in RULES.items():
        for name, data in imported(importer).items():
            text = data.decode()
            if any(rule.found.search(text) for rule in rules):
                read = _read(importer, name, text)
                if read is not None:
                    found[importer, name] = text, read
    return found


def _read(importer: str, name: str, text: str) -> Any:
    """Return what is read of a text, None where it is refused."""
    path = folder() / name
    path.write_text(text, encoding="utf-8")
    try:
        return import_with(importer, path)
    except BadInput:
        return None


def attempt(draw: Random) -> Ending:
    """Say some amounts of a file in other units; the problem, and what is counted, must be what they were."""
    key = draw.choice(sorted(files()))
    text, before = files()[key]
    part = draw.choice([0.1, 0.5, 1.0])
    for rule in RULES[key[0]]:
        text = rule.found.sub(lambda found, rule=rule: _said(rule, found, part, draw), text)
    now = _read(*key, text)
    if now is None or now.problem != before.problem or now.counted != before.counted:
        raise Fault(Ending.WRONG, f"{key}: other units of the same amounts are read as something else: {text[:500]}")
    return Ending.RIGHT


def _said(rule: Rule, found: re.Match[str], part: float, draw: Random) -> str:
    return draw.choice(rule.ways(found)) if draw.random() < part else found[0]


KINDS = [Kind("a", "files in other units", attempt, 10, 30, files)]
