"""Site facts: what is known of a machine, its file systems, clocks and monitoring files. Read from site.json.

Problem. A tool that is asked what the servers moved between two times must know which files have that, whose clock
their stamps are of, which path lies on which file system, and what that is called by its servers. pytokio kept this in
code and in a file without a form.

Content. :class:`Site`, from ``site`` of setup.json or from a file of its own, to which setup.json may point. The form
is ``site.schema.json`` (JSON Schema); what a schema cannot say (a time zone that exists, a pattern that is one, names
that are defined) is checked beside it. Every mistake is a line that begins with its place as a JSON pointer.

Example of a site
-----------------
::

    {
      "time_zone": "America/Los_Angeles",
      "mounts": {"/scratch1": {"stripe_size": 1048576, "stripe_count": 1}},
      "file_systems": {
        "scratch1": {"kind": "lustre", "backend": "snx11025", "mounts": ["/scratch1"]}
      },
      "clocks": {"lmt": {"offset_s": 1.5}},
      "files": [
        {"source": "lmt", "file_system": "scratch1", "clock": "lmt",
         "path": ["%Y-%m-%d/snx11025.hdf5", "%Y-%m-%d/edison_snx11025.h5lmt"]},
        {"source": "lfs-df", "path": "%Y-%m-%d/osts.txt.gz"}
      ]
    }

`FIELDS` says what each field means.

Source: TOKIO, Section "Data integration": clocks must agree for an index by time to be consistent.
"""

from __future__ import annotations

import dataclasses
import functools
import glob
import json
import os
import re
import zoneinfo
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

from mpiio_ext.analytics.checker import Checker, escaped, shown, unique
from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.pioneer import schema_check

__all__ = ["FIELDS", "SCHEMA", "Clock", "FileSystem", "Site", "SourceFiles", "StripeDefault", "is_pytokio",
           "load_document", "load_site", "schema", "site_in_setup"]  # fmt: skip

#: The form of a site, as JSON Schema.
#:
#: :meta hide-value:
SCHEMA = Path(__file__).with_name("site.schema.json")

#: What each field means, by JSON pointer; ``*`` stands for any name or number.
#:
#: :meta hide-value:
FIELDS: dict[str, str] = {
    "/time_zone": "of times without zone in logs (sacct, LMT databases), e.g. America/Los_Angeles; default UTC",
    "/mounts/*": "default stripe_size (B, 1048576) and stripe_count (1; -1, all OSTs: counts are not compared) of "
    "a mount point; stripe_offset (without it not compared) only where logs have it: Darshan's is 0 for all files",
    "/lmt_mounts/*": "LMT's name of a file system -> its mount point; without any, LMT is taken to be of the file "
    "system that a job is on; those of file_systems are added",
    "/file_systems/*": "a file system, by the name that people use",
    "/file_systems/*/kind": "lustre (default), gpfs or other",
    "/file_systems/*/backend": "what its servers call it: snx11025 of snx11025-OST0000; default: its name",
    "/file_systems/*/mounts": "its mount points: a path belongs to the longest one that it lies in",
    "/file_systems/*/mount_patterns": "regular expressions of further mount points; the first that matches the "
    "beginning of a path that lies in no mount point",
    "/file_systems/*/data_targets": "GPFS: regular expressions of names of disks with data",
    "/file_systems/*/metadata_targets": "GPFS: regular expressions of names of disks with metadata",
    "/file_systems/*/metadata_servers": "GPFS: regular expressions of names of servers of metadata",
    "/clocks/*": "a clock that stamps are of, by a name that files refer to",
    "/clocks/*/time_zone": "of its stamps without zone; default: that of the site",
    "/clocks/*/offset_s": "how far it is ahead of UTC, in seconds: the true time is the stamp minus this; default 0",
    "/files/*/source": "connector that reads the files (mpiio-ext connector list)",
    "/files/*/path": "files, relative to the folder of this file: %Y %m %d %H %j stand for a date in the clock's time "
    "zone, * ? [...] for any letters; of a list the first of which there is a file for that date",
    "/files/*/file_system": "whose files they are; without it they are of the whole machine",
    "/files/*/host": "whose files they are, where it is one host",
    "/files/*/clock": "which clock their stamps are of; default: true, in the site's time zone",
    "/files/*/stamps": "whether a stamp begins (default) or ends its interval; of sources that do not say it "
    "(mmperfmon, prometheus, csv)",
    "/files/*/metrics": "prometheus, csv: which metrics are bytes_read, bytes_written and cpu; of a list the first "
    'that is there; with its unit where the source does not say it: "disk_rate [kB/s]"',
}

