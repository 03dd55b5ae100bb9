"""The I/O system of a site: finds the files of its monitoring sources, reads each once, and queries them.

Problem. A question about a period needs the right files of the right days, in the right zone, by the right clock, and
of the right file system: a job writes to ``/scratch2``, LMT calls it snx11035. Files are missing, damaged, or late.

Algorithm. Files come from the site's facts by date (:mod:`mpiio_ext.analytics.site`), or are given one by one. Each is
read by the connector that recognises it, and kept; times are corrected by the site's clocks. The name of a file system
comes from the site, or from the mount points that ``lfs df`` prints. A source that does not name its file system
(mmperfmon, series) is queried if no other source has an answer. It is queried only if the site assigns it to this file
system, or if the user chose the file system by name.

Files of HDF5 are read in a process of their own, since libhdf5 can crash on a damaged one.

Guarantees. A file that cannot be read, or that crashes its reader, costs itself only, and is named in the notes, as is
every source that has nothing for the period. Nothing is taken from another file system or another day.

Source: TOKIO, Section "Data integration".
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mpiio_ext.analytics import sources
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.analytics.readerprocess import is_hdf5
from mpiio_ext.analytics.sitefiles import Found, find_files
from mpiio_ext.analytics.sources import Records
from mpiio_ext.analytics.sources.topology import JobRadius
from mpiio_ext.analytics.tables.arrays import Numbers
from mpiio_ext.analytics.tools import health, others
from mpiio_ext.analytics.tools.health import DiskStates, Failovers, Fullness
from mpiio_ext.analytics.tools.moments import Period
from mpiio_ext.analytics.tools.others import Others
from mpiio_ext.analytics.tools.series import Edges
from mpiio_ext.analytics.tools.traffic import Traffic, traffic

if TYPE_CHECKING:
    from mpiio_ext.analytics.site import Site

__all__ = ["FileSystem", "Note", "System"]

#: Files that stay in memory after they were read.
KEPT = 64
#: Sources of series of which a part can be read are read by so many seconds at a time, and asked for a state so long
#: before a moment.
_PART_S, _STATE_S = 3600.0, 60.0
#: How long before a moment samples of health are searched (seconds); files are named by local days.
_BEFORE_S, _AFTER_S = health.MOST_AGE_S, 3600.0
_INSTANT = "s since 1970 UTC"
#: Roles of sources that contain the servers' traffic.
_TRAFFIC = ("traffic", "series")

Value = TypeVar("Value")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Note:
    """The missing or damaged parts.

    Attributes
    ----------
    source : str
        The question (servers, fullness, failovers, disks, jobs, topology), or the connector of a file.
    status : {"missing", "partial", "skipped"}
        There is no answer, or none for a part of the period; rows of a file were lost; it cannot be read.
    what : str
        For people: which file, and why.
    """

    source: str
    status: Literal["missing", "partial", "skipped"]
    what: str

    def __str__(self) -> str:
        return f"{self.source} {self.status}: {self.what}"

    @property
    def damage(self) -> bool:
        """Whether something is damaged or cannot be read, rather than not there.

        That nodes of a job are not in a map of the network is no damage of the map.
        """
        return self.status != "missing" and self.source != "topology"


@dataclasses.dataclass(frozen=True)
class FileSystem:
    """A file system: its name at the site, and its names in sources; None if unknown.

    `chosen`: the user named the file system, rather than a mount point. Then sources that do not name a file system
    count as its own.
    """

    name: str | None
    names: frozenset[str] | None
    chosen: bool = False


class System:
    """The monitoring sources of a site, and questions to them.

    Parameters
    ----------
    site : Site, optional
        Facts: where files are, names of file systems, zones and clocks.
    files : sequence of path
        Further files of sources, each recognised by its content.
    time_zone : str, optional
        Of times without zone in `files`; default: the site's. Where neither is known, a file with such times is not
        read.
    reader : ApartReader, optional
        Reads files of HDF5; default: one of its own.
    """

    def __init__(
        self,
        site: Site | None = None,
        files: Sequence[str | os.PathLike[str]] = (),
        *,
        time_zone: str | None = None,
        reader: sources.ApartReader | None = None,
    ) -> None:
        self.site = site
        zone = time_zone or (site.time_zone if site is not None else "")
        self._given = [Found(Path(path), None, zone) for path in files]
        self._sources: dict[Path, str] = {}  # of given files
        self._apart = reader or sources.ApartReader()
        self._kept: collections.OrderedDict[Found, tuple[Records | None, tuple[Note, ...]]] = collections.OrderedDict()

    # ---- files -------------------------------------------------------------------------------------------------------

    def _files(
        self, start: float, end: float, part: tuple[float, float], file_system: FileSystem | None
    ) -> list[tuple[Found, str]]:
        """Return the files that may have data of a period, and name the site's files that are missing.

        If a connector can read parts of a source, only files of the part are requested, and only the part is read.
        """
        found = [(self._part(file, part), "") for file in self._given]
        if self.site is not None:
            name = file_system.name if file_system is not None else None
            for source in dict.fromkeys(each.source for each in self.site.files):
                low, high = part if _cuts(source) else (start, end)
                there = find_files(self.site, source, low, max(high, low + 1.0), file_system=name)
                found += [(self._part(file, part), "") for file in there.found]
                found += [(Found(Path(path), source, ""), f"{path}: there is no such file") for path in there.missing]
        return list(dict.fromkeys(found))

    def without_zone(self) -> list[str]:
        """Return the given files that have local times, where no time zone is known for them."""
        found = []
        for file in self._given:
            with contextlib.suppress(AnalyticsError, OSError):  # a note reports it later
                if not file.time_zone and sources.local_times(file.path, file.source):
                    found.append(str(file.path))
        return found

    def _source(self, file: Found) -> str:
        """Return the connector of a file; empty if none recognises it."""
        if file.source is not None:
            return file.source
        if file.path not in self._sources:
            try:
                self._sources[file.path] = sources.recognize(file.path).NAME
            except (AnalyticsError, OSError):
                self._sources[file.path] = ""
        return self._sources[file.path]

    def _part(self, file: Found, part: tuple[float, float]) -> Found:
        """Return a file of which only a part is read, where its connector can; whole hours, which questions share."""
        if not _cuts(self._source(file)):
            return file
        ahead = self.site.clock(file.clock).offset_s if self.site is not None and file.clock else 0.0
        low, high = (part[0] + ahead) // _PART_S, -(-(part[1] + ahead) // _PART_S)
        return dataclasses.replace(file, source=self._source(file), between=(low * _PART_S, high * _PART_S))

    def _read(self, file: Found) -> tuple[Records | None, tuple[Note, ...]]:
        """Return the records of a file, times corrected, and their mistakes."""
        if file in self._kept:
            self._kept.move_to_end(file)
            return self._kept[file]
        records, notes = None, []
        try:
            if not file.time_zone and sources.local_times(file.path, file.source):
                raise AnalyticsError(f"{file.path}: has local times, and their time zone is not known")
            zone = file.time_zone or "UTC"  # of times with a zone
            if is_hdf5(file.path):
                records = self._apart.read(file.path, file.source, time_zone=zone, between=file.between)
            else:
                records = sources.read(file.path, file.source, time_zone=zone, between=file.between)
            lost = [problem for problem in records.problems if problem.lost]
            if lost:
                more = f", and {len(lost) - 1:,} more problems like it" if len(lost) > 1 else ""
                notes.append(
                    Note(source=records.source, status="partial", what=f"{lost[0]}{more} ({records.lost:,} rows lost)")
                )
            records = self._corrected(records, file)
        except AnalyticsError as error:
            records, notes = (
                None,
                [Note(source=file.source or "file", status="skipped", what=str(error).replace("\n", "; "))],
            )
        except OSError as error:
            notes = [
                Note(
                    source=file.source or "file",
                    status="skipped",
                    what=f"{file.path}: cannot be read: {error.strerror or error}",
                )
            ]
        self._kept[file] = records, tuple(notes)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return self._kept[file]

    def _corrected(self, records: Records, file: Found) -> Records:
        """Return records with times corrected by the site's clock, and with the site's facts about them."""
        facts = self.site.file_systems.get(file.file_system or "") if self.site is not None else None
        known_by = (
            ("stamps", file.stamps),
            ("file_system", file.file_system),
            ("metrics", dict(file.metrics)),
            ("facts", facts),
        )
        known = {name: value for name, value in known_by if value}
        if known:
            records = dataclasses.replace(records, header={**records.header, **known})
        if self.site is None or not file.clock:
            return records
        correct = self.site.correct
        instants = {
            (table.name, column.name)
            for table in sources.connector_of(records.source).TABLES
            for column in table.columns
            if column.unit == _INSTANT
        }
        tables = {
            name: _moved(
                table, [one for named, one in instants if named == name], lambda times: correct(times, file.clock)
            )
            for name, table in records.tables.items()
        }
        return dataclasses.replace(records, tables=tables)

    def records(
        self,
        start: float,
        end: float,
        file_system: FileSystem | None = None,
        part: tuple[float, float] | None = None,
        roles: Collection[str] | None = None,
    ) -> tuple[list[Records], list[Note]]:
        """Return the data of the sources that may cover [start, end), and the mistakes of their files.

        Parameters
        ----------
        start, end : float
            In seconds since 1970 UTC.
        file_system : FileSystem, optional
            Files that the site says are of others are left out.
        part : (float, float), optional
            The period that is enough of sources of which a part can be read; default: the same.
        roles : collection of str, optional
            What sources must be good for, as their connectors say it; default: anything.
        """
        found, notes = [], []
        for file, gone in self._files(start, end, part or (start, end), file_system):
            if roles is not None and _role(self._source(file)) not in (*roles, ""):
                continue
            if gone:
                notes.append(Note(source=file.source or "file", status="missing", what=gone))
                continue
            records, wrong = self._read(file)
            notes += wrong
            if records is not None:
                found.append(records)
        return found, notes

    # ---- names -------------------------------------------------------------------------------------------------------

    def file_system(self, mounts: Iterable[str]) -> FileSystem:
        """Return the file system of the first of some mount points that the site, or ``lfs df``, knows."""
        mounts = list(mounts)
        for mount in mounts if self.site is not None else ():
            assert self.site is not None
            known = self.site.file_system_of(mount)
            if known is not None:
                return FileSystem(known.name, frozenset(filter(None, (known.name, known.backend))))
        printed = self._printed_mounts()
        for mount in mounts:
            if mount in printed:
                return FileSystem(printed[mount], frozenset({printed[mount]}))
        return FileSystem(None, None)

    def named(self, name: str) -> FileSystem:
        """Return the file system of a name at the site or in sources.

        Raises
        ------
        AnalyticsError
            The site has file systems, and none of this name.
        """
        known = None
        if self.site is not None:
            known = self.site.file_systems.get(name) or self.site.by_backend(name)
            if known is None and self.site.file_systems and name not in self._printed_mounts().values():
                there = [f"{each.name} ({each.backend})" for each in self.site.file_systems.values()]
                raise AnalyticsError(f"the site has no file system {name!r}; it has {', '.join(there)}")
        names = (name,) if known is None else (known.name, known.backend)
        return FileSystem(name if known is None else known.name, frozenset(filter(None, names)), chosen=True)

    def _printed_mounts(self) -> dict[str, str]:
        """Return mount point -> file system as given files of ``lfs df`` print it."""
        found: dict[str, str] = {}
        for file in self._given:
            records = self._read(file)[0] if _role(self._source(file)) == "fullness" else None
            if records is not None and "targets" in records.tables:
                table = records.tables["targets"].select(["mount", "file_system"])
                pairs = table.filter(pc.is_valid(table["mount"])).group_by(["mount", "file_system"]).aggregate([])
                found |= {row["mount"]: row["file_system"] for row in pairs.to_pylist() if row["file_system"]}
        return found

    # ---- questions ---------------------------------------------------------------------------------------------------

    def traffic(self, file_system: FileSystem, period: Period, edges: Edges = "begin") -> tuple[Traffic, list[Note]]:
        """Return the traffic of a file system's servers in a period; see :func:`.traffic.traffic`."""
        if file_system.names is None:
            return Traffic(period=period), [Note(source="servers", status="missing", what=_unknown_system())]
        found, notes = self.records(period.start, period.end, file_system, roles=_TRAFFIC)
        named = [each for each in found if _says_which(each)]
        mine = [each for each in found if not _says_which(each) and self._is_of(each, file_system)]
        answer = traffic(named, period, file_system.names, edges)
        if not answer.series():
            answer = traffic(mine, period, None, edges)
        if not answer.series():
            answer = traffic([*named, *mine], period, file_system.names, edges)  # names the sources that there are
        status: Literal["missing", "partial"] = "partial" if answer.series() else "missing"
        return answer, notes + [Note(source="servers", status=status, what=text) for text in answer.notes]

    @staticmethod
    def _is_of(records: Records, file_system: FileSystem) -> bool:
        """Return whether a source that does not name its file system belongs to one."""
        of = records.header.get("file_system")
        return file_system.chosen if of is None else of == file_system.name

    def fullness(self, file_system: FileSystem, when: float) -> tuple[Fullness | None, list[Note]]:
        """Return how full the OSTs of a file system were before a moment; see :func:`.health.fullness`."""
        return self._state("fullness", health.fullness, file_system, when, ("fullness", "traffic"))

    def failovers(self, file_system: FileSystem, when: float) -> tuple[Failovers | None, list[Note]]:
        """Return which servers had another number of OSTs than usual; see :func:`.health.failovers`."""
        return self._state("failovers", health.failovers, file_system, when, ("failover",))

    def disk_states(self, file_system: FileSystem, when: float) -> tuple[DiskStates | None, list[Note]]:
        """Return which disks of a file system were down or not ready; see :func:`.health.disk_states`."""
        return self._state("disks", health.disk_states, file_system, when, ("failover",))

    def _state(
        self,
        question: str,
        ask: Callable[..., tuple[Value | None, list[str]]],
        file_system: FileSystem,
        when: float,
        roles: Collection[str],
    ) -> tuple[Value | None, list[Note]]:
        if file_system.names is None:
            return None, [Note(source=question, status="missing", what=_unknown_system())]
        part = (when - _STATE_S, when + 1.0)
        found, notes = self.records(when - _BEFORE_S, when + _AFTER_S, file_system, part, roles)
        found = [each for each in found if _names_targets(each) or self._is_of(each, file_system)]
        answer, why = ask(found, when, file_system.names)
        return answer, notes + (
            [Note(source=question, status="missing", what=text) for text in why] if answer is None else []
        )

    def jobs(self, period: Period) -> tuple[Others | None, list[Note]]:
        """Return the scheduler's jobs that ran in a period; see :func:`.others.jobs_in`."""
        found, notes = self.records(period.start, period.end, roles=("jobs",))
        answer, why = others.jobs_in(found, period)
        return answer, notes + [Note(source="jobs", status="missing", what=text) for text in why]

    def job(self, job_id: int, period: Period) -> tuple[dict[str, Any] | None, list[Note]]:
        """Return the scheduler's row of a job that ran in a period (columns of ``slurm``)."""
        found, notes = self.records(period.start, period.end, roles=("jobs",))
        answer = others.job_of(found, job_id, period.start)
        return answer, notes + (
            [] if answer else [Note(source="jobs", status="missing", what=f"no source has job {job_id}")]
        )

    def placement(self, job_id: int, period: Period) -> tuple[JobRadius | None, list[Note]]:
        """Return where the nodes of a job lie in the network; see :func:`.others.placement`."""
        found, notes = self.records(period.start, period.end, roles=("jobs", "topology"))
        job = others.job_of(found, job_id, period.start)
        answer, why = others.placement(found, (job or {}).get("nodes"))
        return answer, notes + [
            Note(source="topology", status="missing" if answer is None else "partial", what=text) for text in why
        ]


