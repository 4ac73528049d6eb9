"""`audit_over_time`: audits of several moments: who starved for how long, who borrowed how much, when verdicts changed.

What a file shows at its moment is taken to hold until the next one; after the last nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from fairopt.audit.auditing import Audit, audit
from fairopt.audit.status import EntitlementStatus
from fairopt.errors import BadInput
from fairopt.problem.files.storage import AnyPath
from fairopt.properties import Answer
from fairopt.report import SCHEMA_KEY, Grid, Key, ResultForm, Statement, Tabular, by_name, listed

#: A moment in a name: 2026-11-28T10:30, 20261128-103000, with Z or +01:00 behind it if not in UTC.
_MOMENT = re.compile(
    r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})[T_ -]?(\d{2})[:.-]?(\d{2})(?:[:.-]?(\d{2}))?(Z|[+-]\d{2}:?\d{2})?(?!\d)"
)
#: Keys of what a user has, summed over time.
SUMS = ("holds", "owed", "borrows", "short")


MOMENT = ResultForm("What stays of the audit of one moment.", sentence=lambda it: str(it.at))


def moment(at: datetime, found: Audit) -> Statement:
    """Return what stays of an audit: how everybody stood, answers by property, what was broken, and free GPUs."""
    there = zip(found.market.types, found.market.capacity, found.accounts.free, strict=True)
    return MOMENT.of(
        at=at,
        rows={row.name: row for row in found.rows},
        answers={name: verdict.answer for name, verdict in found.verdicts.items()},
        broken={f"{each.name}, {each.type}": str(each) for each in found.violations},
        gpus={kind: (count, free) for kind, count, free in there},
    )


@dataclass(frozen=True, eq=False, repr=False)
class AuditSeries(Tabular):
    """Audits of several moments, in order.

    >>> from fairopt.problem import Entitlements, Market
    >>> def held(gpus):
    ...     owed = Entitlements.of(["A"], ["H100"], guarantee={"A": [6]}, held={"A": [gpus]})
    ...     return Market.of([[1]], [8], users=["A"], types=["H100"], entitlements=owed)
    >>> hours = [datetime(2026, 11, 28, hour, tzinfo=UTC) for hour in (8, 10, 11)]
    >>> found = audit_over_time(dict(zip(hours, map(held, (8, 6, 0)), strict=True)), policies=[])
    >>> found.gpu_seconds("A", "borrows")
    {'H100': Fraction(14400, 1)}
    """

    moments: tuple[Statement, ...]

    form = ResultForm(
        "Audits of several moments.",
        SCHEMA_KEY,
        Key(
            "moments",
            listed(dict),
            "When, and then: how many users stood how; answers by property; what was broken.",
            lambda it: [
                {
                    "at": each.at.isoformat(),
                    "counts": it.counts(each),
                    "properties": each.answers,
                    "broken": [*each.broken.values()],
                }
                for each in it.moments
            ],
        ),
        Key(
            "users",
            by_name(dict),
            "By user or group: seconds starved, in all, at longest, and since when it still is; GPU seconds by type "
            "held, owed, borrowed and short.",
            lambda it: {name: it.summary(name) for name in it.names},
        ),
        Key(
            "changes",
            listed(dict),
            "Answers on a property that changed, when, and from what to what.",
            lambda it: [
                {"at": at.isoformat(), "property": name, "before": was, "after": now}
                for at, name, was, now in it.changes
            ],
        ),
        name="audit_over_time",
    )

    @property
    def names(self) -> list[str]:
        """All users and groups of any moment, users first."""
        found = {name: row.is_group for each in self.moments for name, row in each.rows.items()}
        return sorted(found, key=lambda name: found[name])

    @property
    def seconds(self) -> list[Fraction]:
        """How long each moment but the last lasted."""
        return [Fraction((then.at - at.at).total_seconds()) for at, then in pairwise(self.moments)]

    @property
    def violated(self) -> bool:
        """Whether a guarantee or a cap was broken at the last moment."""
        return bool(self.moments[-1].broken)

    @property
    def undecided(self) -> bool:
        """Whether a property could not be decided at the last moment."""
        return any(each in (Answer.UNDECIDED, Answer.DEPENDS) for each in self.moments[-1].answers.values())

    def counts(self, moment: Statement) -> dict[str, int]:
        """Return how many users stood how at a moment."""
        stood = [row.status for row in moment.rows.values() if not row.is_group]
        return {status.value: stood.count(status) for status in EntitlementStatus}

    def starved(self, name: str) -> list[tuple[datetime, datetime | None]]:
        """Return from when until when a user or group starved; None for who did at the last moment."""
        spans: list[tuple[datetime, datetime | None]] = []
        for each, then in zip(self.moments, [*(later.at for later in self.moments[1:]), None], strict=True):
            row = each.rows.get(name)
            if row is None or row.status is not EntitlementStatus.STARVED:
                continue
            begun = spans.pop()[0] if spans and spans[-1][1] == each.at else each.at
            spans.append((begun, then))
        return spans

    def starved_seconds(self, name: str) -> list[Fraction]:
        """Return how long each of these spans was, as far as is known."""
        last = self.moments[-1].at
        return [Fraction(((end or last) - begun).total_seconds()) for begun, end in self.starved(name)]

    def gpu_seconds(self, name: str, key: str) -> dict[str, Fraction]:
        """Return by type the sum over time of what a user or group ``holds``, is ``owed``, ``borrows`` or is ``short``.

        Guarantees without bound are not added up.
        """
        total: dict[str, Fraction] = {}
        for each, seconds in zip(self.moments, self.seconds, strict=False):
            for own in each.rows[name].types if name in each.rows else ():
                amount = getattr(own, key)
                if amount != float("inf") and amount:
                    total[own.type] = total.get(own.type, Fraction(0)) + Fraction(amount) * seconds
        return total

    def line(self, name: str, kind: str, key: str) -> list[float]:
        """Return what a user or group ``holds``, is ``owed`` or so of a type at each moment."""
        rows = [each.rows.get(name) for each in self.moments]
        on: list[Statement | None] = [None if row is None else row.on(kind) for row in rows]
        return [0.0 if own is None else float(getattr(own, key)) for own in on]

    @property
    def types(self) -> list[str]:
        """All GPU types of any moment."""
        return list(dict.fromkeys(kind for each in self.moments for kind in each.gpus))

    @property
    def changes(self) -> list[tuple[datetime, str, Answer | None, Answer | None]]:
        """When which answer on a property changed, from what to what; None where it was not asked."""
        return [
            (then.at, name, was.answers.get(name), then.answers.get(name))
            for was, then in pairwise(self.moments)
            for name in dict.fromkeys((*was.answers, *then.answers))
            if was.answers.get(name) is not then.answers.get(name)
        ]

    @property
    def broken(self) -> list[tuple[datetime, str, bool]]:
        """When which guarantee or cap was broken (true), and when it was so no more."""
        begun = [(self.moments[0].at, words, True) for words in self.moments[0].broken.values()]
        return begun + [
            (then.at, (was.broken | then.broken)[of], of in then.broken)
            for was, then in pairwise(self.moments)
            for of in dict.fromkeys((*was.broken, *then.broken))
            if (of in was.broken) is not (of in then.broken)
        ]

    def summary(self, name: str) -> dict[str, Any]:
        """Return what a user or group had over time, as JSON has it."""
        spans, lengths = self.starved(name), self.starved_seconds(name)
        since = next((begun.isoformat() for begun, end in spans if end is None), None)
        starved = {"seconds": sum(lengths), "longest_seconds": max(lengths, default=0), "since": since}
        return {"starved": starved} | {key: self.gpu_seconds(name, key) for key in SUMS}

    def __repr__(self) -> str:
        return f"<AuditSeries: {len(self.moments)} moments, {self.moments[0].at} to {self.moments[-1].at}>"

    def _table(self) -> Grid:
        columns: dict[str, list[Any]] = {"starved s": [sum(self.starved_seconds(name)) for name in self.names]}
        for key in SUMS:
            columns |= {
                f"{kind} {key}": [self.gpu_seconds(name, key).get(kind, 0) for name in self.names]
                for kind in self.types
            }
        return Grid("user", self.names, columns)


def audit_over_time(
    moments: Mapping[datetime, Any], *, watch: Callable[[str], None] = lambda doing: None, **how: Any
) -> AuditSeries:
    """Return what audits of several moments show together.

    ``moments`` is by the moment what `audit` takes: files, or a market. ``how`` is what `audit` takes further; policies
    are asked only where they are named. Errors: `BadInput` of `audit`; for fewer than two moments.

    Source: ours.
    """
    if len(moments) < 2:
        remedy = "Give files of several moments; fairopt audit takes one"
        raise BadInput(f"{len(moments)} moment", place="moments", remedy=remedy)
    how = {"policies": [], **{key: value for key, value in how.items() if value is not None}}
    found = []
    for at in sorted(moments):
        watch(f"{at:%Y-%m-%d %H:%M}")
        found.append(moment(at, audit(moments[at], **how)))
    return AuditSeries(tuple(found))


def moments_of(paths: Sequence[AnyPath]) -> dict[datetime, AnyPath]:
    """Return each path by its moment; where one folder is given, each of what is in it.

    The moment stands in the name, as in ``2026-11-28T10:30.json`` or ``20261128-1030`` (UTC, or with ``+01:00`` behind
    it); where it stands in no name, it is when the file, or the newest one in the folder, was last written.

    Errors: `BadInput` where some names have a moment and others none, and where two moments are the same.

    >>> moments_of(["kueue-20261128T1030.json", "kueue-20261128T1130.json"]).popitem()[0].isoformat()
    '2026-11-28T11:30:00+00:00'
    """
    given = list(_each(paths))
    named = {path: _named(path) for path in given}
    without = [path for path, at in named.items() if at is None]
    if without and len(without) < len(given):
        remedy = "Name all by their moments, as 2026-11-28T10:30.json, or none"
        raise BadInput("its name does not begin with a date, as others do", file=str(without[0]), remedy=remedy)
    found: dict[datetime, AnyPath] = {}
    for path, at in named.items():
        at = _written(path) if at is None else at
        if at in found:
            wrong = f"{at.isoformat()} is the moment of {found[at]}, too"
            remedy = "Put files of one moment into a folder, and name the folder by it"
            raise BadInput(wrong, file=str(path), remedy=remedy)
        found[at] = path
    return found


def _each(paths: Sequence[AnyPath]) -> Iterator[AnyPath]:
    if len(paths) == 1 and Path(paths[0]).is_dir():
        yield from sorted(each for each in Path(paths[0]).iterdir() if not each.name.startswith("."))
    else:
        yield from paths


def _named(path: AnyPath) -> datetime | None:
    """Return the moment in the last name of a path; None where there is none."""
    found = _MOMENT.search(Path(str(path)).name)
    if found is None:
        return None
    *parts, zone = found.groups()
    offset = "+00:00" if zone in (None, "Z") else zone
    year, month, day, hour, minute, second = (part or "00" for part in parts)
    try:
        return datetime.fromisoformat(f"{year}-{month}-{day}T{hour}:{minute}:{second}{offset}")
    except ValueError as error:
        remedy = "Name it as 2026-11-28T10:30.json"
        raise BadInput(f"{found[0]} is no moment", file=str(path), remedy=remedy) from error


def _written(path: AnyPath) -> datetime:
    """Return when a file, or the newest one in a folder, was last written."""
    place = Path(path)
    inside = [each for each in place.iterdir() if each.is_file()] if place.is_dir() else [place]
    try:
        newest = max((each.stat().st_mtime for each in inside), default=None)
    except OSError as error:
        raise BadInput(f"{error.strerror}", file=str(path), remedy="Give a file that is there") from error
    if newest is None:
        raise BadInput("there is no file in it", file=str(path), remedy="Give a folder with a scheduler's files")
    return datetime.fromtimestamp(newest, UTC)
