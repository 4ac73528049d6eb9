"""
The price of fairness
=====================

Total throughput under each policy. At the bar's end stands how equal the users are, by Jain's index of throughput over
the own partition: 1 where all gain alike.
"""

import matplotlib.pyplot as plt

from fairopt import allocate, discovery, metrics
from fairopt.compare import asked_of
from fairopt.datasets import gavel_example
from fairopt.problem import Market

market = gavel_example()
installed = [each for each in discovery.policies(Market) if asked_of(each, market)]
found = {each.name: metrics(market, allocate(each, market).shares) for each in installed}
names = sorted(found, key=lambda name: float(found[name].total_efficiency))
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
bars = ax.barh(names, [float(found[name].total_efficiency) for name in names], color="#8fb3d9")
ax.bar_label(bars, [f"{float(found[name].jain_index):.2f}" for name in names], padding=4)
ax.set(xlabel="total throughput, a K80 for each user = 1")
ax.margins(x=0.1)
