"""Schedules of a batch as columns of a program: generated, priced, and searched for integers."""
