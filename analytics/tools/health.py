"""Fullness of the storage targets before a moment, and failures: servers without their targets, disks.

Problem. Health is sampled every 15 minutes or less often. A job is described by the last sample before it began, so
that it does not see its own effects; how old that sample is belongs to the answer.

Algorithm. The module uses the last sample before the moment, of the requested file system; never one behind it. A
sample that is older than `most_age_s` is not used, but named. The map of targets to servers shows failovers. The usual
number of OSTs is the one that most servers have; servers with more OSTs are overloaded, and servers with fewer have
lost theirs. Of GPFS the disks with data count as targets, and a disk has failed that is not ``ready`` and ``up``.

Differences to TOKIO's table, which is otherwise the same: a job before the first sample gets NULL (there: the first
sample, which the job may have changed). The ages of both samples are kept apart. The time of the next sample is that
(there: one second behind the sample).

Source: TOKIO, Section "Health monitoring"; pytokio's tools.lfsstatus.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.tools.moments import shown
from mpiio_ext.analytics.tools.rows import numbers, of

#: A sample that is older is not taken for the state at a moment (seconds).
MOST_AGE_S = 86_400.0
#: Columns of a sample of fullness; LMT has no index.
_FULL = ["time", "target", "index", "used_kib", "total_kib"]

#: Takes the rows that matter out of a table.
Keep = Callable[[pa.Table], pa.Table]


@dataclasses.dataclass(frozen=True)
class Target:
    """How full a target was: name, index, KiB used and in all."""

    name: str
    index: int | None
    used_kib: float
    total_kib: float

    @property
    def percent(self) -> float:
        """Used share in percent."""
        return 100.0 * self.used_kib / self.total_kib


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fullness:
    """How full the OSTs were.

    Attributes
    ----------
    time : of the sample, in seconds since 1970 UTC.
    lead_s : how long before the moment that was.
    next_time : of the next sample, which may be behind the moment.
    targets : OSTs with a known size, by name.
    """

    time: float
    lead_s: float
    next_time: float | None
    source: str
    targets: tuple[Target, ...]

    @property
    def least(self) -> Target:
        """The target with the fewest bytes used."""
        return min(self.targets, key=lambda target: target.used_kib)

    @property
    def most(self) -> Target:
        """The target with the most bytes used."""
        return max(self.targets, key=lambda target: target.used_kib)

    @property
    def mean_kib(self) -> float:
        """Mean of the KiB used."""
        return sum(target.used_kib for target in self.targets) / len(self.targets)

    @property
    def percent(self) -> float:
        """Used share of all targets together, in percent."""
        return 100.0 * sum(one.used_kib for one in self.targets) / sum(one.total_kib for one in self.targets)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Failovers:
    """Which servers had another number of OSTs than usual.

    Attributes
    ----------
    time, lead_s, next_time, source
        As of :class:`Fullness`.
    usual : OSTs that most servers have.
    osts : OSTs in the map.
    overloaded : mapping of str to tuple of str
        Server with another number -> its OSTs.
    """

    time: float
    lead_s: float
    next_time: float | None
    source: str
    usual: int
    osts: int
    overloaded: dict[str, tuple[str, ...]]

    @property
    def overloaded_osts(self) -> int:
        """OSTs on such servers."""
        return sum(len(osts) for osts in self.overloaded.values())

    @property
    def osts_per_oss(self) -> float:
        """OSTs of such a server on average; 0 without any."""
        return self.overloaded_osts / len(self.overloaded) if self.overloaded else 0.0

    @property
    def factor(self) -> float:
        """OSTs of such a server by the usual number; 1 without any."""
        return self.osts_per_oss / self.usual if self.overloaded else 1.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class DiskStates:
    """Which disks were not as they should be.

    Attributes
    ----------
    time, lead_s, next_time, source
        As of :class:`Fullness`.
    disks : disks in the list.
    down : disks whose availability is not up: down, recovering, unrecovered.
    not_ready : disks whose status is not ready: suspended, being emptied …
    words : mapping of str to str
        Disk of either kind -> its state in words.
    """

    time: float
    lead_s: float
    next_time: float | None
    source: str
    disks: int
    down: tuple[str, ...]
    not_ready: tuple[str, ...]
    words: dict[str, str]


# ---- samples ---------------------------------------------------------------------------------------------------------


def _last(table: pa.Table, when: float, most_age_s: float, keep: Keep) -> tuple[float, pa.Table] | None:
    """Return the time of the last sample before a moment, and its rows that count; None: none is young enough.

    A table may have millions of rows; only the rows of one sample are processed, unless none of them counts.
    """
    times = numbers(table, "time")
    bound = when
    while len(earlier := times[(times < bound) & (times >= when - most_age_s)]):
        bound = float(earlier.max())
        rows = keep(table.filter(pa.array(times == bound)))
        if rows.num_rows:
            return bound, rows
    return None


def _why_not(records: Records, table: pa.Table, when: float, keep: Keep, what: str) -> str:
    """Return why a table has no sample that counts; empty if it has another subject."""
    times = numbers(keep(table), "time")
    if not len(times):
        return ""
    times = times[np.isfinite(times)]
    if not len(times):
        return f"{records.path}: {what} without a time, so that it is not known when it was so"
    if times.min() >= when:
        return (
            f"{records.path}: the first sample of {what} is of {shown(times.min())}, {times.min() - when:,.0f} s later"
        )
    last = float(times[times < when].max())
    return f"{records.path}: the last sample of {what} is of {shown(last)}, {when - last:,.0f} s before"


def _candidates(
    tables: Iterable[tuple[Records, pa.Table, Keep]], when: float, most_age_s: float, what: str, notes: list[str]
) -> list[tuple[float, float | None, Records, pa.Table]]:
    """Return time, next time, and rows of the last sample of each table before a moment, youngest first.

    Notes say of the other tables why they have none.
    """
    found = []
    for records, table, keep in tables:
        last = _last(table, when, most_age_s, keep)
        if last is None:
            why = _why_not(records, table, when, keep, what)
            notes += [why] if why else []
            continue
        times = numbers(table, "time")
        later = times[times >= when]
        found.append((last[0], float(later.min()) if len(later) else None, records, last[1]))
    return sorted(found, key=lambda each: -each[0])


def _full_tables(
    records: Sequence[Records], file_systems: Collection[str] | None
) -> Iterator[tuple[Records, pa.Table, Keep]]:
    """Yield tables of the fullness of targets, and the function that selects their rows of OSTs, or of data disks."""

    def printed(table: pa.Table) -> pa.Table:
        table = of(table, "file_system", file_systems)
        table = table.filter(pc.and_(pc.equal(table["kind"], "OST"), pc.equal(table["quantity"], "1K-blocks")))
        return table.select(["time", "target", "index", "used", "total"]).rename_columns(_FULL)

    def counted(table: pa.Table) -> pa.Table:
        table = table.filter(pc.equal(pc.utf8_upper(table["kind"]), "OST"))
        if file_systems is not None:
            names = pc.unique(table["target"])
            mine = [name for name in names.to_pylist() if any(str(name).startswith(f"{one}-") for one in file_systems)]
            table = table.filter(pc.is_in(table["target"], value_set=pa.array(mine, pa.string())))
        return table.select([name for name in _FULL if name != "index"])

    def disks(table: pa.Table) -> pa.Table:
        table = table.filter(table["data"])
        free = pc.add(table["free_blocks"], table["free_fragments"])
        values = [table["time"], table["disk"], pc.subtract(table["size"], free), table["size"]]
        return pa.table(values, names=[name for name in _FULL if name != "index"])

    for each in records:
        if "disks" in each.tables:
            yield each, each.tables["disks"], disks
        elif "targets" in each.tables:
            yield each, each.tables["targets"], printed
        elif "fullness" in each.tables:
            yield each, each.tables["fullness"], counted


def _index_of(name: str) -> int | None:
    """Return the index in the name of an OST: the hexadecimal number behind OST; a disk of GPFS has none."""
    if "OST" not in name:
        return None
    digits = name.rpartition("OST")[2].removesuffix("_UUID")
    try:
        return int(digits, 16)
    except ValueError:
        return None


def fullness(
    records: Sequence[Records], when: float, file_systems: Collection[str] | None = None, most_age_s: float = MOST_AGE_S
) -> tuple[Fullness | None, list[str]]:
    """Return how full the OSTs were before a moment, and why that is not known.

    Parameters
    ----------
    records : of ``lfs df``, LMT or ``mmdf``; others are left out. The youngest sample before `when` counts.
    when : in seconds since 1970 UTC.
    file_systems : names of the file system; default: whatever the records are about.
    most_age_s : older samples are named, and not taken.
    """
    notes: list[str] = []
    tables = _full_tables(records, file_systems)
    for time, following, each, table in _candidates(tables, when, most_age_s, "fullness", notes):
        rows = table.to_pylist()
        targets = [
            Target(
                row["target"],
                row.get("index") if row.get("index") is not None else _index_of(row["target"]),
                float(row["used_kib"]),
                float(row["total_kib"]),
            )
            for row in rows
            if row["used_kib"] is not None and row["total_kib"] and row["used_kib"] == row["used_kib"]
        ]
        if targets:
            targets.sort(key=lambda target: target.name)
            return Fullness(
                time=time, lead_s=when - time, next_time=following, source=each.source, targets=tuple(targets)
            ), notes
    return None, notes or ["no source of how full targets are"]


def failovers(
    records: Sequence[Records], when: float, file_systems: Collection[str] | None = None, most_age_s: float = MOST_AGE_S
) -> tuple[Failovers | None, list[str]]:
    """Return which servers had another number of OSTs than usual before a moment, and why that is not known.

    Parameters
    ----------
    records : of ``lctl dl -t``: tables ``devices``; others are left out.
    when, file_systems, most_age_s
        As of :func:`fullness`.
    """
    notes: list[str] = []
    tables = (
        (each, each.tables["devices"], lambda table: of(table, "file_system", file_systems))
        for each in records
        if "devices" in each.tables
    )
    for time, following, each, table in _candidates(tables, when, most_age_s, "the map of OSTs", notes):
        servers: dict[str, list[str]] = collections.defaultdict(list)
        for row in table.select(["type", "kind", "target", "nid"]).to_pylist():
            if row["type"] == "osc" and row["kind"] == "OST" and row["nid"]:
                servers[row["nid"].partition("@")[0]].append(row["target"])
        if not servers:
            continue
        counts = collections.Counter(len(osts) for osts in servers.values())
        usual = max(counts, key=lambda number: (counts[number], -number))
        overloaded = {oss: tuple(sorted(osts)) for oss, osts in sorted(servers.items()) if len(osts) != usual}
        return Failovers(
            time=time,
            lead_s=when - time,
            next_time=following,
            source=each.source,
            usual=usual,
            osts=sum(map(len, servers.values())),
            overloaded=overloaded,
        ), notes
    return None, notes or ["no source of which server has which target"]


def disk_states(
    records: Sequence[Records],
    when: float,
    file_systems: Collection[str] | None = None,  # noqa: ARG001  (mmlsdisk names none: the site says whose it is)
    most_age_s: float = MOST_AGE_S,
) -> tuple[DiskStates | None, list[str]]:
    """Return which disks were down or not ready before a moment, and why that is not known.

    Parameters
    ----------
    records : of ``mmlsdisk``: tables ``disk_states``; others are left out. Without any there is nothing to say.
    when, file_systems, most_age_s
        As of :func:`fullness`.
    """
    notes: list[str] = []
    tables = (
        (each, each.tables["disk_states"], lambda table: table) for each in records if "disk_states" in each.tables
    )
    for time, following, each, table in _candidates(tables, when, most_age_s, "states of disks", notes):
        rows = sorted(table.select(["disk", "status", "availability"]).to_pylist(), key=lambda row: row["disk"])
        down = tuple(row["disk"] for row in rows if row["availability"] != "up")
        not_ready = tuple(row["disk"] for row in rows if row["status"] != "ready")
        words = {
            row["disk"]: f"{row['status']}, {row['availability']}" for row in rows if row["disk"] in {*down, *not_ready}
        }
        return DiskStates(
            time=time,
            lead_s=when - time,
            next_time=following,
            source=each.source,
            disks=len(rows),
            down=down,
            not_ready=not_ready,
            words=words,
        ), notes
    return None, notes
