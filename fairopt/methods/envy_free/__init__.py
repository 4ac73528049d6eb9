"""Envy-free shares of the largest total throughput, restricted to few rows and proved: `envy_free_shares`."""

from fairopt.methods.envy_free.problem import EnvyFreeWarmStart
from fairopt.methods.envy_free.solve import EnvyFreeResult, envy_free_shares

__all__ = ["EnvyFreeResult", "EnvyFreeWarmStart", "envy_free_shares"]
