"""Properties of allocations against what users and groups are guaranteed, may take, hold and ask for, one file each."""
