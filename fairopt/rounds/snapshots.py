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
from fairopt.rounds.record import Snapshot

SCHEMA = 2
_REMEDY = "Give a file that `fairopt run --state` wrote"


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a snapshot as one line of JSON. Errors: `TypeError` for a state that could not be read back."""
    return json.dumps({"schema": SCHEMA, "snapshot": encode(replace(snapshot, state=state_to_json(snapshot.state)))})


def state_to_json(state: Any) -> dict[str, Any] | None:
    """Return a policy's state under the name of its class; None where it has none."""
    return None if state is None else {type(state).__name__: encode(state)}


def snapshot_from(text: str, states: Sequence[type]) -> Snapshot:
    """Return the snapshot that `snapshot_text` wrote; ``states`` are the classes of the policy's state.

    Errors: `BadInput` where the text is none, or was written for another policy, or by an earlier fairopt.
    """
    try:
        data = json.loads(text)
        schema, body = data["schema"], data["snapshot"]
    except (ValueError, TypeError, KeyError) as error:
        raise BadInput(f"not a snapshot: {error!r}", place="snapshot", remedy=_REMEDY) from error
    if schema != SCHEMA:
        raise BadInput(
            f"it has schema {schema!r}, and this fairopt reads schema {SCHEMA}",
            place="snapshot",
            remedy="Begin the run anew, or go on with the fairopt that wrote it",
        )
    snapshot: Snapshot = decode(Snapshot, body, "snapshot")
    return replace(snapshot, state=_state(snapshot.state, {each.__name__: each for each in states}))


def _state(data: Any, known: dict[str, type]) -> Any:
    if data is None:
        return None
    if not isinstance(data, dict) or len(data) != 1 or not known.keys() >= data.keys():
        held = next(iter(data), None) if isinstance(data, dict) else data
        raise BadInput(
            f"it holds a {held!r}, which is no state of this policy",
            place="snapshot, key 'state'",
            remedy="Go on with the policy that the run was begun with",
        )
    [(name, fields)] = data.items()
    return decode(known[name], fields, f"snapshot, key 'state', {name}")
