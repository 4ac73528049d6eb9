"""The largest common level that all users can reach, by prices: `raise_level`."""

from fairopt.methods.level.solve import raise_level

__all__ = ["raise_level"]
