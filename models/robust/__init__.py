"""Robust policies: cooperative OEF and max-min, for all speedups in the ranges that a market states."""
