"""Specifications that come with fairopt: one TOML file each."""
