"""
What a program looks like inside
================================

The matrix of cooperative OEF with eight users and three types: a row for each pair of users, and rows for capacities.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairopt import Market
from fairopt.models import CooperativeOEF

random = np.random.default_rng(1)
market = Market.of(np.sort(random.integers(1, 9, (8, 3)), axis=1).tolist(), capacity=[4, 4, 4])
rows = CooperativeOEF().formulate(market.as_(float), None).rows
figure, ax = plt.subplots(figsize=(4.5, 7), layout="constrained")
points = ax.scatter(rows.column, rows.row, c=rows.value, s=14, marker="s", cmap="coolwarm", vmin=-8, vmax=8)
ax.set(xlabel="variable: shares of eight users", ylabel="row", ylim=(len(rows) - 0.5, -0.5))
figure.colorbar(points, label="coefficient")
