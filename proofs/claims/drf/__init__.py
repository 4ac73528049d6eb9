"""What the DRF paper claims of Dominant Resource Fairness, asset fairness and competitive equilibrium."""
