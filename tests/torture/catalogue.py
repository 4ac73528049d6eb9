"""All kinds of trials, and how many of each letter make the whole."""

from __future__ import annotations

import alike
import answers
import boundaries
import definitions
import evidence
import hard
import inputs
import journals
import newer
import resumed
import stops
import units

TRIALS = {"a": 550_000, "b": 200_000, "c": 3_000, "d": 150_000, "e": 100_000, "f": 240_000}
KINDS = [
    *inputs.KINDS,
    *journals.KINDS,
    *resumed.KINDS,
    *units.KINDS,
    *answers.KINDS,
    *boundaries.KINDS,
    *definitions.KINDS,
    *hard.KINDS,
    *alike.KINDS,
    *evidence.KINDS,
    *newer.KINDS,
    *stops.KINDS,
]
