from one_by_one import OneByOne

from fairopt.proofs.verifier import schedules
from fairopt.testing.schedule_suite import schedule_suite


def test_it_conforms() -> None:
    schedule_suite(schedules.decide).run([OneByOne()]).require_complete()
