"""``mpiio-ext pioneer``: from traces to workload paths, profiles and synthetic workloads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mpiio_ext.common.commands import Group, json_file_option, json_option, json_result, output_option, reporting, warn
from mpiio_ext.common.options import Existing
from mpiio_ext.common.printing import echo
from mpiio_ext.errors import ArgumentError
from mpiio_ext.pioneer.cli_all import everything
from mpiio_ext.pioneer.cli_compare import compare
from mpiio_ext.pioneer.cli_loss import say_loss
from mpiio_ext.pioneer.cli_replay import replay
from mpiio_ext.pioneer.cli_show import show
from mpiio_ext.pioneer.cli_timeline import timeline
from mpiio_ext.pioneer.forms import FORMS_OF_PATHS, FORMS_OF_PROFILES, multiply_option, named_after, save_path

if TYPE_CHECKING:
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.pioneer.profile import Profile


def _load_path(name: str) -> WorkloadPath:
    from mpiio_ext.pioneer.path import WorkloadPath

    with reporting(OSError, ValueError):
        return WorkloadPath.load(Path(name))


class _Phases(Group):
    """The commands in the order in which they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names; those that the order does not have stand last."""
        order = ("all", "timeline", "path", "show", "profile", "check", "synthesize", "replay", "compare", "fidelity")
        return sorted(self.commands, key=lambda name: order.index(name) if name in order else len(order))


@click.group(cls=_Phases)
def pioneer() -> None:
    """Trace a program once, characterize its I/O, and carry it out with any number of processes."""


# ---- traces ----------------------------------------------------------------------------------------------------------


def _say(line: str) -> None:
    warn(line)


@pioneer.command(short_help="Make the workload path of a trace.")
@click.argument("trace", nargs=-1, required=True, type=Existing())
@output_option(
    required=True,
    metavar="FILE",
    callback=named_after(FORMS_OF_PATHS),
    help="Target of the workload path: .parquet, .json, or .txt (as `show` prints it, to be read only).",
)
@click.option("--format", "name", metavar="NAME", help="Format of the trace.  [default: detected]")
@click.option(
    "--each-rank",
    is_flag=True,
    help="Write the operations of each rank in place of those of each subgroup: "
    "carried out by as many ranks, every rank makes its own accesses. At most 63 ranks.",
)
@click.option("--only", multiple=True, metavar="GLOB", help="Use only operations on files that match; may be repeated.")
@click.option(
    "--skip", multiple=True, metavar="GLOB", help="Leave out operations on files that match; may be repeated."
)
def path(
    trace: tuple[str, ...], output: str, name: str | None, each_rank: bool, only: tuple[str, ...], skip: tuple[str, ...]
) -> None:
    """Make the generic workload path of a TRACE: files or folders, one or several."""
    from mpiio_ext.pioneer.traces import (
        communicators_missing,
        not_represented,
        path_of,
        read_sanitized,
        require_match,
        selected,
        tables_of,
    )

    with reporting(OSError, ValueError):
        info, rows = read_sanitized([Path(source) for source in trace], name, only=only, say=_say)
        every = tables_of(rows)
        tables = {rank: selected(table, only, skip) for rank, table in every.items()}
        say_loss(info)
        require_match(every, tables)
        found = path_of(tables, info, each_rank=each_rank)
        save_path(found, Path(output))
        if partly := communicators_missing(tables, info, each_rank=each_rank):
            _say(partly)
        for line in not_represented(tables, found):
            _say(line)
    sizes = ", ".join(str(len(group)) for group in found.info.members[1:]) or "none"
    echo(
        f"{output}: {found.table.num_rows:,} operations of {len(tables)} ranks; subgroups of children: {sizes}"
        f"{'' if found.info.minimal else '; the differences may not be the fewest'}"
    )


# ---- profiles --------------------------------------------------------------------------------------------------------


@pioneer.command(short_help="Characterize a path: an editable profile.")
@click.argument("workload_path", metavar="PATH", type=Existing(dir_okay=False))
@output_option(
    required=True, metavar="FILE", callback=named_after(FORMS_OF_PROFILES), help="Target of the profile: .json."
)
@click.option("--plain", is_flag=True, help="Leave out the shapes of the path, for an edit by hand.")
def profile(workload_path: str, output: str, plain: bool) -> None:
    """Characterize a workload PATH: open sessions, gaps, sizes, offsets, slack times by file class."""
    from mpiio_ext.pioneer.profile import characterize
    from mpiio_ext.pioneer.profile.document import save
    from mpiio_ext.pioneer.synthesis import with_shapes

    known = _load_path(workload_path)
    counted = characterize(known, fits=True)
    found = counted if plain else with_shapes(counted, known)
    with reporting(OSError):
        save(found, Path(output))
    for line in found.lines():
        echo(line)


def _is_path(name: str) -> bool:
    """Return whether a file is a workload path, in Parquet or JSON, and no profile."""
    with Path(name).open("rb") as file:
        first = file.read(4)
        return first == b"PAR1" or b'"pioneer-path"' in first + file.read()


def _load_source(name: str) -> WorkloadPath | Profile:
    """Return a workload path or a profile, whichever it is."""
    from mpiio_ext.common.documents import DocumentError
    from mpiio_ext.pioneer.profile.document import load

    with reporting(OSError, DocumentError):
        return _load_path(name) if _is_path(name) else load(Path(name))


@pioneer.command(short_help="Make another path, of a path or a profile.")
@click.argument("source", metavar="PATH|PROFILE", type=Existing(dir_okay=False))
@output_option(
    required=True,
    metavar="FILE",
    callback=named_after(FORMS_OF_PATHS),
    help="Target of the synthetic path: .parquet, .json, or .txt (as `show` prints it, to be read only).",
)
@click.option(
    "--mode",
    type=click.Choice(["faithful", "quota", "sampled", "tuned"]),
    default="sampled",
    show_default=True,
    help="faithful: the path itself; quota: operations that may change places are shuffled; sampled: "
    "drawn by Algorithm 1; tuned: the same, multiplied.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Equal seeds give equal paths.")
@multiply_option
def synthesize(source: str, output: str, mode: str, seed: int, multiply: dict[str, float]) -> None:
    """Make a synthetic workload path of a PATH or a PROFILE.

    An unedited PROFILE gives the same path as its PATH. If only slack times, sizes, offsets or numbers of files or
    opens were edited, the structure stays; a line says so. After any other edit, or without the part "shapes", all
    characteristics are drawn independently.

    The exit status is 1 if the result violates more hard dependencies than PATH does.
    """
    from mpiio_ext.common.documents import DocumentError
    from mpiio_ext.pioneer.path import WorkloadPath
    from mpiio_ext.pioneer.synthesis import Scale, find_violations
    from mpiio_ext.pioneer.synthesis import synthesize as make
    from mpiio_ext.pioneer.synthesis.document import fits

    known = _load_source(source)
    try:
        found = make(known, mode=mode, seed=seed, scale=Scale(**multiply))
        save_path(found, Path(output))
    except DocumentError as error:
        raise ArgumentError(f"{source}: {error}") from error
    except (OSError, ValueError) as error:
        raise ArgumentError(str(error)) from error
    if not isinstance(known, WorkloadPath) and not fits(known):
        warn(f"{source}: {_edited_words(known)}")
    violations = find_violations(found)
    echo(f"{output}: {found.table.num_rows:,} operations; hard dependencies that do not hold: {len(violations)}")
    for item in violations[:3]:
        echo(f"  operation {item.id}, group {item.group}: {item.why}", err=True)
    before = len(find_violations(known)) if violations and isinstance(known, WorkloadPath) else 0
    raise SystemExit(1 if len(violations) > before else 0)


def _edited_words(profile: Profile) -> str:
    """Return the effect of edits on a profile."""
    from mpiio_ext.pioneer.synthesis.edited import FOLLOWED, edited, keeps_shapes

    alone = "all characteristics are drawn independently"
    if profile.shapes is None:
        return f"it has no shapes: {alone}"
    names = sorted(f"{owner}/{name}" for owner, name in edited(profile) or ())
    if keeps_shapes(profile):
        return f"{', '.join(names)} edited; the structure stays"
    other = [name for name in names if name.rpartition("/")[2] not in FOLLOWED] or ["its classes"]
    return f"{', '.join(other)} edited, which makes another structure: {alone}"


@pioneer.command(short_help="How close synthetic paths come to paths.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=Existing(dir_okay=False))
@click.option("--seeds", type=click.IntRange(min=1), default=20, show_default=True, help="Paths in each mode.")
@json_option("Print the table as JSON; the other form goes to standard error.")
@json_file_option()
def fidelity(paths: tuple[str, ...], seeds: int, as_json: bool, output: Path | None) -> None:
    """Show how close synthetic paths come to each workload PATH: all modes, the worst of many seeds, and controls.

    The exit status is 1 if a mode passes a limit, or a control passes none.
    """
    from mpiio_ext.pioneer.fidelity import fidelity as measure
    from mpiio_ext.pioneer.fidelity import to_json, to_markdown

    with json_result(as_json, output) as put:
        rows = measure({Path(name).stem: _load_path(name) for name in paths}, seeds, lambda what: echo(what, err=True))
        echo(to_markdown(rows), nl=False)
        if as_json:
            put(to_json(rows))
    raise SystemExit(1 if any(bool(row.failed) != row.is_control for row in rows) else 0)


_SHOWN = 20  # violations


def _check_path(name: str, *, as_json: bool = False) -> int:
    """Show the violated hard dependencies of a path, and the operations that a replay would refuse; return the status.

    Operations on a file whose open the trace lacks are counted separately: a replay opens it.
    """
    from mpiio_ext.pioneer.engine.refused import refusals
    from mpiio_ext.pioneer.engine.unmade import unmade
    from mpiio_ext.pioneer.profile import find_sessions
    from mpiio_ext.pioneer.synthesis import find_violations

    known = _load_path(name)
    ids = known.table["id"].to_pylist()
    nobody = [session for session in find_sessions(known).sessions if not session.has_open]
    unopened = {ids[row] for session in nobody for row in session.members}
    found = find_violations(known, most=known.table.num_rows + 1)
    wrong = [item for item in found if not (item.id in unopened and item.not_open)]
    refused, more = refusals(known), list(unmade(known))
    if as_json:
        echo(
            json.dumps(
                {
                    "document": name,
                    "kind": "path",
                    "operations": len(ids),
                    "violations": [{"operation": item.id, "group": item.group, "why": item.why} for item in wrong],
                    "sessions_without_open": len(nobody) if len(wrong) < len(found) else 0,
                    "refused": list(refused),
                    "not_made": more,
                    "fine": not (wrong or refused),
                }
            )
        )
        return 1 if wrong or refused else 0
    for item in wrong[:_SHOWN]:
        echo(f"{name}: operation {item.id}, group {item.group}: {item.why}")
    if len(wrong) > _SHOWN:
        echo(f"{name}: and {len(wrong) - _SHOWN:,} more")
    if len(wrong) < len(found):
        echo(
            f"{name}: {len(nobody):,} open sessions have no open in the path, as in traces without opens: "
            "a replay adds one if they move data"
        )
    for line in (*refused[:_SHOWN], *more):
        echo(f"{name}: {line}")
    echo(
        f"{name}: hard dependencies of {len(ids):,} operations: "
        + (f"{len(wrong):,} do not hold" if wrong else "all hold")
    )
    return 1 if wrong or refused else 0


@pioneer.command(short_help="Check a path or a profile.")
@click.argument("document", metavar="PATH|PROFILE", type=Existing(dir_okay=False))
@json_option("Print the violations of a path as JSON; for a profile, whether it is valid.")
def check(document: str, as_json: bool) -> None:
    """Check a PROFILE and show each mistake with its place; or prove the hard dependencies of a workload PATH.

    The exit status is 1 if something is wrong.
    """
    from mpiio_ext.common.documents import DocumentError
    from mpiio_ext.pioneer.profile.document import load
    from mpiio_ext.pioneer.synthesis.document import model_from_json

    if _is_path(document):
        raise SystemExit(_check_path(document, as_json=as_json))
    with reporting(OSError, DocumentError):
        found = load(Path(document))
    try:
        if found.shapes is not None:
            model_from_json(found.shapes)
    except DocumentError as error:
        raise ArgumentError(f"{document}: {error}") from error
    echo(json.dumps({"document": document, "kind": "profile", "fine": True}) if as_json else f"{document}: fine")


# ---- commands in files of their own ----------------------------------------------------------------------------------

pioneer.add_command(everything)
pioneer.add_command(compare)
pioneer.add_command(replay)
pioneer.add_command(show)
pioneer.add_command(timeline)
