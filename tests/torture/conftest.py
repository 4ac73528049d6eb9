"""What here is no test is run by its own commands; it is not imported for doctests."""

from __future__ import annotations

from pathlib import Path

collect_ignore = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
