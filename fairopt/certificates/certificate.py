"""What all certificates have in common: they consist of numbers and names, and are written as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from hashlib import sha256
from importlib import resources
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import numpy as np

from fairopt.certificates.parts import Part, Shares
from fairopt.errors import BadInput
from fairopt.numbers import in_full, is_rational
from fairopt.problem import Entitlements, Market, exact
from fairopt.problem.entitled_rows import TOP
from fairopt.problem.files.storage import AnyPath, naming, read_text, write_text
from fairopt.program import INFINITY, Array, Program

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Certificate:
    """A statement and its proof; the fields of a kind are the keys of its JSON, in exact numbers.

    ``kind`` names the statement, as ``proofs/verify.py`` does. A field that is None is left out.

    >>> Certificate.decision
    False
    >>> from fairopt.certificates import PropertyProof
    >>> PropertyProof.kind
    'property'
    """

    kind: ClassVar[str] = ""
    #: Whether it certifies a policy's decision or the range of its choices; other certificates may contain such ones.
    decision: ClassVar[bool] = False
    #: Whether `tells_whole` is so for the kind.
    whole: ClassVar[bool] = False

    def to_json(self) -> dict[str, Any]:
        """Return the certificate as JSON types; every number is an integer or a string "p/q"."""
        body: dict[str, Any] = _written({field.name: getattr(self, field.name) for field in fields(self)})
        market = getattr(self, "market", None)
        if self.tells_whole() and isinstance(market, Market):
            body["market"] = market_json(market, whole=True)
        return {"schema": SCHEMA, "certificate": self.kind} | body

    def tells_whole(self) -> bool:
        """Whether its ``market`` is told with entitlements and bounds of speedups; others do not speak of these."""
        return self.whole

    def write(self, path: AnyPath) -> None:
        """Write the certificate to a file. Errors: `BadInput` where it cannot be written."""
        with naming(path):
            write_text(path, json.dumps(self.to_json(), ensure_ascii=False, indent=1) + "\n")

    @classmethod
    def form(cls) -> dict[str, Any]:
        """Return the JSON Schema of the kind, from its fields; those with a default may be left out."""
        hints, told = get_type_hints(cls, include_extras=True), fields(cls)
        head = {
            "schema": {"description": "The version of this schema.", "$ref": "#/$defs/version"},
            "certificate": {"description": "Which statement it is.", "const": cls.kind},
        }
        return {
            "description": " ".join(str(cls.__doc__).partition("\n\n")[0].split()),
            "type": "object",
            "properties": head | {field.name: _part(hints[field.name]) for field in told},
            "required": [*head, *(field.name for field in told if field.default is MISSING)],
            "additionalProperties": False,
        }


@dataclass(frozen=True, eq=False)
class OfAllocation(Certificate):
    """A statement about an ``allocation`` (n, k) of a ``market``."""

    market: Market
    allocation: Shares


def every_certificate(of: type[Certificate] = Certificate) -> Iterator[type[Certificate]]:
    """Yield every class of certificates; several may be of one kind."""
    for each in of.__subclasses__():
        yield from [each] if each.kind else []
        yield from every_certificate(each)


def certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of all kinds of certificates; it describes their form, not their truth.

    >>> certificate_schema()['$defs']['version']
    {'type': 'integer', 'const': 1}
    """
    text = resources.files("fairopt.certificates").joinpath("certificate.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    forms: dict[str, list[dict[str, Any]]] = {}
    for each in every_certificate():
        forms.setdefault(each.kind, []).append(each.form())
    decisions = sorted({each.kind for each in every_certificate() if each.decision})
    schema["$defs"] |= {kind: found[0] if len(found) == 1 else {"anyOf": found} for kind, found in forms.items()}
    schema["$defs"]["any"] = {
        "description": "A certificate; its kind says which other keys it has.",
        "type": "object",
        "properties": {"certificate": {"description": "Which statement it is.", "enum": sorted(forms)}},
        "required": ["schema", "certificate"],
        "allOf": [
            {"if": {"properties": {"certificate": {"const": kind}}}, "then": {"$ref": f"#/$defs/{kind}"}}
            for kind in sorted(forms)
        ],
    }
    schema["$defs"]["decided"] = {
        "description": "A decision, or how far its choices reach.",
        "allOf": [{"$ref": "#/$defs/any"}],
        "properties": {"certificate": {"enum": decisions}},
    }
    return schema


def _part(hint: Any) -> dict[str, Any]:
    """Return the JSON Schema of a field by its type; a field that is None is left out of the JSON."""
    if get_origin(hint) is Annotated:
        part: Part = get_args(hint)[1]
        return part.to_json()
    if hint in _PARTS:
        return {"$ref": f"#/$defs/{_PARTS[hint]}"}
    return _part(get_args(hint)[0])


_PARTS = {Market: "market", Program: "program"}


def read_certificate(path: AnyPath) -> dict[str, Any]:
    """Return the JSON object of a certificate file. Errors: `BadInput` where it is no JSON of this schema.

    >>> from tempfile import NamedTemporaryFile
    >>> from fairopt.certificates import PropertyProof
    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> proof = PropertyProof(market, market.equal_split(), 'sharing_incentive', 'HOLDS')
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


def market_json(market: Market, *, whole: bool = False) -> dict[str, Any]:
    """Return a market with the keys of market files, a user for each row (job type), and every number a string.

    ``whole``: with entitlements, and with the bounds of speedups that are not known.
    """
    market = market.as_(Fraction)
    users, known, limit = [], market.known, market.limit
    for i, name in enumerate(market.users):
        row: dict[str, Any] = {"name": name, "speedup": [in_full(value) for value in market.speedup[i]]}
        row |= {} if market.weight[i] == 1 else {"weight": in_full(market.weight[i])}
        row |= {} if limit[i] == INFINITY else {"demand": in_full(limit[i])}
        if whole and not known[i]:
            row |= {name: _ends(each[i]) for name, each in zip(("least", "most"), market.ends, strict=True)}
        users.append(row)
    capacity = [in_full(value) for value in market.capacity]
    told: dict[str, Any] = {"schema": 1, "types": list(market.types), "capacity": capacity, "user": users}
    owed = market.entitlements if whole else None
    return told if owed is None else told | {"entitlements": entitlements_json(owed)}


def _ends(row: Array) -> list[str | None]:
    return [None if value == INFINITY else in_full(value) for value in row]


def entitlements_json(owed: Entitlements) -> dict[str, Any]:
    """Return entitlements, users before groups; null is infinity, or nobody above. Of gangs those that are pending."""
    gangs = owed.gangs
    return {
        "groups": list(owed.groups),
        "in": [None if over == TOP else owed.nodes[over] for over in owed.parent.tolist()],
        "goods": [good._asdict() for good in owed.goods],
        "stock": [in_full(value) for value in owed.stock],
        **{name: [_ends(row) for row in getattr(owed, name)] for name in ("guarantee", "cap", "held", "fixed")},
        "borrow_weight": [in_full(value) for value in owed.borrow_weight],
        "tier": owed.tier.tolist(),
        "pending": [
            {
                "user": owed.users[gangs.user[gang]],
                "gpus": int(gangs.gpus[gang]),
                "types": [owed.types[j] for j in np.flatnonzero(gangs.allowed[gang])],
                "other": {name: in_full(each) for name, each in zip(gangs.resources, gangs.other[gang], strict=True)},
            }
            for gang in np.flatnonzero(gangs.pending)
        ],
    }


def market_digest(market: Market) -> str:
    """Return 128 bits of SHA-256 of a market in lowest terms, as ``proofs/verify.py`` does in `Market.canonical`.

    >>> from fairopt.datasets import oef_example
    >>> market = oef_example()
    >>> market_digest(market)
    '6db21dbf1c96231afaa6d57e57bf4f9a'
    """
    told = market_json(market)
    users = [[u["name"], u["speedup"], u.get("weight", "1"), u.get("demand")] for u in told["user"]]
    text = json.dumps(["market", told["types"], told["capacity"], users], separators=(",", ":"))
    return sha256(text.encode("ascii")).hexdigest()[:32]


def program_json(program: Program) -> dict[str, Any]:
    """Return a program; infinite bounds are null, other numbers strings. Errors: `BadInput` for one with logarithms."""
    if program.logarithms is not None:
        raise BadInput("its objective has logarithms", place=program.name, remedy="Certify the equilibrium instead")
    program = program.as_(Fraction)
    rows, columns = program.rows, (program.cost, program.lower, program.upper, program.integer)
    terms: list[list[list[Any]]] = [[] for _ in range(len(rows))]
    for r, j, value in zip(rows.row.tolist(), rows.column.tolist(), rows.value, strict=True):
        terms[r].append([j, in_full(value)])

    def between(low: Any, high: Any) -> dict[str, str | None]:
        sides = {"lower": low, "upper": high}
        return {key: None if abs(side) == INFINITY else in_full(side) for key, side in sides.items()}

    return {
        "sense": program.sense.value,
        "offset": in_full(Fraction(program.offset)),
        "variables": [
            {"cost": in_full(cost), **between(low, high), "integer": bool(integer)}
            for cost, low, high, integer in zip(*columns, strict=True)
        ],
        "rows": [
            {"terms": each, **between(low, high)} for each, low, high in zip(terms, rows.lower, rows.upper, strict=True)
        ],
    }
