"""How nearly each scheduler's own quotas, weights or limits give what a policy gives: a `Planner` for each."""

from fairopt.audit.plans.planner import Planner, Realised

__all__ = ["Planner", "Realised"]
