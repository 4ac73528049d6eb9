"""What Slurm writes in a field: trackable resources, times, lists of hosts, and what stands for nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from fairopt.errors import BadInput
from fairopt.numbers import counted
from fairopt.problem.files.storage import AnyPath, naming, read_text
from fairopt.problem.numbers import MOST_GPUS, amount, shown
from fairopt.program import INFINITY, Number

#: What Slurm prints where it has nothing to say.
NOTHING = frozenset({"", "(null)", "n/a", "none", "unknown", "none assigned", "unlimited"})
#: The GPU type of a cluster that names none.
UNTYPED = "GPU"
#: The resource of GPUs of any type.
GPUS = "gres/gpu"
#: What `scontrol show config` prints first.
CONFIGURATION = "Configuration data as of"
#: More hosts or array tasks in one field are taken for a mistake.
MOST_LISTED = 100_000
_TIMES: Mapping[str, int] = MappingProxyType({"": 1} | {unit: 1024**power for power, unit in enumerate("KMGTPE", 1)})
_TRES = re.compile(r"(-1|\d{1,18}(?:\.\d{1,9})?)([KMGTPE]?)[BCNcn]?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)  # of times without a zone
_CLOCK = re.compile(r"(?:(\d{1,6})-)?(\d{1,6})(?::(\d{1,4}))?(?::(\d{1,4}))?(?:\.\d{1,9})?", re.ASCII)
_GRES = re.compile(r"(?:gres[/:])?gpu(?::([^:=()\s]+?))??(?:[:=](\d{1,7}))?(?:\(.*\))?", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::(\d{1,6}))?", re.ASCII)


def begins(path: AnyPath, text: str) -> bool:
    """Say whether a file begins with a text, after blanks. Errors: `BadInput` for what cannot be read."""
    with naming(path):
        if not Path(path).is_file():
            read_text(path)  # says what is wrong
        with open(path, "rb") as stream:
            return stream.read(4096).decode("utf-8-sig", errors="replace").lstrip().startswith(text)


def said(text: object) -> str:
    """Return a field's text, "" where Slurm says nothing.

    >>> said("(null)"), said(" gpu ")
    ('', 'gpu')
    """
    value = "" if text is None else str(text).strip()
    return "" if value.lower() in NOTHING else value


def tres(text: str, place: str) -> dict[str, Number]:
    """Return trackable resources by name, memory in bytes; a count of -1 is no limit (infinity).

    Errors: `BadInput` with the place. Source: Slurm, doc/html/tres.shtml; src/common/slurmdb_defs.c.

    >>> tres("cpu=64,mem=2G,gres/gpu:a100=4", "here")["mem"]
    Fraction(2147483648, 1)
    """
    with naming(place=place):
        return dict(_tres(text) if len(text) < 500 else _tres.__wrapped__(text))


@lru_cache(maxsize=2**12)
def _tres(text: str) -> tuple[tuple[str, Number], ...]:
    """Return the same in pairs; jobs ask for the same again and again."""
    counts: dict[str, Number] = {}
    for each in filter(None, map(str.strip, said(text).split(","))):
        name, equals, count = each.partition("=")
        name = name.strip().lower() if not name.lower().startswith("gres/") else "gres/" + name.strip()[5:]
        found = _TRES.fullmatch(count.strip())
        if not equals or not name or found is None:
            remedy = "Give resources such as cpu=64,mem=256G,gres/gpu:a100=4"
            raise BadInput(f"got {shown(each)}", remedy=remedy)
        if name in counts:
            raise BadInput(f"{shown(name)} stands twice", remedy="Give each resource once")
        unit = found[2] or ("M" if name == "mem" else "")
        counts[name] = INFINITY if found[1] == "-1" else Fraction(found[1]) * _TIMES[unit]
    return tuple(counts.items())


def gpus_of(counts: Mapping[str, Number], place: str) -> dict[str, int]:
    """Return whole GPUs by type; under `UNTYPED` those of which no type is said.

    >>> gpus_of(tres("gres/gpu=4,gres/gpu:a100=4", "here"), "here")
    {'a100': 4}
    """
    typed = {name[len(GPUS) + 1 :]: count for name, count in counts.items() if name.startswith(GPUS + ":")}
    every = counts.get(GPUS, sum(typed.values()))
    if every != INFINITY and every > sum(typed.values()):
        typed[UNTYPED] = every - sum(typed.values())
    for name, count in typed.items():
        if count == INFINITY or count != int(count) or count > MOST_GPUS:
            remedy = f"Give a whole number up to {MOST_GPUS}"
            raise BadInput(f"got {shown(count)} GPUs", place=f"{place}, {name}", remedy=remedy)
    return {name: int(count) for name, count in typed.items() if count}


def gres(text: str, place: str) -> dict[str, int]:
    """Return the GPUs of generic resources as nodes and jobs list them: "gpu:a100:4(S:0-1)", "gres/gpu=2", "gpu".

    Errors: `BadInput` with the place. Source: Slurm, doc/html/gres.shtml.

    >>> gres("gpu:a100:4(S:0-1),gpu:h100:2,nvme:1", "here")
    {'a100': 4, 'h100': 2}
    """
    with naming(place=place):
        return dict(_gres(said(text)))


@lru_cache(maxsize=2**12)
def _gres(text: str) -> tuple[tuple[str, int], ...]:
    """Return the same in pairs; jobs ask for the same again and again."""
    counts: dict[str, int] = {}
    for each in re.split(r",(?![^(]*\))", text):
        if not re.match(r"(gres[/:])?gpu(?![a-z_])", each.strip()):
            continue
        found = _GRES.fullmatch(each.strip())
        if found is None:
            raise BadInput(f"got {shown(each)}", remedy="Give generic resources such as gpu:a100:4")
        kind, count = found[1] or UNTYPED, found[2]
        if count is None and kind.isdecimal():  # gpu:4
            kind, count = UNTYPED, kind
        counts[kind] = counts.get(kind, 0) + int(count or 1)
    return tuple(counts.items())


def duration(text: str, place: str) -> Fraction | None:
    """Return seconds of "00:30:00", "1-02:03:04", "30:00" (minutes) or "2-12"; None where nothing is said.

    Errors: `BadInput` with the place. Source: Slurm, doc/man/man1/sacct.1 (Elapsed); src/common/parse_time.c.

    >>> duration("1-02:03:04", "here"), duration("00:30:00", "here")
    (Fraction(93784, 1), Fraction(1800, 1))
    """
    if not said(text):
        return None
    found = _CLOCK.fullmatch(said(text))
    if found is None:
        raise BadInput(f"got {shown(text)}", place=place, remedy="Give a time such as 00:30:00 or 1-02:03:04")
    days, first, second, third = found.groups()
    if days is not None:  # days-hours, days-hours:minutes, days-hours:minutes:seconds
        parts = (days, first, second, third)
    elif third is not None:
        parts = (0, first, second, third)
    elif second is not None:
        parts = (0, 0, first, second)
    else:
        parts = (0, 0, first, 0)
    return Fraction(sum(int(part or 0) * size for part, size in zip(parts, (86400, 3600, 60, 1), strict=True)))


def moment(text: str, place: str) -> Fraction | None:
    """Return seconds since 1970 of an ISO time, or of a number of seconds; None where nothing is said.

    A time without a zone is read as UTC. Errors: `BadInput` with the place.

    >>> moment("1970-01-02T00:00:00", "here")
    Fraction(86400, 1)
    """
    value = said(text)
    if not value or value == "0":
        return None
    if value.replace(".", "", 1).isascii() and value.replace(".", "", 1).isdigit():
        return amount(value, place)
    try:
        when = datetime.fromisoformat(value)
        since = when - (_EPOCH if when.tzinfo is None else _EPOCH.replace(tzinfo=UTC))
        seconds = since.days * 86400 + since.seconds
        return Fraction(seconds * 10**6 + since.microseconds, 10**6) if since.microseconds else Fraction(seconds)
    except (ValueError, OverflowError) as error:
        remedy = "Give a time such as 2026-11-22T08:30:00, or seconds since 1970"
        raise BadInput(f"got {shown(text)}", place=place, remedy=remedy) from error


def hosts(text: str, place: str) -> list[str]:
    """Return the hosts of a list such as "gpu[01-03,07],login1".

    Errors: `BadInput` with the place. Source: Slurm, src/common/hostlist.c.

    >>> hosts("gpu[01-03],x", "here")
    ['gpu01', 'gpu02', 'gpu03', 'x']
    """
    named: list[str] = []
    for each in filter(None, re.split(r",(?![^\[]*\])", said(text))):
        before, bracket, rest = each.partition("[")
        inside, closed, after = rest.partition("]")
        if bracket and (not closed or "[" in after or "]" in after):
            raise BadInput(f"got {shown(each)}", place=place, remedy="Give hosts such as gpu[01-04,07]")
        named += [f"{before}{each}{after}" for each in numbers(inside, place)] if bracket else [each]
    if len(named) > MOST_LISTED:
        raise BadInput(counted(len(named), "host"), place=place, remedy=f"Give at most {MOST_LISTED}")
    return named


def numbers(text: str, place: str) -> Iterator[str]:
    """Yield the numbers of "1-3,7" or "0-8:4", with the zeros that stand in front."""
    total = 0
    for each in text.partition("%")[0].split(","):
        found = _RANGE.fullmatch(each.strip())
        if found is None or int(found[2] or found[1]) < int(found[1]) or found[3] in ("0", "00"):
            raise BadInput(f"got {shown(each)}", place=place, remedy="Give numbers such as 1-3,7")
        listed = range(int(found[1]), int(found[2] or found[1]) + 1, int(found[3] or 1))
        total += len(listed)
        if total > MOST_LISTED:
            raise BadInput(f"more than {MOST_LISTED} in {shown(text)}", place=place, remedy="Give fewer")
        yield from (str(number).zfill(len(found[1])) for number in listed)
