"""``mpiio-ext run``: put the extension under an unchanged program."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from mpiio_ext.cli.selection import only_option, selection, skip_option
from mpiio_ext.cli.words import hint_options, program_argument
from mpiio_ext.common.commands import Command, warn
from mpiio_ext.common.near import near_names
from mpiio_ext.common.printing import echo
from mpiio_ext.common.programs import path_of
from mpiio_ext.errors import ArgumentError, LoadError
from mpiio_ext.launchers import LATER, Launch, execute, launched_rank, let_rank_0_speak
from mpiio_ext.started import hint_rule, planned, with_hints

_TAKES_VALUE = frozenset({"-H", "--hint", "--hints-file", "--darshan", "--timeline", "--report", "--only", "--skip"})


_LEVELS = ("line", "full", "json")
_OFF = ("0", "false", "no", "off", "disable", "disabled")  # as MPIOX_SWITCH_WORDS has them


class _Run(Command):
    """Lets ``--stats`` stand alone or as ``--stats=WORD`` without swallowing the word that follows it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] != "--":
            if args[index] == "--stats":
                _refuse_value(args[index + 1 :], ctx)
                args[index] = "--stats="
            index += 2 if args[index] in _TAKES_VALUE else 1
        return super().parse_args(ctx, args)


def _refuse_value(rest: Sequence[str], ctx: click.Context) -> None:
    """Refuse the word behind ``--stats`` that was meant as its value: a level, or a file, and not the program."""
    word = next(iter(rest), "")
    if word in _LEVELS or (rest[1:2] == ["--"] and path_of(word) is None):
        raise click.UsageError(
            f"--stats takes its value by `=`: write `--stats={word}`; for a program of that name write"
            f" `--stats -- {word}`",
            ctx,
        )


def _hint_rules(hints: tuple[str, ...]) -> list[str]:
    """Turn ``-H [GLOB:]NAME=VALUE`` into rules of MPIOX_HINTS, checked."""
    try:
        return [hint_rule(text) for text in hints]
    except ArgumentError as error:
        raise click.BadParameter(str(error), param_hint="-H") from error


def _check_file(name: str) -> str:
    """Return the absolute name of a hints file that is readable and free of problems."""
    from mpiio_ext.hints import problems

    path = str(Path(name).absolute())
    before = os.environ.get("MPIOX_HINTS_FILE")
    os.environ["MPIOX_HINTS_FILE"] = path  # where the check searches
    try:
        found = [re.sub("; (line )?ignored$", "", line) for line in problems() if path in line]
    finally:
        if before is None:
            del os.environ["MPIOX_HINTS_FILE"]
        else:
            os.environ["MPIOX_HINTS_FILE"] = before
    if found:
        raise click.BadParameter("\n  ".join(found), param_hint="--hints-file")
    return path


def _check_statistics(name: str) -> str:
    """Return the absolute name of a file that statistics can be appended to."""
    word = "" if {"/", "."} & set(name) else name.partition("=")[0].lower()
    level = next(iter(near_names(word, _LEVELS)), None)
    if level is not None:
        raise click.BadParameter(
            f"{name!r} is neither a level (line, full, json) nor a likely file: give `--stats={level}`, and"
            f" `--stats=FILE` beside it; for a file of that name write `--stats=./{name}`",
            param_hint="--stats",
        )
    from mpiio_ext.common.files import check_target
    from mpiio_ext.errors import FileSystemError

    path = Path(name).absolute()
    try:
        if not path.exists() or path.is_dir():  # a pipe or a device is as good as a file
            check_target(path)
    except FileSystemError as error:
        raise click.BadParameter(str(error), param_hint="--stats") from error
    return str(path)


def _check_names(targets: Mapping[str, str | None]) -> None:
    """Refuse an option that was taken for the name of a file, since the file's name was left out."""
    for option, name in targets.items():
        if name is not None and name.startswith("-"):
            raise click.BadParameter(
                f"{name!r} is an option, and no name of a file: write `{option} FILE {name}`; for a file of that name"
                f" write `{option} ./{name}`",
                param_hint=option,
            )


