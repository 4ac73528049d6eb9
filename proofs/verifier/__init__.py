"""The verifiers: they decide certificates, runs and schedules, with the standard library and no fairopt.

Read `reading` first (how a file is read). Certificates: `market`, `programs` (the kernel: points and bounds),
`trading`, `decisions`, `certificates`. Runs: `trace`, `simulate`, `runs`. Schedules: `plan`, `schedules`. The
command is `front`.
"""
