"""Files of problems: one reader and one writer for each kind, by suffix."""
