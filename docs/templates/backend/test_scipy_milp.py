from scipy_milp import ScipyMilp

from fairopt.testing.backend_suite import backend_suite


def test_it_conforms() -> None:
    backend_suite().run([ScipyMilp()]).require_complete()
