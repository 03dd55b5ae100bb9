"""Site facts: a machine, its file systems, clocks and monitoring files. Read from site.json.

Problem. A tool that returns what the servers moved between two times must know which files have that, whose clock their
stamps are of, which path lies on which file system, and what that is called by its servers. pytokio kept this in code
and in a file without a form.

Content. :class:`Site`, from ``site`` of setup.json or from a file of its own, to which setup.json may point. Its
annotations are the form, and :func:`schema` has it as JSON Schema; what a schema cannot say (a time zone that exists, a
pattern that is one, names that are defined) is checked besides. Every mistake is a line that begins with its place as a
JSON pointer.

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

`FIELDS` has the meaning of each field.

Source: TOKIO, Section "Data integration": clocks must agree for an index by time to be consistent.
"""

from __future__ import annotations

import dataclasses
import glob
import os
import re
import zoneinfo
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic.json_schema import SkipJsonSchema

from mpiio_ext.analytics.errors import AnalyticsError
from mpiio_ext.common import documents
from mpiio_ext.common.documents import CLOSED, ONE_OR_MORE, DocumentError, given, shown

__all__ = [
    "FIELDS",
    "Clock",
    "FileSystem",
    "Site",
    "SourceFiles",
    "StripeDefault",
    "Text",
    "is_pytokio",
    "load_document",
    "load_site",
    "parse_site",
    "schema",
]

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
    "/file_systems/*/data_targets": "GPFS: regular expressions of names of disks with data, whose bytes alone count as "
    "traffic then; default: those that are not metadata_targets",
    "/file_systems/*/metadata_targets": "GPFS: regular expressions of names of disks with metadata alone",
    "/file_systems/*/metadata_servers": "GPFS: regular expressions of names of servers of metadata: load of mds_cpu",
    "/clocks/*": "a clock that stamps are of, by a name that files refer to",
    "/clocks/*/time_zone": "of its stamps without zone; default: that of the site",
    "/clocks/*/offset_s": "how far it is ahead of UTC, in seconds: the true time is the stamp minus this; default 0",
    "/files/*/source": "connector that reads the files (mpiio-ext analyze connector list)",
    "/files/*/path": "files, relative to the folder of this file: %Y %m %d %H %j stand for a date in the clock's time "
    "zone, * ? [...] for any letters; of a list the first of which there is a file for that date",
    "/files/*/file_system": "whose files they are; without it they are of the whole machine",
    "/files/*/host": "whose files they are, where it is one host",
    "/files/*/clock": "which clock their stamps are of; default: true, in the site's time zone",
    "/files/*/stamps": "whether a stamp begins (default) or ends its interval; of sources without this fact "
    "(mmperfmon, csv)",
    "/files/*/metrics": "csv: which columns are bytes_read, bytes_written and cpu; of a list the first "
    'that is there; with its unit if the source has none: "disk_rate [kB/s]"',
}

_DIRECTIVES = "YmdHj%"
Times = TypeVar("Times")


# ---- texts of a site -------------------------------------------------------------------------------------------------


def _no_nul(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError(f"{shown(text)} is empty, or has a NUL in it")
    return text


def _zone(zone: str) -> str:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"{shown(zone)} is no time zone of this machine; take a name as Europe/Berlin") from None
    return zone


def _pattern(pattern: str) -> str:
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{shown(pattern)} is no regular expression: {error}") from error
    return pattern


def _mount(mount: str) -> str:
    if not mount.startswith("/"):
        raise ValueError(f"{shown(mount)} is no absolute path")
    return mount


def _source(source: str) -> str:
    from mpiio_ext.analytics.sources.registry import names

    if source not in (sources := names()):
        raise ValueError(f"{shown(source)} is no source; there are {', '.join(sources)}")
    return source


def _among(kind: str) -> Callable[[str, ValidationInfo], str]:
    def check(name: str, info: ValidationInfo) -> str:
        if name not in given(info)[f"{kind}s"]:
            raise ValueError(f"{shown(name)} is not among {kind}s of the site")
        return name

    return check


