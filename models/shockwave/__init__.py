"""Shockwave (NSDI 2023): a window of rounds planned at once."""
