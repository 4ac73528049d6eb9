"""Benchmarks: who answers which instances, how fast and how well. Answers are judged before times count.

A contender, a task and a family of instances are classes, which a plug-in registers.
"""

from fairopt.backends.solution import Interval
from fairopt.experiment.bench.kinds import Contender, Family, Instance, Judgement, Task, require_small

__all__ = ["Contender", "Family", "Instance", "Interval", "Judgement", "Task", "require_small"]
