"""Nash welfare and what derives from it."""
