"""Envy-free shares of the largest total throughput, restricted to few rows and proved: `envy_free_shares`."""

from fairopt.methods.envy_free.solve import envy_free_shares

__all__ = ["envy_free_shares"]
