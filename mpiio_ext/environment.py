"""The environment variables of this library, with their meanings.

One table, read by ``mpiio-ext doctor`` and by the page docs/reference/checks.md; a test compares it with the sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Variable(NamedTuple):  # a data class would make every rank import `inspect`
    """One variable.

    Attributes
    ----------
    meaning : what it does, one line.
    by_user : whether users set it, rather than the library or its commands for their own processes.
    """

    meaning: str
    by_user: bool = True


def _own(meaning: str) -> Variable:
    return Variable(meaning=meaning, by_user=False)


#: Name -> variable.
VARIABLES: dict[str, Variable] = {
    "MPIOX_HINTS": Variable(meaning="hints, by rules of GLOB:NAME=VALUE"),
    "MPIOX_HINTS_FILE": Variable(meaning="a file of hints"),
    "MPIOX_SITE_FILE": Variable(meaning="the administrator's file of hints, in place of /etc/mpiio_ext.conf"),
    "MPIOX_STATS": Variable(meaning="print statistics when a file is closed: 1, line, full or json"),
    "MPIOX_STATS_FILE": Variable(meaning="a file that gets statistics as lines of JSON"),
    "MPIOX_REPORT": Variable(meaning="`mpiio-ext run` makes a page about the run: --report"),
    "MPIOX_LIVE": Variable(meaning="0: `mpiio-ext top` does not show this process"),
    "MPIOX_RANKS_PER_NODE": Variable(meaning="default of the hint mpiox_ranks_per_node"),
    "MPIOX_TRACE_DIR": Variable(meaning="folder of a trace"),
    "MPIOX_TRACE_ONLY": Variable(meaning="globs, one a line: record calls on these files alone"),
    "MPIOX_TRACE_SKIP": Variable(meaning="globs, one a line: record no calls on these files"),
    "MPIOX_TRACE_FOLDERS": Variable(meaning="1: record calls on folders, too"),
    "MPIOX_TRACE_SYSTEM_FILES": Variable(meaning="1: record calls on files of the system, too"),
    "MPIOX_TRACE_MODE": Variable(meaning="recording: counters of bounded size in place of a trace"),
    "MPIOX_RECORDING_BYTES": Variable(meaning="bytes that the recording of a process may take"),
    "MPIOX_RECORDING_NODE_BYTES": Variable(meaning="bytes that all recordings of a node may take; 0: any"),
    "MPIOX_TRACE_CLOCK": Variable(meaning="system: query the kernel for every time of a trace"),
    "MPIIO_EXT_ABI": Variable(meaning="openmpi, mpich or mpiabi: the library of a wheel that is tried first"),
    "MPIIO_EXT_LOG_LIMIT": Variable(
        meaning="largest size of a log, unpacked, that readers of logs read: `mpiio-ext analyze --log-limit`"
    ),
    "MPIIO_EXT_PNETCDF": Variable(meaning="libpnetcdf.so for the bench"),
    "MPIOX_STATS_WITNESS": _own("receiver of the sign that calls reach the library"),
    "MPIOX_REPORT_STATS": _own("target of the statistics for the page of a run, as lines of JSON"),
    "MPIOX_DELEGATE_STARTER": _own("address at which a delegate finds the ranks that spawned it"),
}


def looks_ours(name: str) -> bool:
    """Return whether a variable's name was meant for this library."""
    return name.upper().startswith(("MPIOX_", "MPIIOX_", "MPIIO_EXT_", "MPIO_", "MPOIX_", "MPIXO_"))


def unknown(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that were meant for this library and do not exist: name -> the nearest name, or ""."""
    found = {}
    for name in sorted(filter(looks_ours, environment)):
        if name not in VARIABLES and name != "MPIIO_EXT_SKIP_APT" and not name.startswith("MPIOX_TEST_"):
            from mpiio_ext.common.near import near_names  # here: every rank of a program would load it

            found[name] = next(iter(near_names(name, VARIABLES)), "")
    return found


def markdown_table() -> str:
    """Return the table of docs/reference/checks.md: the variables that users set."""
    rows = [f"| `{name}` | {item.meaning} |" for name, item in VARIABLES.items() if item.by_user]
    return "\n".join(["| variable | meaning |", "|---|---|", *rows]) + "\n"
