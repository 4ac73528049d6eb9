"""The directive ``commands``: every command of the command line, as the command line itself describes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from building import code, paragraphs, section, table, words
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from fairopt.cli.app import COMMANDS, in_words, load


class Commands(SphinxDirective):
    """A section for each command: usage, what it does, arguments and options."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [described(load(name), f"fairopt {name}") for name in COMMANDS]


def described(command: Any, called: str) -> nodes.section:
    """Return the section of one command, with those of the commands under it."""
    context = command.context_class(command, info_name=called)
    usage = " ".join([called, *command.collect_usage_pieces(context)])
    content: list[nodes.Node] = [code(usage, "text"), *paragraphs((command.help or "").replace("\b", ""))]
    rows = list(parameters(command, context))
    if rows:
        content.append(table(("Argument or option", "What it does"), rows, "options"))
    below = getattr(command, "commands", {})
    content += [described(each, f"{called} {name}") for name, each in below.items()]
    return section(called, called.replace(" ", "-"), *content)


def parameters(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    """Yield each argument and option with its help; ``--help`` is everywhere and is left out."""
    for parameter in command.get_params(context):
        record = in_words(parameter, context)
        if record is not None and "--help" not in parameter.opts:
            yield f"`{record[0]}`", record[1]


class CommandList(SphinxDirective):
    """The commands in a line each, with links to their sections."""

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        items = []
        for name, command in COMMANDS.items():
            link = nodes.reference("", "", nodes.literal(text=f"fairopt {name}"), refid=f"fairopt-{name}")
            items.append(nodes.list_item("", nodes.paragraph("", "", link, nodes.Text(": "), *words(command.help))))
        return [nodes.bullet_list("", *items)]


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("commands", Commands)
    app.add_directive("command-list", CommandList)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
