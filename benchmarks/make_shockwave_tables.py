"""Makes the tables of benchmarks/shockwave from a checkout: ``python benchmarks/make_shockwave_tables.py CHECKOUT``.

``CHECKOUT`` is github.com/uw-mad-dash/shockwave at commit 8a44f4a. The epochs at which a batch doubles under the
gradient noise scale are in its code, and stay as they are in ``throughputs.csv``. ``--check`` only compares.
"""

from __future__ import annotations

import argparse
import csv
import json
import pickle
import re
from collections import Counter
from collections.abc import Iterable
from io import StringIO
from pathlib import Path
from typing import Any

from fairopt.benchmarks.shockwave.jobs import CLUSTERS, HERE, SAMPLES, table

TRACES = {120: "120_0.2_5_100_40_25", 220: "220_0.2_5_100_25_4", 460: "460_0.2_5_100_10_1", 900: "900_0.2_5_1000_5_15"}
REST = "_0,0.5,0.5_0.6,0.3,0.09,0.01_multigpu_dynamic"


class _JobIdPair:
    """Gavel's number of a job: the keys of dictionaries in the pickles, of which nothing is used."""


class _Plain(pickle.Unpickler):
    """Reads numbers, containers and numbers of jobs, and makes no other object of a file from outside."""

    def find_class(self, module: str, name: str) -> Any:
        if name == "JobIdPair":
            return _JobIdPair
        numpy = {"numpy.core.multiarray": "scalar", "numpy": "dtype"}
        if numpy.get(module) == name or (module, name) in {("collections", "OrderedDict"), ("builtins", "set")}:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is not read")


def published(checkout: Path, policy: str) -> dict[str, Any]:
    path = checkout / f"scheduler/reproduce/pickles/tacc_32gpus/{policy}_{TRACES[120]}{REST}_simulation.pickle"
    with path.open("rb") as stream:
        found: dict[str, Any] = _Plain(stream).load()
    return found


def jobs(checkout: Path, count: int) -> Iterable[list[Any]]:
    text = (checkout / f"scheduler/traces/reproduce/{TRACES[count]}{REST}.trace").read_text(encoding="utf-8")
    held: Counter[int] = Counter()
    if count == 120:
        held.update(job for present in published(checkout, "allox")["per_round_schedule"] for job in present)
    yield ["model", "batch", "gpus", "mode", "steps", "arrival_s", *(["allox_rounds"] if held else [])]
    for at, line in enumerate(text.splitlines()):
        kind, *_, steps, gpus, mode, _, _, _, arrival = line.split("\t")
        model, batch = re.fullmatch(r"(.*) \(batch size (\d+)\)", kind).groups()  # type: ignore[union-attr]
        yield [model, batch, gpus, mode, steps, arrival, *([held[at]] if held else [])]


def throughputs(checkout: Path) -> Iterable[list[Any]]:
    doubles = {(each["model"], each["batch"], each["gpus"]): each["gns_epochs"] for each in table("throughputs")}
    alone = {
        name: json.loads((checkout / f"scheduler/{name}_throughputs.json").read_text(encoding="utf-8"))["v100"]
        for name in ("tacc", "wisr")
    }
    yield ["model", "batch", "gpus", "tacc_steps_per_s", "wisr_steps_per_s", "gns_epochs"]
    for key in alone["tacc"]:
        kind = re.fullmatch(r"\('(.*) \(batch size (\d+)\)', (\d+)\)", key)
        if kind and kind[1] in SAMPLES:
            speeds = [alone[name][key]["null"] for name in alone]
            yield [*kind.groups(), *speeds, doubles.get(kind.groups(), "")]


def figures(checkout: Path) -> Iterable[list[Any]]:
    yield ["trace", "policy", "makespan", "mean_jct", "worst", "unfair", "utilisation"]
    for each in table("published"):
        found = published(checkout, each["policy"])
        ratios = found["finish_time_fairness_list"]
        unfair = sum(ratio > 1.1 for ratio in ratios) / len(ratios)
        times = [round(found[key]) for key in ("makespan", "avg_jct")]
        yield [
            120,
            each["policy"],
            *times,
            round(max(ratios), 2),
            round(unfair, 3),
            round(float(found["cluster_util"]), 3),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    made = {f"jobs_{count}": jobs(given.checkout, count) for count in CLUSTERS}
    made |= {"throughputs": throughputs(given.checkout), "published": figures(given.checkout)}
    for name, rows in made.items():
        out = StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        path = HERE / f"{name}.csv"
        if given.check:
            print(f"{name}: {'the same' if path.read_text(encoding='utf-8') == out.getvalue() else 'another'}")
        else:
            path.write_text(out.getvalue(), encoding="utf-8")


if __name__ == "__main__":
    main()
