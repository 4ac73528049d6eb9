"""What all certificates have in common: a kind, and its parts in numbers and names, which are written as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fairopt.certificates.documents import market_json, program_json
from fairopt.errors import BadInput
from fairopt.numbers import in_full, is_rational
from fairopt.problem import Market, exact
from fairopt.problem.files.storage import AnyPath, naming, read_text, write_text
from fairopt.program import Program

SCHEMA = 1


def part(form: str | Mapping[str, Any], says: str) -> dict[str, Any]:
    """Return the JSON Schema of a part: a definition of the published schema by name, or a schema; and what it says.

    >>> part("number", "The objective.")
    {'description': 'The objective.', '$ref': '#/$defs/number'}
    """
    return {"description": says} | ({"$ref": f"#/$defs/{form}"} if isinstance(form, str) else dict(form))


def _never(certificate: Certificate) -> bool:
    return False


@dataclass(frozen=True)
class CertificateKind:
    """A kind of statement: ``name`` in ``proofs/verify.py``, what it ``says``, and the JSON Schemas of its ``parts``.

    Parts are in the order in which they are written; those that are ``optional`` may be left out. Several kinds may
    have one name: the same statement with other parts. ``decides``: whether it certifies a policy's
    decision, or the range of its choices; other certificates may contain such ones. ``whole``: whether the market of a
    certificate is told with entitlements and bounds of speedups; others do not speak of these.

    >>> from fairopt.certificates import ENVY
    >>> ENVY.name, [*ENVY.parts]
    ('envy', ['market', 'allocation', 'user', 'envied'])
    """

    name: str
    says: str
    parts: Mapping[str, Mapping[str, Any]]
    optional: tuple[str, ...] = ()
    decides: bool = False
    whole: Callable[[Certificate], bool] = field(default=_never)

    def __hash__(self) -> int:
        return hash(self.name)  # copies are the same kind, and parts have no hash

    def form(self) -> dict[str, Any]:
        """Return the JSON Schema of the kind; what is optional may be left out."""
        head = {
            "schema": {"description": "The version of this schema.", "$ref": "#/$defs/version"},
            "certificate": {"description": "Which statement it is.", "const": self.name},
        }
        return {
            "description": self.says,
            "type": "object",
            "properties": head | dict(self.parts),
            "required": [*head, *(name for name in self.parts if name not in self.optional)],
            "additionalProperties": False,
        }


class Certificate:
    """A statement of a ``kind`` and its proof: ``parts`` by the keys of its JSON, in exact numbers.

    Parts are given in the order of the kind, or by name, and are attributes, too. One that is None is left out.
    Errors: `TypeError` for parts that the kind has not, and for want of one.

    >>> from fairopt.certificates import ENVY
    >>> from fairopt.datasets import oef_example
    >>> envy = Certificate(ENVY, oef_example(), [[1, 1], [0, 0], [0, 0]], "u2", envied="u1")
    >>> envy.user, envy.to_json()["certificate"]
    ('u2', 'envy')
    """

    def __init__(self, kind: CertificateKind, /, *parts: Any, **named: Any) -> None:
        if not isinstance(kind, CertificateKind):
            raise TypeError(f"a certificate needs a CertificateKind, such as fairopt.certificates.ENVY; got {kind!r}")
        given = dict(zip(kind.parts, parts, strict=False))
        wrong = {
            "too many": len(parts) - len(given),
            "twice": ", ".join(given.keys() & named.keys()),
            "unknown": ", ".join(named.keys() - kind.parts.keys()),
        }
        given |= named
        told = {name: given[name] for name in kind.parts if given.get(name) is not None}
        wrong["missing"] = ", ".join(name for name in kind.parts if name not in told and name not in kind.optional)
        if any(wrong.values()):
            said = "; ".join(f"{what}: {which}" for what, which in wrong.items() if which)
            raise TypeError(f"a certificate of kind {kind.name!r} has the parts {', '.join(kind.parts)}; {said}")
        vars(self).update(kind=kind, parts=told)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a certificate cannot be changed; make another one with this {name}")

    def __getattr__(self, name: str) -> Any:
        kind: CertificateKind | None = vars(self).get("kind")  # there is none while a copy is made
        if kind is None or name not in kind.parts:
            raise AttributeError(f"this certificate has no part {name!r}")
        return self.parts.get(name)

    def tells_whole(self) -> bool:
        """Whether its ``market`` is told with entitlements and bounds of speedups."""
        return bool(self.kind.whole(self))

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as JSON types; every number is an integer or a string "p/q"."""
        body = {name: _written(part) for name, part in self.parts.items()}
        if self.tells_whole():
            body["market"] = market_json(self.market, whole=True)
        return {"schema": SCHEMA, "certificate": self.kind.name} | body

    def write(self, path: AnyPath) -> None:
        """Write the certificate to a file. Errors: `BadInput` where it cannot be written."""
        with naming(path):
            write_text(path, json.dumps(self.to_json(), ensure_ascii=False, indent=1) + "\n")

    def __repr__(self) -> str:
        return f"<Certificate: {self.kind.name}>"


def read_certificate(path: AnyPath) -> dict[str, Any]:
    """Return the JSON object of a certificate file. Errors: `BadInput` where it is no JSON of this schema.

    >>> from tempfile import NamedTemporaryFile
    >>> from fairopt.certificates import PROPERTY
    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> proof = Certificate(PROPERTY, market, market.equal_split(), 'sharing_incentive', 'HOLDS')
    >>> file = NamedTemporaryFile()
    >>> proof.write(file.name)
    >>> read_certificate(file.name)['certificate']
    'property'
    """
    try:
        with naming(path):
            data = json.loads(read_text(path))
    except BadInput:
        raise
    except (ValueError, RecursionError) as error:
        raise BadInput(str(error), file=str(path), remedy="Give a JSON file that holds a certificate") from error
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or "certificate" not in data:
        remedy = 'A certificate is an object with the keys "schema" and "certificate"'
        raise BadInput(f"no certificate of schema {SCHEMA}", file=str(path), remedy=remedy)
    return data


def _written(value: Any) -> Any:
    if value is None:  # an entry of a table
        return None
    if isinstance(value, Certificate):
        return value.to_json()
    if isinstance(value, Market):
        return market_json(value)
    if isinstance(value, Program):
        return program_json(value)
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int):  # an index, or a number
        return value if abs(value) < 2**63 else in_full(value)
    if is_rational(value):
        return in_full(value)
    if isinstance(value, Mapping):
        return {key: _written(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple | np.ndarray):
        return [_written(entry) for entry in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return in_full(exact(value, "certificate", tiny=True))
