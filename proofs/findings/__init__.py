"""What we found beyond the papers: a folder a subject with its rows and the computations that decide them."""
