"""Scheduling over time slots, batch by batch and without preemption: policies and what they decide."""

from fairopt.policy import Admission, Payment, Plan, Policy

__all__ = ["Admission", "Payment", "Plan", "Policy"]
