"""An importer: a function that reads a file of another tool and returns a market, a trace, a cluster or a batch."""

from __future__ import annotations

from fairopt.errors import BadInput
from fairopt.problem import Market
from fairopt.problem.files.storage import AnyPath, naming, read_text


def read_lines(path: AnyPath) -> Market:
    """Read lines "gpus TYPE NUMBER" and "speed USER TYPE NUMBER"; what is not said is 0.

    Errors: `BadInput` that names the file, the line and the remedy.

    Source: the other tool's documentation of its format.
    """
    capacity: dict[str, str] = {}
    speeds: dict[str, dict[str, str]] = {}
    with naming(path):  # every `BadInput` from here on names the file
        for number, line in enumerate(read_text(path).splitlines(), 1):
            match line.split():
                case ["gpus", kind, amount]:
                    capacity[kind] = amount
                case ["speed", user, kind, amount]:
                    speeds.setdefault(user, {})[kind] = amount
                case []:
                    continue
                case _:
                    remedy = "Write gpus TYPE NUMBER, or speed USER TYPE NUMBER"
                    raise BadInput(f"got {line!r:.80}", place=f"line {number}", remedy=remedy)
        unknown = {kind for row in speeds.values() for kind in row} - capacity.keys()
        if unknown:
            raise BadInput(f"no number of GPUs for {', '.join(sorted(unknown))}", remedy="Add a line gpus TYPE NUMBER")
        table = [[row.get(kind, "0") for kind in capacity] for row in speeds.values()]
        return Market.of(table, capacity.values(), users=list(speeds), types=list(capacity))
