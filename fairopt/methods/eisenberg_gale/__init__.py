"""Maximal Nash welfare: an interior-point method, the exact equilibrium near its answer, and a bound by prices.

Each module is imported by itself: whoever asks `smoothed` for nearly the prices of an equilibrium needs no other.
"""
