"""The errors that fairopt raises on purpose; each says what is wrong, where, and what to do.

`BadInput` is about data, `NotInstalled` and `NotCapable` are about the chosen solver, `NotSolved` is about how solving
ended, `OutOfTime` is about the caller's limit. The command line turns the first into exit status 2, the others into 3.

>>> try:
...     raise BadInput("got -1", place="capacity", remedy="Give a number that is not negative")
... except FairoptError as error:
...     print(error)
capacity: got -1. Give a number that is not negative
"""

from __future__ import annotations

from typing import Any


class FairoptError(Exception):
    """The base of every error that fairopt raises on purpose.

    >>> issubclass(BadInput, FairoptError) and issubclass(NotSolved, FairoptError)
    True
    """


class BadInput(FairoptError, ValueError):
    """Invalid input; the message names the place, the value and the remedy.

    ``problem`` is what is wrong, with the value found; ``place`` is row and column, or the key, in the words of the
    ``file`` or call; ``remedy`` is what to do about it.

    >>> from fairopt import Market
    >>> Market.of([[1, 2], [1, -5]], capacity=[1, 1])
    Traceback (most recent call last):
        ...
    fairopt.errors.BadInput: user 2 ('u2'), speedup on 'T2': got -5. Give a number that is not negative
    """

    def __init__(self, problem: str, *, place: str = "", remedy: str = "", file: str = "") -> None:
        self.problem, self.place, self.remedy, self.file = problem, place, remedy, file
        super().__init__(problem)

    def __str__(self) -> str:
        where = ": ".join(part for part in (self.file, self.place) if part)
        text = f"{where}: {self.problem}" if where else self.problem
        return f"{text}. {self.remedy}" if self.remedy else text


def type_of(value: object) -> str:
    """Return of what type a value is, as a message says it.

    >>> type_of(3), type_of("x"), type_of(None)
    ('an int', 'a str', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'AEIOaeio' else 'a'} {name}"


def require(fits: bool, value: object, place: str, remedy: str) -> None:
    """Raise `BadInput` for ``value`` unless it ``fits``.

    >>> require(2 > 1, 2, "load", "Give a number above 1")
    """
    if not fits:
        raise BadInput(f"got {value}", place=place, remedy=remedy)


class WrongReturn(FairoptError, TypeError):
    """A method that somebody wrote for fairopt returned something else than it must; the message says what.

    Of a schedule that is impossible on the cluster it names round, job, host and both numbers.

    >>> require_returned(False, [1, 2], "MyPolicy.formulate", "a Program")
    Traceback (most recent call last):
        ...
    fairopt.errors.WrongReturn: MyPolicy.formulate returned a list; it must return a Program
    """


def require_returned(fits: bool, value: object, method: str, wanted: str) -> None:
    """Raise `WrongReturn` unless ``value`` fits, which ``method`` returned; ``wanted`` is what it must return.

    >>> require_returned(isinstance("words", str), "words", "MyPolicy.says", "words")
    """
    if not fits:
        raise WrongReturn(f"{method} returned {type_of(value)}; it must return {wanted}")


class NotInstalled(FairoptError, ImportError):
    """A library that was asked for is not installed; the message says how to install it.

    >>> from fairopt.discovery import library
    >>> library("no_such_module", "this")
    Traceback (most recent call last):
        ...
    fairopt.errors.NotInstalled: this needs no_such_module: pip install 'fairopt[bench]'
    """


class NotCapable(FairoptError, TypeError):
    """A backend or policy was asked for something that it does not declare; nothing else was tried.

    >>> from fairopt import Market, allocate
    >>> allocate("max-min", Market.of([[1, 2]], capacity=[1, 1]), "highs", exact=True)
    Traceback (most recent call last):
        ...
    fairopt.errors.NotCapable: exact=True asks for rational numbers, and highs has floats: leave out one of them
    """


class NotSolved(FairoptError, RuntimeError):
    """Solving ended without an optimum; ``solution`` is the solver's answer, an incumbent included, None if nothing.

    Of a run: jobs wait, but nothing runs and nothing will change; the message names the jobs.

    >>> raise NotSolved("the time limit has passed")
    Traceback (most recent call last):
        ...
    fairopt.errors.NotSolved: the time limit has passed
    """

    def __init__(self, message: str, solution: Any = None) -> None:
        self.solution = solution
        super().__init__(message)


class OutOfTime(FairoptError, TimeoutError):
    """The time that `fairopt.deadline.time_limit` allows is over; ``solution`` as of `NotSolved`.

    >>> from fairopt.deadline import left, time_limit
    >>> with time_limit(0):
    ...     left(found="what is known")
    Traceback (most recent call last):
        ...
    fairopt.errors.OutOfTime: the time limit of 0 s is over
    """

    solution: Any = None