def _template(text: str, info: ValidationInfo) -> str:
    """Return a template of paths, absolute."""
    if not text or "\0" in text:
        raise ValueError(f"{shown(text)} is no path")
    for after in sorted(set(re.findall(r"%(.?)", text.replace("%%", ""), re.DOTALL))):
        if not after or after not in _DIRECTIVES:
            raise ValueError(f"{shown('%' + after)} stands for no part of a date; %Y %m %d %H %j do, %% is %")
    # The folder is no template, whatever letters there are in its name.
    folder = "" if text.startswith("/") else glob.escape(str(given(info)["folder"])).replace("%", "%%")
    return os.path.normpath(os.path.join(folder, text))  # noqa: PTH118  (a template)


Text = Annotated[str, AfterValidator(_no_nul)]
_Zone = Annotated[str, AfterValidator(_zone)]
_Patterns = tuple[Annotated[str, AfterValidator(_pattern)], ...]
_Seconds = Annotated[float, Field(ge=-1e9, le=1e9)]


# ---- what a site has -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class StripeDefault:
    """Stripe settings of files without a request of their own; Lustre's own unless the site has others.

    Attributes
    ----------
    stripe_size : in bytes
    stripe_count : -1 is all OSTs: then their count does not separate files
    stripe_offset : first OST, of the paper's system -1 (any); None: it does not separate files
    """

    __pydantic_config__ = CLOSED

    stripe_size: Annotated[int, Field(ge=1)] = 1048576
    stripe_count: Annotated[int, Field(ge=-1)] = 1
    stripe_offset: Annotated[int, Field(ge=-1)] | None = None


@dataclasses.dataclass(frozen=True)
class Clock:
    """A clock that stamps are of.

    Attributes
    ----------
    time_zone : of stamps without zone
    offset_s : how far it is ahead of UTC, seconds
    """

    __pydantic_config__ = CLOSED

    time_zone: _Zone = "UTC"
    offset_s: _Seconds = 0.0


@dataclasses.dataclass(frozen=True)
class FileSystem:
    """A file system; `FIELDS` has the meaning of each field."""

    __pydantic_config__ = CLOSED

    name: SkipJsonSchema[str] = dataclasses.field(default="", init=False)
    kind: Literal["lustre", "gpfs", "other"] = "lustre"
    backend: str = ""
    mounts: tuple[Annotated[str, AfterValidator(_mount)], ...] = ()
    mount_patterns: _Patterns = ()
    data_targets: _Patterns = ()
    metadata_targets: _Patterns = ()
    metadata_servers: _Patterns = ()

    def holds_data(self, disk: str) -> bool:
        """Return whether a disk of GPFS is for data, by its name."""
        if self.data_targets:
            return _any_of(self.data_targets, disk)
        return not _any_of(self.metadata_targets, disk)

    def serves_metadata(self, server: str) -> bool:
        """Return whether a server of GPFS is one of metadata, by its name."""
        return _any_of(self.metadata_servers, server)


def _any_of(patterns: tuple[str, ...], name: str) -> bool:
    return any(re.search(pattern, name) for pattern in patterns)


@dataclasses.dataclass(frozen=True)
class SourceFiles:
    """Files of one source; `FIELDS` has the meaning of each field.

    Attributes
    ----------
    paths : tuple of str
        Templates, absolute; the first of which there is a file for a date.
    metrics : mapping of str to tuple of str
        Quantity, and the names of metrics that are it.
    """

    __pydantic_config__ = CLOSED

    source: Annotated[str, AfterValidator(_source)]
    paths: Annotated[
        tuple[Annotated[str, AfterValidator(_template)], ...], Field(alias="path", min_length=1), ONE_OR_MORE
    ]
    file_system: Annotated[str, AfterValidator(_among("file_system"))] | None = None
    host: str | None = None
    clock: Annotated[str, AfterValidator(_among("clock"))] | None = None
    stamps: Literal["begin", "end"] = "begin"
    metrics: Mapping[Literal["bytes_read", "bytes_written", "cpu"], Annotated[tuple[str, ...], ONE_OR_MORE]] = (
        dataclasses.field(default_factory=dict)
    )


