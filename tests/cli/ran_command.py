"""How a command ended: what the fixture ``fairopt`` of these tests returns."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Ran(NamedTuple):
    """The exit status of a command, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)