def settings_of(hint: tuple[str, ...], hints_file: str | None, stats: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the MPIOX_* variables for the options."""
    settings = with_hints(_hint_rules(hint), os.environ)
    if hints_file is not None:
        settings["MPIOX_HINTS_FILE"] = _check_file(hints_file)
    if stats:
        settings["MPIOX_STATS"] = next((word for word in reversed(stats) if word in _LEVELS), "1")
        files = [word for word in stats if word and word not in _LEVELS]
        if files:
            settings["MPIOX_STATS_FILE"] = _check_statistics(files[-1])
    return settings


def _wants_statistics(environment: Mapping[str, str]) -> bool:
    level = environment.get("MPIOX_STATS", "").lower()
    return bool(level or environment.get("MPIOX_STATS_FILE")) and level not in _OFF


def plan_launch(command: tuple[str, ...], library: str, settings: dict[str, str]) -> Launch:
    """Return the command to execute, with the library preloaded; a launcher of the other MPI family is refused."""
    try:
        return planned(command, library, settings)
    except LoadError as error:
        raise click.UsageError(str(error)) from error


def select_library(command: tuple[str, ...]) -> None:
    """Choose the library that fits the program of a command; if none fits, raise `click.UsageError`."""
    from mpiio_ext import __version__
    from mpiio_ext._load import misfit_here, select

    try:
        select(command)
        text = misfit_here(__version__)
        if text and launched_rank(os.environ) == 0:
            echo(f"mpiio-ext: {text}: build or install mpiio_ext again", err=True)
    except LoadError as error:
        raise click.UsageError(str(error)) from error


def _warn_of_variables() -> None:
    """Print which variables do not exist, once for all ranks."""
    from mpiio_ext.environment import unknown

    found = unknown(os.environ)
    if launched_rank(os.environ) == 0:
        for name, near in found.items():
            echo(
                f"mpiio-ext: {name} does not exist, and has no effect" + (f"; did you mean {near}?" if near else ""),
                err=True,
            )


def refuse_later(command: Sequence[str]) -> None:
    """Refuse to record what a command only submits: the recording ends with the command.

    Raises
    ------
    click.UsageError
        The command ends before the program starts.
    """
    if not LATER.isdisjoint(Path(word).name for word in command[:2]):
        words = " ".join(command[:2])
        raise click.UsageError(
            f"{words}: ends before the program starts, and so does the recording; start mpiio-ext in the batch script"
        )


def start(
    command: tuple[str, ...],
    library: str,
    settings: dict[str, str],
    *,
    dry_run: bool,
    by: Callable[[Launch], None] = execute,
) -> None:
    """Start the program `by` becoming it, or with `dry_run` print the command and return."""
    try:
        launch = plan_launch(command, library, settings)
    except click.UsageError as error:
        if let_rank_0_speak(os.environ):  # every rank has the same command line
            raise
        raise SystemExit(error.exit_code) from error
    if dry_run:
        _show(launch)
        return
    sys.stdout.flush()
    try:
        by(launch)
    except OSError as error:
        warn(f"cannot execute {command[0]}: {error.strerror}")
        raise SystemExit(127 if isinstance(error, FileNotFoundError) else 126) from error


@click.command(cls=_Run, context_settings={"allow_interspersed_args": False})
@hint_options()
@click.option(
    "--stats",
    multiple=True,
    metavar="[=line|full|json|FILE]",
    help="Print statistics at close: a line for each file, with every number (full: the default) or as "
    "JSON; or append them to FILE as JSON lines. May be given twice.",
)
@click.option(
    "--darshan", metavar="FILE", help="Write the recorded calls as a Darshan log, which Darshan's tools read."
)
@click.option("--darshan-dxt", is_flag=True, help="With --darshan: every access, too (modules DXT_POSIX, DXT_MPIIO).")
@click.option("--timeline", metavar="FILE", help="Write the recorded calls as a time line for https://ui.perfetto.dev.")
@click.option(
    "--report",
    metavar="FILE.html",
    help="Make a page about the run: where the time went and what would help (or MPIOX_REPORT=FILE).",
)
@only_option
@skip_option
@click.option("--dry-run", is_flag=True, help="Print what would be executed and exit.")
@program_argument
def run(
    hint: tuple[str, ...],
    hints_file: str | None,
    stats: tuple[str, ...],
    darshan: str | None,
    darshan_dxt: bool,
    timeline: str | None,
    report: str | None,
    only: tuple[str, ...],
    skip: tuple[str, ...],
    dry_run: bool,
    command: tuple[str, ...],
) -> None:
    """Run PROGRAM, an unchanged MPI program or an MPI launcher, with the extension under it.

    Both ways work:

    \b
      mpirun -n 4 mpiio-ext run -H mpiox_partition=group_cyclic -- ./app
      mpiio-ext run -H '*.h5:cb_nodes=8' --stats -- mpirun -n 4 ./app

    If a hint given here, in MPIOX_HINTS or in a file requests staged closes, calls past MPI wait for the files, too.

    Exit status: that of PROGRAM; 2 an argument, hint or file cannot be used, 126 PROGRAM cannot be executed, 127 there
    is none. With --report, --darshan or --timeline before a launcher or a program: 125 if PROGRAM has succeeded, but no
    process of it has loaded mpiio_ext.
    """  # noqa: D301  (click wants the backspace character itself)
    import mpiio_ext

    try:
        if darshan_dxt and darshan is None:
            raise click.UsageError("--darshan-dxt is part of a Darshan log: give --darshan FILE, too")
        _check_names({"--darshan": darshan, "--timeline": timeline, "--report": report})
        report = report or os.environ.get("MPIOX_REPORT") or None
        recorded = any(name is not None for name in (darshan, timeline, report))
        settings = settings_of(hint, hints_file, stats) | selection(only, skip, recorded=recorded)
        select_library(command)
    except click.UsageError as error:
        if let_rank_0_speak(os.environ):
            raise
        raise SystemExit(error.exit_code) from error
    _warn_of_variables()
    library = str(mpiio_ext.get_library())
    if not dry_run and _wants_statistics({**os.environ, **settings}):
        from mpiio_ext.cli.witness import watch  # not for each rank of a run without them

        settings |= watch(command, settings)
    if recorded:
        library, settings = _recorded(command, library, settings, (darshan, timeline, report), darshan_dxt, dry_run)
    try:
        start(command, library, settings, dry_run=dry_run)
    except SystemExit:  # nothing was executed: each rank removes the folder while it is empty
        if not dry_run and "MPIOX_TRACE_DIR" in settings:
            with contextlib.suppress(OSError):
                Path(settings["MPIOX_TRACE_DIR"]).rmdir()
        raise


def _recorded(
    command: tuple[str, ...],
    library: str,
    settings: dict[str, str],
    targets: Sequence[str | None],
    dxt: bool,
    dry_run: bool,
) -> tuple[str, dict[str, str]]:
    """Run the program beside the writer of a log or page, or return libraries and settings of any other rank."""
    refuse_later(command)
    from mpiio_ext._load import get_tracer
    from mpiio_ext.cli import logged  # not for each rank of a run without them
    from mpiio_ext.errors import FileSystemError

    kinds: list[Callable[[Path], logged.Result]] = [
        lambda path: logged.DarshanLog(target=path, dxt=dxt),
        logged.Timeline,
        lambda path: logged.RunPage(target=path, command=command),
    ]
    results = [kind(Path(target).absolute()) for kind, target in zip(kinds, targets, strict=True) if target is not None]
    for result in results:
        if not result.target.name:
            raise FileSystemError(errno.EISDIR, "is a folder; name a file in it", str(result.target))
    recording = logged.Recording.of(results)
    library, settings = f"{get_tracer()}:{library}", {**settings, **recording.settings(settings)}
    if not dry_run:
        launch = plan_launch(command, library, settings)
        if path_of(launch.arguments[0]) is None:  # `start` prints so; a launcher may kill this rank before the others
            return library, settings
        recording.prepare()
        if recording.writes:
            recording.accompany(launch)
    return library, settings


def _show(launch: Launch) -> None:
    import shlex

    names: Any = (name for name in launch.environment if name == "LD_PRELOAD" or name.startswith("MPIOX_"))
    words = [f"{name}={launch.environment[name]}" for name in sorted(names)]
    echo(shlex.join(["env", *words, *launch.arguments] if words else launch.arguments))
