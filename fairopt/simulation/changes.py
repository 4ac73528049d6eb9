"""A run as its changes: what a round adds to what trace, placements and mechanics say by themselves.

`Changes` is a fold: it takes the records of a run one after the other and returns what changed. `recording` writes that
to a file, and says how the file looks; `replay` makes whole records of it again.
"""

from __future__ import annotations

from typing import Any

from fairopt.problem.numbers import told
from fairopt.program import Number
from fairopt.simulation.record import Change, Round

#: How a job comes to GPUs that are not those of the round before.
PLACED = (Change.START, Change.RESUME, Change.MIGRATE)


class Changes:
    """What changed from round to round; it remembers who runs where, until when, and what the last round was like."""

    def __init__(self) -> None:
        self._lease: dict[str, Number] = {}  # of the jobs that run
        self._last: dict[str, Any] = {"down": (), "costs": {}, "notes": {}, "backend": "auto"}
        self.seconds = 0.0

    def of(self, record: Round) -> dict[str, Any] | None:
        """Return what changed in a round, as JSON; None where nothing did. ``seconds`` gathers until it is said."""
        self.seconds += record.seconds
        changes = {name: value for name, value in self._changes(record).items() if value}
        changes |= {name: value for name, value in self._policys(record).items() if value is not None}
        if not changes and not record.arrived:
            return None
        seconds, self.seconds = self.seconds, 0.0
        return {"round": record.index, **changes, "seconds": seconds}

    def _changes(self, record: Round) -> dict[str, Any]:
        ran = {each.job: each for each in record.ran}
        down = self._last["down"]
        self._last["down"] = record.down
        changes: dict[str, Any] = {
            "failed": [host for host in record.down if host not in down],
            "back": [host for host in down if host not in record.down],
            "misfits": {job: record.misfits[job] for job in record.arrived if job in record.misfits},
            "stop": [job for job in self._lease if job not in ran],
        }
        for how in PLACED:
            changes[how.value] = {each.job: told(each.spots) for each in record.ran if each.change is how}
        changes["lease"] = {
            each.job: told(each.lease)
            for each in record.ran
            if each.lease != self._unsaid(each.job, record, stays=each.change is Change.STAY)
        }
        changes["complete"] = {each.job: told(each.end) for each in record.ran if each.completed}
        changes["lost"] = {each.job: told(each.end) for each in record.ran if each.lost}
        self._lease = {each.job: each.lease for each in record.ran if not each.completed and not each.lost}
        return changes

    def _unsaid(self, job: str, record: Round, *, stays: bool) -> Number:
        """Return the lease of a job of which nothing is said: the one that it has, else the round."""
        lease = self._lease.get(job, record.begin)
        return lease if stays and lease > record.begin else record.end

    def _policys(self, record: Round) -> dict[str, Any]:
        """Return what the policy says of a round, where it says something else than of the one before."""
        said = {"costs": told(record.costs), "notes": dict(record.notes), "backend": record.backend}
        changed = {name: value for name, value in said.items() if self._last[name] != value}
        self._last |= changed
        return changed
