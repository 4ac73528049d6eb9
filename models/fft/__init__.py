"""FFT (2025): each round an integer program."""
