"""The program in the interpreter that has dede: it reads requests, one JSON object a line, and answers each so.

It imports nothing of fairopt, which need not be installed there. See `fairopt.benchmarks.peers.dede`.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import Any


def sharing(dede: Any, request: dict[str, Any], more: int) -> tuple[Any, Any, list[Any], list[Any]]:
    """Return the shares with ``more`` columns after them, the ratios' coefficients, and what both sides must keep."""
    import numpy as np

    speedup, capacity = np.array(request["speedup"]), np.array(request["capacity"])
    n, k = speedup.shape
    share = dede.Variable((n, k + more), nonneg=True)
    resources = [share[:, j].sum() <= capacity[j] for j in range(k)]
    demands = [
        share[i, :k].sum() <= (capacity.sum() if most is None else most) for i, most in enumerate(request["limit"])
    ]
    demands += [share[i, j] <= 0 for i, j in np.argwhere(speedup == 0).tolist()]
    return share, speedup / np.array(request["fair"])[:, None], resources, demands


def nash_welfare(dede: Any, request: dict[str, Any]) -> tuple[Any, Any]:
    """Return the program of Eisenberg and Gale: types are resources, users are demands."""
    share, ratio, resources, demands = sharing(dede, request, 0)
    total = sum(weight * dede.log(ratio[i] @ share[i, :]) for i, weight in enumerate(request["weight"]))
    return share, dede.Problem(dede.Maximize(total), resources, demands)


def max_min(dede: Any, request: dict[str, Any]) -> tuple[Any, Any]:
    """Return Gavel's program: every user has its own copy of the level, and one more resource makes them equal."""
    share, ratio, resources, demands = sharing(dede, request, 1)
    n, level = len(ratio), ratio.shape[1]
    demands += [ratio[i] @ share[i, :level] >= share[i, level] for i in range(n)]
    resources += [share[i, level] == share[i + 1, level] for i in range(n - 1)]
    # a bound that is never tight; with it the level is part of a resource even for one user
    resources.append(share[0, level] <= float(ratio.max() * sum(request["capacity"])))
    return share, dede.Problem(dede.Maximize(share[0, level]), resources, demands)


PROGRAMS = {"nash-welfare": nash_welfare, "max-min": max_min}


def solution(problem: Any, share: Any) -> Any:
    """Return the shares as the types' subproblems have them; dede itself does not put them into the variable."""
    import numpy as np
    import ray

    places = ray.get([each.get_solution_idx_r.remote() for each in problem._subprob_cache.probs])
    flat = np.zeros(share.size)
    for value, (variable, place) in zip(problem.sol_r, [at for some in places for at in some], strict=True):
        if variable == share.id:
            flat[place] = value
    return flat.reshape(share.shape, order="F")


def main() -> None:
    """Answer "build" and "solve" until the requests end."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # dede and Ray write to the standard output
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    dede = import_module("dede")
    problem: Any = None
    share: Any = None
    options: dict[str, Any] = {}
    types = 0
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        request = json.loads(line)
        if "speedup" in request:
            share, problem = PROGRAMS[request["task"]](dede, request)
            types = len(request["capacity"])
            options = {"num_cpus": request["threads"], "rho": request["rho"], "solver": dede.ECOS}
            problem.solve(num_iter=0, **options)  # starts Ray and distributes the subproblems
            answers.write("built\n")
        else:
            problem.solve(num_iter=request["iterations"], **options)
            answers.write(json.dumps(solution(problem, share)[:, :types].tolist()) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
