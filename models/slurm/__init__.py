"""Slurm: Fair Tree, the classic fair-share factor, and the order of its queue."""
