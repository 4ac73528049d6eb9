"""The directive ``json-schema``: a file format's keys as a table, and its JSON Schema, both made from the code.

The schema itself is written beside the page as ``_static/schemas/NAME.schema.json``, for editors and other programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from building import code, folded, html, paragraph, section, table
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

Schema = Mapping[str, Any]


def schema_of(function: str) -> dict[str, Any]:
    """Return what ``MODULE:FUNCTION`` gives."""
    module, _, name = function.partition(":")
    made: dict[str, Any] = getattr(import_module(module), name)()
    return made


def short_name(schema: Schema) -> str:
    """Return "market" for the schema ``https://.../market.schema.json``."""
    return str(schema["$id"]).rpartition("/")[2].removesuffix(".schema.json")


class JsonSchema(SphinxDirective):
    """The keys of a format, level by level, then the schema in full. Argument: ``MODULE:FUNCTION``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the tables and the schema."""
        schema = schema_of(self.arguments[0])
        name = short_name(schema)
        folder = Path(self.env.app.outdir) / "_static" / "schemas"
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(schema, indent=2, ensure_ascii=False)
        (folder / f"{name}.schema.json").write_text(text + "\n", encoding="utf-8")
        up = "../" * self.env.docname.count("/")
        link = f'<p>For programs: <a href="{up}_static/schemas/{name}.schema.json">{name}.schema.json</a> '
        content = [paragraph(schema.get("description", "")), *levels(schema, name)]
        return [
            *content,
            html(link + "(JSON Schema, draft 2020-12).</p>"),
            *folded("The schema in full", code(text, "json")),
        ]


def levels(schema: Schema, name: str) -> Iterator[nodes.Node]:
    """Yield a table of the keys of the file, then a section for each kind of table in it."""
    if "properties" in schema:
        yield keys(schema)
    for called, inner in schema.get("$defs", {}).items():
        about = [paragraph(inner["description"])] if "description" in inner else []
        held = keys(inner) if "properties" in inner else paragraph(kind(inner))
        yield section(f"`{called}`", f"{name}-{called}".replace(" ", "-"), *about, held)


def keys(schema: Schema) -> nodes.Node:
    """Return a table of one object's keys."""
    required = set(schema.get("required", ()))
    rows = [
        (f"`{key}`", kind(value), "yes" if key in required else "", value.get("description", ""))
        for key, value in schema["properties"].items()
    ]
    return table(("Key", "Value", "Required", "Meaning"), rows)


def kind(value: Schema) -> str:
    """Return in words what a value may be."""
    if "const" in value:
        return f"`{json.dumps(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{json.dumps(each)}`" for each in value["enum"])
    if "$ref" in value:
        return f"`{value['$ref'].rpartition('/')[2]}`"
    if "anyOf" in value:
        kinds = list(dict.fromkeys(kind(each) for each in value["anyOf"]))
        return 'number or `"p/q"`' if kinds == ["number", "text"] else " or ".join(kinds)
    given = value.get("type", "any")
    if given == "array":
        inner = kind(value["items"]) if isinstance(value.get("items"), Mapping) else "values"
        return f"list of {inner}"
    names = {"string": "text", "object": "table"}
    return " or ".join(names.get(each, each) for each in ([given] if isinstance(given, str) else given))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_directive("json-schema", JsonSchema)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
