"""What Armada's documents claim of its scheduler."""
