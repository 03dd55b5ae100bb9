"""Shared parts of all commands: groups whose commands are imported late, errors and exit status, options.

Problem. Dozens of commands in many packages have to behave as one program. Each rank of ``mpirun mpiio-ext run`` pays
for what the command line imports.

Algorithm. A group knows name, module and help line of its commands, and imports one when it is called. Errors of the
package reach the group, which prints them and chooses the exit status. An option of many commands is declared here.

Guarantees. Exit status 0: done; 1: a failure or negative finding; 2: an argument or file cannot be used; 130: Ctrl-C.
An error begins one line of standard error; further lines, one for each mistake, are indented. ``--json`` requires no
file; if the JSON is printed, standard output contains nothing else.
"""

from __future__ import annotations

import contextlib
import errno
import importlib
import itertools
import os
import re
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from click.shell_completion import CompletionItem

from mpiio_ext.common.extras import needing
from mpiio_ext.common.printing import echo, printable
from mpiio_ext.errors import MpiioExtError, MpiioExtWarning

#: Exit status: a failure or a negative finding; an argument, hint or file cannot be used; Ctrl-C.
FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130
#: Errors of writing to a file without a name.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
#: Names that an error suggests.
_MOST_NEAR = 2

#: Help texts of commands that need an extra to be imported, each behind a line "=== COMMAND"; the build makes them. An
#: editable installation has none, and all extras.
HELPS = Path(__file__).with_name("help.txt")

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Put(Protocol):
    """Writes a JSON text to its place; see `json_result`."""

    def __call__(self, text: str, done: bool = True) -> None:
        """Put it; `done`: it is the last one."""


def all_of(function: Decorated, options: Sequence[Any]) -> Decorated:
    """Put options on a command, the first one first in its help."""
    for option in reversed(options):
        function = option(function)
    return function


def json_option(what: str = "Print JSON.") -> Callable[[Decorated], Decorated]:
    """Return ``--json``: the result as JSON on standard output."""
    return click.option("--json", "as_json", is_flag=True, help=what)


def output_option(*name: str, **named: Any) -> Callable[[Decorated], Decorated]:
    """Return ``-o, --output``: where the result goes; the arguments are those of `click.option`."""
    return click.option("-o", "--output", *name, **named)


def json_file_option() -> Callable[[Decorated], Decorated]:
    """Return ``--output FILE``: where the JSON goes."""
    return output_option(
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="With --json: the file that it goes to.  [default: standard output]",
    )


@contextlib.contextmanager
def json_result(as_json: bool, output: Path | None = None) -> Iterator[Put]:
    """Yield the writer of the JSON; if the JSON is printed, other text of the block goes to standard error.

    Text that is put before the end (`done` is false) stays in the file, if there is one.

    Parameters
    ----------
    as_json, output : ``--json`` and ``--output``; the file is tried first, for the block may take hours.

    Raises
    ------
    FileSystemError
        The file cannot be written.
    """
    from mpiio_ext.common.files import check_target, write_whole  # not for each rank of `run`

    if output is not None:
        if not as_json:
            raise click.UsageError("--output is the file of --json: give --json, too")
        check_target(output)
    printed = sys.stdout

    def put(text: str, done: bool = True) -> None:
        if output is not None:
            write_whole(output, text + "\n")
        if done:
            echo(*((text, printed) if output is None else (f"wrote {output}",)))

    with contextlib.redirect_stdout(sys.stderr) if as_json and output is None else contextlib.nullcontext():
        yield put


def warn(text: object) -> None:
    """Print an error or a warning, in the one form that they have, on standard error."""
    echo(f"mpiio-ext: {_indented(text)}", err=True)


def _indented(text: object) -> str:
    """Return a text with its further lines indented: an end of a line in a name must not begin a line of ours."""
    return re.sub(r"\n(?!  )", "\n  ", str(text))


@contextlib.contextmanager
def reporting(*others: type[Exception], status: int = UNUSABLE) -> Iterator[None]:
    """Print an error of the block, one line for each mistake, and end the process.

    Parameters
    ----------
    others : errors beside those of the package
    status : exit status for these
    """
    expected: tuple[type[Exception], ...] = (MpiioExtError, *others)
    try:
        yield
    except KeyboardInterrupt as error:
        warn("interrupted")
        raise SystemExit(INTERRUPTED) from error
    except expected as error:
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None and error.strerror:
            text = f"{error.filename}: {error.strerror}"
        warn(text or type(error).__name__)
        raise SystemExit(getattr(error, "exit_status", status)) from error
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        warn(f"the output cannot be written: {error.strerror}")
        _let_go()
        raise SystemExit(FAILED) from error


@contextlib.contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C within the block, so that the results until then can be printed."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextlib.contextmanager
def interruptible() -> Iterator[list[KeyboardInterrupt]]:
    """Let Ctrl-C and SIGTERM end the block alone; the list has the reason, for the code that prints the results."""
    interrupted: list[KeyboardInterrupt] = []
    with sigterm_as_interrupt():
        try:
            yield interrupted
        except KeyboardInterrupt as error:
            interrupted.append(error)


def _let_go() -> None:
    """Drop the contents of standard output that cannot be written: Python's end would fail at it again."""
    try:
        sys.stdout.flush()
    except OSError:
        with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextlib.contextmanager
