"""Layouts: how a file lies on the servers of its file system, with the source of each fact.

`inspect` asks the file system that a path is on (Lustre, GPFS, BeeGFS, CephFS, GlusterFS, DAOS, NFS, XFS…) for all that
it shows without rights. Each fact has its source; what no source has is absent. ``docs/reference/layout.md`` lists the
sources of each fact.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

from mpiio_ext._binding import ffi, lib
from mpiio_ext.common.shown import Shown
from mpiio_ext.errors import ArgumentError, FileSystemError

__all__ = ["Component", "Fact", "FactSpec", "Layout", "inspect", "registry"]

_NO_MEMORY = -1
_NO_END = 2**63 - 1
_COMPONENT_NUMBERS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class FactSpec:
    """The possible facts of a layout.

    Attributes
    ----------
    name : name of the fact.
    unit : "bytes", "count", "boolean" or "text".
    meaning : what it says, one line.
    """

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One thing that is known of a layout.

    Attributes
    ----------
    spec : which.
    value : an int (bytes, counts), a bool, or a text.
    source : of the fact: "hint striping_unit", "xattr lustre.lov", "statfs f_type", "default"…
    """

    spec: FactSpec
    value: int | bool | str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """A part of a file that is striped in its own way.

    Attributes
    ----------
    start_bytes, end_bytes : the extent of the file, half open; end None: to the end of the file, wherever it is.
    stripe_size_bytes : None if unknown.
    stripe_count : None if unknown; -1 for all servers.
    servers : how many of the targets are different ones; None if unknown.
    mirror : number of the copy that this part belongs to.
    pattern : how the stripes go over the targets, such as "raid0,overstriped".
    flags : state of the part, such as "init" or "stale".
    pool : pool that its targets are of; "" for none.
    targets : names of the targets in the order of the stripes: numbers of Lustre's OSTs, bricks as "host:folder".
    """

    start_bytes: int
    end_bytes: int | None
    stripe_size_bytes: int | None
    stripe_count: int | None
    servers: int | None
    mirror: int
    pattern: str
    flags: str
    pool: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Layout(Shown):
    """All known facts of the layout of a file, or of new files in a folder.

    Attributes
    ----------
    path : the path that was asked for.
    is_folder : whether it is a folder.
    facts : what is known, in the order of `registry`.
    components : parts of the file; none if the file system has no such thing or says nothing of it.
    """

    path: str
    is_folder: bool
    facts: tuple[Fact, ...]
    components: tuple[Component, ...] = field(default=())

    def fact(self, name: str) -> Fact | None:
        """Return a fact by name, None without a source.

        Raises
        ------
        ArgumentError
            No fact has this name.
        """
        for found in self.facts:
            if found.spec.name == name:
                return found
        if name not in [spec.name for spec in registry()]:
            raise ArgumentError(f"no fact {name!r}; there are {', '.join(spec.name for spec in registry())}")
        return None

    def value(self, name: str) -> int | bool | str | None:
        """Return the value of a fact, None without a source; raises as `fact`."""
        found = self.fact(name)
        return None if found is None else found.value

    def source(self, name: str) -> str | None:
        """Return the source of a fact, None without one; raises as `fact`."""
        found = self.fact(name)
        return None if found is None else found.source

    def rows(self) -> list[dict[str, object]]:
        """Return name, value, unit and source of the facts, all of them as text."""
        return [
            {"name": fact.spec.name, "value": str(fact.value), "unit": fact.spec.unit, "source": fact.source}
            for fact in self.facts
        ]

    def lines(self) -> list[str]:
        """Return the path, and the facts."""
        return [self.path, *(f"{row['name']:<22} {row['value']} ({row['source']})" for row in self.rows())]

    def as_dict(self) -> dict[str, Any]:
        """Return plain dicts and lists, as ``mpiio-ext layout --json`` prints them."""
        return {
            "path": self.path,
            "is_folder": self.is_folder,
            "facts": {
                item.spec.name: {"value": item.value, "unit": item.spec.unit, "source": item.source}
                for item in self.facts
            },
            "components": [asdict(item) | {"targets": list(item.targets)} for item in self.components],
        }


def _text(pointer: Any) -> str:
    return str(ffi.string(pointer).decode("utf-8", "surrogateescape"))


