"""Gavel's published figures, and what fairopt makes of them; see docs/adaptive-jobs.md.

``published.csv`` has points of the figures, as the notebooks of github.com/stanford-futuredata/gavel print them
(scheduler/notebooks/figures/evaluation, commit c4fa4009, MIT licence): continuous_jobs.ipynb and
continuous_jobs_multigpu.ipynb (seed 0, jobs 4000 to 4999, 36 V100, 36 P100 and 36 K80), and makespan.ipynb (means of
seeds 0, 1 and 2).
``ours.csv`` has those of fairopt.
"""
