"""The one place where the golden master meets fairopt: it calls the command line, in this process.

What is renamed in fairopt is renamed here, and nowhere else in this folder.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple

# the width of tables, before anything that prints them is imported
os.environ.update(COLUMNS="200", NO_COLOR="1", TERM="dumb")

from fairopt.cli import main

#: Import paths that stand in arguments, by the name that stands for them in the plan and in what is observed.
PATHS: Mapping[str, str] = {
    "{LeastCost}": "fairopt.models.gavel.objectives:LeastCost",
    "{LeastMakespan}": "fairopt.models.gavel.objectives:LeastMakespan",
}


class Called(NamedTuple):
    """What a command left: its exit status, and what it wrote to standard output and standard error."""

    exit: int
    out: str
    err: str


def call(arguments: Sequence[str]) -> Called:
    """Call ``fairopt ARGUMENTS`` in the current folder, and return what it left."""
    for name, path in PATHS.items():
        arguments = [each.replace(name, path) for each in arguments]
    out, err = io.StringIO(), io.StringIO()
    before, digits, stdout = sys.argv, sys.get_int_max_str_digits(), sys.stdout
    sys.argv = ["fairopt", *arguments]
    status: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python shows each once in a process, so in one problem or another
            main()
    except SystemExit as stop:
        status = stop.code
    finally:
        sys.argv, sys.stdout = before, stdout
        sys.set_int_max_str_digits(digits)
    texts = [out.getvalue(), err.getvalue()]
    for name, path in PATHS.items():
        texts = [text.replace(path, name) for text in texts]
    return Called(status if isinstance(status, int) else 0 if status is None else 1, *texts)
