from sharing_first import SharingFirst

from fairopt.testing.policy_suite import policy_suite


def test_it_conforms() -> None:
    policy_suite().run([SharingFirst()]).require_complete()
