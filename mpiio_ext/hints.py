"""Hints: their registry, the values in force, and a checked way to write them down.

The registry is the C library's (``csrc/core/hints``), so a hint exists here exactly when ``MPI_File_open`` knows it.
``docs/howto/hints.md`` explains the meaning of hints, and which source overrides which.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    for_speed : users set it for speed alone.
    """

    name: str
    type: str
    values: str
    default: str
    description: str
    for_speed: bool


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
            for_speed=bool(lib.mpiio_ext_hint_for_speed(index)),
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


@functools.cache
def _names() -> dict[str, str]:
    """Return {argument of `Hints`: name of the hint}, in the order of the registry."""
    return {spec.name.removeprefix(_PREFIX): spec.name for spec in registry()}


@dataclass(frozen=True, init=False, repr=False)
class Hints:
    """A checked set of hints, to be handed to ``MPI.File.Open`` or to an unchanged program.

    Parameters
    ----------
    **hints : bool, int, str or None
        The hints of the registry (`registry`, ``mpiio-ext hints``, docs/reference/hints.md), those with the prefix
        ``mpiox_`` without it: True and False for a boolean, a number or text such as "4M" for bytes, a word for a
        choice; None: not set. Each is an attribute of the object, too.
    others : mapping of str to str, optional
        Hints of the MPI library that are passed on, {name: value}.

    Raises
    ------
    ArgumentError
        A value is not allowed, or a name in `others` does not exist.
    TypeError
        An argument is no hint; the message names the nearest one.

    Examples
    --------
    >>> Hints(partition="group_cyclic", cb_buffer_size="4M").environment("*.h5")
    '*.h5:mpiox_partition=group_cyclic:cb_buffer_size=4194304'
    """

    #: Hints that are set, by argument.
    given: Mapping[str, bool | int | str]
    others: Mapping[str, str]

    def __init__(self, *, others: Mapping[str, str] | None = None, **hints: bool | int | str | None) -> None:
        for name in [name for name in hints if name not in _names()]:
            near = near_names(name.removeprefix(_PREFIX), list(_names()))
            raise TypeError(f"{name} is no argument of Hints" + (f"; did you mean {near[0]}?" if near else ""))
        values = ((name, hints.get(name)) for name in _names())
        object.__setattr__(self, "given", {name: value for name, value in values if value is not None})
        object.__setattr__(self, "others", dict(others or {}))
        for name, text in self._pairs().items():
            check(name, text)
            quote(text)

    def __getattr__(self, name: str) -> bool | int | str | None:
        if name not in _names():
            raise AttributeError(f"{name} is no hint")
        return self.given.get(name)

    def __repr__(self) -> str:
        shown = {**self.given, **({"others": self.others} if self.others else {})}
        return f"Hints({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def _pairs(self) -> dict[str, str]:
        own = {
            _names()[name]: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in self.given.items()
        }
        return own | dict(self.others)

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
