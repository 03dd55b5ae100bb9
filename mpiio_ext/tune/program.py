"""Facts of the program from its first run: its files, its kinds of access, and the hints in force."""

from __future__ import annotations

import fnmatch
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mpiio_ext.tune.errors import TuneError
from mpiio_ext.tune.space import Usage
from mpiio_ext.tune.trial import FileUse, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """The hints in force in the baseline.

    Attributes
    ----------
    values : {hint: value} of every hint of the registry.
    sources : {hint: source} of those that are not defaults.
    """

    values: Mapping[str, str]
    sources: Mapping[str, str]


def registry_defaults() -> dict[str, str]:
    """Return {hint: default} of the registry."""
    from mpiio_ext.hints import registry

    return {spec.name: spec.default for spec in registry()}


def matching(outcome: Outcome, glob: str) -> tuple[FileUse, ...]:
    """Return the files that a pattern of hints means, by whole name or last component.

    Raises
    ------
    TuneError
        No file matches; the message names the files of the program.
    """
    if not outcome.files:
        what = (
            "the program ran under the extension, but opened and closed no file through MPI-IO"
            if outcome.ranks
            else "no call of the program reached the extension: is it a dynamically linked program of this MPI "
            "library, and does it reach MPI_Finalize?"
        )
        raise TuneError(f"nothing to tune: {what}")
    found = tuple(
        use
        for use in outcome.files
        if any(fnmatch.fnmatchcase(name, glob) for name in (use.path, posixpath.basename(use.path)))
    )
    if not found:
        names = list(dict.fromkeys(use.path for use in outcome.files))
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise TuneError(f"--files: no file matches {glob!r}; the program opened {', '.join(names[:5])}{more}")
    return found


def usage_of(uses: Sequence[FileUse]) -> Usage:
    """Return how the program used the files; if the MPI library did the work, every kind is assumed."""
    native = any(use.native_calls for use in uses)
    return Usage(
        ranks=max(use.ranks for use in uses),
        collective=native or any(use.collective_calls for use in uses),
        independent=native
        or any(use.independent_calls > (use.direct_calls + use.delegated_calls) * use.ranks for use in uses),
        written=native or any(use.written for use in uses),
    )


def present_hints(uses: Sequence[FileUse]) -> Present:
    """Return the hints in force for the file that moved most bytes. The process's environment must be the program's.

    The statistics name them, those of the program's MPI_Info among them. A hint that stands in files and variables is
    looked up as well, because statistics are cut short where there are many.
    """
    from mpiio_ext.hints import in_force

    main = max(uses, key=lambda use: use.bytes_moved)
    values, sources = {}, {}
    for item in in_force(main.path):
        values[item.spec.name] = item.value
        if item.source != "default":
            sources[item.spec.name] = item.source
    for name, value, source in main.hints:
        values[name], sources[name] = value, source
    return Present(values=values, sources=sources)


def removable_hints(present: Present, glob: str) -> frozenset[str]:
    """Return the hints that the hints file of a run can leave away: those that the user's file or variable sets.

    A section for some files cannot take away what an earlier one sets for all.
    """
    own = ("MPIOX_HINTS_FILE", "MPIOX_HINTS")
    return frozenset(name for name, source in present.sources.items() if source in own and glob == "*")


def files_of(outcome: Outcome) -> list[tuple[str, int, int, bool]]:
    """Return (path, openings, data bytes, whether the MPI library moved some) of every file, most bytes first."""
    rows: dict[str, tuple[int, int, bool]] = {}
    for use in outcome.files:
        times, size, native = rows.get(use.path, (0, 0, False))
        rows[use.path] = (times + 1, size + use.bytes_moved, native or use.native_calls > 0)
    return sorted(((path, *row) for path, row in rows.items()), key=lambda row: (-row[2], row[0]))
