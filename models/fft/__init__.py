"""FFT (2025): an integer program in each round."""
