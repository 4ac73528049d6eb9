"""Studies that come with fairopt: a TOML file each."""
