"""What schemas of output are made of."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fairopt.cli.as_json import SCHEMA

Schema = dict[str, Any]
#: What keys hold, and what they mean.
Keys = Mapping[str, tuple[Mapping[str, Any], str]]

TEXT: Schema = {"type": "string"}
TRUTH: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
NUMBER: Schema = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^-?\d+(/\d+)?$"}]}
VERSION: Keys = {"schema": ({"const": SCHEMA}, "The version of this schema.")}


def listed(of: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def or_null(schema: Schema) -> Schema:
    """Return a schema that allows null too."""
    return {"anyOf": [schema, {"type": "null"}]}


def by_name(of: Schema) -> Schema:
    """Return the schema of an object whose keys are names."""
    return {"type": "object", "additionalProperties": of}


def part(name: str) -> Schema:
    """Return what stands for the part of that name."""
    return {"$ref": f"#/$defs/{name}"}


def object_of(about: str, keys: Keys, optional: Keys = MappingProxyType({})) -> Schema:
    """Return the schema of an object that has ``keys`` and may have ``optional`` ones, and others of later versions."""
    described = {name: {**schema, "description": says} for name, (schema, says) in {**keys, **optional}.items()}
    return {"type": "object", "description": about, "properties": described, "required": list(keys)}


NAMES, NUMBERS = listed(TEXT), listed(NUMBER)
VERDICTS = by_name(part("verdict"))
LEFT_OUT: Keys = {"left_out": (by_name(TEXT), "Which policies are left out where nobody names any, by name, and why.")}
