"""Kueue: quotas in a tree of cohorts, who may borrow what, and who is preempted for whom."""
