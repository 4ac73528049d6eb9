"""The notebook still says what its stored outputs say: it is run again, in a copy, and the texts are compared."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "oef_running_example.ipynb"
AGAIN = "Run it again and look at what changed: make notebook"


def stored() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


def texts(cell: Any) -> str:
    """What a cell printed and returned; a stream may come in several pieces."""
    pieces = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]
    return re.sub(r"<Figure size .*>", "<Figure>", "".join(pieces))  # its size depends on the fonts there are


def pictures(notebook: Any) -> list[bytes]:
    """The PNG images of a notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    found = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return [base64.b64decode(image) for image in found]


def test_the_notebook_runs_and_says_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):  # nobody's settings come in
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    before, notebook = stored(), stored()
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    for number, (old, new) in enumerate(zip(before.cells, notebook.cells, strict=True)):
        assert texts(new) == texts(old), f"cell {number} of {NOTEBOOK.name} says something else. {AGAIN}"
    assert len(pictures(notebook)) == 2


def test_what_is_stored() -> None:
    notebook = stored()
    nbformat.validate(notebook)
    assert [image[:4] for image in pictures(notebook)] == [b"\x89PNG"] * 2
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), AGAIN
    assert not any(
        output.output_type == "error" or output.get("name") == "stderr" for c in code for output in c.outputs
    )
    assert notebook.cells[0].source.startswith("# ")
    assert max(len(cell.source.splitlines()) for cell in code) <= 15
