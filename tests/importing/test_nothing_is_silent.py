"""What an importer meets and nothing here knows is listed or refused, wherever in an object it stands."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairopt.errors import BadInput
from fairopt.importing import armada, kai, kueue, volcano, yarn
from fairopt.importing.imported import Imported

SAMPLES = Path(str(files("fairopt.datasets") / "clusters"))
STRANGE = "zzStrange"


def mappings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where mappings stand; of a list those of its first item."""
    if isinstance(value, dict):
        yield path
        for key, each in value.items():
            yield from mappings(each, (*path, key))
    elif isinstance(value, list) and value:
        yield from mappings(value[0], (*path, 0))


def shape(path: tuple[Any, ...]) -> str:
    return ".".join("[]" if isinstance(each, int) else each for each in path).replace(".[]", "[]")


def one_of_each(items: list[dict[str, Any]]) -> Iterator[tuple[int, tuple[Any, ...], str]]:
    """Yield places in objects, of each kind and shape once."""
    seen = set()
    for at, item in enumerate(items):
        for path in mappings(item):
            name = f"{item.get('kind', '/'.join(list(item)[:1]))} {shape(path)}"
            if name not in seen:
                seen.add(name)
                yield at, path, name


def whole(found: Imported, place: tuple[Any, ...]) -> bool:
    """Say whether what stands above a place is listed as a whole, by its path or the end of it."""
    fields = {field for each in found.unplaced for field in each.place.split(", ")[1:]}
    above = [f".{shape(place[:end])}".removesuffix("[]") for end in range(1, len(place) + 1)]
    return any(each.endswith(f".{field}".removesuffix("[]")) for each in above for field in fields)


def loaded(path: Path) -> list[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    data = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    found: list[dict[str, Any]] = data.get("items", [data])
    return found


#: Where keys are names that users choose, or say what nobody gets anything by: by the end of the place.
FREE = {
    *("labels", "annotations", "nodeLabels", "data", "nodeSelector", "requiredNodeLabels", "flavors", "jobDetails"),
    *("requests", "limits", "overhead", "allocatable", "allocated", "resourceUsage", "resources", "consumedResources"),
    *("maximumResourceFraction", "maximumResourceFractionByPool", "resourceLimitsByPriorityClassName"),
}
READERS = {
    "kueue": (kueue.read, "kueue/cluster.json", ()),
    "kai": (kai.read, "kai/cluster.yaml", ()),
    "volcano": (volcano.read, "volcano/capacity.json", ()),
    "armada": (armada.read, "armada/cluster.json", ("armada/scheduler.yaml",)),
}


@pytest.mark.parametrize("name", READERS)
def test_an_unknown_field_is_listed_or_refused_wherever_it_stands(name: str, tmp_path: Path) -> None:
    read, sample, more = READERS[name]
    items = loaded(SAMPLES / sample)
    path = tmp_path / "objects.json"
    silent = []
    for at, place, called in one_of_each(items):
        if place and place[-1] in FREE:
            continue
        item = copy.deepcopy(items[at])
        where: Any = item
        for step in place:
            where = where[step]
        where[STRANGE] = "strange"
        path.write_text(json.dumps({"items": [*items[:at], item, *items[at + 1 :]]}, default=str))
        try:
            found = read(path, *(SAMPLES / each for each in more))
        except BadInput:
            continue
        told = [each for each in found.unplaced if STRANGE in each.place or STRANGE in each.value]
        if not told and not whole(found, place):
            silent.append(called)
    assert not silent


@pytest.mark.parametrize("everywhere", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_unknown_property_of_yarn_is_listed(tmp_path: Path, everywhere: bool) -> None:
    folder = SAMPLES / "yarn"
    text = (folder / "capacity-scheduler.xml").read_text()
    path = tmp_path / "capacity-scheduler.xml"
    for prefix in ("yarn.scheduler.capacity.", "yarn.scheduler.capacity.root."):
        row = f"<property><name>{prefix}{STRANGE}</name><value>1</value></property></configuration>"
        path.write_text(text.replace("</configuration>", row))
        found = yarn.read(path, folder / "scheduler.json", folder / "metrics.json")
        assert any(STRANGE in each.place for each in found.unplaced), prefix
    for file in ("scheduler.json", "metrics.json"):
        data = json.loads((folder / file).read_text())
        silent = []
        places = [*dict.fromkeys(mappings(data))]
        # of the entries of a list, which have one form, the first, or every one
        for place in places if everywhere else {shape(each): each for each in reversed(places)}.values():
            changed = copy.deepcopy(data)
            where: Any = changed
            for step in place:
                where = where[step]
            where[STRANGE] = "strange"
            other = tmp_path / file
            other.write_text(json.dumps(changed))
            paths = {each: folder / each for each in ("capacity-scheduler.xml", "scheduler.json", "metrics.json")}
            try:
                found = yarn.read(*(paths | {file: other}).values())
            except BadInput:
                continue
            if not any(STRANGE in each.place for each in found.unplaced) and not whole(found, place):
                silent.append(shape(place))
        assert not silent, file
