"""Water filling: the lexicographically largest ratios, by the largest common level round by round: `fill`."""

from fairopt.methods.water_filling.solve import FillingResult, FillingRound, fill

__all__ = ["FillingResult", "FillingRound", "fill"]
