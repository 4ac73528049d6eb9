"""Armada: rounds that put preemptible jobs back into their queues, and start jobs by class and cost."""
