"""What is claimed by Astraea, posted prices (2023), and the computations that decide it."""
