"""Volcano's rules: proportion, capacity, and hierarchical dominant resource fairness."""
