"""Linear programs in exact rationals."""

from fairopt.backends.exact.solve import Exact

__all__ = ["Exact"]
