"""The commands of ``fairopt``, each loaded when it is called.

Exit status: 0 fine; 1 a checked property fails (``verify``), a guarantee or cap is broken (``audit``), a misreport pays
(``lie``), a file is rejected (``check``) or a stored verdict no longer follows (``claims --run``); 2 bad input; 3 not
solved, not installed or not capable; 4 nothing fails, but a property could not be decided, or depends on the input
(``verify``, ``compare``, ``audit``).
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, NoReturn, TypeGuard

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from fairopt.cli.exits import HANG_UP, Exit, go_on_unread, interrupted, open_streams, pipes
from fairopt.cli.refusals import plainly
from fairopt.deadline import stoppable
from fairopt.errors import BadInput, FairoptError


class Command(NamedTuple):
    """The place of a command (a function, or a `typer.Typer` with its own commands), and its line in the list."""

    module: str
    attribute: str
    help: str


COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "solve": Command("fairopt.cli.sharing", "solve", "Compute the allocation that one policy decides."),
        "verify": Command("fairopt.cli.sharing", "verify", "Check an allocation, a schedule or a recorded run."),
        "compare": Command("fairopt.cli.comparing", "compare", "Compare policies on a market, a trace or a batch."),
        "audit": Command("fairopt.cli.auditing", "audit", "Show who starves or borrows on a cluster, and why."),
        "explain": Command("fairopt.cli.auditing", "explain", "Explain why one user waits, and what would help it."),
        "whatif": Command("fairopt.cli.auditing", "whatif", "Show what a change of quotas, caps or weights would do."),
        "plan": Command("fairopt.cli.planning", "plan", "Find settings of a scheduler that give a policy's shares."),
        "policies": Command("fairopt.cli.listing", "policies", "List the policies and what each claims."),
        "backends": Command("fairopt.cli.listing", "backends", "List the backends and what each can do."),
        "properties": Command("fairopt.cli.listing", "properties", "List the properties and their definitions."),
        "plugins": Command("fairopt.cli.listing", "plugins", "List what other installed packages add."),
        "datasets": Command("fairopt.cli.data", "datasets", "List the data sets, or write one to a file."),
        "generate": Command("fairopt.cli.generating", "generate", "Draw a trace at random, at a stated load."),
        "import": Command("fairopt.cli.data", "import_", "Convert another tool's file into one of fairopt's."),
        "check": Command("fairopt.cli.proving", "check", "Check certificates, recorded runs and schedules."),
        "claims": Command("fairopt.cli.proving", "claims", "Show claims of papers and their computed verdicts."),
        "lie": Command("fairopt.cli.misreporting", "lie", "Search for one lie that pays under one policy."),
        "frontier": Command(
            "fairopt.cli.frontiers", "frontier_command", "Show the trade-off between efficiency and fairness."
        ),
        "incentives": Command(
            "fairopt.cli.incentives", "incentives_command", "Bound how much lies pay, for every policy."
        ),
        "run": Command("fairopt.cli.running", "run_command", "Play a trace on a cluster, round by round."),
        "schedule": Command(
            "fairopt.cli.scheduling", "schedule_command", "Decide which jobs of a batch run where and when."
        ),
        "study": Command("fairopt.cli.studying", "app", "Compare policies of rounds over many runs."),
        "bench": Command("fairopt.cli.benching", "app", "Measure solvers beside each other."),
    }
)
#: All groups of commands print plain text.
PLAIN: Mapping[str, Any] = MappingProxyType({"add_completion": False, "rich_markup_mode": None})


#: What an option means that is given without its word.
EVERY = "all"
#: Where a command's context keeps the names of the parameters that are files to read.
READ = "fairopt.read"


class Once(TyperCommand):
    """A command that refuses an option given twice where it takes one value, instead of forgetting the first.

    It names the values that it refuses.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, unless an option is given twice."""
        _read_plainly(self.get_params(ctx))
        args = list(self._with_words(args))
        values, _, given = ({}, (), []) if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))
        for each in given:
            if isinstance(each, TyperOption) and not each.multiple and not each.is_flag and given.count(each) > 1:
                raise BadInput("it is given twice", place=each.opts[0], remedy=_SEVERAL.get(each.name or "", _ONE))
        try:
            rest = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            value = None if error.param is None else values.get(error.param.name)
            error.message = plainly(error.message)
            if value is not None and str(value) not in error.message:
                error.message = f"got {value}. {error.message}"
            elif value is None and not error.message:
                error.param = self._missing(error.param)
                error.message = getattr(error.param, "help", None) or ""
            raise
        self._keep_what_is_read(ctx)
        return rest

    def _with_words(self, args: list[str]) -> Iterator[str]:
        """Yield the words, and `EVERY` behind an option that is given without one and may mean all."""
        bare = {name for each in self.params if (each.metavar or "").endswith(f"|{EVERY}") for name in each.opts}
        for word, behind in zip_longest(args, args[1:], fillvalue="--"):
            yield word
            if word in bare and behind.startswith("-"):
                yield EVERY

    def invoke(self, ctx: Any) -> Any:
        """Run the command. A wrong value of an option is named as it is written here, not as in a call of Python."""
        read = ctx.meta.get(READ, ())
        if any(_paths(ctx.params.get(each.name)) for each in self.params if each.name not in read):
            go_on_unread()
        try:
            return super().invoke(ctx)
        except BadInput as error:
            named = f"--{error.place.replace('_', '-')}"
            if not error.file and any(named in each.opts for each in self.params):
                error.place = named
            raise

    def _missing(self, parameter: Any) -> Any:
        """Return the argument that is missing: behind one that takes any number of words, the last was taken for it."""
        behind = [each for each in self.params[self.params.index(parameter) + 1 :] if is_argument(each)]
        return behind[-1] if is_argument(parameter) and parameter.nargs != 1 and behind else parameter

    def _keep_what_is_read(self, ctx: Any) -> None:
        """Refuse an option that names the file of an argument: what is written would replace what was read."""
        named = [(each, path) for each in self.params for path in _paths(ctx.params.get(each.name))]
        # what stands for a file is called as it is
        read = {Path(str(path)).resolve(): each.display_name_raw for each, path in named if is_argument(each)}
        for each, path in named:
            taken = read.get(path.resolve())
            if taken is not None and not is_argument(each) and each.name not in ctx.meta.get(READ, ()):
                problem = f"{path} is the file of {taken} as well"
                raise BadInput(problem, place=each.opts[0], remedy="Name another file")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line; what may be left out stands in brackets."""
        return [self.options_metavar or "", *(_in_usage(each) for each in self.get_params(ctx) if is_argument(each))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments by their names alone, and then the options."""
        rows = [(each, row) for each in self.get_params(ctx) if (row := in_words(each, ctx)) is not None]
        for title, ours in (("Arguments", True), ("Options", False)):
            if listed := [row for each, row in rows if is_argument(each) is ours]:
                with formatter.section(title):
                    formatter.write_dl(listed)


#: Types of parameters whose values are the words themselves, or paths, and what makes one of a word.
_PLAIN: Mapping[Any, Any] = MappingProxyType({str: str, list[str]: str, Path: Path, list[Path]: Path})


class _Plainly(NamedTuple):
    """How typer asks for the value of a parameter; here it is one that takes words, or that nobody gave."""

    typers: Any

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value of the words: what typer itself makes of them, without the library that it loads for it."""
        annotation, several = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None or type(value) is annotation:
            return () if several and value is None else value
        kind = _PLAIN.get(annotation)
        if kind is None or (several and isinstance(value, str)):
            return self.typers().coerce(value, param=param, ctx=ctx)
        return [kind(each) for each in value] if several else kind(value)


def _read_plainly(parameters: Iterable[Any]) -> None:
    """Let words be read without pydantic, which takes a tenth of a short command's time to load.

    A release of typer that asks for values in another way reads them as it does.
    """
    for each in parameters:
        if typers := getattr(each, "get_runtime_param", None):
            each.get_runtime_param = partial(_Plainly, typers)


def _paths(value: Any) -> list[Path]:
    """Return the files that the value of a parameter names; a dash is a stream."""
    every = value if isinstance(value, list | tuple) else [value]
    return [each for each in every if isinstance(each, Path) and each != Path("-")]


def is_argument(parameter: Any) -> TypeGuard[TyperArgument]:
    """Return whether a parameter is an argument: it is given by its place, not by its name."""
    return isinstance(parameter, TyperArgument)


def in_words(parameter: Any, context: Any) -> tuple[str, str] | None:
    """Return how a parameter is written, and what it does; None where it is hidden."""
    record: tuple[str, str] | None = parameter.get_help_record(context)
    return record if record is None or not is_argument(parameter) else (parameter.display_name_raw, record[1])


def _in_usage(argument: TyperArgument) -> str:
    name = argument.display_name_raw + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


_ONE = "Give it once"
#: Where an option that takes one value takes several.
_SEVERAL: Mapping[str, str] = MappingProxyType({"policy": f"{_ONE}; `fairopt compare` takes several"})


class _Commands(TyperGroup):
    """The commands by name; only the called one is imported, since solvers and tables take long to load."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; where a command is only to say what it can do, our own options wait for nobody."""
        if not ctx.resilient_parsing and args and args[0] in COMMANDS and "--help" in args[1:]:
            # saves loading what reads the values of options
            load(args[0]).main(args[1:], prog_name=f"{ctx.info_name} {args[0]}")
        _read_plainly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one of the commands that are listed, or else one that another package brings."""
        return super().get_command(ctx, cmd_name) or plugged_in(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the given name, its command, and the remaining arguments."""
        name, known, rest = super().resolve_command(ctx, args)
        return name, load(name) if name is not None and name in COMMANDS else known, rest


#: After how many new objects a command looks for garbage: its objects are read from files and stay, and Python's own
#: 700 take a quarter of the time in which a large file is read.
COLLECTED = (400_000, 50, 100)


def load(name: str) -> Any:
    """Return a command of the command line, ready to be invoked."""
    command, collected = COMMANDS[name], COLLECTED
    gc.disable()  # what an import makes stays: looking for garbage in it costs a tenth of the time
    try:
        module = import_module(command.module)
        collected = getattr(module, "COLLECTED", COLLECTED)
        return _invocable(name, getattr(module, command.attribute))
    finally:
        gc.enable()
        gc.set_threshold(*collected)
        atexit.register(gc.freeze)  # nor is what is left at the end looked through: that takes as long again


def plugged_in(name: str) -> Any:
    """Return the command that another package registers under ``name``; None where none does."""
    from fairopt import discovery  # reading entry points would slow down the commands that are ours

    if name not in discovery.names(discovery.COMMANDS):
        return None
    return _invocable(name, discovery.load(discovery.COMMANDS, name))


def _invocable(name: str, found: Any) -> Any:
    if isinstance(found, typer.Typer):
        return typer.main.get_command(found)
    alone = typer.Typer(**PLAIN)
    alone.command(name, cls=Once)(found)
    return typer.main.get_command(alone)


app = typer.Typer(
    name="fairopt",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Other packages may bring commands: `fairopt plugins` lists them.",
    **{**PLAIN, "add_completion": True},
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"fairopt {version('fairopt')}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Log what is done to standard error; -vv: in detail.")
    ] = 0,
) -> None:
    """Decide who gets which GPUs, and show with evidence whether that is fair."""
    if verbose:
        logger, handler = logging.getLogger("fairopt"), logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if verbose == 1 else logging.DEBUG)
        context.call_on_close(lambda: logger.removeHandler(handler))