def _cuts(source: str) -> bool:
    """Return whether a part of a source's file can be read."""
    try:
        return bool(source) and sources.connector_of(source).CUTS
    except AnalyticsError:
        return False


def _role(source: str) -> str:
    """Return the purpose of a source; empty if unknown: then its file is read, and named."""
    try:
        return str(sources.connector_of(source).ROLE) if source else ""
    except AnalyticsError:
        return ""


def _unknown_system() -> str:
    return "which file system the job used is not known: give --file-system NAME, or its mount point in site.json"


def _says_which(records: Records) -> bool:
    """Return whether a source names the file system of its samples."""
    if "lmt" in records.tables and records.tables["lmt"].num_rows:
        return True
    table = records.tables.get("node_io")
    return table is not None and "filesystem_name" in table.column_names


def _names_targets(records: Records) -> bool:
    """Return whether a source of health names the file system of its targets; GPFS' disks do not."""
    return not {"disks", "disk_states"} & records.tables.keys()


def _moved(table: pa.Table, columns: Sequence[str], correct: Callable[[Numbers], Numbers]) -> pa.Table:
    """Return a table with corrected times."""
    for name in columns:
        if name not in table.column_names:
            continue
        times = np.asarray(table[name].to_numpy(zero_copy_only=False), dtype=np.float64)
        true = pa.array(correct(times), pa.float64(), mask=np.isnan(times))
        table = table.set_column(table.column_names.index(name), name, true)
    return table
