"""Astraea (2023): posted-price packing, its baselines and its offline optimum."""
