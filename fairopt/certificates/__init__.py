"""Evidence as data: a statement about a market (or a bare program) and the exact numbers that prove it.

A certificate is written as JSON (schema 1) and checked by ``proofs/verify.py``, which imports nothing of fairopt. It
becomes a proof only when that program accepts it. The kinds of statements are in `fairopt.certificates.kinds`.

>>> from fairopt.datasets import oef_example
>>> certificate = Certificate(PROPERTY, oef_example(), oef_example().equal_split(), "envy_freeness", "HOLDS")
>>> certificate.to_json()["certificate"]
'property'
"""

from fairopt.certificates.certificate import SCHEMA, Certificate, CertificateKind, read_certificate
from fairopt.certificates.documents import market_digest
from fairopt.certificates.kinds import (
    BOUND,
    DOMINANCE,
    EFFICIENT,
    EFFICIENT_FRONTIER,
    ENVY,
    EQUILIBRIUM,
    EXTREME,
    FRONTIER,
    GANGS,
    INFEASIBILITY,
    MARKET_BOUND,
    MISREPORT,
    NASH_BOUNDS,
    NASH_WITHIN,
    OPTIMALITY,
    OUTSIDE_DECISION,
    PARETO,
    PARTIAL_ALLOCATION,
    PROPERTY,
    TRADES,
    UNREACHABLE,
    WATER_FILLING,
    certificate_schema,
)
from fairopt.certificates.optima import (
    bare_duals,
    bound_of_optimum,
    extreme_over,
    floors_told,
    optimality,
    other_variables,
    outside_decision,
    row_duals,
)

__all__ = [
    "BOUND",
    "DOMINANCE",
    "EFFICIENT",
    "EFFICIENT_FRONTIER",
    "ENVY",
    "EQUILIBRIUM",
    "EXTREME",
    "FRONTIER",
    "GANGS",
    "INFEASIBILITY",
    "MARKET_BOUND",
    "MISREPORT",
    "NASH_BOUNDS",
    "NASH_WITHIN",
    "OPTIMALITY",
    "OUTSIDE_DECISION",
    "PARETO",
    "PARTIAL_ALLOCATION",
    "PROPERTY",
    "SCHEMA",
    "TRADES",
    "UNREACHABLE",
    "WATER_FILLING",
    "Certificate",
    "CertificateKind",
    "bare_duals",
    "bound_of_optimum",
    "certificate_schema",
    "extreme_over",
    "floors_told",
    "market_digest",
    "optimality",
    "other_variables",
    "outside_decision",
    "read_certificate",
    "row_duals",
]
