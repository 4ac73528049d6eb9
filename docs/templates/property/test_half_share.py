from half_share import HalfShare

from fairopt.testing.property_suite import property_suite


def test_it_conforms() -> None:
    property_suite().run([HalfShare()]).require_complete()
