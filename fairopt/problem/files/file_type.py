"""What kind of file a dictionary is from, told by a key that no other kind has: for whoever gave the wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fairopt.errors import BadInput

#: By key at the top level: the kind of file that has it, and who takes such a file. Of several keys the first tells.
_KINDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "user": ("market", "`fairopt solve` and `fairopt compare` take it"),
        "host": ("cluster", "`fairopt run` takes it by --cluster"),
        "server": ("batch", "`fairopt schedule` takes it"),
        "job": ("trace", "`fairopt run` takes it"),
    }
)


def check_kind(data: Mapping[str, object], wanted: str, place: str) -> None:
    """Refuse what is plainly a file of another kind than ``wanted``, and say what it is for."""
    for key, (kind, taker) in _KINDS.items():
        if key not in data:
            continue
        if kind == wanted:
            return
        raise BadInput(f"the key {key!r} is that of a {kind}", place=place, remedy=f"Give a {wanted}; {taker}")
