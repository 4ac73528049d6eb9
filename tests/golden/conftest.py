"""What here is no test is run by its own commands; it is not imported for doctests."""

from __future__ import annotations

collect_ignore_glob = ["[!t]*.py"]
