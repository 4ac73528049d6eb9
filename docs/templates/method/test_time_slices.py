from time_slices import TimeSlices

from fairopt.testing.policy_suite import policy_suite


def test_the_policy_conforms_and_its_method_brackets_the_exact_optimum() -> None:
    report = policy_suite().run([TimeSlices()])
    report.require_complete()
    assert "methods bracket the exact optimum" in {row.check for row in report.rows if row.outcome.value == "ran"}
