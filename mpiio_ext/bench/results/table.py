"""The results as a table for people.

A pattern, or a kernel that writes once and reads once, has write and read side by side; a kernel with other phases has
a part for each phase.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mpiio_ext.bench import interfaces
from mpiio_ext.common.results import Absent, Measured
from mpiio_ext.report.verdict import judge, kinds, worth
from mpiio_ext.report.words import interface_title, marks
from mpiio_ext.report.words import notes as notes_of

_DASH = "–"


def _pair(write: str, read: str) -> str:
    return write if write == read else f"{write} / {read}"


def _count(row: Measured | None, name: str) -> str:
    value = getattr(row, name) if row is not None else None
    if value is None or row is None:
        return _DASH
    approximate = "~" if name == "requests" and row.last.requests_source == "kernel" else ""
    return f"{approximate}{value:,}"


def _ratio(row: Measured | None) -> Text:
    if row is None or row.ratio is None:
        return Text(_DASH)
    text = f"{row.ratio.median:.2f}"
    if row.bandwidth.count > 1 and row.key.strategy != "native":
        text += f" ({row.ratio.low:.2f}–{row.ratio.high:.2f})"
    return Text(text, style="bold" if judge(row.ratio) == "faster" and row.ratio.median >= 1.3 else "")


def why_without_delegates(delegation: str, reason: str) -> str:
    """Return the reason why no access of a method used delegates: there are none, or the file took another way."""
    return delegation.removeprefix("none: ") if delegation.startswith("none") else reason or "no reason is known"


def parts(summaries: Sequence[Measured]) -> dict[tuple[str, str, str], list[Measured]]:
    """Return (variant, interface, phase) -> rows that are shown together; phase "" where write and read are.

    The same for the table and the picture.
    """
    phases: dict[tuple[str, str], dict[str, str]] = {}
    for row in summaries:
        phases.setdefault((row.key.variant, row.key.interface), {})[row.key.phase] = row.key.operation
    groups: dict[tuple[str, str, str], list[Measured]] = {}
    for row in summaries:
        operations = list(phases[row.key.variant, row.key.interface].values())
        together = len(set(phases[row.key.variant, row.key.interface])) == 1 or sorted(operations) == ["read", "write"]
        groups.setdefault((row.key.variant, row.key.interface, "" if together else row.key.phase), []).append(row)
    return groups


def _notes(summaries: Sequence[Measured]) -> list[str]:
    notes = ["× native: median of the ratios within each repetition (smallest–largest)."]
    without = [
        why_without_delegates(row.last.delegation, row.last.reason) for row in summaries if row.delegated_accesses == 0
    ]
    more = {
        "*": ", by --native-limit or --native-size; bandwidths are compared.",
        "†": f": {'; '.join(dict.fromkeys(without))}.",
    }
    notes += [f"{mark} {text}" for mark, text in notes_of(summaries, more)]
    if any(row.delegated_accesses for row in summaries):
        notes.append("Bandwidths through delegates count closing, when the last of the data reaches the file.")
    if any(row.key.operation == "both" for row in summaries):
        notes.append("A phase that writes and reads stands under write; its bandwidth is that of both together.")
    return notes


def print_table(console: Console, summaries: Sequence[Measured]) -> None:
    """Print one line per pattern or kernel's phase, interface and method; write and read side by side."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("method", no_wrap=True)
    for title in ("write\nMB/s", "read\nMB/s", "write\n× native", "read\n× native", "data\nMB", "rounds\nw / r"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("requests\nw / r", justify="right", no_wrap=True)
    for number, ((_, interface, phase), rows) in enumerate(parts(summaries).items()):
        if number:
            table.add_row()
        title = rows[0].last.label + (f", {phase}" if phase else "")
        table.add_row(Text(f"{title} [{interface_title(interface)}]", style="bold"))
        by_method: dict[str, dict[str, Measured]] = {}
        for row in rows:
            by_method.setdefault(row.key.strategy, {})["read" if row.key.operation == "read" else "write"] = row
        for operations in by_method.values():
            write, read = operations.get("write"), operations.get("read")
            any_row = write or read
            assert any_row is not None
            table.add_row(
                "  " + any_row.key.strategy + marks(any_row),
                f"{write.bandwidth.median:,.0f}" if write else _DASH,
                f"{read.bandwidth.median:,.0f}" if read else _DASH,
                _ratio(write),
                _ratio(read),
                f"{any_row.last.data_bytes / 1e6:,.1f}",
                _pair(_count(write, "rounds"), _count(read, "rounds")),
                _pair(_count(write, "requests"), _count(read, "requests")),
            )
    console.print(table)
    console.print("\n" + "\n".join(_notes(summaries)), highlight=False)


def _own_ways(summaries: Sequence[Measured]) -> list[str]:
    """Return how the default method compares with the fastest other way, if one of those is without MPI-IO."""
    rivals: dict[tuple[str, str, str], list[Measured]] = {}
    for row in summaries:
        way = interfaces.REGISTRY.get(row.key.interface)
        if row.native and way is not None and (row.key.interface == "mpiio" or not way.through_mpi):
            rivals.setdefault((row.key.variant, row.key.phase, row.key.operation), []).append(row)
    found: dict[str, list[str]] = {}
    for row in summaries:
        others = rivals.get((row.key.variant, row.key.phase, row.key.operation), [])
        if (row.key.interface, row.key.strategy) == ("mpiio", "auto") and len({r.key.interface for r in others}) > 1:
            best = max(others, key=lambda other: other.bandwidth.median)
            name = best.key.strategy if best.key.interface == "mpiio" else interface_title(best.key.interface)
            found.setdefault(row.last.label, []).append(
                f"{row.key.phase or row.key.operation} {row.bandwidth.median / best.bandwidth.median:.2f} ({name})"
            )
    return [f"auto ÷ the fastest other way, {label}: {', '.join(ratios)}" for label, ratios in found.items()]


def print_worth(console: Console, summaries: Sequence[Measured]) -> None:
    """Print for which kinds of access the library pays, and before that how it compares with I/O without MPI-IO."""
    for line in _own_ways(summaries):
        console.print(line, highlight=False, soft_wrap=True)
    sentence = worth(kinds(summaries))
    if sentence:
        console.print(f"\n{sentence}", highlight=False, style="bold", soft_wrap=True)


def print_heading(console: Console, environment: dict[str, Any], notes: Sequence[str]) -> None:
    """Print where the bench runs, and on which file system."""
    hosts = environment["hosts"]
    where = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
    console.print(
        f"{environment['ranks']} ranks on {where}, {environment['cpus_online_count']} processors; "
        f"{environment['mpi_library']}\nfiles in {environment['path']} ({environment['file_system_type']})",
        highlight=False,
    )
    for note in notes:
        console.print(note, highlight=False)
    console.print()


def print_absent(console: Console, absent: Sequence[Absent]) -> None:
    """Print the cases that did not run and the reasons, one line each."""
    for item in absent:
        console.print(f"not run: {item.what}: {item.reason}", highlight=False, soft_wrap=True)
