"""Studies: policies of rounds on many traces, clusters, loads and seeds, and who is better, and how sure that is.

`spec` says what is asked, `traces` makes the traces, `playing` plays one cell of the grid and measures it, `cells`
plays all of them, `statistics` compares, `results` puts cells in order for tables and the page.

>>> spec = StudySpec.read("first-look")
>>> spec.title, len(spec.seeds)
("Five schedulers on random jobs like Philly's", 8)
"""

from fairopt.experiment.studies.playing import Observed, Timeline, observe
from fairopt.experiment.studies.spec import StudySpec

__all__ = ["Observed", "StudySpec", "Timeline", "observe"]
