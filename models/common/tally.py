"""`Tally`: what a policy keeps between rounds where that is a number for each job or tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairopt.program import Number


@dataclass(frozen=True)
class Tally:
    """A number ``of`` each job or tenant, by name, as it is at ``until``, where it changes with time.

    The policy says which number that is.
    """

    of: Mapping[str, Number] = field(default_factory=dict)
    until: Number = 0
