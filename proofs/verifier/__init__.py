"""The verifiers: they decide certificates, runs and schedules, with the standard library and no fairopt.

Read `reading` first. Certificates: `market`, `programs` (the kernel of points and bounds), `decisions`,
`certificates`. Runs: `trace`, `simulate`, `runs`. Schedules: `plan`, `schedules`. Command: `front`.
"""
