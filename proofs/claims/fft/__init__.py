"""What is claimed by FFT (2025), and the computations that decide it."""
