"""Shockwave's published traces, and what fairopt makes of them; see docs/validation.md.

The tables are from github.com/uw-mad-dash/shockwave, commit 8a44f4a, MIT licence, copyright (c) 2022 Data and Systems
Hub at UW-Madison. ``jobs_N.csv`` has the columns of scheduler/traces/reproduce/N_....trace that are used here;
``allox_rounds`` are those that a job held in the published run under AlloX. ``throughputs.csv`` has the entries of
its files of throughputs for jobs alone on V100, and the epochs at which the gradient noise scale doubles a job's batch
(`get_gns_bs_pattern` of scheduler/utils.py). ``published.csv`` has the figures of the results in
scheduler/reproduce/pickles/tacc_32gpus, and ``ours.csv`` those of fairopt.
"""