def _listed() -> None:
    """Represent, in the list of commands, one that is loaded only when it is called."""


for _name, _command in COMMANDS.items():
    app.command(_name, help=_command.help)(_listed)


def _join_words() -> None:
    """Make one word of @NAME where bash asks what it may become: bash splits it in two, and replaces both."""
    last = int(os.environ["COMP_CWORD"])
    words = "\n".join(os.environ["COMP_WORDS"].split("\n")[: last + 1])
    joined, count = re.subn(r"\n@\n(?=.)", "\n@", words)
    os.environ.update(COMP_WORDS=joined, COMP_CWORD=str(last - count))


def main() -> None:
    """Run the command line; errors that fairopt raises on purpose become one line and an exit status."""
    open_streams()
    _end_orderly()
    try:
        if os.environ.get("_FAIROPT_COMPLETE") == "complete_bash":
            _join_words()
        with stoppable():
            _run()
    except SystemExit as ended:
        # typer would exit with 1: "a property fails"
        if isinstance(ended.__context__, BrokenPipeError) or any(each.left for each in pipes()):
            raise SystemExit(Exit.NOBODY_READS) from None
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):  # typer ends without a word
            _end("interrupted", Exit.INTERRUPTED)
        raise
    except BrokenPipeError:
        raise SystemExit(Exit.NOBODY_READS) from None


