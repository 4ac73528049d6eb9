"""Pollux (OSDI 2021): GPUs and batches of jobs that adapt, for the goodput of all, by a power mean of speedups."""
