"""What is claimed by ASTRAEA, long-term GPU-time fairness (2022), and the computations that decide it."""
