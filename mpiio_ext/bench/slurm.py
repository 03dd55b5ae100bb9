"""``mpiio-ext bench slurm``: a batch script for Slurm that runs a suite; every value in it is checked.

Two instances are kept apart three times: Slurm starts no second job of this name and user (``singleton``), the script
holds a lock of its own, and the bench has the archive's (`mpiio_ext.bench.suites.lock`).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from mpiio_ext.bench.suites import files
from mpiio_ext.common.commands import HELP, output_option, reporting
from mpiio_ext.common.files import write_whole
from mpiio_ext.common.printing import echo
from mpiio_ext.errors import ArgumentError

Value = str | tuple[str, ...] | None

#: sbatch: "minutes", "minutes:seconds", "hours:minutes:seconds", "days-hours", "days-hours:minutes[:seconds]".
_TIME = re.compile(r"\d+(:[0-5]?\d){0,2}|\d+-\d{1,2}(:[0-5]?\d){0,2}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,@:+-]*")
_CONSTRAINT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,&|()*\[\]-]*")
_MODULE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+/@-]*")
_MPI = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A batch job.

    Attributes
    ----------
    suite : name or file
    short : name of the suite
    nodes, ranks_per_node : counts
    time : Slurm's time limit, as typed
    directives : further options of sbatch, (name, value)
    modules : loaded first
    path, archive : folders, absolute
    launch : options of srun
    arguments : of the bench, beside suite, path and archive
    """

    suite: str
    short: str
    nodes: int
    ranks_per_node: int
    time: str
    directives: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]
    path: Path
    archive: Path
    launch: tuple[str, ...]
    arguments: tuple[str, ...]


def _header(job: Job) -> list[str]:
    values = [
        ("job-name", f"mpiio_ext-{job.short}"),
        ("nodes", str(job.nodes)),
        ("ntasks-per-node", str(job.ranks_per_node)),
        ("time", job.time),
        *job.directives,
    ]
    return [
        "#!/bin/bash",
        f"# Suite {job.short} of mpiio_ext's bench, made by:",
        "#   " + shlex.join(["python", *sys.orig_argv[1:]]).replace("\n", " "),
        "# Submit with sbatch; nightly by `scrontab`, or by cron on a host from which jobs are submitted.",
        "#",
        *(f"#SBATCH --{name}={value}" for name, value in values),
        "# Every process has a processor to itself, and no other job's I/O starts from these nodes:",
        "#SBATCH --exclusive",
        "# Slurm begins this job only when no other one of this name and user runs:",
        "#SBATCH --dependency=singleton",
    ]


