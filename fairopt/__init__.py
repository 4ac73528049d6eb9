"""fairopt: how scarce GPUs are shared, solved by any solver and checked property by property."""
