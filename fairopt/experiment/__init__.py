"""Experiments: many cases, each answered by several policies or solvers, measured, compared, and shown on a page.

`spec` reads what is asked from a TOML file, `runner` does the cells side by side, here or on a cluster. `journal` keeps
each as it ends, so that a run that was stopped goes on from there; `machine` says where that was. `statistics`
compares, `page` and `plot` show it. `bench` measures solvers with these, `studies` compares policies of rounds.
"""
