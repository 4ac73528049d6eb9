"""Kueue's objects that tests write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def written(tmp_path: Path, *items: dict[str, Any]) -> Path:
    (tmp_path / "objects.json").write_text(json.dumps({"kind": "List", "items": items}))
    return tmp_path / "objects.json"


def queue(name: str, *quotas: tuple[str, str, dict[str, object]], **spec: object) -> dict[str, Any]:
    flavors: dict[str, list[dict[str, object]]] = {}
    for flavor, resource, quota in quotas:
        flavors.setdefault(flavor, []).append({"name": resource, **quota})
    covered = list(dict.fromkeys(resource for _, resource, _ in quotas))
    group = {
        "coveredResources": covered,
        "flavors": [{"name": each, "resources": own} for each, own in flavors.items()],
    }
    spec = {"resourceGroups": [group], **spec}
    return {
        "kind": "ClusterQueue",
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "metadata": {"name": name},
        "spec": spec,
    }
