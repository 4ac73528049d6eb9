"""What Volcano's documents claim (volcano-sh/volcano at ed72c7c8), and the computations that decide it."""
