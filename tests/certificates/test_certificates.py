"""What fairopt writes as evidence: accepted, in the published form, of every kind, and caught where it is wrong."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import numpy as np
import pytest
from certificate_kinds import BY_HAND
from certificate_samples import Sample, every_kind, of_market, of_programs
from tampering import Tampering, at, is_number, places

from fairopt import allocate
from fairopt.backends.exact import Exact
from fairopt.certificates import (
    MISREPORT,
    Certificate,
    certificate_schema,
    market_digest,
    optimality,
    read_certificate,
)
from fairopt.certificates.documents import program_json
from fairopt.errors import BadInput, NotCapable
from fairopt.models import (
    CooperativeOEF,
    EqualSplit,
    MaxEfficiency,
    MaxMin,
    NonCooperativeOEF,
    PartialAllocation,
    SecondPriceTrading,
    WaterFilling,
)
from fairopt.models.oef import cooperative
from fairopt.models.oef.cooperative import NOT_PARETO_EFFICIENT
from fairopt.policy import Formulated
from fairopt.problem import Market
from fairopt.program import Formulation
from fairopt.proofs.verifier.nash import GRAIN
from fairopt.proofs.verify import Rejected, verify
from fairopt.properties import EnvyFreeness
from fairopt.testing.samples import sample_markets

VALIDATOR = jsonschema.Draft202012Validator(certificate_schema())
MARKET = Market.of([[1, 2, 4], [1, 3, 3], [2, 3, 9]], capacity=[2, 3, 1], weight=[1, 2, 3])


def written(certificate: Certificate) -> Any:
    """What is read is what was written."""
    return json.loads(json.dumps(certificate.to_json()))


# -- what is written --------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    random = Random(7)
    markets = [NOT_PARETO_EFFICIENT, *sample_markets(1, seed=70, users=(3, 3), types=(2, 3), demands=True)]
    return [*(sample for market in markets for sample in of_market(market, random)), *of_programs(random, 15)]


def test_what_is_written_is_accepted_in_the_published_form_and_of_every_kind(
    samples: list[Sample], conformance: Callable[[object], None]
) -> None:
    kinds: Counter[str] = Counter()
    for sample in samples:
        data = written(sample.certificate)
        VALIDATOR.validate(data)
        assert verify(data), sample.about
        kinds[data["certificate"]] += 1
    assert set(kinds) | {data["certificate"] for data in BY_HAND.values()} == every_kind()
    assert len(kinds) >= 13  # those of the installed policies and properties
    told = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    conformance(f"certificates written, accepted and of the published form: {told}")


def test_every_number_that_is_written_is_exact(samples: list[Sample]) -> None:
    for sample in samples:
        data = written(sample.certificate)
        assert not [place for place in places(data) if isinstance(at(data, place), float)]


def test_a_file_holds_what_was_written(tmp_path: Path, samples: list[Sample]) -> None:
    for sample in samples[:20]:
        sample.certificate.write(tmp_path / "proof.json")
        assert read_certificate(tmp_path / "proof.json") == written(sample.certificate)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2, "certificate": "envy"}', '{"schema": 1}'])
def test_a_file_that_holds_no_certificate_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "proof.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=r"proof\.json"):
        read_certificate(tmp_path / "proof.json")


def test_logarithms_have_no_place_in_a_bare_program() -> None:
    from fairopt.models import NashWelfare

    with pytest.raises(BadInput, match="logarithms"):
        program_json(NashWelfare().formulate(MARKET, None))


def test_a_market_has_the_name_that_the_verifier_prints() -> None:
    strange = Market.of(
        [["1/3", 2], [1, "0.1"]],
        [1, "5/2"],
        weight=[1, "4/6"],
        demand=[2, None],
        users=["Zoë", 'a "b"'],
        types=["α", "B"],
    )
    for market in (MARKET, NOT_PARETO_EFFICIENT, strange):
        shares = np.zeros(market.shape, dtype=object) + Fraction(0)
        verdict = EnvyFreeness().check(market, shares)
        assert f"market {market_digest(market)}: " in verify(written(EnvyFreeness().certify(market, shares, verdict)))


# -- the published form -----------------------------------------------------------------------------------------------
def test_the_schema_is_one_and_describes_every_part() -> None:
    schema = certificate_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert set(schema["$defs"]["any"]["properties"]["certificate"]["enum"]) == every_kind()
    for kind in every_kind():
        found = schema["$defs"][kind]
        for form in found.get("anyOf", [found]):
            assert form["description"]
            assert form["additionalProperties"] is False
            for key, part in form["properties"].items():
                target = schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
                assert {"description", "const"} & (set(part) | set(target)), (kind, key)


#: What may be left out without breaking the form.
OPTIONAL = {"trades", "variables", "demand_duals", "optima", "speedups", "grain", "normaliser", "owed", "rates"}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", BY_HAND)
def test_the_schema_knows_what_is_worked_out_by_hand_and_nothing_beside_it(name: str, every: bool) -> None:
    data = BY_HAND[name]
    VALIDATOR.validate(data)
    for broken in (data | {"remark": "trust me"}, data | {"schema": 2}, data | {"certificate": "proof"}):
        assert not VALIDATOR.is_valid(broken)
    for key in set(data) - OPTIONAL:
        assert not VALIDATOR.is_valid({other: data[other] for other in data if other != key}), key
    # of the entries of a list, which have one form, the first, or every one
    numbers = {
        tuple(part for part in place if every or isinstance(part, str)): place
        for place in reversed([*places(data)])
        if is_number(at(data, place))
    }
    for number, place in enumerate(numbers.values()):
        wrong = Tampering(place, "a float", 0.5) if number % 2 else Tampering(place, "a word", "half")
        assert not VALIDATOR.is_valid(wrong.of(data)), wrong


# -- a formulation that is wrong --------------------------------------------------------------------------------------
def forget(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every policy forget a block of its rows."""
    honest = Formulation.constrain

    def constrain(self: Formulation, name: str, *arguments: Any, **more: Any) -> None:
        if name != block:
            honest(self, name, *arguments, **more)

    monkeypatch.setattr(Formulation, "constrain", constrain)


