"""Certify every policy on random markets and let the verifier decide: ``python -m fairopt.proofs.certify_markets``.

Markets have 2 to 12 users, 2 to 5 types, weights, zeros and ties. Printed are, for each policy, the share of markets on
which the verifier accepted the certificate, and the reasons for the rest; exit status 1 if it rejected any.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter

from fairopt import allocate
from fairopt.discovery import POLICIES, names, policy
from fairopt.errors import FairoptError
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.proofs.verify import Rejected, verify
from fairopt.testing.samples import sample_markets

CERTIFIED = "certified"


def outcome(rule: Policy, market: Market) -> str:
    """Return "certified", or the reason why the policy's decision on the market is not."""
    try:
        decision = allocate(rule, market, exact=True)
        certificate = rule.certify(decision)
    except FairoptError as error:
        return str(error)
    try:
        verify(json.loads(json.dumps(certificate.to_json())))  # what is read is what was written
    except Rejected as why:
        return f"REJECTED: {why}"
    return CERTIFIED


@dataclass
class Tally:
    """What came of one policy: outcomes, and the seconds that they took."""

    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


def campaign(markets: Iterable[Market], tallies: dict[str, Tally]) -> Iterator[Market]:
    """Yield each market once every policy is tallied on it, so that a run can be stopped at any time."""
    rules = [policy(name) for name in tallies]
    for market in markets:
        for rule in rules:
            begun = perf_counter()
            tallies[rule.name].outcomes[outcome(rule, market)] += 1
            tallies[rule.name].seconds += perf_counter() - begun
        yield market


def main() -> int:
    """Run the campaign and print what came of it."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--markets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--demands", action="store_true", help="give half of the markets demands as well")
    parser.add_argument("--policy", action="append", choices=names(POLICIES), help="may be repeated; all by default")
    asked = parser.parse_args()
    markets = sample_markets(asked.markets, seed=asked.seed, users=(2, 12), types=(2, 5), most=9, demands=asked.demands)
    tallies = {name: Tally() for name in asked.policy or names(POLICIES)}
    done = 0
    try:
        for done, _ in enumerate(campaign(markets, tallies), start=1):
            if done % 50 == 0:
                print(f"{done} of {asked.markets} markets", file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted; so far:", file=sys.stderr)
    kind = "weights, zeros, ties, demands" if asked.demands else "weights, zeros, ties"
    print(f"{done} random markets (2-12 users, 2-5 types, {kind}; seed {asked.seed}):")
    for name, tally in tallies.items():
        certified = tally.outcomes[CERTIFIED]
        each = 1000 * tally.seconds / max(1, done)
        print(f"  {name:22} certified on {certified} ({certified / max(1, done):.1%}), {each:.0f} ms each")
        for reason, count in tally.outcomes.most_common():
            if reason != CERTIFIED:
                print(f"    {count}: {reason}")
    return int(any(reason.startswith("REJECTED") for tally in tallies.values() for reason in tally.outcomes))


if __name__ == "__main__":
    sys.exit(main())
