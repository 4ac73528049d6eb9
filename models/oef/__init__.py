"""OEF (Middleware 2024): cooperative and non-cooperative shares, and OEF in rounds."""
