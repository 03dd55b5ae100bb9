"""The work of ``arbitrate curves``: curves from measurements or logs under the names of programs, stored and shown.

Guarantees. Estimated curves are marked as such, with their sources. Logs that were left out are named.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from mpiio_ext.delegates.arbitration.curves import Curve
from mpiio_ext.delegates.arbitration.errors import CurveError
from mpiio_ext.delegates.arbitration.learn import learn
from mpiio_ext.delegates.arbitration.pattern import Pattern
from mpiio_ext.delegates.arbitration.store import Store, plain
from mpiio_ext.delegates.arbitration.tables import read_bench, read_forge

#: Characters of a source in a line for people; JSON has all of it.
_SOURCE = 120


def measured(forge: Sequence[Path] | None, bench: Sequence[Path] | None) -> dict[str, Curve]:
    """Return the curves of FORGE's tables, or of results of the bench, by the names of patterns."""
    if forge is None:
        return read_bench(bench or ())
    return {pattern.name: curve for pattern, curve in read_forge(forge).items()}


def learnt(patterns: Mapping[str, Mapping[Pattern, int]], base: Sequence[Path]) -> dict[str, Curve]:
    """Return the curves of programs, from their I/O (pattern -> bytes), estimated from measured patterns.

    Raises
    ------
    CurveError
        A table of measurements cannot be read or understood.
    """
    measurements = read_forge(base)
    return {program: learn(found, measurements) for program, found in sorted(patterns.items())}


def named(curves: Mapping[str, Curve], match: str, program: str | None) -> dict[str, Curve]:
    """Return the curves whose name contains `match`; under the name of a program, if one is given.

    Raises
    ------
    CurveError
        No curve matches, or several curves match and a program is given.
    """
    found = {name: curve for name, curve in curves.items() if match in name}
    if not found:
        raise CurveError(f"no curve has {match!r} in its name; there are {', '.join(list(curves)[:8])}")
    if program is None:
        return found
    if len(found) > 1:
        raise CurveError(
            f"{len(found)} curves cannot all be that of {program}: choose one by --match; there are "
            + ", ".join(list(found)[:8])
        )
    return {program: next(iter(found.values()))}


def line(name: str, curve: Curve) -> str:
    """Return a curve for people."""
    points = (
        f"{count}: {p.mean:.1f} ± {p.deviation:.1f}" if p.deviation is not None else f"{count}: {p.mean:.1f}"
        for count, p in curve.points.items()
    )
    return f"{name}: {', '.join(points)} MB/s ({textwrap.shorten(curve.source, _SOURCE)})"


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def history_lines(store: Store, names: Sequence[str]) -> list[str]:
    """Return a line for each version of curves, the newest of a name last: that one is in force."""
    return [
        line(
            f"{name} version {each.version}, {_when(each.time_s)}"
            + (f", version {each.restored} once more" if each.restored else ""),
            each.curve,
        )
        for name in names
        for each in store.history(name)
    ]


def history_document(store: Store, names: Sequence[str]) -> dict[str, Any]:
    """Return all versions of curves."""
    return {
        name: [
            {"version": each.version, "time_s": each.time_s, "restored": each.restored, **plain(each.curve)}
            for each in store.history(name)
        ]
        for name in names
    }
