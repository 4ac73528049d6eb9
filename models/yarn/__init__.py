"""YARN's capacity scheduler: guaranteed capacities in a tree of queues, and preemption towards the ideal allocation."""
