"""The notebooks still say what their stored outputs say: each is run again, in a copy, and the texts are compared."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
AGAIN = "Run it again and look at what changed: make notebook"

#: The rest are run again by the campaign, and by `make docs`: each starts a kernel of its own.
QUICK = {"oef_running_example"}

each_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def stored(notebook: Path) -> Any:
    return nbformat.read(notebook, as_version=4)


def texts(cell: Any) -> str:
    """What a cell printed and returned; a stream may come in several pieces."""
    pieces = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])]
    return re.sub(r"<Figure size .*>", "<Figure>", "".join(pieces))  # its size depends on the fonts there are


def pictures(notebook: Any) -> list[bytes]:
    """The PNG images of a notebook."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    found = [output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {})]
    return [base64.b64decode(image) for image in found]


@pytest.mark.parametrize(
    "notebook",
    [pytest.param(each, marks=[] if each.stem in QUICK else [pytest.mark.slow]) for each in NOTEBOOKS],
    ids=lambda path: path.stem,
)
def test_the_notebook_runs_and_says_the_same(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):  # nobody's settings come in
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    before, again = stored(notebook), stored(notebook)
    client = NotebookClient(again, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    for number, (old, new) in enumerate(zip(before.cells, again.cells, strict=True)):
        assert texts(new) == texts(old), f"cell {number} of {notebook.name} says something else. {AGAIN}"
    assert len(pictures(again)) == len(pictures(before))


@each_notebook
def test_what_is_stored(notebook: Path) -> None:
    kept = stored(notebook)
    nbformat.validate(kept)
    assert pictures(kept)
    assert {image[:4] for image in pictures(kept)} == {b"\x89PNG"}
    code = [cell for cell in kept.cells if cell.cell_type == "code"]
    assert not [cell for cell in code if "execution" in cell.metadata], f"it says when it ran. {AGAIN}"
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), AGAIN
    assert not any(
        output.output_type == "error" or output.get("name") == "stderr" for c in code for output in c.outputs
    )
    assert kept.cells[0].source.startswith("# ")
    assert max(len(cell.source.splitlines()) for cell in code) <= 15


@each_notebook
def test_it_begins_with_a_picture_and_ends_with_exercises(notebook: Path) -> None:
    kept = stored(notebook)
    first = next(n for n, cell in enumerate(kept.cells) if pictures_of(cell))
    assert first <= len(kept.cells) // 3
    assert kept.cells[-1].source.split("\n\n1. ")[0].endswith("## Exercises")


def pictures_of(cell: Any) -> bool:
    return any("image/png" in output.get("data", {}) for output in cell.get("outputs", []))


@each_notebook
def test_what_a_notebook_imports_is_there(notebook: Path) -> None:
    lines = [line for cell in stored(notebook).cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    imports = [line for line in lines if line.startswith(("from fairopt", "import fairopt"))]
    assert imports
    exec("\n".join(imports), {})
