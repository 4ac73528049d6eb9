"""Run the notebooks again and keep their outputs, without the times at which they ran: ``make notebook``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat
from nbclient import NotebookClient

for path in sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb")):
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        settings = {"record_timing": False, "coalesce_streams": True, "timeout": 600, "kernel_name": "python3"}
        NotebookClient(notebook, resources={"metadata": {"path": folder}}, **settings).execute()
    nbformat.write(notebook, path)
