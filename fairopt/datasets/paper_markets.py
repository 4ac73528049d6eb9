"""The papers' example markets."""

from __future__ import annotations

from fairopt.problem.market import Market


def oef_example() -> Market:
    """Return OEF's running example: speedups (1, 2), (1, 3), (1, 4) and one GPU of each of two types.

    Source: OEF Eq. (1).
    """
    return Market.of([[1, 2], [1, 3], [1, 4]], [1, 1], users=["u1", "u2", "u3"], types=["GPU1", "GPU2"])


def oef_eq6() -> Market:
    """Return OEF's second example: speedups (1, 2), (1, 5) and one GPU of each of two types.

    Source: OEF Eq. (6).
    """
    return Market.of([[1, 2], [1, 5]], [1, 1], users=["u1", "u2"], types=["GPU1", "GPU2"])


def gandiva_table3() -> Market:
    """Return Gandiva_fair's trading example: 60 K80 and 12 V100 for users A (VAE), B (DCGAN) and C (ResNext).

    Their speedups on a V100 are 1.25, 5 and 6.25, as in the example (Table 1 measures 1.25, 6.42 and 6.33). The table
    calls B's model DCGAN, the text calls it ResNet.

    Source: Gandiva_fair Table 3.
    """
    return Market.of([[1, "1.25"], [1, 5], [1, "6.25"]], [60, 12], users=["A", "B", "C"], types=["K80", "V100"])
