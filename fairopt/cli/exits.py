"""The exit statuses of the command line."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What the command tells the shell; UNDECIDED: nothing fails, but something is open, or depends on the input."""

    FINE = 0
    FAILS = 1
    BAD_INPUT = 2
    NOT_SOLVED = 3
    UNDECIDED = 4
    INTERRUPTED = 130
    NOBODY_READS = 141  # like a program ended by SIGPIPE: the reader of a pipe went away
    TERMINATED = 143  # `run`, by SIGTERM
