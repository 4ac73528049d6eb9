"""Maximal Nash welfare: an interior-point method, the exact equilibrium, and bounds by prices."""
