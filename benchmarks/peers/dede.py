"""dede, which splits a program into one of resources and one of demands, through an interpreter of its own.

It needs a CVXPY that is too old for the other peers, so that it cannot be installed beside them.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any
from weakref import finalize

import numpy as np

from fairopt.benchmarks.peers.plain import Floats, SharedGpus
from fairopt.errors import NotSolved, OutOfTime
from fairopt.experiment.bench import Contender
from fairopt.problem import Market

#: Names the interpreter where the setting does not.
VARIABLE = "FAIROPT_DEDE_PYTHON"
REMEDY = "python3 -m venv DIR && DIR/bin/pip install dede 'scipy<1.12'"
#: Seconds to import dede.
START = 60.0


class _Child:
    """The other interpreter, with dede imported; it is ended with this object."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("dede_child.py")
        self._process = subprocess.Popen(
            [python, "-I", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "RAY_DEDUP_LOGS": "0"},
        )
        self._received = b""
        self.end = finalize(self, _end, self._process)
        self.answer(perf_counter() + START)

    def ask(self, request: Mapping[str, Any], ends: float) -> str:
        """Return the answer to a request. Errors: `OutOfTime` at ``ends``, `NotSolved` where the process has ended."""
        stdin = self._process.stdin
        if stdin is not None:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        return self.answer(ends)

    def answer(self, ends: float) -> str:
        """Return the next line."""
        stdout = self._process.stdout
        if stdout is None:
            raise NotSolved("dede's process has no output")
        with selectors.DefaultSelector() as ready:
            ready.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._received:
                if not ready.select(max(0.0, ends - perf_counter())):
                    self.end()
                    self.end()
                    raise OutOfTime("dede was stopped at the time limit; it has none of its own")
                more = os.read(stdout.fileno(), 1 << 16)
                if not more:
                    status = self._process.wait()
                    self.end()
                    raise NotSolved(f"dede's process ended with status {status}")
                self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process; Ray's own end when they notice."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A market, and the interpreter."""

    market: SharedGpus
    child: _Child


@dataclass(frozen=True, eq=False)
class _Built:
    """The interpreter, which holds the program, and what is left of the time limit."""

    prepared: _Prepared
    time_limit: float


@dataclass(frozen=True)
class Dede(Contender):
    """dede on Nash welfare and max-min: its resources are the types of GPU, its demands the users.

    "build" is writing the program, starting Ray and handing the parts out; "solve" is dede's iterations. Its processes
    are not this one's, so that wall-clock time counts all, and CPU time nothing of it. ``python``: the interpreter that
    dede is installed in. ``iterations``: 0 is dede's own rule, which stops when one improves by less than 1 %. ``rho``:
    dede's. Max-min is split by a copy of the level for each user. Cooperative OEF has no such form: envy ties every
    user to all others, so that there is one demand with all users in it, and nothing is split.

    Source: Xu, Yu and Yan, Decouple and Decompose: Scaling Resource Allocation with DeDe, OSDI 2025.
    """

    name = "dede"
    tasks = ("nash-welfare", "max-min")
    python: str = field(default_factory=lambda: os.environ.get(VARIABLE, ""))
    iterations: int = 0
    rho: float = 1.0

    def missing(self) -> str | None:
        """Return how to make the environment if it is missing."""
        if self.python and Path(self.python).exists():
            return None
        found = f"there is no {self.python}" if self.python else f"{VARIABLE} is not set"
        return f"dede needs an interpreter of its own, and {found}: {REMEDY}; then {VARIABLE}=DIR/bin/python"

    def prepare(self, task: str, problem: Market) -> _Prepared:
        """Start the interpreter and import dede there, untimed."""
        return _Prepared(SharedGpus.of(problem), _Child(self.python))

    def build(self, task: str, prepared: _Prepared, *, time_limit: float, threads: int) -> _Built:
        """Have the program written, Ray started, and its parts handed out."""
        ends, market = perf_counter() + time_limit, prepared.market
        request = {
            "task": task,
            "speedup": market.speedup.tolist(),
            "capacity": market.capacity.tolist(),
            "weight": market.weight.tolist(),
            "fair": market.fair.tolist(),
            "limit": [each if np.isfinite(each) else None for each in market.limit.tolist()],
            "threads": threads,
            "rho": self.rho,
        }
        prepared.child.ask(request, ends)
        return _Built(prepared, ends - perf_counter())

    def solve(self, built: _Built) -> Floats:
        """Run dede and fetch the shares."""
        request = {"iterations": self.iterations or None}
        answer = built.prepared.child.ask(request, perf_counter() + built.time_limit)
        return np.array(json.loads(answer), dtype=float)
