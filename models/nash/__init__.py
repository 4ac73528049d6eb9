"""Nash welfare, and partial allocation, which is built on it."""
