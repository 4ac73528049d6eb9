"""Water filling: the lexicographically largest ratios, by the largest common level round by round: `fill`."""

from fairopt.methods.water_filling.solve import fill

__all__ = ["fill"]
