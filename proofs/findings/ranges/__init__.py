"""Speedups measured with an error: what policies keep promising, how much is lost, and what being robust costs."""
