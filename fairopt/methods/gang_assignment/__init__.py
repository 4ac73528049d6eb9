"""Which gangs run on which type of GPU in one round, at least cost, proven."""
