"""Malformed and hostile files, over all importers: an answer or a typed error, in time and in little memory.

A file is a sample with some of its bytes or of its values changed; `make campaign` tries a thousand for each importer.
"""

from __future__ import annotations

import json
import random
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from changed import changed_bytes, changed_values

from fairopt import discovery
from fairopt.datasets import dataset_path
from fairopt.errors import BadInput
from fairopt.importing.imported import Imported, read_with
from fairopt.testing.counted_steps import CountedSteps

SAMPLES = Path(dataset_path("SOURCES.md")).parent / "clusters"
IMPORTERS = sorted(path.name for path in SAMPLES.iterdir() if path.is_dir())
#: The most steps in which an importer reads a file, and the most memory that all files may take.
STEPS, MOST_BYTES = 10_000_000, 500 * 1024**2

#: Files of one Slurm.
SLURM = ("sshare.txt", "assoc.txt", "qos.txt", "nodes.txt", "squeue.txt", "partitions.txt")
#: Samples that are read together with others.
BESIDE = {
    "capacity-scheduler.xml": ("metrics.json",),
    "absolute.xml": ("metrics.json",),
    "scheduler.json": ("capacity-scheduler.xml",),
    "metrics.json": ("capacity-scheduler.xml",),
    "scheduler.yaml": ("cluster.json",),
    "submit.yaml": ("cluster.json",),
    **{each: tuple(other for other in SLURM if other != each) for each in SLURM},
}


def hostile(name: str, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of files: every sample, changed in bytes, and in values where it is JSON."""
    draw = random.Random(f"hostile {name}")
    samples = sorted(path for path in (SAMPLES / name).iterdir() if path.suffix != ".md")
    parsed = {path: json.loads(path.read_text()) for path in samples if path.suffix == ".json"}
    for _ in range(count):
        path = draw.choice(samples)
        if path in parsed and draw.random() < 0.7:
            yield path.name, json.dumps(changed_values(parsed[path], draw)).encode()
        else:
            yield path.name, changed_bytes(path.read_bytes(), draw)


def tried(importer: Callable[..., Any], path: Path, beside: list[Path]) -> str:
    """Return what an importer says of a file: "read", or the message of its typed error."""
    refusal = None
    try:
        with CountedSteps(STEPS):
            assert isinstance(read_with(importer, [path, *beside]), Imported)
    except BadInput as error:
        refusal = error
    if refusal is None:
        return "read"
    said = str(refusal)
    assert path.name in said, f"the message does not name the file: {said[:300]}"
    assert refusal.remedy, said[:300]
    assert len(said) < 2000, said[:2000]
    return said


def try_all(name: str, count: int, folder: Path) -> dict[str, int]:
    """Return how many files were read and how many refused."""
    importer = discovery.load(discovery.IMPORTERS, name)
    counts = {"read": 0, "refused": 0}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for called, data in hostile(name, count):
        path = folder / called
        path.write_bytes(data)
        try:
            said = tried(importer, path, [SAMPLES / name / each for each in BESIDE.get(called, ())])
        except Exception:
            (folder / f"kept-{called}").write_bytes(data)
            raise
        counts["read" if said == "read" else "refused"] += 1
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_BYTES
    return counts


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_few_hostile_files(name: str, tmp_path: Path) -> None:
    counts = try_all(name, 40, tmp_path)
    assert counts["refused"]


@pytest.mark.slow
@pytest.mark.parametrize("name", IMPORTERS)
def test_a_thousand_hostile_files(name: str, tmp_path: Path) -> None:
    counts = try_all(name, 1000, tmp_path)
    print(f"{name}: {counts}")
    assert min(counts.values())


_BIND = {"apiVersion": "scheduling.run.ai/v1alpha2", "kind": "BindRequest", "metadata": {"name": "b"}}
_QUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "new"}}


@pytest.mark.parametrize("value", [5, "abc", [5.5], {"a": 1}])
@pytest.mark.parametrize(
    ("name", "sample", "one", "key"),
    [
        ("kueue", "topology.yaml", _QUEUE, "admissionChecks"),
        ("kai", "cluster.yaml", _BIND, "selectedGPUGroups"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(
    name: str, sample: str, one: dict[str, Any], key: str, value: object, tmp_path: Path
) -> None:
    (tmp_path / "more.json").write_text(json.dumps({"items": [{**one, "spec": {key: value}}]}))
    with pytest.raises(BadInput, match=rf"spec, {key}: got .* Give a list of texts"):
        discovery.load(discovery.IMPORTERS, name)(SAMPLES / name / sample, tmp_path / "more.json")
