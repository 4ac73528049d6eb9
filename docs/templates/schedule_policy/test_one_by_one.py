import json
from fractions import Fraction

from one_by_one import OneByOne

from fairopt.datasets import astraea_example, astraea_small
from fairopt.policy import decide
from fairopt.proofs.verifier import schedules
from fairopt.schedules.document import document


def test_its_plans_keep_every_constraint() -> None:
    for batch in (astraea_example(), *(astraea_small(seed=seed) for seed in range(5))):
        plan = decide(OneByOne(), batch)
        violations, statement = schedules.decide(json.dumps(document(plan)), Fraction(0))
        assert not violations, statement
        assert not plan.unscheduled
