"""Properties of allocations: one file each."""
