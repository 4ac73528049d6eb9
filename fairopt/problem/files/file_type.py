"""What a file describes, told by a key that no other type of file has: to explain a wrong argument."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairopt.errors import BadInput

MARKET = "market"
#: By key at the top level: the type of file that has it, and who takes such a file. Of several keys the first tells.
TYPES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "user": (MARKET, "`fairopt solve` and `fairopt compare` take it"),
        "host": ("cluster", "`fairopt run` and `fairopt compare` take it by --cluster"),
        "server": ("batch", "`fairopt schedule` and `fairopt compare` take it"),
        "bandwidth": ("batch", "`fairopt schedule` and `fairopt compare` take it"),
        "job": ("trace", "`fairopt run` and `fairopt compare` take it"),
    }
)


def check_file_type(data: Mapping[str, object], wanted: str, place: str) -> None:
    """Refuse what is plainly a file of another type than ``wanted``, and say what it is for."""
    for key, (file_type, taker) in TYPES.items():
        if key not in data:
            continue
        if file_type == wanted:
            return
        raise BadInput(f"the key {key!r} is that of a {file_type}", place=place, remedy=f"Give a {wanted}; {taker}")
