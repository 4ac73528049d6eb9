"""Scheduling over time slots, batch by batch and without preemption: policies and what they decide."""

from fairopt.schedules.policy import Admission, Payment, Plan, SchedulePolicy

__all__ = ["Admission", "Payment", "Plan", "SchedulePolicy"]
