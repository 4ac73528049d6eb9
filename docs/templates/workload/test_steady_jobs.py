from steady_jobs import SteadyJobs

from fairopt.problem import Cluster
from fairopt.testing.data_suites import workload_suite


def test_it_conforms() -> None:
    workload_suite(Cluster.uniform({"V100": (1, 4)})).run([SteadyJobs()]).require_complete()
