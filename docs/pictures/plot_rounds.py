"""
A cluster over time
===================

GPUs in use, round by round, in the first ten hours of a real trace, under two schedulers. The line is all there are.
"""

import matplotlib.pyplot as plt

from fairopt.datasets import philly_cluster, philly_trace
from fairopt.models import FFT, FifoQuota
from fairopt.simulation import run

cluster, trace = philly_cluster(), philly_trace().as_(float)
figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for policy, colour in ((FFT(), "#1f5fa8"), (FifoQuota(), "#e0913a")):
    records = list(run(policy, trace, cluster, length=300, rounds=120))
    used = [sum(ran.gpus for ran in record.ran) for record in records]
    ax.step([float(record.begin) / 3600 for record in records], used, where="post", color=colour, label=policy.name)
ax.axhline(int(cluster.gpus.sum()), color="black", linewidth=1)
ax.set(xlabel="hours", ylabel="GPUs in use", ylim=(0, None))
ax.legend(frameon=False, loc="upper right")
