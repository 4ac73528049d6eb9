"""Groups of hosts that are alike and numbered: "old" with a count of 2 stands for old-1 and old-2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from fairopt.errors import BadInput
from fairopt.problem.cluster import MOST_HOSTS
from fairopt.problem.files.columns import TableRow
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
            raise BadInput(
                f"{len(where) + count} {called}s up to here",
                place=group.at("count"),
                remedy=f"Give at most {MOST_HOSTS}",
            )
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
    """Yield (first host, count, name) of the longest groups that `expanded` turns back into ``names``.

    Hosts of one group are equal in ``alike``. The name is None for a group named by ``prefix``.
    """
    at = 0
    while at < len(names):
        runs: list[tuple[int, str | None]] = []
        if prefix is not None:
            runs.append((_run(names, alike, at, lambda number: f"{prefix}{at + number}"), None))  # noqa: B023
        base = names[at].removesuffix("-1")
        if base != names[at] and base.strip():
            runs.append((_run(names, alike, at, lambda number: f"{base}-{number}"), base))  # noqa: B023
        count, name = max(runs, key=lambda run: run[0], default=(1, None))
        yield (at, 1, names[at]) if count < 2 else (at, count, name)
        at += max(count, 1)


def _run(names: Sequence[str], alike: Sequence[Hashable], first: int, called: Callable[[int], str]) -> int:
    """Return how many hosts from ``first`` on are alike and have the names that ``called`` gives for 1, 2, ..."""
    for number, host in enumerate(range(first, len(names)), start=1):
        if alike[host] != alike[first] or names[host] != called(number):
            return number - 1
    return len(names) - first
