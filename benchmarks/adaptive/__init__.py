"""Published figures of jobs that adapt, and ours: tables that `fairopt.benchmarks.adaptive.play` writes."""
