"""What the papers claim: a folder a paper with its rows (``claims.toml``) and the computations that decide them."""
