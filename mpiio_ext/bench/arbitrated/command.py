"""``mpiio-ext bench arbitration``: two jobs under a live arbiter, added to results of the bench."""

from __future__ import annotations

import contextlib
import html
import json
import re
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from mpiio_ext.bench.arbitrated import results
from mpiio_ext.bench.arbitrated.run import Setting, explore, run_policy
from mpiio_ext.bench.compare.launches import describe_environment
from mpiio_ext.bench.errors import EXIT_RUN, SetupError
from mpiio_ext.common.commands import Command, json_option, output_option, reporting
from mpiio_ext.common.options import Duration
from mpiio_ext.common.printing import echo
from mpiio_ext.delegates.arbitration.policytype import PolicyType

_FOLDER = click.Path(path_type=Path)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)


def _newest(archive: Path) -> Path:
    """Return the folder of the newest results below a folder."""
    found = [path for path in archive.rglob("results.json") if '"schema_version"' in path.read_text("utf-8")[:200]]
    if not found:
        raise SetupError(
            f"{archive}: there are no results of the bench to add to; name them by --output, or run the bench first"
        )
    return max(found, key=lambda path: path.stat().st_mtime_ns).parent


def _add_to_report(folder: Path) -> Path:
    """Make the page of results anew: it also shows results that are beside them."""
    from mpiio_ext.common.files import write_whole
    from mpiio_ext.report.load import load_all
    from mpiio_ext.report.page import render

    path, title = folder / "report.html", "I/O benchmark of mpiio_ext"
    if path.is_file():
        known = _TITLE.search(path.read_text(encoding="utf-8", errors="replace"))
        title = html.unescape(known[1]) if known else title
    write_whole(path, render(*load_all([folder]), title=title).text)
    return path


def _run(into: Path, path: Path, setting: dict[str, Any], policies: tuple[str, ...], as_json: bool) -> None:
    if not path.is_dir():
        raise SetupError(f"--path {path}: no such folder")
    with tempfile.TemporaryDirectory(prefix="mpiio-arbitration-", dir=path) as folder:
        chosen = Setting(folder=Path(folder).resolve(), **setting)
        curves = explore(chosen)
        runs = [run_policy(chosen, policy, curves) for policy in policies]
    configuration = {key: value for key, value in asdict(chosen).items() if key != "folder"}
    environment = describe_environment([], path)
    found = results.document(runs, curves, configuration, environment)
    paths = results.write(into, found)
    for line in [json.dumps(found)] if as_json else results.lines(found):
        echo(line)
    echo(f"results: {', '.join(each.name for each in paths)} in {into}", err=as_json)
    if (into / "results.json").is_file():
        echo(f"report: {_add_to_report(into)}", err=as_json)


@click.command(cls=Command, context_settings={"show_default": True})
@output_option(
    type=_FOLDER,
    metavar="FOLDER",
    show_default="the newest below --archive",
    help="Folder of the results; where it holds results of the bench, their report shows this run too.",
)
@click.option(
    "--archive",
    type=_FOLDER,
    default="bench-results",
    metavar="FOLDER",
    help="Folder in which the newest results are searched.",
)
@click.option(
    "--path",
    type=_FOLDER,
    default="/dev/shm",
    metavar="FOLDER",
    help="Folder on the file system to measure. Jobs write as fast as they can: a disk's journal may stall "
    "them, and the arbiter's folder, for seconds.",
)
@click.option(
    "--policy", "policies", type=PolicyType(), multiple=True, default=("static", "mckp"), help="May be repeated."
)
@click.option("--ranks", type=click.IntRange(1), default=2, help="Ranks of each of the two jobs.")
@click.option(
    "--io-nodes", type=click.IntRange(1, 240), default=4, help="I/O nodes in the pool: delegates of each job."
)
@click.option("--together", "seconds", type=Duration(least=0.5), default="4s", help="Time in which both jobs write.")
@click.option(
    "--lead",
    type=Duration(zero=True),
    default="1.5s",
    help="Time in which one job writes alone, before and after that.",
)
@click.option(
    "--delegate-mode",
    type=click.Choice(["spawn", "process", "thread"]),
    default="thread",
    help="How delegates are started; threads of the ranks need no further processors.",
)
@json_option("Print the results as JSON; the names of files go to standard error.")
def command(
    output: Path | None,
    archive: Path,
    path: Path,
    policies: tuple[str, ...],
    ranks: int,
    io_nodes: int,
    seconds: float,
    lead: float,
    delegate_mode: str,
    as_json: bool,
) -> None:
    """Run two small jobs under a live arbiter, once for each policy, and show their bandwidth over time.

    Not an MPI program: it explores the patterns of the jobs for their curves, and starts arbiter and jobs itself.

    Exit status: 0 done, 1 a run failed, 2 bad argument or path, 3 wrong data.
    """
    setting = {"ranks": ranks, "io_nodes": io_nodes, "seconds": seconds, "lead_s": lead, "mode": delegate_mode}
    with reporting(OSError, status=EXIT_RUN):
        target = output if output is not None else _newest(archive)
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"--output {target}: cannot be made: {error.strerror}") from error
        try:
            _run(target, path, setting, tuple(dict.fromkeys(policies)), as_json)
        except BaseException:
            with contextlib.suppress(OSError):  # not empty: it was there before
                target.rmdir()
            raise
