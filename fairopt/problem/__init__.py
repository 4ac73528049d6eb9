"""What is allocated: markets of GPU shares, in Python and in files."""

from fairopt.problem.allocation import allocation_from, read_allocation
from fairopt.problem.files import read_market, write_market
from fairopt.problem.frames import market_from_frame
from fairopt.problem.market import Market
from fairopt.problem.numbers import exact
from fairopt.problem.schema import market_from_dict, market_schema, market_to_dict
from fairopt.problem.utility import capped_value, usable, worth

__all__ = [
    "Market",
    "allocation_from",
    "capped_value",
    "exact",
    "market_from_dict",
    "market_from_frame",
    "market_schema",
    "market_to_dict",
    "read_allocation",
    "read_market",
    "usable",
    "worth",
    "write_market",
]
