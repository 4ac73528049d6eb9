"""The clusters of papers' evaluations, for `fairopt.workloads`."""

from __future__ import annotations

from fairopt.problem.cluster import Cluster

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
