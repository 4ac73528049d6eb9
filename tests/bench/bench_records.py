"""Records that are made up: an environment, measurements in it, and a run in which times grow by powers of the size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairopt.experiment.bench.kinds import Instance, Judgement
from fairopt.experiment.bench.records import STAGES, Measurement, Record
from fairopt.experiment.journal import TrialStatus
from fairopt.experiment.machine import Clock, Environment

SPEC = """
schema = 1
name = "made-up"
title = "Made up"
task = "max-min"
time_limit = 10
repeats = 3
shift = 0.5
contenders = [{ contender = "ours" }, { contender = "highs" }, { contender = "slow" }]
[[instances]]
family = "random"
parameters = { users = [100, 200, 400, 800], types = 10 }
""" + "".join(
    f'[[goals]]\ntext = "{text}"\ncontender = "{contender}"\nstatistic = "{statistic}"\nlimit = {limit}\n{more}\n'
    for text, contender, statistic, limit, more in (
        ("800 users in a second", "ours", "seconds", "1", "instances = { size = 800 }"),
        ("ten times as fast", "ours", "ratio", "10", 'against = "highs"'),
        ("a hundred thousand times as fast", "ours", "ratio", "1e5", 'against = "highs"'),
        ("five times the slow one", "ours", "ratio", "5", 'against = "slow"\ninstances = { size = 800 }'),
        ("the slow one, too", "slow", "seconds", "100", ""),
        ("little memory", "ours", "bytes", '"1 MB"', ""),
        ("a small gap", "ours", "gap", "1e-9", ""),
        ("a million users", "ours", "seconds", "5", "instances = { size = 1000000 }"),
    )
)

#: Seconds at size 100, the power of the size that they grow with, and the size from which on it runs out of time.
CONTENDERS = {"ours": (0.002, 1.0, 10**9), "highs": (0.05, 2.0, 10**9), "slow": (0.5, 2.5, 300)}


def environment(**changed: Any) -> Environment:
    machine = {"cpu": "A CPU", "cores": 2, "memory_bytes": 8 * 10**9, "system": "Linux", "python": "3.12.1"}
    state = {"threads": {"OMP_NUM_THREADS": "1"}, "libraries": {"highspy": "1.9"}, "commit": "abc", "dirty": False}
    parts: dict[str, Any] = {**machine, **state, "spec_text": SPEC, "command": "fairopt bench made-up"}
    return Environment.of(**parts | changed)


def stages(*clocks: Clock) -> dict[str, Clock | None]:
    """Return the seconds of the first stages; the others were not reached."""
    return {**dict.fromkeys(STAGES), **dict(zip(STAGES, clocks, strict=False))}


def measurement(
    env: Environment, contender: str = "ours", size: int = 100, repeat: int = 0, **changed: Any
) -> Measurement:
    seconds = stages(Clock(0.1, 0.1), Clock(0.4, 0.4), Clock(0.25, 0.2))
    made = Measurement(
        spec="made-up",
        task="max-min",
        contender=contender,
        **{"settings": {}, "libraries": {}, "message": "", "started": "2026-11-21T12:00:00+00:00"},
        instance=Instance("random", f"random-{size}-0", size, 0, {"users": size, "types": 10}, f"d{size}"),
        repeat=repeat,
        status=TrialStatus.SOLVED,
        seconds=seconds,
        peak_bytes=90_000_000,
        base_bytes=80_000_000,
        judgement=Judgement(True, 1e-12, 1e-10, 1.0),
        reference_job=Clock(0.1, 0.1),
        environment=env.digest,
        time_limit=10.0,
    )
    return replace(made, **changed)


def failed(env: Environment, status: TrialStatus, message: str = "", **changed: Any) -> Measurement:
    return measurement(env, status=status, message=message, seconds=stages(), judgement=None, **changed)


def made_up(
    env: Environment, contenders: dict[str, tuple[float, float, int]] = CONTENDERS, **changed: Any
) -> list[Record]:
    """Return a run in which times grow by powers of the size, with 1% of noise."""
    rng = np.random.default_rng(1)
    records: list[Record] = [env]
    for repeat in range(3):
        for size in (100, 200, 400, 800):
            for name, (at, power, most) in contenders.items():
                wall = at * (size / 100) ** power * float(rng.uniform(0.99, 1.01))
                seconds = stages(Clock(wall / 5, wall / 5), Clock(4 * wall / 5, 4 * wall / 5))
                key = {"contender": name, "size": size, "repeat": repeat, **changed}
                if size > most:
                    records.append(failed(env, TrialStatus.TIMEOUT, "stopped after 10 s", **key))
                else:
                    records.append(measurement(env, seconds=seconds, **key))
    return records
