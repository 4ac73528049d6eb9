"""Gavel (OSDI 2020): max-min, water filling, and Gavel in rounds."""