def _end_orderly() -> None:
    """Take an end that others ask for, such as a queue of jobs, as an interruption: what is computed is kept.

    So it is where the terminal is closed.
    """
    for number in (signal.SIGTERM, *HANG_UP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, interrupted)
    if sys.unraisablehook is sys.__unraisablehook__:
        sys.unraisablehook = _unraised


def _unraised(what: Any) -> None:
    """Have an interruption come again that came in a callback of the garbage collector, where Python drops errors."""
    if isinstance(what.exc_value, KeyboardInterrupt) and hasattr(signal, "pthread_kill"):
        ours = signal.getsignal(signal.SIGTERM) is interrupted
        number = signal.SIGTERM if ours else signal.SIGINT
        again = threading.Timer(0.01, signal.pthread_kill, (threading.main_thread().ident, number))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(what)


def _run() -> None:
    try:
        try:
            app(prog_name="fairopt")
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except FairoptError as error:  # before the next: `OutOfTime` is Python's TimeoutError, an OSError
        _end(str(error), Exit.BAD_INPUT if isinstance(error, BadInput) else Exit.NOT_SOLVED)
    except OSError as error:  # a full disk, say
        sys.stdout = None  # else Python would try again at exit
        _end(f"cannot write the output: {error}", Exit.NOT_SOLVED)
    except MemoryError:
        _end("out of memory; what was finished is kept", Exit.NOT_SOLVED)
    except KeyboardInterrupt:
        _end("interrupted", Exit.INTERRUPTED)


def _end(why: str, status: Exit) -> NoReturn:
    try:
        print(f"fairopt: {why}", file=sys.stderr)
    except OSError:  # nobody can be told; the status says it
        sys.stderr = None  # else Python would try again at exit
    raise SystemExit(status) from None
