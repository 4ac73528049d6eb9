"""Shared parts of policies of several systems: blocks of programs, and markets made from queues."""
