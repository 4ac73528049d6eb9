"""What the documents and tests of YARN's capacity scheduler claim, and the computations that decide it."""
