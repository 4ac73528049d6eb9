"""What a command says of a value that it does not take."""

from __future__ import annotations

import re

#: What the library that reads options says of a value, and what is said instead.
_SAID = (
    (r"Value error, ", ""),
    (r"Input should be greater than or equal to (\S+)", r"Give a number that is at least \1"),
    (r"Input should be less than or equal to (\S+)", r"Give a number that is at most \1"),
    (r"Input should be greater than (\S+)", r"Give a number above \1"),
    (r"Input should be less than (\S+)", r"Give a number below \1"),
    (r"Input should be a valid integer.*|Unable to parse input string as an integer.*", "Give a whole number"),
    (r"Input should be a (?:valid|finite) number.*", "Give a number"),
    (r"'.*' is not one of (.*)\.", r"Give one of \1"),
)


def plainly(message: str) -> str:
    """Return a library's words about a value of an option as what to give instead.

    >>> plainly("Input should be greater than or equal to 1")
    'Give a number that is at least 1'
    """
    for theirs, ours in _SAID:
        message = re.sub(f"^{theirs}", ours, message)
    return message
