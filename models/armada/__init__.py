"""Armada: fair shares of queues, capped by what they demand."""
