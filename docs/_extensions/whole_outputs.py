"""What a cell prints arrives in pieces; here they become one text again, as it was printed.

MyST-NB merges pieces too, but takes each for whole lines: a piece that ends within a line would be broken there.
"""

from __future__ import annotations

from typing import Any

from myst_nb.core import render
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return a cell's outputs with all that was printed to one stream in one, where its first piece was."""
    made: list[NotebookNode] = []
    streams: dict[str, NotebookNode] = {}
    for output in outputs:
        shown = output.get("data", {})
        if shown.get("text/plain", "").startswith("<Figure") and not any(kind.startswith("image/") for kind in shown):
            logger.warning("a picture is shown as text only; begin the cell with %%matplotlib inline")
        if output["output_type"] == "stream" and output["name"] in streams:
            streams[output["name"]]["text"] += output["text"]
        else:
            made.append(NotebookNode(output))
            if output["output_type"] == "stream":
                streams[output["name"]] = made[-1]
    return made


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx, before any page is read."""
    render.coalesce_streams = joined
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