@pytest.mark.parametrize(
    ("policy", "dropped"),
    [
        (CooperativeOEF(), "envy_free"),
        (NonCooperativeOEF(), "equal_efficiency"),
        (MaxEfficiency(), "demand"),
        (MaxMin(), "demand"),
    ],
    ids=lambda it: getattr(it, "name", it),
)
def test_a_policy_that_forgets_its_rows_is_caught(
    policy: Formulated, dropped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    market = Market.of([[1, 2], [1, 5]], capacity=[2, 2], weight=[1, 2], demand=[2, 1])
    assert verify(written(policy.certify(allocate(policy, market, Exact()))))
    forget(dropped, monkeypatch)
    with pytest.raises(Rejected, match="breaks row"):
        verify(written(policy.certify(allocate(policy, market, Exact()))))


def test_a_policy_that_scales_weights_wrongly_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert verify(written(CooperativeOEF().certify(allocate(CooperativeOEF(), MARKET, Exact()))))
    monkeypatch.setattr(cooperative, "by_weight", lambda market: market.weight[None, :] / market.weight[:, None])
    with pytest.raises(Rejected, match="breaks row"):
        verify(written(CooperativeOEF().certify(allocate(CooperativeOEF(), MARKET, Exact()))))


@pytest.mark.parametrize("policy", [MaxMin(), WaterFilling()], ids=lambda policy: policy.name)
def test_another_partition_is_caught(policy: Formulated, monkeypatch: pytest.MonkeyPatch) -> None:
    def unweighted(self: Market) -> Any:
        return self.speedup @ self.capacity / len(self.users)

    assert verify(written(policy.certify(allocate(policy, MARKET, Exact()))))
    monkeypatch.setattr(Market, "fair_utility", unweighted)
    with pytest.raises(Rejected):
        verify(written(policy.certify(allocate(policy, MARKET, Exact()))))


def test_a_policy_that_wants_something_else_is_caught() -> None:
    decision = allocate(MaxEfficiency(), MARKET, Exact())
    assert decision.program is not None
    assert decision.solution is not None
    other = optimality(MARKET, "max-min", decision.program, decision.solution)
    with pytest.raises(Rejected, match="does not give every variable"):
        verify(written(other))


def test_trades_in_another_order_are_caught() -> None:
    decision = allocate(SecondPriceTrading(), MARKET)
    data = written(SecondPriceTrading().certify(decision))
    assert len(data["trades"]) > 1
    with pytest.raises(Rejected, match="not the one that is due"):
        verify(data | {"trades": data["trades"][::-1]})
    with pytest.raises(Rejected):
        verify(data | {"trades": data["trades"][:-1]})


def test_a_split_that_forgets_demands_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    market = Market.of([[1], [1]], capacity=[4], demand=[1, 4])
    monkeypatch.setattr(Market, "limit", property(lambda self: np.full(2, np.inf)))
    data = written(EqualSplit().certify(allocate(EqualSplit(), market)))
    data["market"]["user"][0]["demand"] = "1"
    with pytest.raises(Rejected, match="lead elsewhere"):
        verify(data)


def test_a_verdict_that_is_wrong_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = allocate(MaxEfficiency(), MARKET, Exact()).shares
    monkeypatch.setattr(
        EnvyFreeness, "_value", lambda self, market, shares, users, others: market.utility(shares)[users]
    )
    verdict = EnvyFreeness().check(MARKET, shares)
    with pytest.raises(Rejected, match="does not get"):
        verify(written(EnvyFreeness().certify(MARKET, shares, verdict)))


# -- parts that are rounded -------------------------------------------------------------------------------------------
def test_rounding_is_no_reward_for_a_lie() -> None:
    """Parts that are roots are known to 1/10**12 only: a gain of less, in a truthful mechanism, is nobody's."""
    market = Market.of([[1, 2], [1, 5]], capacity=[1, 1], weight=[1, 2], users=["A", "B"])
    told = market.misreport("B", [2, 10])  # the same in other units, so that nothing is gained
    truth, lie = (written(PartialAllocation().certify(allocate(PartialAllocation(), each))) for each in (market, told))
    part = Fraction(truth["kept"][1]) - GRAIN / 10**4
    bundle = [Fraction(share) for share in truth["together"]["allocation"][1]]
    truth["kept"][1] = str(part)
    truth["allocation"][1] = [str(part * share) for share in bundle]
    assert all("may leave" in verify(each) for each in (truth, lie))  # both are right, to 1/10**12
    gain = GRAIN / 10**4 * sum(s * x for s, x in zip((1, 5), bundle, strict=True))
    made_up = {
        "schema": 1,
        "certificate": MISREPORT.name,
        "market": truth["market"],
        "policy": "partial-allocation",
    }
    made_up |= {"user": "B", "report": [2, 10], "gain": str(gain), "truth": truth, "lie": lie}
    with pytest.raises(Rejected, match="does not gain this"):
        verify(made_up)


def test_floats_have_no_certificate() -> None:
    with pytest.raises(NotCapable, match="floats"):
        MaxEfficiency().certify(allocate(MaxEfficiency(), MARKET))
