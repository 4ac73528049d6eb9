"""Evidence as data: a statement about a market (or a bare program) and the exact numbers that prove it.

A certificate is written as JSON (schema 1) and checked by ``proofs/verify.py``, which imports nothing of fairopt. It
becomes a proof only when that program accepts it.

>>> from fairopt.datasets import oef_example
>>> certificate = PropertyProof(oef_example(), oef_example().equal_split(), "envy_freeness", "HOLDS")
>>> certificate.to_json()["certificate"]
'property'
"""

from fairopt.certificates.certificate import SCHEMA, Certificate, certificate_schema, market_digest, read_certificate
from fairopt.certificates.decisions import (
    ComputedAllocation,
    Dominance,
    EfficientProof,
    EnvyProof,
    Extreme,
    MarketBound,
    MisreportProof,
    NashBounds,
    NashEquilibrium,
    NashWithin,
    Optimality,
    ParetoProof,
    PartialAllocationProof,
    PropertyProof,
    WaterFillingProof,
)
from fairopt.certificates.frontier import EfficientFrontierProof, FrontierProof
from fairopt.certificates.gangs import GangProof
from fairopt.certificates.parts import bare_duals, floors_told, other_variables, row_duals
from fairopt.certificates.programs import Bound, Infeasibility, OutsideDecision, UnreachableUtilities

__all__ = [
    "SCHEMA",
    "Bound",
    "Certificate",
    "ComputedAllocation",
    "Dominance",
    "EfficientFrontierProof",
    "EfficientProof",
    "EnvyProof",
    "Extreme",
    "FrontierProof",
    "GangProof",
    "Infeasibility",
    "MarketBound",
    "MisreportProof",
    "NashBounds",
    "NashEquilibrium",
    "NashWithin",
    "Optimality",
    "OutsideDecision",
    "ParetoProof",
    "PartialAllocationProof",
    "PropertyProof",
    "UnreachableUtilities",
    "WaterFillingProof",
    "bare_duals",
    "certificate_schema",
    "floors_told",
    "market_digest",
    "other_variables",
    "read_certificate",
    "row_duals",
]
