"""For the gallery: a picture that the last line of a script returns, as the functions of `fairopt.plot` do."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def returned_figure(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figure that a block ends with, and return the text that shows it; "" where it ends otherwise."""
    found = block_vars["example_globals"].get("___")
    if not isinstance(found, Figure):
        return ""
    path = next(block_vars["image_path_iterator"])
    found.savefig(path, dpi=120)
    return str(figure_rst([path], gallery_conf["src_dir"]))
