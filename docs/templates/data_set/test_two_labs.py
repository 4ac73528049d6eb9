from two_labs import two_labs

from fairopt.testing.data_suites import dataset_suite


def test_it_conforms() -> None:
    dataset_suite().run([two_labs]).require_complete()
