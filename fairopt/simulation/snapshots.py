"""Snapshots as a line of JSON and back, without loss: exact numbers, and a policy's own state.

``{"schema": 2, "snapshot": {...}}``: the fields of `Snapshot` as `fairopt.codec` writes them; ``state`` is null or
``{"NameOfItsClass": {...}}``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fairopt.codec import decode, encode
from fairopt.errors import BadInput
from fairopt.simulation.record import Snapshot

SCHEMA = 2


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a snapshot as one line of JSON. Errors: `TypeError` for a state that could not be read back."""
    return json.dumps({"schema": SCHEMA, "snapshot": snapshot_to_json(snapshot)})


def snapshot_to_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot in the types of JSON; errors as `snapshot_text`."""
    state = None if snapshot.state is None else {type(snapshot.state).__name__: snapshot.state}
    return dict(encode(replace(snapshot, state=state)))


def snapshot_from(text: str, states: Sequence[type]) -> Snapshot:
    """Return the snapshot that `snapshot_text` wrote; ``states`` are the classes of the policy's state.

    Errors: `BadInput` where the text is none, or was written for another policy, or by an earlier fairopt.
    """
    try:
        data = json.loads(text)
        schema, body = data["schema"], data["snapshot"]
    except (ValueError, TypeError, KeyError) as error:
        remedy = "Give what `snapshot_text` returned"
        raise BadInput(f"not a snapshot: {error!r}", place="snapshot", remedy=remedy) from error
    if schema != SCHEMA:
        raise BadInput(
            f"it has schema {schema!r}, and this fairopt reads schema {SCHEMA}",
            place="snapshot",
            remedy="Begin the run anew, or go on with the fairopt that wrote it",
        )
    return snapshot_from_json(body, states)


def snapshot_from_json(data: Any, states: Sequence[type]) -> Snapshot:
    """Return the snapshot that `snapshot_to_json` wrote; errors as `snapshot_from`."""
    snapshot: Snapshot = decode(Snapshot, data, "snapshot")
    known = {each.__name__: each for each in states}
    if snapshot.state is None:
        return snapshot
    if not isinstance(snapshot.state, dict) or len(snapshot.state) != 1 or not known.keys() >= snapshot.state.keys():
        held = next(iter(snapshot.state), None) if isinstance(snapshot.state, dict) else snapshot.state
        raise BadInput(
            f"it holds a {held!r}, which is no state of this policy",
            place="snapshot, key 'state'",
            remedy="Go on with the policy that the run was begun with",
        )
    [(name, fields)] = snapshot.state.items()
    return replace(snapshot, state=decode(known[name], fields, f"snapshot, key 'state', key {name!r}"))
