"""Cooperative OEF: its closed form on two types, its losses, and the questions that the papers leave open."""
