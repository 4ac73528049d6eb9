"""Parts of GPUs in KAI's rule: which GPU of which node a pod is on, and what moves so that another pod fits."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairopt import allocate, audit
from fairopt.errors import BadInput
from fairopt.importing.kai import read
from fairopt.models import Kai
from fairopt.models.kai.devices import Devices
from fairopt.problem.files.market import read_market, write_market
from fairopt.proofs.verify import verify as proved
from fairopt.properties.entitlements.nobody_starves_while_lent import NobodyStarvesWhileLent

HALF = Fraction(1, 2)


def node(name: str, gpus: int, **labels: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "64", "nvidia.com/gpu": str(gpus)}, "conditions": []}
    return {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name, "labels": labels}, "status": status}


def queue(name: str, quota: float, limit: float = -1) -> dict[str, Any]:
    spec = {
        "resources": {"gpu": {"quota": quota, "overQuotaWeight": 1, "limit": limit}, "cpu": {"quota": -1, "limit": -1}}
    }
    return {"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pod(name: str, queue: str, gpus: str, on: str = "", group: str = "", **labels: str) -> dict[str, Any]:
    """Return a pod of whole GPUs, or of a part where ``gpus`` is "0.5" or "20Mi" of memory."""
    notes = {"gpu-memory": gpus[:-2]} if gpus.endswith("Mi") else {"gpu-fraction": gpus} if "." in gpus else {}
    requests = {"cpu": "1"} | ({} if notes else {"nvidia.com/gpu": gpus})
    labels |= {"kai.scheduler/queue": queue} | ({"runai-gpu-group": group} if group else {})
    spec: dict[str, Any] = {"schedulerName": "kai-scheduler", "containers": [{"resources": {"requests": requests}}]}
    meta = {"name": name, "labels": labels, "annotations": notes, "creationTimestamp": f"2026-08-01T00:00:{name[-2:]}Z"}
    phase = {"phase": "Running" if on else "Pending"}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": spec | ({"nodeName": on} if on else {}),
        "status": phase,
    }


def runs(tmp_path: Path, *items: dict[str, Any], **options: Any) -> dict[str, bool]:
    """Return which pods run after a cycle."""
    gangs = allocate(Kai(**options), market(tmp_path, *items)).evidence.gangs
    return dict(zip(gangs.names, (gangs.on >= 0).tolist(), strict=True))


def market(tmp_path: Path, *items: dict[str, Any]) -> Any:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"items": items}), encoding="utf-8")
    return read(path).problem


def test_two_halves_share_a_gpu_and_a_whole_job_does_not(tmp_path: Path) -> None:
    """Of two GPUs one is shared: another half finds room on it, a pod of one GPU on the other, and no second one."""
    items = [node("n", 2), queue("a", 2), pod("p01", "a", "0.5", on="n")]
    assert runs(tmp_path, *items, pod("p02", "a", "0.5"), pod("p03", "a", "1")) == dict.fromkeys(
        ["p01", "p02", "p03"], True
    )
    assert runs(tmp_path, *items, pod("p02", "a", "1"), pod("p03", "a", "1"))["p03"] is False


def test_a_part_is_on_one_gpu(tmp_path: Path) -> None:
    """Two GPUs with 0.4 free on each have 0.8 in all, and no room for 0.5; 0.4 fits."""
    items = [node("n", 2), queue("a", 2), pod("p01", "a", "0.6", "n", "x"), pod("p02", "a", "0.6", "n", "y")]
    assert not runs(tmp_path, *items, pod("p03", "a", "0.5"))["p03"]
    assert runs(tmp_path, *items, pod("p03", "a", "0.4"))["p03"]
    waits = allocate(Kai(), market(tmp_path, *items, pod("p03", "a", "0.5"))).evidence.waits
    assert "do not find their GPUs on the nodes as they are" in waits["p03"]


def test_running_parts_move_so_that_a_whole_gpu_is_free(tmp_path: Path) -> None:
    """Where the file says on which GPUs two halves are; without consolidation the pod of one GPU waits."""
    items = [node("n", 2), queue("a", 2), pod("p01", "a", "0.5", "n", "x"), pod("p02", "a", "0.5", "n", "y")]
    assert all(runs(tmp_path, *items, pod("p03", "a", "1")).values())
    assert not runs(tmp_path, *items, pod("p03", "a", "1"), actions=("allocate",))["p03"]
    large = [node("n", 2), queue("a", 2), pod("p01", "a", "0.6", "n", "x"), pod("p02", "a", "0.6", "n", "y")]
    assert not runs(tmp_path, *large, pod("p03", "a", "1"))["p03"]


def test_a_part_is_reclaimed_for_a_queue_within_its_quota(tmp_path: Path) -> None:
    items = [node("n", 1), queue("a", 0.5), queue("b", 0.5)]
    held = [pod("p01", "b", "0.5", "n", "x"), pod("p02", "b", "0.5", "n", "x")]
    assert runs(tmp_path, *items, *held, pod("p03", "a", "0.5")) == {"p01": True, "p02": False, "p03": True}


def test_memory_is_a_part_of_the_smallest_gpu(tmp_path: Path) -> None:
    """Of 40,000 MiB, in full hundreds, 20,100 are 51 hundredths; the quota of 1 has no room for two."""
    items = [node("n", 2, **{"nvidia.com/gpu.memory": "40055"}), queue("a", 1, limit=1)]
    found = market(tmp_path, *items, pod("p01", "a", "20100Mi", on="n"), pod("p02", "a", "20100Mi"))
    assert found.entitlements.gangs.gpus.tolist() == [Fraction(51, 100)] * 2
    assert allocate(Kai(), found).shares.tolist() == [[Fraction(51, 100)]]


def test_a_node_of_slices_takes_no_parts(tmp_path: Path) -> None:
    single = node("n", 2, **{"nvidia.com/mig.strategy": "single", "node-role.kubernetes.io/mig-enabled": "true"})
    found = runs(tmp_path, single, queue("a", 2), pod("p01", "a", "0.5"), pod("p02", "a", "1"))
    assert found == {"p01": False, "p02": True}


def test_an_audit_counts_in_parts(tmp_path: Path) -> None:
    """Queue a is owed half a GPU more, and b holds half a GPU beyond what it is owed."""
    items = [node("n", 1), queue("a", 0.5), queue("b", 0.5)]
    held = [pod("p01", "b", "0.5", "n", "x"), pod("p02", "b", "0.5", "n", "x")]
    found = audit(market(tmp_path, *items, *held, pod("p03", "a", "0.5")), policies=[Kai()])
    accounts = found.accounts
    assert accounts.asks[0, 0] == accounts.short[0, 0] == accounts.borrowed[1, 0] == HALF
    assert str(found.reasons["a"]).startswith("p03 (1/2 GPUs) waits: a is owed 1/2 more default, none is free")
    assert str(found.mends[0]).startswith("reclaim 1/2 default: stop p02 of b")


def test_a_market_with_parts_is_written_and_read(tmp_path: Path) -> None:
    before = market(tmp_path, node("n", 1), queue("a", 1), pod("p01", "a", "0.25", "n", "x"), pod("p02", "a", "0.5"))
    write_market(before, tmp_path / "market.toml")
    after = read_market(tmp_path / "market.toml")
    assert after == before
    assert after.entitlements.gangs.parts == 4
    starves = NobodyStarvesWhileLent()
    shares = before.entitlements.held[:, :1]
    evidence = starves.certify(before, shares, starves.check(before, shares))
    assert proved(evidence.to_json())


@pytest.mark.parametrize("text", ["n=x", "n", "n=-1"])
def test_nodes_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="Give a number of GPUs"):
        Devices(text, {}, [])


@pytest.mark.parametrize("seed", range(30))
def test_what_starts_and_stops_leaves_no_gpu_too_full(seed: int) -> None:
    """Against a count of our own: where each pod is, no GPU is given twice, and what stops gives back all."""
    draw = Random(seed)
    sizes = {f"n{i}": draw.randint(1, 4) for i in range(draw.randint(1, 3))}
    parts = ["1/2*1", "1/3*1", "2/5*1", "1/4*2", "1*1", "1*2", "3/4*1 1/4*1", "1*1 1/2*1"]
    pods = {gang: draw.choice(parts) for gang in range(25)}
    devices = Devices(" ".join(f"{name}={gpus}" for name, gpus in sizes.items()), pods, [])
    running: set[int] = set()
    for _ in range(200):
        gang = draw.randrange(25)
        if gang in running:
            spots = devices.at[gang]
            devices.stop(gang)
            running.remove(gang)
            if draw.random() < 0.3:
                devices.start(gang, spots)
                running.add(gang)
        elif devices.fits(gang):
            devices.start(gang)
            running.add(gang)
        elif len(pods[gang].split()) == 1 and pods[gang].endswith("*1"):
            assert not _fits_somewhere(devices, running, list(sizes.values()), Fraction(pods[gang].split("*")[0]))
        used, whole = _used(devices, running)
        for at, gpus in enumerate(sizes.values()):
            shared = {key: value for key, value in used.items() if key[0] == at}
            assert whole.get(at, 0) + len(shared) <= gpus
            assert all(value <= 1 for value in shared.values())


def _used(devices: Devices, running: set[int]) -> tuple[dict[tuple[int, str], Fraction], dict[int, int]]:
    used: dict[tuple[int, str], Fraction] = {}
    whole: dict[int, int] = {}
    for spot in (spot for gang in running for spot in devices.at[gang]):
        for name in spot.shared:
            used[spot.node, name] = used.get((spot.node, name), Fraction(0)) + spot.part
        if not spot.shared:
            whole[spot.node] = whole.get(spot.node, 0) + spot.number
    return used, whole


def _fits_somewhere(devices: Devices, running: set[int], sizes: list[int], part: Fraction) -> bool:
    used, whole = _used(devices, running)
    idle = any(whole.get(at, 0) + sum(key[0] == at for key in used) < gpus for at, gpus in enumerate(sizes))
    return idle or any(value + part <= 1 for value in used.values())
