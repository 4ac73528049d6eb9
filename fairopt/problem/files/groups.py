"""Groups of hosts that are alike and numbered: "old" with a count of 2 stands for old-1 and old-2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from fairopt.errors import BadInput
from fairopt.problem.cluster import MOST_HOSTS
from fairopt.problem.files.schema import TableRow
from fairopt.problem.numbers import shown


def expanded(
    groups: Sequence[TableRow], called: str, prefix: Callable[[TableRow], str]
) -> Iterator[tuple[TableRow, str]]:
    """Yield each group as often as it has hosts, with the host's name; ``called`` is what messages call a host.

    In a group without a name, a host is called ``prefix`` and its number among all hosts of that prefix.
    """
    where: dict[str, str] = {}
    before: Counter[str] = Counter()
    for group in groups:
        name, count = group["name"], group["count"]
        if len(where) + count > MOST_HOSTS:
            remedy = f"Give at most {MOST_HOSTS}"
            raise BadInput(f"{len(where) + count} {called}s up to here", place=group.at("count"), remedy=remedy)
        start = f"{name}-" if name else prefix(group)
        first = 1 if name else before[start] + 1
        before[prefix(group)] += count
        for number in range(first, first + count):
            host = name if name and count == 1 else f"{start}{number}"
            if host in where:
                raise BadInput(
                    f"a {called} of {where[host]} is called {shown(host)} too",
                    place=group.at("name"),
                    remedy="Give each group a name of its own",
                )
            where[host] = group.place
            yield group, host


def grouped(
    names: Sequence[str], alike: Sequence[Hashable], prefix: str | None = None
) -> Iterator[tuple[int, int, str | None]]:
    """Yield (first host, count, name or None for ``prefix``) of the longest groups of `alike` hosts for `expanded`."""
    at = 0
    while at < len(names):
        runs: list[tuple[int, str | None]] = []
        if prefix is not None:
            runs.append((_run(names, alike, at, prefix, at + 1), None))
        base = names[at].removesuffix("-1")
        if base != names[at] and base.strip():
            runs.append((_run(names, alike, at, f"{base}-", 1), base))
        count, name = max(runs, key=lambda run: run[0], default=(1, None))
        yield (at, count, name) if count > 1 else (at, 1, names[at])
        at += max(count, 1)


def _run(names: Sequence[str], alike: Sequence[Hashable], first: int, start: str, number: int) -> int:
    """Return how many hosts from ``first`` on are alike and called ``start`` with ``number``, ``number`` + 1, ..."""
    for count, host in enumerate(range(first, len(names))):
        if alike[host] != alike[first] or names[host] != f"{start}{number + count}":
            return count
    return len(names) - first
