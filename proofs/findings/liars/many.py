"""How gains change with the number of users, what a liar must know of others, and what noise does.

Users' speedups are 1 on the first of four types and drawn at random on the others (log-normal, sigma 0.7, the same for
all); there is a GPU of each type for every two users. All numbers are measured in floats: they depend on the seeds, and
in their last digits on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from fairopt.models import CooperativeOEF, MaxMin, NashWelfare, NonCooperativeOEF, SecondPriceTrading
from fairopt.policy import Policy
from fairopt.problem import Market
from fairopt.program import Array
from fairopt.proofs.ledger.entries import Finding, Ruling
from fairopt.properties.misreports.kinds import ANYTHING
from fairopt.properties.misreports.reports import Reports
from fairopt.properties.misreports.search import CandidateReports, in_turn

POLICIES = (CooperativeOEF(), NonCooperativeOEF(), MaxMin(), NashWelfare(), SecondPriceTrading())
TYPES, SPREAD = 4, 0.7
#: Reports tried of a liar: so many at first, then so many around the best one, in so many rounds of smaller steps.
FIRST, AROUND, ROUNDS = 120, 24, 4
#: Changes below this part are rounding.
LITTLE = 1e-6


def rows(random: np.random.Generator, count: int) -> Array:
    """Return the speedups of ``count`` users (count, k)."""
    drawn = np.exp(random.normal(0, SPREAD, (count, TYPES)))
    drawn[:, 0] = 1
    return np.asarray(drawn)


def market(speedup: Array) -> Market:
    """Return the market of these users."""
    return Market.of_arrays(speedup, np.full(TYPES, len(speedup) / 2))


def best(policy: Policy, given: Market, random: np.random.Generator) -> float:
    """Return the largest ratio of the first user's throughputs that was found."""
    asked, moves = Reports(policy, given), CandidateReports(given, 0, None)
    tried = np.array([report for report, _ in zip(_reports(moves, random), range(FIRST), strict=False)])
    step, most, top = 0.3, 0.0, moves.truth
    for _ in range(ROUNDS):
        gains = np.nan_to_num(asked.gains(np.zeros(len(tried), dtype=int), tried), nan=-np.inf)
        if (place := int(gains.argmax())) >= 0 and gains[place] > most:
            most, top = float(gains[place]), tried[place]
        around = top * np.exp(random.normal(0, step, (AROUND, TYPES)))
        tried, step = np.concatenate([moves.around(top, step), around]), step / 4
    return 1 + most / float(asked.own[0])


def _reports(moves: CandidateReports, random: np.random.Generator) -> Iterator[Array]:
    yield from in_turn(moves.structured(ANYTHING), iter(moves.random(random, FIRST)))


def many_users(counts: Sequence[int] = (2, 4, 8, 16, 32, 64), markets: int = 4) -> Finding:
    """The largest gain of one liar in ever larger markets."""
    lines, ends = [], []
    for policy in POLICIES:
        found = []
        for n in counts:
            gains = [
                best(policy, market(rows(np.random.default_rng([n, each]), n)), np.random.default_rng(each)) - 1
                for each in range(markets)
            ]
            found.append(f"{100 * float(np.mean([gain if gain > LITTLE else 0 for gain in gains])):.1f}%")
        lines.append(f"{policy.name} {', '.join(found)}")
        ends.append(f"{policy.name} {found[0]} and {found[-1]}")
    return Finding(
        Ruling.QUALIFIED,
        f"Mean of the best gain found of one user, with {counts[0]} and with {counts[-1]} users: {'; '.join(ends)}. "
        "Proved: under Nash welfare a gain is at "
        "most p / (f - p), p the liar's part of the weight and f the least part of all money spent on a type, so "
        "that it vanishes as 1/n (proof in words: proofs/findings/liars/bounds.py, vanishing).\n"
        f"With {', '.join(map(str, counts))} users, {markets} markets each, "
        f"{FIRST + 3 * (AROUND + 2 * TYPES)} reports: "
        f"{'; '.join(lines)}.\n"
        "In the worst case nothing vanishes: the ratios of own-lies-noncooperative, own-lies-cooperative, "
        "own-lies-max-min and own-lies-trading grow with n, and Nash welfare's tends to 2.",
    )


def knowledge(liars: int = 4, learned: int = 12, fresh: int = 12, reports: int = 60) -> Finding:
    """What a liar gains that knows only how others' speedups are distributed."""
    n, lines, losing = 8, [], []
    for policy in POLICIES:
        blind, sighted, hurt = [], [], 0
        for number in range(liars):
            random = np.random.default_rng([7, number])
            own = rows(random, 1)
            tried = own * np.exp(random.normal(0, 0.4, (reports, TYPES)))
            on = [_ratios(policy, market(np.concatenate([own, rows(random, n - 1)])), tried) for _ in range(learned)]
            choice = tried[[int(np.mean(on, axis=0).argmax())]]
            for _ in range(fresh):
                given = market(np.concatenate([own, rows(random, n - 1)]))
                blind.append(float(_ratios(policy, given, choice)[0]) - 1)
                sighted.append(max(float(_ratios(policy, given, tried).max()) - 1, 0.0))
                hurt += blind[-1] < -LITTLE
        mean = [f"{100 * float(np.mean(each)):.3g}%" for each in (blind, sighted)]
        lines.append(f"{policy.name} {mean[0]} and {mean[1]}")
        losing.append(f"{policy.name} {100 * hurt / len(blind):.0f}%")
    return Finding(
        Ruling.QUALIFIED,
        "Mean gain of a liar that knows only how the others' speedups are distributed, and of one that knows them: "
        f"{'; '.join(lines)}.\n"
        f"{n} users, {liars} liars, {reports} reports each around the truth. The one takes the report that is best on "
        f"average over {learned} draws of the others, and plays it in {fresh} fresh ones; the other the best of the "
        "same reports in each of these.\n"
        f"Part of the markets in which the one loses: {'; '.join(losing)}.",
    )


def noise(markets: int = 12, draws: int = 40) -> Finding:
    """What an honest but inexact report does: the truth with a relative error."""
    n, lines, gaining = 8, [], []
    for policy in POLICIES:
        means, parts = [], []
        for error in (0.05, 0.2):
            random = np.random.default_rng(11)
            ratios = []
            for _ in range(markets):
                given = market(rows(random, n))
                told = given.speedup[0] * np.exp(random.normal(0, error, (draws, TYPES)))
                ratios.append(_ratios(policy, given, told))
            all_ = np.concatenate(ratios) - 1
            means.append(f"{100 * all_.mean():+.3g}%")
            parts.append(f"{100 * (all_ > LITTLE).mean():.0f}%, at most {100 * all_.max():.3g}%")
        lines.append(f"{policy.name} {' and '.join(means)}")
        gaining.append(f"{policy.name} {' and '.join(parts)}")
    return Finding(
        Ruling.QUALIFIED,
        "Mean change of the throughput of a user whose honest report errs by 5%, and by 20%: "
        f"{'; '.join(lines)}.\n"
        f"{n} users, relative errors of the first on each type (log-normal), {markets} markets, {draws} draws.\n"
        f"Part of the draws in which it gains, and the largest gain: {'; '.join(gaining)}.",
    )


def _ratios(policy: Policy, given: Market, reports: Array) -> Array:
    """Return the ratios (cases,) of the first user's throughputs after reports (cases, k); 1 without an answer."""
    asked = Reports(policy, given)
    gains = asked.gains(np.zeros(len(reports), dtype=int), reports)
    return np.asarray(1 + np.nan_to_num(gains, nan=0.0) / asked.own[0])