def registry() -> tuple[FactSpec, ...]:
    """Return every fact that there is, in the library's order."""
    return tuple(
        FactSpec(
            name=_text(lib.mpiio_ext_layout_fact_name(index)),
            unit=_text(lib.mpiio_ext_layout_fact_unit(index)),
            meaning=_text(lib.mpiio_ext_layout_fact_meaning(index)),
        )
        for index in range(lib.mpiio_ext_layout_fact_count())
    )


def _typed(text: str, unit: str) -> int | bool | str:
    if unit == "boolean":
        return text == "true"
    return text if unit == "text" else int(text)


def _facts(layout: Any) -> tuple[Fact, ...]:
    found = []
    for index, spec in enumerate(registry()):
        value = lib.mpiio_ext_layout_value(layout, index)
        if value != ffi.NULL:
            source = _text(lib.mpiio_ext_layout_source(layout, index))
            found.append(Fact(spec=spec, value=_typed(_text(value), spec.unit), source=source))
    return tuple(found)


def _component(layout: Any, index: int) -> Component:
    numbers = ffi.new("int64_t[]", _COMPONENT_NUMBERS)
    lib.mpiio_ext_layout_component(layout, index, numbers)
    start, end, stripe_size, stripe_count, servers, mirror, targets = list(numbers)
    pattern, flags, pool = (_text(lib.mpiio_ext_layout_component_text(layout, index, which)) for which in range(3))
    return Component(
        start_bytes=start,
        end_bytes=None if end == _NO_END else end,
        stripe_size_bytes=stripe_size or None,
        stripe_count=stripe_count or None,
        servers=servers or None,
        mirror=mirror,
        pattern=pattern,
        flags=flags,
        pool=pool,
        targets=tuple(_text(lib.mpiio_ext_layout_target(layout, index, stripe)) for stripe in range(targets)),
    )


def _hint(name: str, value: int | None, most: int, least: int = 1) -> int | None:
    if value is not None and not least <= value <= most:
        raise ArgumentError(f"{name} must be from {least} to {most}, not {value}")
    return value


def inspect(
    path: str | os.PathLike[str],
    *,
    striping_unit_bytes: int | None = None,
    striping_factor: int | None = None,
    start_iodevice: int | None = None,
) -> Layout:
    """Ask the file system how a file lies on its servers.

    A query may last as long as a few answers of servers; nothing is written. Of a folder: what new files in it get.

    Parameters
    ----------
    path : a file or a folder. For a file that may not be read, only its file system is known.
    striping_unit_bytes, striping_factor, start_iodevice : as if the hints of that name were given: they override.
        A `striping_factor` of 0 or -1 (all servers, for a file that is made) overrides nothing.

    Returns
    -------
    Layout
        Facts with their sources, and the components.

    Raises
    ------
    FileSystemError
        The path cannot be reached, or is neither a file nor a folder; `errno` and `filename` say which.
    ArgumentError
        A hint is out of range.
    """
    name = os.fspath(path)
    unit = _hint("striping_unit_bytes", striping_unit_bytes, 2**62)
    factor = _hint("striping_factor", striping_factor, 2**31 - 1, least=-1)
    start = _hint("start_iodevice", start_iodevice, 2**31 - 1, least=0)
    if "\0" in name:
        raise ArgumentError(f"a path must not contain a null character: {name!r}")
    out, number = ffi.new("mpiio_ext_layout **"), ffi.new("int *")
    code = lib.mpiio_ext_layout_inspect(
        os.fsencode(name), unit or 0, factor or 0, -1 if start is None else start, out, number
    )
    if code == _NO_MEMORY:
        raise MemoryError("no memory for the description of a layout")
    if code != 0:
        raise FileSystemError(number[0], _reason(number[0]), name)
    layout = ffi.gc(out[0], lib.mpiio_ext_layout_free)
    return Layout(
        path=name,
        is_folder=bool(lib.mpiio_ext_layout_is_folder(layout)),
        facts=_facts(layout),
        components=tuple(_component(layout, i) for i in range(lib.mpiio_ext_layout_component_count(layout))),
    )


def _reason(number: int) -> str:
    import errno

    if number == errno.EINVAL:
        return "neither a file nor a folder"
    return os.strerror(number) + ("; of a new file, give its folder" if number == errno.ENOENT else "")
