"""Second-price trading: the papers' numbers, and what no trade may ever do, in exact arithmetic."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest

from fairopt import allocate
from fairopt.backends import Highs
from fairopt.errors import BadInput, NotCapable
from fairopt.models import EqualSplit, SecondPriceTrading
from fairopt.models.gandiva_fair.second_price_trading import OEF_EQUATION_1, THREE_TYPES, Trade, replay, type_pairs
from fairopt.problem import Market
from fairopt.testing.samples import sample_markets

TABLE_3 = Market.of([[1, "1.25"], [1, 5], [1, "6.25"]], [60, 12], users=["A", "B", "C"], types=["K80", "V100"])


def trade(market):
    return SecondPriceTrading().compute(market, None)


def test_oef_equation_1():
    shares, trades = trade(OEF_EQUATION_1)
    assert shares.tolist() == [[1, F(4, 45)], [0, F(7, 15)], [0, F(4, 9)]]
    assert OEF_EQUATION_1.utility(shares).tolist() == [F(53, 45), F(7, 5), F(16, 9)]
    assert [(t.buyer, t.seller, t.price) for t in trades] == [("u3", "u1", 3), ("u2", "u1", F(5, 2))]


def test_oef_misreport_pays():
    told = OEF_EQUATION_1.misreport("u1", [1, "2.8"])
    shares, trades = trade(told)
    assert [t.price for t in trades] == [3, F(29, 10)]
    gained = OEF_EQUATION_1.utility(shares)[0]
    assert round(float(gained), 4) == 1.2146
    assert gained > F(53, 45)


def test_gandiva_table_3():
    shares, trades = trade(TABLE_3)
    assert shares.tolist() == [[40, 0], [20, 4], [0, 8]]
    assert TABLE_3.utility(shares).tolist() == [40, 40, 50]
    assert trades == (Trade("C", "A", "V100", "K80", F(5), F(4), F(20)),)


def test_without_other_bidders_the_price_is_the_middle():
    shares, trades = trade(Market.of([[1, 2], [1, 4]], [1, 1]))
    assert [t.price for t in trades] == [3]
    assert shares.tolist() == [[1, F(1, 3)], [0, F(2, 3)]]


def test_the_price_is_the_second_highest_of_many():
    _, trades = trade(Market.of([[1, 2], [1, 3], [1, 4], [1, 5]], [1, 1]))
    assert [(t.buyer, t.price) for t in trades] == [("u4", 4), ("u3", 3), ("u2", F(5, 2))]


def test_a_bidder_no_faster_than_the_seller_sets_no_price():
    # u1 and u2 have ratio 2: were u2's 2 the price, nothing would change; were it below, u1 would lose
    _, trades = trade(Market.of([[1, 2], [1, 2], [1, 4]], [1, 1]))
    assert trades[0] == Trade("u3", "u1", "T2", "T1", F(3), F(1, 9), F(1, 3))


@pytest.mark.parametrize(
    ("speedup", "price"),
    [
        ([[1, 3], [0, 1]], 6),  # infinite buyer, nobody else: twice the seller's ratio
        ([[1, 3], [0, 1], [1, 5]], 5),  # the highest finite bid
        ([[1, 3], [0, 1], [0, 2], [1, 5]], 5),  # infinite bids set no price
        ([[1, 0], [1, 4]], 2),  # the seller's fast GPUs are useless to it
    ],
)
def test_infinite_and_zero_ratios(speedup, price):
    market = Market.of(speedup, [3, 1], types=["slow", "fast"])
    _, trades = trade(market)
    assert (trades[0].fast, trades[0].slow, trades[0].price) == ("fast", "slow", price)


def test_two_useless_holdings_are_exchanged_whole():
    shares, _ = trade(Market.of([[1, 0], [0, 1]], [4, 6]))
    assert shares.tolist() == [[4, 0], [0, 6]]


@pytest.mark.parametrize("seed", range(8))
def test_no_trade_hurts_and_no_gpu_is_lost(seed):
    for market in sample_markets(30, seed=seed, users=(1, 6), types=(1, 4)):
        shares, trades = trade(market)
        assert (shares >= 0).all()
        assert shares.sum(axis=0).tolist() == market.capacity.tolist()
        assert (market.utility(shares) >= market.fair_utility()).all()
        assert np.array_equal(replay(market, trades), shares)
        before = market.equal_split()
        for number in range(1, len(trades) + 1):
            after = replay(market, trades[:number])
            assert (market.utility(after) >= market.utility(before)).all()
            before = after


def test_trades_do_happen():
    counts = [len(trade(market)[1]) for market in sample_markets(30, seed=3, users=(2, 6), types=(2, 4))]
    assert sum(count > 0 for count in counts) > 25
    assert max(counts) > 6


@pytest.mark.parametrize("seed", range(4))
def test_demands_are_kept_and_nobody_loses(seed):
    for market in sample_markets(30, seed=seed, users=(2, 5), types=(2, 4), demands=True):
        shares, trades = trade(market)
        start, _ = EqualSplit().compute(market, None)
        assert (shares.sum(axis=1) <= market.limit).all()
        assert (shares >= 0).all()
        assert shares.sum(axis=0).tolist() == start.sum(axis=0).tolist()
        assert (market.utility(shares) >= market.utility(start)).all()
        assert np.array_equal(replay(market, trades), shares)


def test_a_demand_limits_the_volume():
    # u1 sells fast GPUs at 3 slow ones each and holds 2: with a demand of 3 there is room for half a fast GPU
    shares, trades = trade(Market.of([[1, 2], [1, 4]], [2, 2], demand=[3, None]))
    assert trades == (Trade("u2", "u1", "T2", "T1", F(3), F(1, 3), F(1)),)
    assert shares[0].sum() <= 3
    shares, trades = trade(Market.of([[1, 2], [1, 4]], [2, 2], demand=["5/2", None]))
    assert [t.fast_amount for t in trades] == [F(1, 4)]
    assert shares[0].sum() == F(5, 2)
    assert trade(Market.of([[1, 2], [1, 4]], [2, 2], demand=[2, None]))[1] == ()


@pytest.mark.parametrize("seed", range(4))
def test_order_of_users_does_not_matter_even_with_ties(seed):
    random = np.random.default_rng(seed)
    for market in sample_markets(20, seed=seed, users=(2, 6), types=(2, 3), most=3):
        order = random.permutation(len(market.users))
        assert np.array_equal(trade(market.select(order.tolist()))[0], trade(market)[0][order])


def test_units_do_not_matter():
    for market in sample_markets(20, seed=5):
        scaled = market.rescaled({user: F(i + 1, 7) for i, user in enumerate(market.users)})
        assert np.array_equal(trade(scaled)[0], trade(market)[0])


def test_floats_agree_with_fractions():
    for market in sample_markets(40, seed=6, users=(1, 6)):
        shares, trades = trade(market.as_(float))
        assert shares.dtype == float
        assert np.allclose(shares, trade(market)[0].astype(float), rtol=1e-12, atol=1e-12)
        assert np.array_equal(replay(market.as_(float), trades), shares)


def test_no_crumb_is_left_that_trades_again_in_floats():
    """B and then C sell A what they cannot use: a last digit that B keeps must not buy all that A has left."""
    market = Market.of([[1, 0], [0, 2], [0, 1]], [5, 4], weight=[2, 4, 3], users=["A", "B", "C"])
    exact = trade(market)[0]
    assert exact.tolist() == [[F(10, 3), 0], [0, F(8, 3)], [F(5, 3), F(4, 3)]]
    floats = market.as_(float)
    assert np.allclose(trade(floats)[0], exact.astype(float), rtol=1e-12, atol=1e-12)
    many = SecondPriceTrading().many_bundles(floats, None)(np.arange(3), floats.speedup)
    assert np.allclose(many, exact.astype(float), rtol=1e-12, atol=1e-12)


def test_what_rounding_leaves_of_a_demand_is_no_room_at_a_price_next_to_1():
    """All have what they demand, so nobody trades; a last digit over a price of 1e-12 above 1 was 6e-5 GPUs."""
    speedup = [["1.000000000001", 0], [1, 1], [1, "1.000000000001"], [1, 0], ["1.000000000002", "1.000000000001"]]
    market = Market.of(speedup, [4, 3], weight=[1000, 2, 1000, 2, 1000], demand=[1, 2, "0.3", 1, 1])
    exact, trades = trade(market)
    assert trades == ()
    floats = market.as_(float)
    assert np.allclose(trade(floats)[0], exact.astype(float), rtol=1e-12, atol=1e-12)
    many = SecondPriceTrading().many_bundles(floats, None)(np.arange(5), floats.speedup)
    assert np.allclose(many, exact.astype(float), rtol=1e-12, atol=1e-12)


def test_who_reaches_a_demand_just_when_the_buyer_has_given_all_may_sell_on_in_floats():
    """u3 demands 2 and has 2 - 4e-16 after its first sale; it was said to have no room, and u4 sold in its place."""
    market = Market.of([[2, 1], [2, 1], [3, 4], [4, 4]], [4, 4], weight=[1, 1, 1, 2], demand=[10, 2, 2, None])
    exact = trade(market)[0]
    assert exact.tolist() == [[F(6, 5), 0], [F(22, 15), 0], [0, 2], [F(4, 3), 2]]
    floats = market.as_(float)
    assert np.allclose(trade(floats)[0], exact.astype(float), rtol=1e-12, atol=1e-12)
    many = SecondPriceTrading().many_bundles(floats, None)(np.arange(4), floats.speedup)
    assert np.allclose(many, exact.astype(float), rtol=1e-12, atol=1e-12)


def test_ratios_that_are_equal_as_floats_only_are_told_apart():
    """B's ratio is the larger by a part of 1e-16; who buys first pays what the next one bids."""
    assert 0.9 / 0.3 == 3.0 < F(0.9) / F(0.3)
    market = Market.of_arrays([[3.0, 1.0], [0.9, 0.3], [1.0, 1.0]], [2.0, 7.0], weight=[1, 2, 3])
    assert np.allclose(trade(market)[0], trade(market.as_(F))[0].astype(float), rtol=1e-12, atol=1e-12)


