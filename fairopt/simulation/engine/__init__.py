"""A fast run in rounds: columns over the jobs present, and no question asked where the answer is known.

`fairopt.simulation.run` is the referee: the engine's completions are its own to the last bit, in floats and Fractions.
"""

from fairopt.simulation.engine.play import Engine

__all__ = ["Engine"]
