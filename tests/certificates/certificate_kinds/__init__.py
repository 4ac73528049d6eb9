"""Certificates of every kind, worked out by hand from the definitions, and when what a certificate states is true.

A module for each topic; a new kind has its example and its truth in one of them, or in one of its own.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from certificate_kinds.examples import Json, Truth

_TOPICS = [
    module
    for found in pkgutil.iter_modules(__path__)
    if hasattr(module := import_module(f"{__name__}.{found.name}"), "TRUTH")
]
#: Examples of all kinds, by name: all certificates that the topics hold.
BY_HAND: dict[str, Json] = {
    name: data
    for topic in _TOPICS
    for name, data in vars(topic).items()
    if isinstance(data, dict) and "certificate" in data
}
_TRUTH: dict[str, Truth] = {kind: truth for topic in _TOPICS for kind, truth in topic.TRUTH.items()}


def require_true(data: Mapping[str, Any]) -> None:
    """Raise `examples.Untrue` if the statement of a certificate (JSON) is false."""
    _TRUTH[data["certificate"]](data)
