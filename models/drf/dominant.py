"""The arithmetic of Dominant Resource Fairness: progressive filling, the linear program, and the rule for whole tasks.

Shapes, for n users and m resources: ``demand`` (n, m) what one task of each user takes, ``capacity`` (m,), ``weight``
(n,), or (n, m) where a user has a weight for each resource. Numbers are Fractions or floats alike.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fairopt.program import INFINITY, Array, Formulation, Number, Program


def rates(demand: Array, capacity: Array, weight: Array) -> Array:
    """Return how many tasks each user (n,) runs when its dominant share is its weight.

    The dominant share of a user is the largest of its shares of a resource, each over its weight there. Users who ask
    for nothing, or for what there is none of, have rate 0.

    Source: Ghodsi et al., NSDI 2011, Sec. 4.1, and 4.3 (weights by resource).

    >>> import numpy as np
    >>> print(rates(np.array([[1, 4], [3, 1]]), np.array([9, 18]), np.array([1, 1])))
    [4.5 3. ]
    """
    weights = weight if weight.ndim == 2 else weight[:, None]
    there = np.asarray(capacity > 0)
    largest = (demand / (np.where(there, capacity, 1) * weights)).max(axis=1)
    runs = (largest > 0) & ~np.asarray(demand[:, ~there] > 0).any(axis=1)
    return np.where(runs, 1 / np.where(runs, largest, 1), 0 * largest)


def filled(demand: Array, capacity: Array, rate: Array, most: Array | None = None) -> Array:
    """Return the tasks (n,) of progressive filling: all users grow at their ``rate`` until something stops them.

    A user stops where a resource that it needs is used up, or at ``most`` tasks (n,); the others go on. Tasks are
    divisible. With the rates of `rates` this is DRF, for other measures of a share it is another policy.

    Source: Ghodsi et al., NSDI 2011, Sec. 4.1 (progressive filling, as for max-min fairness).

    >>> import numpy as np
    >>> demand, capacity = np.array([[1, 4], [3, 1]]), np.array([9, 18])
    >>> print(filled(demand, capacity, rates(demand, capacity, np.array([1, 1]))))
    [3. 2.]
    """
    tasks, left, grows = rate * 0, capacity + rate.sum() * 0, rate > 0
    limit = np.full(len(rate), INFINITY) if most is None else most
    while grows.any():
        speed = np.where(grows, rate, 0 * rate)
        use = speed @ demand
        until = [room / need for room, need in zip(left, use, strict=True) if need > 0]
        until += [(end - has) / by for end, has, by in zip(limit, tasks, speed, strict=True) if by > 0]
        step = min(until)
        tasks = tasks + speed * step
        done = np.array([has >= end for has, end in zip(tasks, limit, strict=True)])
        # what is used up is known by the step, not by a rest that rounding may leave
        empty = np.array([need > 0 and room / need <= step for room, need in zip(left, use, strict=True)])
        tasks = np.where(done & grows, limit, tasks)
        left = capacity - tasks @ demand
        grows = grows & ~done & ~(demand[:, empty] > 0).any(axis=1)
    return np.asarray(tasks)


def program(demand: Array, capacity: Array, rate: Array) -> Program:
    """Return the linear program of DRF: the largest dominant share that all users can have at once.

    Where every user needs every resource this is the whole of DRF; else `filled` goes on with those who can grow.

    Source: Ghodsi et al., NSDI 2011, Sec. 4.1: maximise (x, y) subject to the capacities and equal dominant shares.
    """
    p = Formulation("drf")
    tasks = p.variable("tasks", (len(rate),))
    share = p.variable("dominant_share")
    p.maximize(share, equation="s", source="NSDI 2011, Sec. 4.1")
    p.constrain("equal", tasks - rate * share == 0, equation="x_i / rate_i = s", source="NSDI 2011, Sec. 4.1")
    p.constrain(
        "capacity",
        (demand.T * tasks).sum(axis=1) <= capacity,
        equation="sum_i x_i d_ij <= r_j",
        source="NSDI 2011, Sec. 4.1",
    )
    return p.program()


def dominant_share(held: Sequence[Number], capacity: Sequence[Number], weight: Number) -> Number:
    """Return the dominant share of a user that holds ``held`` (m,), over its weight.

    Resources of which there is nothing count as no share.

    >>> dominant_share([6, 2], [9, 18], 2)
    0.3333333333333333
    """
    shares = [has / there for has, there in zip(held, capacity, strict=True) if there > 0]
    most: Number = max(shares, default=0 * weight) / weight
    return most
