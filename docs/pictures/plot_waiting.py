"""
Who waits how long
==================

Completion times over the time that a job would take alone on its part of the cluster, job by job, sorted. Above 1 a job
is later than that.
"""

import matplotlib.pyplot as plt

from fairopt.datasets import philly_cluster, philly_trace
from fairopt.models import GangAwareStride, ShortestRemainingTimeFirst
from fairopt.simulation import History, run
from fairopt.simulation.gpu_time import finish_time_fairness

cluster, trace = philly_cluster(), philly_trace().as_(float)
figure, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
for policy, colour in ((ShortestRemainingTimeFirst(), "#1f5fa8"), (GangAwareStride(), "#e0913a")):
    history = History.of(trace, cluster, run(policy, trace, cluster, length=300, rounds=150))
    late = sorted(float(each) for each in finish_time_fairness(history).values() if each is not None)
    ax.plot(late, [(rank + 1) / len(late) for rank in range(len(late))], color=colour, label=policy.name)
ax.axvline(1, color="black", linewidth=1)
ax.set(xscale="log", xlabel="time over that on the own part", ylabel="part of the jobs")
ax.legend(frameon=False, loc="lower right")
