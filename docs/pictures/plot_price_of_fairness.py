"""
The price of fairness
=====================

Total throughput against equality: each policy is a point. The further to the right, the more the cluster does; the
higher, the more equal the users are, by Jain's index of throughput over the own partition.
"""

import matplotlib.pyplot as plt

from fairopt import allocate, discovery, metrics
from fairopt.datasets import gavel_example
from fairopt.problem import Market

market = gavel_example()
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for policy in discovery.policies(Market):
    found = metrics(market, allocate(policy, market).shares)
    point = float(found.total_efficiency), float(found.jain_index)
    ax.plot(*point, "o", color="#1f5fa8")
    ax.annotate(policy.name, point, xytext=(5, 4), textcoords="offset points", fontsize=8)
ax.set(xlabel="total throughput", ylabel="Jain's index")
ax.margins(x=0.2, y=0.1)
