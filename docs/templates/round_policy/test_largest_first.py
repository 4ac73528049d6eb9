from largest_first import LargestFirst

from fairopt.proofs.verifier import runs
from fairopt.testing.round_suite import round_suite


def test_it_conforms() -> None:
    round_suite(runs.decide, settings=6).run([LargestFirst()]).require_complete()
