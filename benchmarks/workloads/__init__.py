"""The generators of traces with which papers evaluate their schedulers."""
