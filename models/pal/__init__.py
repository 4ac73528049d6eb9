"""PAL (SC 2024): placement by how fast each GPU really is, and by locality."""
