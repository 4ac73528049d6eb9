"""Evidence as data: a statement about a market (or a bare program) and the exact numbers that prove it.

A certificate is written as JSON (schema 1) and checked by ``proofs/verify.py``, which imports nothing of fairopt. It
becomes a proof only when that program accepts it. The kinds of statements are in `fairopt.certificates.kinds`.

>>> from fairopt.datasets import oef_example
>>> certificate = Certificate(PROPERTY, oef_example(), oef_example().equal_split(), "envy_freeness", "HOLDS")
>>> certificate.to_json()["certificate"]
'property'
"""

from fairopt.certificates.certificate import SCHEMA as SCHEMA
from fairopt.certificates.certificate import Certificate as Certificate
from fairopt.certificates.certificate import CertificateKind as CertificateKind
from fairopt.certificates.certificate import read_certificate as read_certificate
from fairopt.certificates.documents import market_digest as market_digest
from fairopt.certificates.kinds import BOUND as BOUND
from fairopt.certificates.kinds import DOMINANCE as DOMINANCE
from fairopt.certificates.kinds import EFFICIENT as EFFICIENT
from fairopt.certificates.kinds import EFFICIENT_FRONTIER as EFFICIENT_FRONTIER
from fairopt.certificates.kinds import ENVY as ENVY
from fairopt.certificates.kinds import EQUILIBRIUM as EQUILIBRIUM
from fairopt.certificates.kinds import EXTREME as EXTREME
from fairopt.certificates.kinds import FRONTIER as FRONTIER
from fairopt.certificates.kinds import GANGS as GANGS
from fairopt.certificates.kinds import INFEASIBILITY as INFEASIBILITY
from fairopt.certificates.kinds import MARKET_BOUND as MARKET_BOUND
from fairopt.certificates.kinds import MISREPORT as MISREPORT
from fairopt.certificates.kinds import NASH_BOUNDS as NASH_BOUNDS
from fairopt.certificates.kinds import NASH_WITHIN as NASH_WITHIN
from fairopt.certificates.kinds import OPTIMALITY as OPTIMALITY
from fairopt.certificates.kinds import OUTSIDE_DECISION as OUTSIDE_DECISION
from fairopt.certificates.kinds import PARETO as PARETO
from fairopt.certificates.kinds import PARTIAL_ALLOCATION as PARTIAL_ALLOCATION
from fairopt.certificates.kinds import PROPERTY as PROPERTY
from fairopt.certificates.kinds import TRADES as TRADES
from fairopt.certificates.kinds import UNREACHABLE as UNREACHABLE
from fairopt.certificates.kinds import WATER_FILLING as WATER_FILLING
from fairopt.certificates.kinds import certificate_schema as certificate_schema
from fairopt.certificates.optima import bare_duals as bare_duals
from fairopt.certificates.optima import bound_of_optimum as bound_of_optimum
from fairopt.certificates.optima import extreme_over as extreme_over
from fairopt.certificates.optima import floors_told as floors_told
from fairopt.certificates.optima import optimality as optimality
from fairopt.certificates.optima import other_variables as other_variables
from fairopt.certificates.optima import outside_decision as outside_decision
from fairopt.certificates.optima import row_duals as row_duals
from fairopt.later import offered

__all__ = offered(__name__)
