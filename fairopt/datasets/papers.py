"""The papers' example markets, clusters and batch, and Gandiva_fair's Table 1: speedups of models over a K80."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from fairopt.datasets.tables import Throughput, by_user, dataset_path, market_of_choices, records
from fairopt.errors import BadInput
from fairopt.problem.batch import Batch
from fairopt.problem.cluster import Cluster
from fairopt.problem.files.batch import read_batch
from fairopt.problem.labels import nearest
from fairopt.problem.market import Market

_NEWER = ("P40", "P100", "V100")


def gandiva_table1() -> tuple[Throughput, ...]:
    """Return the seven rows of the table, in its order: mini-batches per second on a K80 and on newer GPUs.

    The table has milliseconds per mini-batch on a K80, and speedups over it (`Throughput.over`).

    Source: Gandiva_fair Table 1.

    >>> print(gandiva_table1()[0].over("K80")["V100"])
    5/4
    """
    made = []
    for row in records("gandiva_fair_table1.csv"):
        slow = 1000 / Fraction(row["K80_ms"])
        speeds = {"K80": slow} | {name: slow * Fraction(row[f"{name}_percent"]) / 100 for name in _NEWER}
        made.append(Throughput(row["model"], None, 1, True, speeds))
    return tuple(made)


def gandiva_market(
    capacity: Mapping[str, Any], users: Mapping[str, str] | Sequence[str], weight: Any = None, demand: Any = None
) -> Market:
    """Return a market of users who train models of the table; speedups are over the K80.

    ``capacity``: GPUs of each type, of K80, P40, P100, V100; its order is the market's. ``users``: a dictionary from
    user to model, or a list of different models, which then name the users. ``weight``, ``demand``: by user, or in
    the users' order.

    Errors: `BadInput` for a model or a type that the table does not have.

    Source: Gandiva_fair Table 1.

    >>> gandiva_market({"K80": 60, "V100": 12}, {"A": "VAE", "B": "DCGAN"})
    <Market: 2 users, 2 types (K80, V100), 72 GPUs>
    """
    table = {row.model: row.over("K80") for row in gandiva_table1()}
    models = list(users.values()) if isinstance(users, Mapping) else list(users)
    for model in models:
        if model not in table:
            raise BadInput(f"there is no model {model!r}", place="users", remedy=nearest(model, table, "model"))
    names = by_user(users, models, "users")
    choices = {name: table[model] for name, model in zip(names, models, strict=True)}
    return market_of_choices(choices, capacity, weight, demand)


def oef_example() -> Market:
    """Return OEF's running example: speedups (1, 2), (1, 3), (1, 4) and one GPU of each of two types.

    Source: OEF Eq. (1).

    >>> oef_example()
    <Market: 3 users, 2 types (GPU1, GPU2), 2 GPUs>
    """
    return Market.of([[1, 2], [1, 3], [1, 4]], [1, 1], users=["u1", "u2", "u3"], types=["GPU1", "GPU2"])


def oef_eq6() -> Market:
    """Return OEF's second example: speedups (1, 2), (1, 5) and one GPU of each of two types.

    Source: OEF Eq. (6).

    >>> oef_eq6()
    <Market: 2 users, 2 types (GPU1, GPU2), 2 GPUs>
    """
    return Market.of([[1, 2], [1, 5]], [1, 1], users=["u1", "u2"], types=["GPU1", "GPU2"])


def gandiva_table3() -> Market:
    """Return Gandiva_fair's trading example: 60 K80 and 12 V100 for users A (VAE), B (DCGAN) and C (ResNext).

    Their speedups on a V100 are 1.25, 5 and 6.25, as in the example (Table 1 measures 1.25, 6.42 and 6.33). The table
    calls B's model DCGAN, the text calls it ResNet.

    Source: Gandiva_fair Table 3.

    >>> gandiva_table3()
    <Market: 3 users, 2 types (K80, V100), 72 GPUs>
    """
    return Market.of([[1, "1.25"], [1, 5], [1, "6.25"]], [60, 12], users=["A", "B", "C"], types=["K80", "V100"])


#: Gigabytes a second of a network of 10 Gbit/s.
TEN_GIGABIT = "1.25"


def fft_cluster() -> Cluster:
    """Return FFT's cluster: twelve T4, A10 and V100 each, four to a host, with 10 Gbit/s between hosts.

    Memory is that of the cards that Alibaba Cloud lists: 16, 24 and 32 GB (ours). Source: FFT (2025), Sec. 6.1.1.

    >>> fft_cluster()
    <Cluster: 9 hosts, GPUs: 12 T4, 12 A10, 12 V100>
    """
    hosts = dict.fromkeys(("T4", "A10", "V100"), (3, 4))
    return Cluster.uniform(hosts, memory={"T4": 16, "A10": 24, "V100": 32}, bandwidth=TEN_GIGABIT)


def oef_cluster() -> Cluster:
    """Return OEF's cluster: eight RTX 3070, 3080 and 3090 each, four to a host.

    Memory is that of the cards: 8, 10 and 24 GB (ours). Source: OEF (2024), Sec. 6.1.1.

    >>> oef_cluster()
    <Cluster: 6 hosts, GPUs: 8 RTX3070, 8 RTX3080, 8 RTX3090>
    """
    hosts = dict.fromkeys(("RTX3070", "RTX3080", "RTX3090"), (2, 4))
    return Cluster.uniform(hosts, memory={"RTX3070": 8, "RTX3080": 10, "RTX3090": 24})


def astraea_venus_cluster() -> Cluster:
    """Return ASTRAEA's cluster for Venus: 100 hosts of eight GPUs ("Volta", so called V100 here).

    Source: ASTRAEA (2022), Sec. 3 and 6.1.3.

    >>> astraea_venus_cluster()
    <Cluster: 100 hosts, GPUs: 800 V100>
    """
    return Cluster.uniform({"V100": (100, 8)})


def astraea_philly_cluster() -> Cluster:
    """Return ASTRAEA's cluster for Philly: 210 hosts of eight GPUs, of a type that is not told.

    Source: ASTRAEA (2022), Sec. 6.1.3.

    >>> astraea_philly_cluster()
    <Cluster: 210 hosts, GPUs: 1680 GPU>
    """
    return Cluster.uniform({"GPU": (210, 8)})


def astraea_example() -> Batch:
    """Return the paper's example: two users, four servers with two workers and one PS each, four jobs.

    Data units and times are such that a mini-batch takes one slot on one server and two on several.

    Source: Astraea (posted prices) Sec. 4.2.

    >>> astraea_example()
    <Batch: 4 jobs of 2 tenants on 4 servers>
    """
    return read_batch(dataset_path("astraea_example.toml"))
