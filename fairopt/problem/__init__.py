"""What is allocated: markets of GPU shares."""

from fairopt.problem.market import Market
from fairopt.problem.numbers import exact
from fairopt.problem.utility import capped_value

__all__ = ["Market", "capped_value", "exact"]
