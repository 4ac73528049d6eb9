"""The ledger of what the five papers claim: a TOML file a paper, and the computations that decide its rows."""
