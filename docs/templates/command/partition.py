"""A command: a function whose parameters are the command's arguments and options, as Typer has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fairopt.problem import read_market


def partition(
    market: Annotated[Path, typer.Argument(metavar="MARKET", help="A market file: .toml, .json or .csv.")],
    json_: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")] = False,
) -> None:
    """Say how many GPUs each user's own partition of the cluster has."""
    problem = read_market(market)  # its errors become one line and an exit status
    gpus = dict(zip(problem.users, problem.equal_split().sum(axis=1).tolist(), strict=True))
    if json_:
        print(json.dumps({user: float(count) for user, count in gpus.items()}))
    else:
        for user, count in gpus.items():
            print(f"{user}: {count} GPUs")