def batch_script(job: Job) -> str:
    """Return the script."""
    quoted = shlex.quote
    bench = [sys.executable, "-m", "mpiio_ext.bench", "--suite", job.suite]
    lines = [
        *_header(job),
        "",
        "set -euo pipefail",
        "",
        f"archive={quoted(str(job.archive))}",
        f"path={quoted(str(job.path))}",
        "",
    ]
    if job.modules:
        lines += [
            "# The same modules as when mpiio_ext was built.",
            *(f"module load {quoted(name)}" for name in job.modules),
            "",
        ]
    lines += [
        'if [[ ! -d "$path" ]]; then',
        '    echo "$0: $path: no such folder" >&2',
        "    exit 2",
        "fi",
        "# The archive has the output of the job, too.",
        'mkdir -p "$archive"',
        f'exec >"$archive/{job.short}-${{SLURM_JOB_ID:-$$}}.log" 2>&1',
        "",
        "# One instance at a time, also of jobs with another name or of another user of this archive. The operating",
        "# system takes the lock back when this script ends, however it ends.",
        'exec 9>>"$archive/.job.lock"',
        "if ! flock --nonblock 9; then",
        '    echo "$0: another job has locked $archive/.job.lock: nothing is run" >&2',
        "    exit 2",
        "fi",
        "",
        "# Results go to $archive/<suite>/<date>/<time>: the numbers, the report, the environment, and Darshan's logs.",
        "status=0",
        f"srun{''.join(' ' + quoted(word) for word in job.launch)} \\",
        f"    {' '.join(quoted(word) for word in bench)} \\",
        '    --path "$path" --archive "$archive" --no-progress'
        + "".join(f" {quoted(word)}" for word in job.arguments)
        + " 9>&- || status=$?",
        "",
        'echo "$0: ended with status $status"',
        'exit "$status"',
    ]
    return "\n".join(lines) + "\n"


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback of click that refuses values that do not match: they are written into a script."""

    def check(ctx: click.Context, param: click.Parameter, value: Value) -> Value:
        for text in value if isinstance(value, tuple) else (() if value is None else (value,)):
            if not pattern.fullmatch(text):
                raise click.BadParameter(f"'{text}' is not {what}", ctx, param)
        return value

    return check


def _checked_folder(name: str, path: Path) -> Path:
    """Return the folder's absolute path; one line of a script, and of sbatch's directives, which know no quotes."""
    full = Path(os.path.abspath(path))  # noqa: PTH100  (links stay: the folder is one of the cluster's)
    if not re.fullmatch(r"[A-Za-z0-9_./@+,=-]+", str(full)):
        raise ArgumentError(f"--{name} {full}: letters, digits and _./@+,=- only, because sbatch knows no quotes")
    return full


def _check_arguments(bench: click.Command, suite: str, arguments: Sequence[str]) -> None:
    """Refuse arguments that the bench would refuse when the job has waited for its turn at last."""
    reserved = {"--suite", "--path", "--archive", "--dry-run", "--list", "--ranks", "-h", "--help"}
    for word in arguments:
        if word.partition("=")[0] in reserved:
            raise ArgumentError(f"'{word}' cannot be passed on to the bench: it is the script's")
    try:
        bench.main(args=["--suite", suite, *arguments], standalone_mode=False)
    except click.ClickException as error:
        raise ArgumentError(" ".join(error.format_message().split())) from error


@click.command(context_settings={**HELP, "show_default": True})
@click.option("--suite", required=True, metavar="NAME", help=f"{', '.join(files.names())}, or a file FILE.toml.")
@click.option("--nodes", required=True, type=click.IntRange(min=1), help="Nodes of the job.")
@click.option("--ranks-per-node", required=True, type=click.IntRange(min=1), help="Processes on each node.")
@click.option(
    "--time",
    "limit",
    required=True,
    metavar="LIMIT",
    callback=_matching(_TIME, "a time limit of Slurm"),
    help="Time limit: minutes, hours:minutes:seconds, days-hours, ...",
)
@click.option("--partition", callback=_matching(_NAME, "a name"), help="Queue of the job.")
@click.option("--account", callback=_matching(_NAME, "a name"), help="Account that is charged.")
@click.option("--qos", callback=_matching(_NAME, "a name"), help="Quality of service.")
@click.option(
    "--constraint", callback=_matching(_CONSTRAINT, "a constraint"), help="Features that the nodes must have."
)
@click.option("--mail-user", callback=_matching(_NAME, "an address"), help="Address to notify when the job fails.")
@click.option(
    "--module",
    "modules",
    multiple=True,
    callback=_matching(_MODULE, "a module"),
    help="Module to load; may be repeated.",
)
@click.option("--mpi", callback=_matching(_MPI, "a name of srun's --mpi"), help="srun's --mpi, e.g. pmix.")
@click.option("--path", type=click.Path(path_type=Path), default=".", help="Folder on the file system to measure.")
@click.option("--archive", type=click.Path(path_type=Path), default="bench-results", help="Folder of the results.")
@output_option(
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    show_default=False,
    help="Where the script goes.  [default: standard output]",
)
@click.argument("arguments", nargs=-1, metavar="[-- OPTIONS OF THE BENCH...]")
def command(
    *,
    suite: str,
    nodes: int,
    ranks_per_node: int,
    limit: str,
    partition: str | None,
    account: str | None,
    qos: str | None,
    constraint: str | None,
    mail_user: str | None,
    modules: tuple[str, ...],
    mpi: str | None,
    path: Path,
    archive: Path,
    output: Path | None,
    arguments: tuple[str, ...],
) -> None:
    """Write a batch script that runs a suite under Slurm.

    \b
      mpiio-ext bench slurm --suite tokio-abc --nodes 2 --ranks-per-node 32 --time 60 --path /lustre/me > abc.sh
      sbatch abc.sh

    Exit status: 0 done, 2 a value that cannot be used, or the file cannot be written.
    """  # noqa: D301  (click wants the backspace character itself)
    given = {
        "partition": partition,
        "account": account,
        "qos": qos,
        "constraint": constraint,
        "mail-type": "FAIL" if mail_user else None,
        "mail-user": mail_user,
    }
    with reporting(OSError):
        name = files.load(suite).name
        parent = click.get_current_context().parent
        assert parent is not None  # a command of the bench
        _check_arguments(parent.command, suite, arguments)
        script = batch_script(
            Job(
                suite=str(_checked_folder("suite", Path(suite))) if suite.endswith(".toml") else suite,
                short=name,
                nodes=nodes,
                ranks_per_node=ranks_per_node,
                time=limit,
                directives=tuple((key, value) for key, value in given.items() if value is not None),
                modules=modules,
                path=_checked_folder("path", path),
                archive=_checked_folder("archive", archive),
                launch=(f"--mpi={mpi}",) if mpi else (),
                arguments=arguments,
            )
        )
        if output is None:
            echo(script, nl=False)
        else:
            write_whole(output, script, mode=0o755)
    raise SystemExit(0)
