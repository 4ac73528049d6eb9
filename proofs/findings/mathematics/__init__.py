"""Open mathematics of the papers: cooperative OEF and what it loses, what fairness costs, and policies in numbers."""
