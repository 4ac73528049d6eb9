"""Compares two folders that `observe.py` wrote, and prints every difference, in groups, with counts and examples.

    .venv/bin/python tests/golden/compare.py BEFORE AFTER [--examples 3] [--only WORD] [--show PROBLEM]

A group is a command, a policy and a key. Floats are equal within 1e-9; everything else is equal or it is not. Two
kinds of difference are told apart from the rest, for they may have no meaning: ``last digits``, where two exact numbers
are closer than 1e-9 to each other (a policy rounded what is irrational), and ``one of several optima``, where the
output says that the optimum is not unique. Exit status 1 where anything differs.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from observe import read

# sums of fractions have more digits than Python reads by default
sys.set_int_max_str_digits(0)
TOLERANCE = 1e-9
#: Keys that are names of users, jobs, types, tenants or servers of a problem.
_NAME = re.compile(r"^(lab |Ü |[a-zA-Z]{1,2})\d+(-\d+)?(/j\d+)?$")
_FRACTION = re.compile(r"^-?\d+(/\d+)?$")
MISSING = "(nothing)"


class Difference(NamedTuple):
    """Where two observations differ, and by what."""

    group: tuple[str, str, str, str]  # command, policy, key, what kind of difference
    problem: str
    arguments: str
    before: Any
    after: Any


def renamed(data: Any, names: dict[str, str]) -> Any:
    """Return observations with keys and words called as they are called now."""
    if isinstance(data, dict):
        return {renamed(key, names): renamed(value, names) for key, value in data.items()}
    if isinstance(data, list):
        return [renamed(each, names) for each in data]
    if isinstance(data, str):
        for old, new in names.items():
            data = data.replace(old, new)
    return data


def differences(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> Iterator[Difference]:
    """Yield all differences on the problems that both folders hold."""
    for name in sorted(before.keys() & after.keys()):
        ours, theirs = before[name]["observations"], after[name]["observations"]
        if [each["arguments"] for each in ours] != [each["arguments"] for each in theirs]:
            yield Difference(("the plan", "", "", "other commands"), name, "", len(ours), len(theirs))
            continue
        for one, other in zip(ours, theirs, strict=True):
            yield from _of_command(name, one, other)


def _of_command(name: str, one: dict[str, Any], other: dict[str, Any]) -> Iterator[Difference]:
    words = one["arguments"]
    named = [value for option, value in pairwise(words) if option == "--policy"]
    options = "".join(f" {word}" for word in ("--exact", "--floats", "--every-optimum", "--canonical") if word in words)
    command, policy = f"{words[0] if words else ''}{options}", named[0] if len(named) == 1 else ""
    for keys, kind, was, now in _differing((), one, other, free=False):
        whose, path = _policy_of(keys, policy)
        yield Difference((command, whose, path, kind), name, " ".join(words), was, now)


def _policy_of(keys: tuple[str, ...], policy: str) -> tuple[str, str]:
    """Return the policy that a path of keys speaks of, and the path without what is particular to a problem."""
    if keys[:2] == ("out", "policies") and len(keys) > 2:
        policy, keys = keys[2], ("out", *keys[3:])
    elif keys[:1] == ("files",) and len(keys) > 1:
        parts = keys[1].split("/")
        policy, keys = (parts[1] if len(parts) > 2 else policy), ("files", parts[-1], *keys[2:])
    return policy, ".".join("*" if _NAME.match(key) else key for key in keys)


def _differing(keys: tuple[str, ...], one: Any, other: Any, *, free: bool) -> Iterator[tuple[Any, ...]]:
    """Yield the keys, the kind of difference and both values, wherever two trees differ; ``free``: optima are many."""
    if isinstance(one, dict) and isinstance(other, dict):
        free = free or one.get("unique") is False or other.get("unique") is False
        for key in [*one, *(key for key in other if key not in one)]:
            yield from _differing((*keys, key), one.get(key, MISSING), other.get(key, MISSING), free=free)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for was, now in zip(one, other, strict=True):
            yield from _differing((*keys, "[]"), was, now, free=free)
    else:
        kind = _kind(one, other)
        if kind and free and keys[-1] not in ("objective", "exit", "unique", "unique_utilities", "status"):
            kind = "one of several optima"
        if kind:
            yield keys, kind, one, other


def _kind(one: Any, other: Any) -> str:
    """Return how two leaves differ, "" where they do not."""
    if type(one) is type(other) and one == other:
        return ""
    numbers = [isinstance(each, int | float) and not isinstance(each, bool) for each in (one, other)]
    if all(numbers):
        if isinstance(one, float) or isinstance(other, float):
            return "" if _close(one, other) else "floats"
        return "numbers"
    texts = [isinstance(each, str) and bool(_FRACTION.match(each)) for each in (one, other)]
    if all(texts):
        return "last digits" if _close(Fraction(one), Fraction(other)) else "exact numbers"
    if one == MISSING or other == MISSING:
        return "only before" if other == MISSING else "only after"
    return "values"


def _close(one: Any, other: Any) -> bool:
    return bool(abs(one - other) <= TOLERANCE * max(1, abs(one), abs(other)))


def main() -> None:
    """Print the differences of two folders."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--examples", type=int, default=2, help="examples of each group")
    parser.add_argument("--only", default="", help="groups whose command, policy, key or kind has this word")
    parser.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="what was called otherwise")
    parser.add_argument("--show", default="", help="one problem, each of its differences")
    asked = parser.parse_args()
    before, after = read(asked.before), read(asked.after)
    before = renamed(before, dict(each.split("=", 1) for each in asked.renamed))
    if asked.show:
        before = {name: data for name, data in before.items() if name == asked.show}
    groups: dict[tuple[str, str, str, str], list[Difference]] = defaultdict(list)
    for each in differences(before, after):
        if asked.only in " ".join(each.group):
            groups[each.group].append(each)
    most = sys.maxsize if asked.show else asked.examples
    for group, found in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1], -len(item[1]))):
        problems = len({each.problem for each in found})
        print(f"{' | '.join(group)}: {len(found)} on {problems} problems")
        for each in found[:most]:
            print(f"    {each.problem}: {each.arguments}\n        {_short(each.before)}\n     -> {_short(each.after)}")
    both = before.keys() & after.keys()
    missing = [f"{len(one.keys() - both)} {where}" for one, where in ((before, "only before"), (after, "only after"))]
    count, kinds = sum(map(len, groups.values())), Counter[str]()
    for group, found in groups.items():
        kinds[group[-1]] += len(found)
    print("".join(f"{number} {kind}\n" for kind, number in kinds.most_common()), end="")
    print(f"{count} differences in {len(groups)} groups on {len(both)} problems; {', '.join(missing)}")
    raise SystemExit(bool(groups))


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"


if __name__ == "__main__":
    main()
