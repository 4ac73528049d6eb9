"""Misreports: which are allowed, the search for one that pays, and exact witnesses."""
