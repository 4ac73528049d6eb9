"""An audit as text for Prometheus, say for the textfile collector of node_exporter.

Source: prometheus/docs, content/docs/instrumenting/exposition_formats.md (text format 0.0.4); names end in their units.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairopt.audit.auditing import Audit
from fairopt.audit.series import AuditSeries
from fairopt.audit.status import EntitlementStatus, NodeStatus
from fairopt.numbers import INFINITY, Number
from fairopt.properties import Answer
from fairopt.report import Statement

_OF_TYPE: Mapping[str, tuple[str, str]] = {
    "fairopt_held_gpus": ("holds", "GPUs that a user or group holds."),
    "fairopt_owed_gpus": ("owed", "GPUs that it is owed."),
    "fairopt_asked_gpus": ("asks", "GPUs of its gangs that wait and may run on the type."),
    "fairopt_short_gpus": ("short", "GPUs of its gangs that wait and fit into what it is owed."),
    "fairopt_borrowed_gpus": ("borrows", "GPUs that it holds beyond what it is owed."),
}
_OVER_TIME: Mapping[str, tuple[str, str]] = {
    "fairopt_borrowed_gpu_seconds": ("borrows", "GPUs borrowed, summed over the time between the files."),
    "fairopt_short_gpu_seconds": ("short", "GPUs short, summed over the time between the files."),
}


class _Sample(NamedTuple):
    labels: Mapping[str, str]
    value: Number


def metrics(found: Audit | AuditSeries) -> str:
    r"""Return the gauges of an audit, or of the last of several and of the time between them.

    >>> from fairopt.audit import audit
    >>> from fairopt.problem import Entitlements, Market
    >>> owed = Entitlements.of(["A"], ["H100"], guarantee={"A": [6]}, held={"A": [8]})
    >>> market = Market.of([[1]], [8], users=["A"], types=["H100"], entitlements=owed)
    >>> print(*[line for line in metrics(audit(market, policies=[])).splitlines() if "borrowed" in line], sep="\n")
    # HELP fairopt_borrowed_gpus GPUs that it holds beyond what it is owed.
    # TYPE fairopt_borrowed_gpus gauge
    fairopt_borrowed_gpus{name="A",kind="user",type="H100"} 2
    """
    now = found.moments[-1] if isinstance(found, AuditSeries) else None
    rows = found.rows if isinstance(found, Audit) else tuple(found.moments[-1].rows.values())
    text = "".join(_of_types(found if isinstance(found, Audit) else found.moments[-1]))
    for name, (key, words) in _OF_TYPE.items():
        text += _family(
            name,
            words,
            (
                _Sample({**_whose(row), "type": own.type}, amount)
                for row in rows
                for own in row.types
                if (amount := getattr(own, key)) != INFINITY
            ),
        )
    starved = (_Sample(_whose(row), int(row.status is EntitlementStatus.STARVED)) for row in rows)
    text += _family("fairopt_starved", "Whether a gang waits that fits into what a user or group is owed.", starved)
    broken = len(found.violations) if isinstance(found, Audit) else len(found.moments[-1].broken)
    text += _family("fairopt_broken", "Guarantees and caps that are broken.", [_Sample({}, broken)])
    answers = now.answers if now else {name: each.answer for name, each in found.verdicts.items()}  # type: ignore[union-attr]
    decided = {name: answer for name, answer in answers.items() if answer in (Answer.HOLDS, Answer.FAILS)}
    text += _family(
        "fairopt_property_holds",
        "Whether a property of the GPUs held holds; not there where it is undecided.",
        (_Sample({"property": name}, int(answer is Answer.HOLDS)) for name, answer in decided.items()),
    )
    return text + ("".join(_over_time(found)) if isinstance(found, AuditSeries) else "")


def _of_types(found: Audit | Statement) -> Iterable[str]:
    if isinstance(found, Audit):
        there = zip(found.market.types, found.market.capacity, found.accounts.free, strict=True)
        gpus = {kind: (count, free) for kind, count, free in there}
    else:
        gpus = dict(found.gpus)
    yield _family("fairopt_gpus", "GPUs of a type.", (_Sample({"type": each}, n) for each, (n, _) in gpus.items()))
    free = (_Sample({"type": each}, n) for each, (_, n) in gpus.items())
    yield _family("fairopt_free_gpus", "GPUs of a type that nobody holds.", free)


def _over_time(found: AuditSeries) -> Iterable[str]:
    rows = {name: row for each in found.moments for name, row in each.rows.items()}
    spans = {name: found.starved_seconds(name) for name in rows}
    yield _family(
        "fairopt_starved_seconds",
        "How long a user or group starved between the first file and the last.",
        (_Sample(_whose(row), sum(spans[name])) for name, row in rows.items()),
    )
    since = {name: next((span for span in found.starved(name) if span[1] is None), None) for name in rows}
    yield _family(
        "fairopt_starved_since_timestamp_seconds",
        "Since when a user or group starves; not there for who does not.",
        (_Sample(_whose(rows[name]), span[0].timestamp()) for name, span in since.items() if span is not None),
    )
    for metric, (key, words) in _OVER_TIME.items():
        samples = (
            _Sample({**_whose(row), "type": kind}, amount)
            for name, row in rows.items()
            for kind, amount in found.gpu_seconds(name, key).items()
        )
        yield _family(metric, words, samples)
    last = _Sample({}, found.moments[-1].at.timestamp())
    yield _family("fairopt_moment_timestamp_seconds", "The moment of the last file.", [last])


def _whose(row: NodeStatus) -> dict[str, str]:
    return {"name": row.name, "kind": "group" if row.is_group else "user"}


def _family(name: str, words: str, samples: Iterable[_Sample]) -> str:
    """Return a gauge: what it is, and its samples; "" where there is none."""
    lines = "".join(f"{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples)
    return f"# HELP {name} {words}\n# TYPE {name} gauge\n{lines}" if lines else ""


def _labels(labels: Mapping[str, str]) -> str:
    said = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: Number) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
