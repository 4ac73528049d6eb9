"""The command line: parse, call, print. Data goes to standard output, everything else to standard error."""

from fairopt.cli.app import main

__all__ = ["main"]
