"""Files of other schedulers, read as fairopt's problems: one module for each, and what all of them share."""
