"""The largest common level that all users can reach, by prices: `raise_level`, and `bound_level` for a bound alone."""

from fairopt.methods.level.bounds import LevelResult
from fairopt.methods.level.solve import bound_level, raise_level
from fairopt.methods.level.warm_start import LevelWarmStart

__all__ = ["LevelResult", "LevelWarmStart", "bound_level", "raise_level"]
