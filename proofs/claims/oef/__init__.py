"""What is claimed by OEF (Middleware 2024), and the computations that decide it."""
