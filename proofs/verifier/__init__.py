"""The verifiers: they decide certificates, runs and schedules, with the standard library and no fairopt.

Read `reading` first (how a file is read). Certificates: `market`, `programs`, `decisions`, `allocations`,
`statements`, `certificates`. Runs: `runs`. Schedules: `schedules`. `front` is the command.
"""
