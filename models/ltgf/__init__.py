"""ASTRAEA (2022): long-term GPU-time fairness."""
