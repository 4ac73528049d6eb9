"""Scheduling over time slots, batch by batch and without preemption: plans as documents, and price bases."""

from fairopt.policy import Admission, Payment, Plan, Policy

__all__ = ["Admission", "Payment", "Plan", "Policy"]