_SITE_FIELDS = ("time_zone", "mounts", "lmt_mounts", "file_systems", "clocks", "files", "$schema")
_TOLD = ("/time_zone", "/mounts", "/lmt_mounts")
_DIRECTIVES = "YmdHj%"
Times = TypeVar("Times")


@dataclasses.dataclass(frozen=True)
class StripeDefault:
    """Stripe settings of files for which nobody asked otherwise; Lustre's own unless the site has others.

    Attributes
    ----------
    stripe_size : int
        In bytes.
    stripe_count : int
        -1 is all OSTs: files are not told apart by their count then.
    stripe_offset : int or None
        First OST, of the paper's system -1 (any); None: files are not told apart by it.
    """

    stripe_size: int = 1048576
    stripe_count: int = 1
    stripe_offset: int | None = None


@dataclasses.dataclass(frozen=True)
class Clock:
    """A clock that stamps are of.

    Attributes
    ----------
    time_zone : str
        Of stamps without zone.
    offset_s : float
        How far it is ahead of UTC [s].
    """

    time_zone: str = "UTC"
    offset_s: float = 0.0


@dataclasses.dataclass(frozen=True)
class FileSystem:
    """A file system; `FIELDS` says what each field means."""

    name: str
    kind: Literal["lustre", "gpfs", "other"] = "lustre"
    backend: str = ""
    mounts: tuple[str, ...] = ()
    mount_patterns: tuple[str, ...] = ()
    data_targets: tuple[str, ...] = ()
    metadata_targets: tuple[str, ...] = ()
    metadata_servers: tuple[str, ...] = ()

    def role_of_target(self, target: str) -> Literal["data", "metadata"] | None:
        """Return what a disk of GPFS holds, by its name; None where no pattern matches it."""
        if any(re.search(pattern, target) for pattern in self.data_targets):
            return "data"
        return "metadata" if any(re.search(pattern, target) for pattern in self.metadata_targets) else None

    def role_of_server(self, server: str) -> Literal["data", "metadata"]:
        """Return what a server of GPFS serves, by its name: data, unless it is one of the metadata's."""
        return "metadata" if any(re.search(pattern, server) for pattern in self.metadata_servers) else "data"


@dataclasses.dataclass(frozen=True)
class SourceFiles:
    """Files of one source; `FIELDS` says what each field means.

    Attributes
    ----------
    paths : tuple of str
        Templates, absolute; the first of which there is a file for a date.
    metrics : tuple of (str, tuple of str)
        Quantity, and the names of metrics that are it.
    """

    source: str
    paths: tuple[str, ...]
    file_system: str | None = None
    host: str | None = None
    clock: str | None = None
    stamps: Literal["begin", "end"] = "begin"
    metrics: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclasses.dataclass(frozen=True)
class Site:
    """What is known of a machine.

    Attributes
    ----------
    time_zone : str
        Of times without zone.
    mounts : mapping of str to StripeDefault
        Default stripe settings, by mount point.
    lmt_mounts : mapping of str to str
        LMT's name of a file system -> its mount point.
    file_systems : mapping of str to FileSystem
    clocks : mapping of str to Clock
    files : tuple of SourceFiles
    """

    time_zone: str = "UTC"
    mounts: Mapping[str, StripeDefault] = dataclasses.field(default_factory=dict)
    lmt_mounts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    file_systems: Mapping[str, FileSystem] = dataclasses.field(default_factory=dict)
    clocks: Mapping[str, Clock] = dataclasses.field(default_factory=dict)
    files: tuple[SourceFiles, ...] = ()

    def clock(self, name: str | None) -> Clock:
        """Return a clock by name; None: one that is right, in the site's time zone.

        Raises
        ------
        AnalyticsError
            The site has none of this name.
        """
        if name is None:
            return Clock(self.time_zone)
        if name not in self.clocks:
            raise AnalyticsError(f"the site has no clock {name!r}; it has {', '.join(self.clocks) or 'none'}")
        return self.clocks[name]

    def correct(self, times: Times, clock: str | None) -> Times:
        """Return true times of stamps of a clock.

        Parameters
        ----------
        times : float or array of float
            Seconds since 1970 by that clock.
        clock : str or None
        """
        corrected: Any = times
        return corrected - self.clock(clock).offset_s  # type: ignore[no-any-return]

    def file_system_of(self, path: str) -> FileSystem | None:
        """Return the file system that a path lies on: the longest mount point, else the first pattern that matches."""
        held = [
            (len(mount.rstrip("/")), file_system)
            for file_system in self.file_systems.values()
            for mount in file_system.mounts
            if path == mount.rstrip("/") or path.startswith(mount.rstrip("/") + "/")
        ]
        if held:
            return max(held, key=lambda item: item[0])[1]
        for file_system in self.file_systems.values():
            if any(re.match(pattern, path) for pattern in file_system.mount_patterns):
                return file_system
        return None

    def by_backend(self, backend: str) -> FileSystem | None:
        """Return the file system that its servers call so; None where none is."""
        return next((item for item in self.file_systems.values() if item.backend == backend), None)


