"""Contenders that end in every way there is, for tests of the harness: named by MODULE:NAME in specifications.

They all answer "max-min", most of them badly.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fairopt.discovery import policy
from fairopt.errors import NotSolved, OutOfTime
from fairopt.experiment.bench import Contender
from fairopt.policy import decide


class _Fake(Contender):
    tasks: ClassVar[tuple[str, ...]] = ("max-min",)
    libraries: ClassVar[Sequence[str]] = ("numpy",)

    def build(self, task: str, prepared: Any, *, time_limit: float, threads: int) -> Any:
        """Return the problem."""
        return prepared


@dataclass
class Sound(_Fake):
    """Answers rightly, by HiGHS on the plain program; ``delay`` seconds later, and does so in ``certify`` again."""

    name: ClassVar[str] = "sound"
    tasks: ClassVar[tuple[str, ...]] = (
        *("max-min", "oef-noncooperative", "oef-cooperative", "water-filling", "nash-welfare"),
    )
    libraries: ClassVar[Sequence[str]] = ("highspy", "numpy")
    certifies: ClassVar[bool] = True

    delay: float = 0.0
    mode: str = "plain"

    def build(self, task: str, prepared: Any, *, time_limit: float, threads: int) -> Any:
        """Return the task and the problem."""
        return task, prepared

    def solve(self, built: Any) -> Any:
        """Return the shares that the policy of the task's name decides on."""
        task, market = built
        time.sleep(self.delay)
        rule = policy(task)
        return np.asarray(decide(rule, market, vertex=True).shares, dtype=float)


class Overbooking(_Fake):
    """Gives everything to everybody."""

    name = "overbooking"

    def solve(self, built: Any) -> Any:
        """Return more than there is."""
        return np.tile(np.asarray(built.capacity, dtype=float), (built.shape[0], 1))


class Content(_Fake):
    """Gives everybody its own partition, which is allowed and mostly not the best."""

    name = "content"

    def solve(self, built: Any) -> Any:
        """Return the equal split."""
        return np.asarray(built.equal_split(), dtype=float)


@dataclass
class Sleeping(_Fake):
    """Sleeps on problems larger than ``beyond`` users, and answers others with the equal split."""

    name: ClassVar[str] = "sleeping"
    beyond: int = 3
    seconds: float = 60.0

    def solve(self, built: Any) -> Any:
        """Return too late."""
        if built.shape[0] > self.beyond:
            time.sleep(self.seconds)
        return np.asarray(built.equal_split(), dtype=float)


class Polite(_Fake):
    """Stops by itself at its limit."""

    name = "polite"

    def solve(self, built: Any) -> Any:
        """Raise `OutOfTime`."""
        raise OutOfTime("the solver said: time limit reached")


@dataclass
class Hungry(_Fake):
    """Takes ``gigabytes`` of memory, on problems larger than 3 users."""

    name: ClassVar[str] = "hungry"
    gigabytes: float = 4.0

    def solve(self, built: Any) -> Any:
        """Fill memory page by page."""
        held = [np.ones(2_000_000) for _ in range(int(self.gigabytes * 62.5))] if built.shape[0] > 3 else []
        time.sleep(0.05 * bool(held))
        return np.asarray(built.equal_split(), dtype=float)


class Failing(_Fake):
    """Ends without an answer, and says so."""

    name = "failing"

    def solve(self, built: Any) -> Any:
        """Raise `NotSolved`."""
        raise NotSolved("the solver said: numerical trouble")


class Buggy(_Fake):
    """Raises what nobody expects."""

    name = "buggy"

    def solve(self, built: Any) -> Any:
        """Divide by zero."""
        return 1 // (built.shape[0] * 0)


class Quitting(_Fake):
    """Ends its process."""

    name = "quitting"

    def solve(self, built: Any) -> Any:
        """Leave with status 7, having said something."""
        if built.shape[0] > 3:
            print("quitting: no licence", flush=True)
            os._exit(7)
        return np.asarray(built.equal_split(), dtype=float)


class Crashing(_Fake):
    """Crashes as a library in C does."""

    name = "crashing"

    def solve(self, built: Any) -> Any:
        """Send itself SIGSEGV."""
        if built.shape[0] > 3:
            os.kill(os.getpid(), signal.SIGSEGV)
        return np.asarray(built.equal_split(), dtype=float)


class Absent(_Fake):
    """Needs a library that is not installed."""

    name = "absent"
    libraries = ("no-such-library",)

    def missing(self) -> str | None:
        """Return what is missing."""
        return "no-such-library is not installed: pip install no-such-library"

    def solve(self, built: Any) -> Any:
        """Never called."""
        raise NotSolved("it must not come to this")


class Leaving(Sound):
    """Answers rightly and leaves a process behind."""

    name = "leaving"
    certifies = False

    def solve(self, built: Any) -> Any:
        """Start a process that goes on; its number is in the file that FAIROPT_TEST_LEFT names."""
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        with open(os.environ["FAIROPT_TEST_LEFT"], "w") as file:
            file.write(str(left.pid))
        return super().solve(built)


class Unwritable(_Fake):
    """Answers with something that cannot be judged."""

    name = "unwritable"

    def solve(self, built: Any) -> Any:
        """Return an object."""
        return object()


class Abandoning(_Fake):
    """Starts a process that holds whatever this one has open, and ends without a word."""

    name = "abandoning"

    def solve(self, built: Any) -> Any:
        """End, where the process that was started goes on."""
        if os.fork() == 0:
            time.sleep(600)
        os._exit(3)


class Babbling(_Fake):
    """Writes to the standard output, and raises what cannot be written down as it is."""

    name = "babbling"

    def solve(self, built: Any) -> Any:
        """Raise a long text with half of a pair in it."""
        print('{"stage": "ended"}', flush=True)
        raise ValueError("\ud800<b>" + "x" * 100_000)
