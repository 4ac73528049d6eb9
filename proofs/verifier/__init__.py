"""The verifiers: they decide certificates, runs and schedules, with the standard library and no fairopt.

Read `reading` first (how a file is read). Certificates: `market`, `programs`, `decisions`, `trading`,
`allocations`, `misreports`, `bounds`, `certificates`. Runs: `runs`. Schedules: `plan`, `schedules`. The
command is `front`.
"""
