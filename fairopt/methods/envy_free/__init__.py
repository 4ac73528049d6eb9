"""Envy-free shares of the largest total throughput: restricted, solved, and proven."""