def test_trades_survive_json():
    for market in (TABLE_3, TABLE_3.as_(float)):
        _, trades = trade(market)
        read = [list(entry.values()) for entry in json.loads(json.dumps([t.to_json() for t in trades]))]
        number = F if market.exact else float
        assert (
            tuple(Trade(*names, *map(number, numbers)) for *names, a, b, c in read for numbers in [(a, b, c)]) == trades
        )


def test_replay_refuses_what_cannot_be():
    _, trades = trade(TABLE_3)
    with pytest.raises(BadInput, match="trade 2"):
        replay(TABLE_3, [*trades, *trades])
    with pytest.raises(BadInput, match="no type"):
        replay(TABLE_3, [replace(trades[0], fast="H100")])
    with pytest.raises(BadInput, match="no user"):
        replay(TABLE_3, [replace(trades[0], buyer="D")])


def test_pairs_start_with_the_fastest_and_the_slowest():
    market = Market.of([[1, 2, 3, 4]], [1, 1, 1, 1])
    assert list(type_pairs(market)) == [(3, 0), (3, 1), (3, 2), (2, 0), (2, 1), (1, 0)]


def test_three_types_are_not_pareto_efficient():
    shares, _ = trade(THREE_TYPES)
    assert shares.tolist() == [[F(11, 4), 0, F(2, 7)], [F(1, 4), 1, F(5, 7)]]
    swap = np.array([[F(1, 4), 0, F(-1, 10)], [F(-1, 4), 0, F(1, 10)]])  # 5/2 of T1 for one of T3
    assert ((shares + swap) >= 0).all()
    assert (THREE_TYPES.utility(shares + swap) > THREE_TYPES.utility(shares)).all()


def test_types_that_are_almost_alike_are_traded_in_rationals_where_floats_cannot_say_who_is_full():
    """Guards against prices within digits of 1: a user with all that it demands may sell nothing at 1 + 2e-15."""
    speedup = [[1 - 1e-15, 1 + 2e-15, 1 + 3e-15], [1, 0, 0], [1 + 3e-15, 1 + 5e-15, 1 + 5e-15], [4, 4, 0]]
    market = Market.of_arrays(speedup, [3, 2, 1], demand=[2, 0.5, 1.5, 0.5])
    found, exact = (allocate("second-price-trading", each) for each in (market, market.as_(F)))
    assert (found.shares == exact.shares).all()
    assert found.objective == exact.objective
    SecondPriceTrading().certify(found)
    assert not allocate("second-price-trading", Market.of_arrays([[1, 2], [1, 5]], [1, 1], demand=[0.5, 1])).exact


def test_it_takes_no_back_end():
    with pytest.raises(NotCapable, match="highs"):
        allocate(SecondPriceTrading(), TABLE_3, Highs())
