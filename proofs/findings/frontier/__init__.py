"""What envy-freeness, sharing incentive and Pareto efficiency cost together, and what equal incomes reach of it."""
