"""What here is no test is run by its own command, with cosmic-ray; it is not imported for doctests."""

collect_ignore = ["corpus.py", "explained.py", "mutants.py", "recording.py", "__main__.py"]
