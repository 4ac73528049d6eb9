"""The largest common level that all users can reach, by prices: `raise_level`, and `bound_level` for a bound alone."""

from fairopt.methods.level.bounds import LevelResult, LevelWarmStart
from fairopt.methods.level.solve import bound_level, raise_level

__all__ = ["LevelResult", "LevelWarmStart", "bound_level", "raise_level"]
