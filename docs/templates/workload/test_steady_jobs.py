from steady_jobs import SteadyJobs

from fairopt.problem import Cluster
from fairopt.testing.data_suites import Drawn, workload_suite


def test_it_conforms() -> None:
    workload_suite().run([Drawn(SteadyJobs(), Cluster.uniform({"V100": (1, 4)}))]).require_complete()
