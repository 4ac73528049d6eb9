"""The exit statuses of the command line."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """An exit status of the command line."""

    FINE = 0
    FAILS = 1
    BAD_INPUT = 2
    NOT_SOLVED = 3
    INTERRUPTED = 130
    NOBODY_READS = 141  # like a program ended by SIGPIPE: the reader of a pipe went away