@dataclasses.dataclass(frozen=True)
class Site:
    """The facts of a machine.

    Attributes
    ----------
    time_zone : of times without zone
    mounts : default stripe settings, by mount point
    lmt_mounts : LMT's name of a file system -> its mount point
    file_systems : by the name that people use
    clocks : by the name that files refer to
    files : those of each source
    """

    __pydantic_config__ = CLOSED

    time_zone: _Zone = "UTC"
    mounts: Mapping[str, StripeDefault] = dataclasses.field(default_factory=dict)
    lmt_mounts: Mapping[str, Text] = dataclasses.field(default_factory=dict)
    file_systems: Mapping[str, FileSystem] = dataclasses.field(default_factory=dict)
    clocks: Mapping[str, Clock] = dataclasses.field(default_factory=dict)
    files: tuple[SourceFiles, ...] = ()
    form: Annotated[str, Field(alias="$schema", description="its JSON Schema, for editors")] = dataclasses.field(
        default="", repr=False, compare=False
    )

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
        """Return the file system that its servers call so; None if there is none."""
        return next((item for item in self.file_systems.values() if item.backend == backend), None)


# ---- reading ---------------------------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a site."""
    found = documents.with_meanings(documents.form_schema(Site), FIELDS)
    return {**found, "title": "Site facts of mpiio_ext.analytics"}


def parse_site(document: Any, folder: Path) -> Site:
    """Return the site that a JSON value is; paths are relative to a folder.

    Raises
    ------
    DocumentError
        The value does not describe a site.
    """

    def named(kind: str) -> Mapping[str, Any]:
        found = document.get(kind) if isinstance(document, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    site = documents.parse(Site, document, folder=folder, file_systems=named("file_systems"), clocks=named("clocks"))
    systems = {}
    for name, system in site.file_systems.items():
        systems[name] = dataclasses.replace(system, backend=system.backend or name)
        object.__setattr__(systems[name], "name", name)
    clocks = {
        name: clock if "time_zone" in named("clocks")[name] else Clock(site.time_zone, clock.offset_s)
        for name, clock in site.clocks.items()
    }
    lmt = {item.backend: item.mounts[0] for item in systems.values() if item.kind == "lustre" and item.mounts}
    return dataclasses.replace(site, lmt_mounts={**lmt, **site.lmt_mounts}, file_systems=systems, clocks=clocks)


def load_document(path: Path) -> object:
    """Return the JSON in a file; names that stand twice in an object are a mistake.

    Raises
    ------
    AnalyticsError
        The file cannot be read, or is not JSON.
    """
    return documents.read_json(path, AnalyticsError)


def is_pytokio(document: object) -> bool:
    """Return whether a document is a site in the form of pytokio, and not of this package."""
    return isinstance(document, Mapping) and "mount_to_fsname" in document and "file_systems" not in document


def load_site(source: str | os.PathLike[str] | Mapping[str, Any], folder: str | Path = ".") -> Site:
    """Read and check a site.

    Parameters
    ----------
    source : path or mapping
        The file, or what it would contain.
    folder : path
        Folder that relative paths of a mapping start from; paths of a file start from the file's own folder.

    Raises
    ------
    AnalyticsError
        The file cannot be read, is not JSON, or something in it is wrong: all problems are listed, a line each, with
        their place as a JSON pointer.
    """
    document: object
    if isinstance(source, Mapping):
        name, base, document = "site", Path(folder).absolute(), dict(source)
    else:
        path = Path(source).absolute()
        name, base, document = str(path), path.parent, load_document(path)
        if is_pytokio(document):
            raise AnalyticsError(
                f"{path}: is a site of pytokio; make one of this package of it: "
                "mpiio-ext analyze connector site --from-pytokio FILE --time-zone ZONE -o OUTPUT"
            )
    try:
        return parse_site(document, base)
    except DocumentError as error:
        raise AnalyticsError(str(error.of(name))) from error
