"""`Tally`: what a policy keeps between rounds where that is a number for each job or tenant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fairopt.program import Number


@dataclass(frozen=True)
class Tally:
    """A number ``of`` each job or tenant, by name; the policy says which."""

    of: Mapping[str, Number] = field(default_factory=dict)
