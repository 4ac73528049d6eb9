"""The directive ``module-words``: what a module of a file format says of its keys in its docstring.

It is for formats that have no JSON Schema: their keys are described once, beside the code that writes them.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class ModuleWords(SphinxDirective):
    """The docstring of a module, without its first line, read as reStructuredText."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the paragraphs and lists."""
        module = import_module(self.arguments[0])
        words = (inspect.getdoc(module) or "").partition("\n\n")[2]
        within = nodes.container(classes=["module-words"])
        self.state.nested_parse(StringList(words.splitlines(), self.arguments[0]), 0, within)
        return [within]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("module-words", ModuleWords)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
