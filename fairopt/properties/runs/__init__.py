"""Properties of runs: of everything that happened on a cluster, whoever decided it."""
