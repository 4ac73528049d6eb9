"""Snapshots as JSON and back, without loss: exact numbers, and a policy's own state."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from fairopt.errors import BadInput
from fairopt.simulation.record import Snapshot, Standing

VERSION = 1


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a snapshot as one line of JSON."""
    return json.dumps({"schema": VERSION, "snapshot": encode(snapshot)}, allow_nan=True)


def snapshot_from(text: str, states: tuple[type, ...]) -> Snapshot:
    """Return the snapshot that `snapshot_text` wrote; ``states`` are the classes of the policy's state.

    Errors: `BadInput` where the text is none, or was written for another policy.
    """
    try:
        data = json.loads(text)
        version, body = data["schema"], data["snapshot"]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(
            f"not a snapshot: {error!r}", place="snapshot", remedy="Give a file that `fairopt run --state` wrote"
        ) from error
    if version != VERSION:
        raise BadInput(f"schema {version}", place="snapshot", remedy=f"This fairopt reads schema {VERSION}")
    known = MappingProxyType({each.__name__: each for each in (Snapshot, Standing, *states)})
    try:
        snapshot = decode(body, known)
    except BadInput:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError) as error:
        raise BadInput(
            f"not a snapshot: {error!r}", place="snapshot", remedy="Give a file that `fairopt run --state` wrote"
        ) from error
    if not isinstance(snapshot, Snapshot):
        raise BadInput(f"a {type(snapshot).__name__}", place="snapshot", remedy="Give a snapshot of a run")
    return snapshot


def encode(value: Any) -> Any:
    """Return ``value`` in the types of JSON; what JSON has not got stands in an object whose key says what it is."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, Fraction):
        return {"/": f"{value.numerator}/{value.denominator}"}
    if isinstance(value, enum.Enum):
        raise TypeError(f"{value!r}: a state holds the value of an enumeration, not its member")
    if isinstance(value, tuple | list):
        return {"tuple": [encode(each) for each in value]}
    if isinstance(value, frozenset | set):
        return {"set": sorted((encode(each) for each in value), key=json.dumps)}
    if isinstance(value, Mapping):
        return {"map": [[encode(key), encode(each)] for key, each in value.items()]}
    if is_dataclass(value) and not isinstance(value, type):
        named = {field.name: encode(getattr(value, field.name)) for field in fields(value)}
        return {"record": type(value).__name__, "fields": named}
    raise TypeError(
        f"cannot write {type(value).__name__} {value!r}: a state is made of records, tuples, maps and numbers"
    )


def decode(data: Any, known: Mapping[str, type]) -> Any:
    """Return what `encode` was given. Errors: `BadInput` for a record that is not among ``known``."""
    if not isinstance(data, dict):
        return data
    if "/" in data:
        return Fraction(data["/"])
    if "tuple" in data:
        return tuple(decode(each, known) for each in data["tuple"])
    if "set" in data:
        return frozenset(decode(each, known) for each in data["set"])
    if "map" in data:
        return {decode(key, known): decode(each, known) for key, each in data["map"]}
    name = str(data.get("record"))
    if name not in known:
        raise BadInput(
            f"it holds a {name!r}, which is no state of this policy",
            place="snapshot",
            remedy="Go on with the policy that the run was begun with",
        )
    return known[name](**{key: decode(each, known) for key, each in data["fields"].items()})
