"""Hints: their registry, the values in force, and a checked way to write them down.

The registry is the C library's (``csrc/core/hints``), so a hint exists here exactly when ``MPI_File_open`` knows it.
``docs/howto/hints.md`` explains the meaning of hints, and which source overrides which.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from mpiio_ext._binding import ffi, lib
from mpiio_ext._load import check_in_time
from mpiio_ext.common.near import near_names
from mpiio_ext.common.shown import Shown
from mpiio_ext.errors import ArgumentError

if TYPE_CHECKING:
    from mpi4py import MPI

__all__ = [
    "HintSpec",
    "HintValue",
    "HintValues",
    "Hints",
    "check",
    "in_force",
    "markdown_table",
    "of",
    "problems",
    "quote",
    "registry",
]

_PREFIX = "mpiox_"
_Class = TypeVar("_Class")
_PLAIN = re.compile(r"[A-Za-z0-9_./+*?%@=-]+")
_VALUE_BYTES = 1024


def _text(pointer: object) -> str:
    return str(ffi.string(pointer).decode("utf-8", "surrogateescape"))


def _bytes(text: str) -> bytes:
    if "\0" in text:
        raise ArgumentError(f"a hint must not contain a null character: {text!r}")
    return text.encode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True, kw_only=True)
class HintSpec:
    """One hint of the registry.

    Attributes
    ----------
    name : name as in an MPI_Info object.
    type : "boolean", "integer", "bytes", "choice" or "text".
    values : the allowed values, for people.
    default : the value of an unset hint, as text.
    description : what it does, one line.
    """

    name: str
    type: str
    values: str
    default: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HintValue:
    """A hint and its value in force.

    Attributes
    ----------
    spec : the hint.
    value : the value in its standard form; sizes in bytes.
    source : weakest first: "default", "/etc/romio-hints", "openmpi-mca-params.conf", "site file", "Open MPI parameter",
        "ROMIO_HINTS", "MPI_Info", "MPICH_MPIIO_HINTS", "MPIOX_HINTS_FILE" or "MPIOX_HINTS".
    """

    spec: HintSpec
    value: str
    source: str


class HintValues(tuple[HintValue, ...], Shown):
    """Every hint of the registry with its value in force."""

    __slots__ = ()

    def lines(self) -> list[str]:
        """Return the hints that are no defaults."""
        given = [f"{item.spec.name}={item.value} ({item.source})" for item in self if item.source != "default"]
        return given or [f"all {len(self)} hints have their defaults"]

    def rows(self) -> list[dict[str, object]]:
        """Return all hints."""
        return [
            {
                "hint": item.spec.name,
                "value": item.value,
                "source": item.source,
                "default": item.spec.default,
                "meaning": item.spec.description,
            }
            for item in self
        ]

    __repr__ = Shown.__repr__


@functools.cache
def registry() -> tuple[HintSpec, ...]:
    """Return every hint that the library knows, in the order of its registry."""
    return tuple(
        HintSpec(
            name=_text(lib.mpiio_ext_hint_name(index)),
            type=_text(lib.mpiio_ext_hint_type(index)),
            values=_text(lib.mpiio_ext_hint_values(index)),
            default=_text(lib.mpiio_ext_hint_default(index)),
            description=_text(lib.mpiio_ext_hint_description(index)),
        )
        for index in range(lib.mpiio_ext_hint_count())
    )


def choices(name: str) -> tuple[str, ...]:
    """Return the words that a hint of the type "choice" allows."""
    return next(tuple(spec.values.split(" | ")) for spec in registry() if spec.name == name)


def check(name: str, value: str) -> None:
    """Check one hint.

    Hints of the MPI libraries that are passed on unread (``romio_no_indep_rw``, ``cb_block_size``…) are accepted
    with any value.

    Raises
    ------
    ArgumentError
        The hint does not exist or the value is not allowed; the message names the nearest hint or the allowed values.
    """
    message = ffi.new("char[]", _VALUE_BYTES)
    if lib.mpiio_ext_hint_check(_bytes(name), _bytes(value), message, _VALUE_BYTES) != 0:
        raise ArgumentError(_text(message))


def _canonical(name: str, value: str) -> str:
    text = ffi.new("char[]", _VALUE_BYTES)
    if lib.mpiio_ext_hint_canonical(_bytes(name), _bytes(value), text, _VALUE_BYTES) != 0:
        return value  # a hint that is only passed on
    return _text(text)


def _values(handle: object) -> HintValues:
    return HintValues(
        HintValue(
            spec=spec,
            value=_text(lib.mpiio_ext_hints_value(handle, index)),
            source=_text(lib.mpiio_ext_hints_source(handle, index)),
        )
        for index, spec in enumerate(registry())
    )


def _resolve(path: str | None) -> object:
    handle = lib.mpiio_ext_hints_resolve(ffi.NULL if path is None else _bytes(path))
    if handle == ffi.NULL:
        raise MemoryError("mpiio_ext_hints_resolve")
    return ffi.gc(handle, lib.mpiio_ext_hints_free)


def in_force(path: str = "") -> HintValues:
    """Return the hints that would be in force for a file opened now without an MPI_Info object.

    Parameters
    ----------
    path : name by which the program would open the file; patterns of files and variables are matched against it.
    """
    check_in_time()
    return _values(_resolve(path))


def problems(path: str | None = None) -> tuple[str, ...]:
    """Return the mistakes in the hints of files and variables, one line each.

    Parameters
    ----------
    path : only patterns that match this name are looked at; None looks at all of them.
    """
    return tuple(_text(lib.mpiio_ext_hints_problems(_resolve(path))).splitlines())


def of(file: MPI.File) -> HintValues:
    """Return the hints in force for an open file.

    Raises
    ------
    ArgumentError
        The file is closed, or was not opened through this library.
    """
    check_in_time()
    from mpi4py import MPI

    handle = lib.mpiio_ext_hints_of(ffi.cast("const void *", MPI._addressof(file)))
    if handle == ffi.NULL:
        raise ArgumentError("file: closed, or not opened through mpiio_ext")
    return _values(ffi.gc(handle, lib.mpiio_ext_hints_free))


def quote(text: str) -> str:
    """Return a pattern or value as the grammar of MPIOX_HINTS takes it literally."""
    if "\n" in text:
        raise ArgumentError(f"a hint must not contain a line break: {text!r}")
    if _PLAIN.fullmatch(text) and "=" not in text:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def markdown_table() -> str:
    """Return the registry as the Markdown table of docs/reference/hints.md."""
    lines = ["| hint | type | values | default | meaning |", "|---|---|---|---|---|"]
    for spec in registry():
        values = spec.values.replace("|", "\\|")
        default = f"`{spec.default}`" if spec.default else ""
        lines.append(f"| `{spec.name}` | {spec.type} | {values} | {default} | {spec.description} |")
    return "\n".join(lines) + "\n"


def _suggesting(cls: type[_Class]) -> type[_Class]:
    """Let a dataclass name the field next to a keyword argument that does not exist."""
    known = [item.name for item in dataclasses.fields(cls)]  # type: ignore[arg-type]
    init: Any = cls.__init__

    @functools.wraps(init)
    def checked(self: Any, *arguments: Any, **named: Any) -> None:
        for name in named.keys() - set(known):
            near = near_names(name, known)
            raise TypeError(f"{name} is no hint" + (f"; did you mean {near[0]}?" if near else ""))
        init(self, *arguments, **named)

    setattr(cls, "__init__", checked)  # noqa: B010  (mypy lets no method be assigned)
    return cls


@_suggesting
@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """A checked set of hints, to be handed to ``MPI.File.Open`` or to an unchanged program.

    Every field is None until it is set; only fields that are set are passed on. Fields are the hints of the registry,
    those with the prefix ``mpiox_`` without it.

    Attributes
    ----------
    enable : take over collective data access.
    partition : file-domain method, "auto" or one of the methods of `mpiio_ext.partitioning`.
    stripe_size_io : at most one stripe per file-system request: True, False, "enable", "disable" or "automatic".
    exchange : "auto", "two_phase" or "direct".
    collective : "auto", "two_phase" or "cached"; of a file with delegates.
    io_rank : "any" or "owner".
    coherence : "auto", "refresh" or "native".
    buffers : collective buffers per aggregator.
    ranks_per_node : pretend that every n consecutive ranks are a node.
    wait_limit : seconds that a rank waits in a collective without a sign of the others before it ends the job; 0: no
        limit.
    synchronous : a collective returns when every rank has done its part, with the error of any rank.
    coverage_map : mark every byte that is written (for tests).
    stats : print the file's statistics at close: True, False, "line", "full" or "json".
    storage : "auto", "posix" or "io_uring".
    io_uring_depth : requests in flight at most.
    direct_read, direct_write : whole blocks go past the page cache.
    cb_buffer_size : bytes, or text with a suffix such as "4M".
    cb_nodes : number of aggregators.
    cb_config_list : which processes may be aggregators, in ROMIO's syntax.
    device_buffer : size of each of the two host buffers through which a GPU's memory passes, bytes or text with a
        suffix.
    romio_cb_write, romio_cb_read : "enable", "disable" or "automatic".
    romio_ds_write, romio_ds_read : data sieving of independent access: "enable", "disable" or "automatic".
    ind_wr_buffer_size, ind_rd_buffer_size : range of one step of an independent access, bytes or text with a suffix.
    striping_unit : stripe size in bytes, or text with a suffix.
    striping_factor : number of I/O servers; -1 for all, of a file that is made.
    start_iodevice : server of the first stripe of a file that is made.
    delegates : number of I/O delegates, "25%" of the ranks, or "per_node=1"; 0: none.
    delegate_mode : "spawn", "split", "process", "thread" or "auto": how they are started.
    delegate_ack : where bytes are when a write returns: "memory", "replica" or "disk".
    delegate_cache : memory of one delegate, bytes or text with a suffix.
    delegate_cache_dir : folders on disks of the node that hold the caches.
    delegate_page : page of a delegate's cache, bytes or text with a suffix; 0: the stripe size.
    delegate_threads : I/O threads of a delegate.
    delegate_prefetch : pages read ahead of a reader at most.
    delegate_bypass : bytes of contiguous runs from which on whole pages go straight to the file.
    delegate_write_behind : bytes of a buffer for small writes to delegates of other nodes.
    delegate_timeout : seconds that a step of starting delegates may take.
    delegate_report : seconds that a rank waits for a delegate that is alive before it says so; 0: never.
    delegate_scheduler : which request a delegate serves next: "elevator", "fifo", "sjf", "to_agg", "aioli", "mlf",
        "hbrr", "twins" or "wfq".
    delegate_quantum : bytes of a turn of a file or flow, or text with a suffix.
    delegate_time_slice : microseconds.
    delegate_patience : milliseconds that a request waits at most before it is next; 0: any time.
    delegate_weight : share of this file's requests under "wfq".
    close : "written" or "staged": a close waits until all bytes are in the file system, or delegates write them later.
    drain_rate : bytes a second that a delegate writes behind a staged close, or text with a suffix; 0: no limit.
    drain_pace : "full" or "even": a delegate writes behind a staged close at once, or until the next is expected.
    drain_patience : seconds that a delegate whose job has ended goes on trying what the file system refuses.
    delegate_hosts : hosts for spawned delegates.
    delegate_interface : network interfaces by which delegates are reached from other hosts.
    delegate_owners : how many of the delegates own pages of the file; 0: as many as suit its servers.
    arbiter : folder of a running ``mpiio-ext delegates arbiter``.
    arbiter_name : what the arbiter's curves and weights call the program; "": its executable, or in Python its script.
    subfiles : number of subfiles that a file which is made is stored as: 8, "per_node=1" or "per_server"; 0: none.
    subfile_unit : bytes that lie together in a subfile, or text with a suffix; 0: the stripe size.
    others : hints of the MPI library that are passed on, {name: value}.

    Raises
    ------
    ArgumentError
        A value is not allowed, or a name in `others` does not exist.

    Examples
    --------
    >>> Hints(partition="group_cyclic", cb_buffer_size="4M").environment("*.h5")
    '*.h5:mpiox_partition=group_cyclic:cb_buffer_size=4194304'
    """

    enable: bool | None = None
    partition: str | None = None
    stripe_size_io: bool | str | None = None
    exchange: str | None = None
    collective: str | None = None
    io_rank: str | None = None
    coherence: str | None = None
    buffers: int | None = None
    ranks_per_node: int | None = None
    wait_limit: int | None = None
    synchronous: bool | None = None
    coverage_map: bool | None = None
    stats: bool | str | None = None
    storage: str | None = None
    io_uring_depth: int | None = None
    direct_read: bool | None = None
    direct_write: bool | None = None
    cb_buffer_size: int | str | None = None
    cb_nodes: int | None = None
    cb_config_list: str | None = None
    romio_cb_write: str | None = None
    romio_cb_read: str | None = None
    romio_ds_write: str | None = None
    romio_ds_read: str | None = None
    device_buffer: int | str | None = None
    ind_wr_buffer_size: int | str | None = None
    ind_rd_buffer_size: int | str | None = None
    striping_unit: int | str | None = None
    striping_factor: int | None = None
    start_iodevice: int | None = None
    delegates: int | str | None = None
    delegate_mode: str | None = None
    delegate_ack: str | None = None
    delegate_cache: int | str | None = None
    delegate_cache_dir: str | None = None
    delegate_page: int | str | None = None
    delegate_threads: int | None = None
    delegate_prefetch: int | None = None
    delegate_bypass: int | str | None = None
    delegate_write_behind: int | str | None = None
    delegate_timeout: int | None = None
    delegate_report: int | None = None
    delegate_scheduler: str | None = None
    delegate_quantum: int | str | None = None
    delegate_time_slice: int | None = None
    delegate_patience: int | None = None
    delegate_weight: int | None = None
    close: str | None = None
    drain_rate: int | str | None = None
    drain_pace: str | None = None
    drain_patience: int | None = None
    delegate_hosts: str | None = None
    delegate_interface: str | None = None
    delegate_owners: int | None = None
    arbiter: str | None = None
    arbiter_name: str | None = None
    subfiles: int | str | None = None
    subfile_unit: int | str | None = None
    others: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        given = ((item.name, getattr(self, item.name)) for item in dataclasses.fields(self))
        return f"Hints({', '.join(f'{name}={value!r}' for name, value in given if value not in (None, {}))})"

    def __post_init__(self) -> None:
        for name, value in self._pairs().items():
            check(name, value)
            quote(value)

    def _pairs(self) -> dict[str, str]:
        known = {spec.name for spec in registry()}
        pairs = {}
        for item in dataclasses.fields(self):
            value = getattr(self, item.name)
            if value is None or item.name == "others":
                continue
            name = item.name if item.name in known else _PREFIX + item.name
            pairs[name] = str(value).lower() if isinstance(value, bool) else str(value)
        return pairs | dict(self.others)

    def items(self) -> dict[str, str]:
        """Return {hint: value} of the hints that are set, values in their standard form."""
        return {name: _canonical(name, value) for name, value in self._pairs().items()}

    def info(self) -> MPI.Info:
        """Return a new MPI.Info object with these hints; the caller frees it. Imports mpi4py."""
        check_in_time()
        from mpi4py import MPI

        info = MPI.Info.Create()
        for name, value in self.items().items():
            info.Set(name, value)
        return info

    def environment(self, pattern: str = "*") -> str:
        """Return these hints as text for the environment variable MPIOX_HINTS.

        Parameters
        ----------
        pattern : files for which they hold, matched against the whole name and against its last component.
        """
        pairs = [f"{name}={quote(value)}" for name, value in self.items().items()]
        return ":".join([quote(pattern), *pairs]) if pairs else ""
