"""What is measured, by whom, and how answers are judged: see `fairopt.experiment.bench`."""