# ---- reading ---------------------------------------------------------------------------------------------------------


@functools.cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of a site."""
    return schema_check.read_schema(SCHEMA)


class _Reader:
    """Makes a site of a JSON object.

    Parameters
    ----------
    check : Checker
        Takes what is wrong.
    where : str
        Place of the object.
    folder : Path
        What paths are relative to.
    """

    def __init__(self, check: Checker, where: str, folder: Path) -> None:
        self._check = check
        self._where = where
        self._folder = folder

    def site(self, value: Any) -> Site:
        """Return the site; after problems it is not to be used."""
        check, where = self._check, self._where
        found = check.object(where, value, _SITE_FIELDS)
        zone = self._zone(f"{where}/time_zone", found.get("time_zone", "UTC"))
        mounts = check.object(f"{where}/mounts", found.get("mounts", {}))
        lmt = check.object(f"{where}/lmt_mounts", found.get("lmt_mounts", {}))
        site = Site(
            time_zone=zone,
            mounts={
                name: _stripe(check, f"{where}/mounts/{escaped(name)}", item) for name, item in mounts.items()
            },
            lmt_mounts={
                name: check.text(f"{where}/lmt_mounts/{escaped(name)}", item) for name, item in lmt.items()
            },
        )  # fmt: skip
        others = {name: item for name, item in found.items() if name in _SITE_FIELDS and f"/{name}" not in _TOLD}
        problems = schema_check.check(others, schema())
        check.problems += [f"{where}{line}" for line in problems]

        def whole(place: str) -> bool:
            return not any(line.startswith((f"{place}/", f"{place}:")) for line in problems)

        def parts(kind: str) -> dict[str, Any]:  # of which the schema has nothing to say
            named = found.get(kind, {})
            return {name: item for name, item in (named.items() if isinstance(named, dict) else ())
                    if whole(f"/{kind}/{escaped(name)}")}  # fmt: skip

        systems = {name: self._file_system(name, item) for name, item in parts("file_systems").items()}
        clocks = {name: self._clock(name, item, zone) for name, item in parts("clocks").items()}
        listed = found.get("files", [])
        known = {kind: list(found[kind]) if isinstance(found.get(kind), dict) else []
                 for kind in ("file_systems", "clocks")}  # fmt: skip
        files = tuple(
            self._files(at, item, known["file_systems"], known["clocks"])
            for at, item in enumerate(listed if isinstance(listed, list) else ())
            if whole(f"/files/{at}")
        )
        of_systems = {
            item.backend: item.mounts[0] for item in systems.values() if item.kind == "lustre" and item.mounts
        }
        return dataclasses.replace(
            site, lmt_mounts={**of_systems, **site.lmt_mounts}, file_systems=systems, clocks=clocks, files=files
        )

    def _zone(self, where: str, value: Any) -> str:
        zone = self._check.text(where, value)
        if not zone:
            return zone  # it has been told
        try:
            zoneinfo.ZoneInfo(zone)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            self._check.wrong(
                where, f"{shown(zone)} is no time zone of this machine; take a name as Europe/Berlin"
            )  # fmt: skip
        return zone

    def _patterns(self, where: str, found: list[str]) -> tuple[str, ...]:
        for number, pattern in enumerate(found):
            try:
                re.compile(pattern)
            except (re.error, RecursionError, OverflowError) as error:
                self._check.wrong(f"{where}/{number}", f"{shown(pattern)} is no regular expression: {error}")
        return tuple(found)

    def _file_system(self, name: str, item: Mapping[str, Any]) -> FileSystem:
        where = f"{self._where}/file_systems/{escaped(name)}"
        for number, mount in enumerate(item.get("mounts", [])):
            if not mount.startswith("/"):
                self._check.wrong(f"{where}/mounts/{number}", f"{shown(mount)} is no absolute path")
        patterns = {
            field: self._patterns(f"{where}/{field}", item.get(field, []))
            for field in ("mount_patterns", "data_targets", "metadata_targets", "metadata_servers")
        }
        return FileSystem(
            name, kind=item.get("kind", "lustre"), backend=item.get("backend", name),
            mounts=tuple(item.get("mounts", [])), **patterns,
        )  # fmt: skip

    def _clock(self, name: str, item: Mapping[str, Any], zone: str) -> Clock:
        where = f"{self._where}/clocks/{escaped(name)}/time_zone"
        own = self._zone(where, item["time_zone"]) if "time_zone" in item else zone
        return Clock(own, float(item.get("offset_s", 0)))

    def _files(
        self, number: int, item: Mapping[str, Any], systems: Collection[str], clocks: Collection[str]
    ) -> SourceFiles:
        from mpiio_ext.analytics.sources.registry import names

        where = f"{self._where}/files/{number}"
        for field, known in (("file_system", systems), ("clock", clocks)):
            if field in item and item[field] not in known:
                self._check.wrong(f"{where}/{field}", f"{shown(item[field])} is not among {field}s of the site")
        if not item["source"]:
            self._check.wrong(f"{where}/source", "is empty")
        elif item["source"] not in (sources := names()):
            text = f"{shown(item['source'])} is no source; there are {', '.join(sources)}"
            self._check.wrong(f"{where}/source", text)
        given = item["path"]
        many = isinstance(given, list)
        if not given:
            self._check.wrong(f"{where}/path", "is empty")
        paths = []
        for at, text in enumerate(given if many else [given] if given else []):
            self._template(f"{where}/path/{at}" if many else f"{where}/path", text)
            # The folder is no template, whatever letters there are in its name.
            folder = "" if text.startswith("/") else glob.escape(str(self._folder)).replace("%", "%%")
            paths.append(os.path.normpath(os.path.join(folder, text)))  # noqa: PTH118  (a template)
        return SourceFiles(
            item["source"], tuple(paths), item.get("file_system"), item.get("host"), item.get("clock"),
            item.get("stamps", "begin"),
            tuple((name, (given,) if isinstance(given, str) else tuple(given))
                  for name, given in item.get("metrics", {}).items()),
        )  # fmt: skip

    def _template(self, where: str, text: str) -> None:
        unknown = sorted({after for after in re.findall(r"%(.?)", text.replace("%%", ""), re.DOTALL)
                          if after not in _DIRECTIVES or not after})  # fmt: skip
        if not text or "\0" in text:
            self._check.wrong(where, "is no path")
        elif unknown:
            self._check.wrong(
                where, f"{shown('%' + unknown[0])} stands for no part of a date; %Y %m %d %H %j do, %% is %"
            )


def _stripe(check: Checker, where: str, value: Any) -> StripeDefault:
    lowest = {"stripe_size": 1, "stripe_count": -1, "stripe_offset": -1}
    found = check.object(where, value, tuple(lowest))
    given = {name: check.integer(f"{where}/{name}", found[name], low) for name, low in lowest.items() if name in found}
    return StripeDefault(**given)


def load_document(path: Path) -> Any:
    """Return the JSON in a file; names that stand twice in an object are a mistake.

    Raises
    ------
    AnalyticsError
        It cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except OSError as error:
        raise AnalyticsError(f"{path}: the site cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise AnalyticsError(f"{path}: the site is not JSON: {error}") from error


def is_pytokio(document: Any) -> bool:
    """Return whether a document is a site as pytokio has it, and none of this package."""
    return isinstance(document, Mapping) and "mount_to_fsname" in document and "file_systems" not in document


def site_in_setup(check: Checker, value: Any) -> Site:
    """Return the site of a set-up, an object of it or the path of a file; what is wrong is told to `check`."""
    if not isinstance(value, str):
        return _Reader(check, "/site", check.folder).site(value)
    path = check.path("/site", value)
    try:
        return load_site(path) if path else Site()
    except AnalyticsError as error:
        for line in str(error).splitlines():
            check.wrong("/site", line)
        return Site()


def load_site(source: str | os.PathLike[str] | Mapping[str, Any], folder: str | Path = ".") -> Site:
    """Read and check a site.

    Parameters
    ----------
    source : path or mapping
        The file, or what it would contain.
    folder : path
        What relative paths of a mapping are relative to; of a file it is its own folder.

    Raises
    ------
    AnalyticsError
        The file cannot be read, is not JSON, or something in it is wrong: all problems are listed, a line each, with
        their place as a JSON pointer.
    """
    if isinstance(source, Mapping):
        name, base, document = "site", Path(folder).absolute(), dict(source)
    else:
        path = Path(source).absolute()
        name, base, document = str(path), path.parent, load_document(path)
        if is_pytokio(document):
            raise AnalyticsError(
                f"{path}: is a site of pytokio; make one of this package of it: "
                "mpiio-ext connector site --from-pytokio FILE --time-zone ZONE -o OUTPUT"
            )
    check = Checker(base)
    site = _Reader(check, "", base).site(document)
    if check.problems:
        raise AnalyticsError("\n".join(f"{name}: {problem}" for problem in check.problems))
    return site