def own_warnings() -> Iterator[None]:
    """Print warnings of the package as lines, and drop the warnings of libraries, which are for programmers.

    Users who request Python's warnings (``-W``, PYTHONWARNINGS) get them as ever.
    """
    shown = warnings.showwarning

    def show(message: Warning | str, *_arguments: Any, **_named: Any) -> None:
        if isinstance(message, MpiioExtWarning):
            warn(message)

    try:
        warnings.showwarning = shown if sys.warnoptions else show
        yield
    finally:
        warnings.showwarning = shown


def kept_help(words: Sequence[str]) -> str | None:
    """Return the help for a command line, of a command that cannot be imported without its extra.

    `HELPS` has them; None if no help is requested, or there is no such command.
    """
    words = list(itertools.takewhile(lambda word: word != "--", words))
    if not {"-h", "--help"} & set(words) or not HELPS.exists():
        return None
    names = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    texts = HELPS.read_text(encoding="utf-8").rstrip().split("\n=== ")
    kept = {name: text for name, _, text in (text.partition("\n") for text in texts)}
    asked = (" ".join(names[:end]) for end in range(len(names), 0, -1))
    return next((kept[name] for name in asked if name in kept), None)


def _names_for(error: click.ClickException) -> tuple[str, list[str]]:
    """Return the misspelt option, command or choice of an error, and the names that there are."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        known = (name for item in context.command.get_params(context) for name in (*item.opts, *item.secondary_opts))
        return error.option_name, [name for name in known if name.startswith("--")]
    word = re.search("'(.*?)'", error.message)
    names: Iterable[str] = ()
    if isinstance(error, click.BadParameter) and error.param is not None:
        names = getattr(error.param.type, "choices", ())
    elif context is not None and error.message.startswith("No such command"):
        names = context.command.list_commands(context) if isinstance(context.command, click.Group) else ()
    return word[1] if word else "", list(map(str, names))


@contextlib.contextmanager
def suggesting() -> Iterator[None]:
    """Add the names that a misspelt word could mean to an error of the block, once, in place of click's suggestions."""
    try:
        yield
    except click.ClickException as error:
        if getattr(error, "possibilities", None):
            error.possibilities = None  # type: ignore[attr-defined]
        if "Did you mean" not in error.message:
            from mpiio_ext.common.near import near_names

            near = near_names(*_names_for(error), most=_MOST_NEAR)
            choice = " or ".join(f"'{name}'" for name in near)
            text = error.message + (f" Did you mean {choice}?" if near else "")
            error.message = printable(_indented(text))  # type: ignore[misc]  # it has names of what was given
        raise


class _Helped(click.Command):
    """A command with ``-h`` beside ``--help`` in any context: click stores the answer for the first one."""

    def get_help_option_names(self, ctx: click.Context) -> list[str]:
        """Return the names of the option, and let messages of `ctx` have them."""
        ctx.help_option_names = ["-h", "--help"]
        return super().get_help_option_names(ctx)


class Command(_Helped):
    """A command that refuses a second value of an option that takes one: click would use the last without a word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options and arguments."""
        if not ctx.resilient_parsing:
            refuse_repetitions(self, ctx, args)
        return super().parse_args(ctx, args)


def refuse_repetitions(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Raise an error if an option with one value is given twice; a repeated flag is no error.

    Raises
    ------
    click.BadParameter
        An option is given twice; the error names the option.
    """
    _, _, given = command.make_parser(ctx).parse_args(list(args))
    single = [option for option in given if isinstance(option, click.Option) and not (option.multiple or option.count)]
    for option in single:
        if single.count(option) > 1 and (option.secondary_opts or not option.is_flag):
            several = "; separate several values by commas" if getattr(option.type, "several", False) else ""
            raise click.BadParameter(f"it is given twice and takes one value{several}", ctx, option)


class Group(_Helped, click.Group):
    """A group whose options and commands are as those of `Command`."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options of the group itself."""
        with suggesting():
            if not ctx.resilient_parsing:
                refuse_repetitions(self, ctx, args)
            return super().parse_args(ctx, args)


class LazyGroup(Group):
    """A group whose commands are imported when they are called, and whose errors are lines.

    Parameters
    ----------
    subcommands : mapping of str to (str, str, str)
        Name -> (module, attribute that is the command, help line), in the order of the help.
    extras : name -> extra whose packages the command needs.
    """

    def __init__(
        self,
        *arguments: Any,
        subcommands: Mapping[str, tuple[str, str, str]],
        extras: Mapping[str, str] | None = None,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._subcommands, self._extras = dict(subcommands), dict(extras or {})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the subcommands."""
        return list(self._subcommands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import a subcommand; return None if there is none of this name."""
        if cmd_name not in self._subcommands:
            return None
        module, attribute, _ = self._subcommands[cmd_name]
        with self._needing(cmd_name):
            command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called, or print the help of one whose extra is missing."""
        try:
            return super().resolve_command(ctx, args)
        except ImportError:
            text = kept_help([*ctx.command_path.split()[1:], *args])
            if text is None:
                raise
            echo(text)
            ctx.exit()

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the package is a line for each mistake, and the exit status."""
        with reporting(), own_warnings(), suggesting():
            try:
                return super().invoke(ctx)
            except ModuleNotFoundError:
                with self._needing(ctx.invoked_subcommand or ""):
                    raise

    def _needing(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Report a package that a command needs and that is missing."""
        return needing(self._extras[name], f"`{name}`") if name in self._extras else contextlib.nullcontext()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names of subcommands that begin so, without importing them; else the options."""
        names = [name for name in self._subcommands if name.startswith(incomplete)]
        found = [CompletionItem(name, help=self._subcommands[name][2]) for name in names]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the table of subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self._subcommands.items()])
