"""Decisions by Z3 over all real speedups, for fixed small numbers of users and types."""
