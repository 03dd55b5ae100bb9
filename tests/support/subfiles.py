"""Files that are stored as several, by the description of their format alone: what tests compare the library with."""

from __future__ import annotations

import pathlib
import shutil
import urllib.parse
import zlib
from dataclasses import dataclass

HEAD = b"mpiio_ext subfiles 1\n"


@dataclass(frozen=True, slots=True)
class Index:
    """What an index says: unit, size (None: it is being written), and where the subfiles are."""

    unit: int
    size: int | None
    identity: str
    subfiles: tuple[pathlib.Path, ...]


def is_index(path: pathlib.Path) -> bool:
    """Tell whether a file is an index."""
    with path.open("rb") as file:
        return file.read(len(HEAD)) == HEAD


def read_index(path: pathlib.Path) -> Index:
    """Read an index; AssertionError where it is no good one."""
    text = path.read_bytes()
    body, _, last = text[:-1].rpartition(b"\n")
    assert last == b"checksum %08x" % zlib.crc32(body + b"\n"), last
    lines = [line.split(b" ", 1) for line in body.split(b"\n")[2:]]
    fields = {key.decode(): value.decode() for key, value in lines if key != b"subfile"}
    names = [urllib.parse.unquote_to_bytes(value).decode() for key, value in lines if key == b"subfile"]
    assert len(names) == int(fields["count"])
    assert (fields["state"] == "whole") == ("size" in fields)
    size = int(fields["size"]) if "size" in fields else None
    return Index(int(fields["unit"]), size, fields["id"], tuple(path.parent / name for name in names))


def read(path: pathlib.Path) -> bytes:
    """Return the bytes of a file, whether it is stored as several or not."""
    if not is_index(path):
        return path.read_bytes()
    index = read_index(path)
    parts = [part.read_bytes() for part in index.subfiles]
    count, unit, data = len(parts), index.unit, bytearray()
    for number, part in enumerate(parts):
        for begin in range(0, len(part), unit):
            piece = part[begin : begin + unit]
            at = (begin // unit * count + number) * unit
            data.extend(bytes(max(0, at + len(piece) - len(data))))
            data[at : at + len(piece)] = piece
    if index.size is not None:
        assert index.size == len(data)
        assert [len(part) for part in parts] == [share(index.size, unit, count, i) for i in range(count)]
    return bytes(data)


def share(size: int, unit: int, count: int, number: int) -> int:
    """Return how many of the first `size` bytes lie in a subfile."""
    return sum(min(unit, size - at) for at in range(number * unit, size, unit * count))


def store(path: pathlib.Path, data: bytes, count: int, unit: int) -> None:
    """Make a whole file of `count` subfiles."""
    folder = path.parent / f"{path.name}.subfiles"
    folder.mkdir(exist_ok=True)
    identity = "00112233445566ff"
    names = [f"{folder.name}/{identity}.{number}" for number in range(count)]
    for number, name in enumerate(names):
        part = b"".join(data[at : at + unit] for at in range(number * unit, len(data), unit * count))
        (path.parent / name).write_bytes(part)
    lines = ["mpiio_ext subfiles 1", "Stored as several.", "state whole", f"unit {unit}", f"count {count}"]
    lines += [f"size {len(data)}", f"id {identity}", *(f"subfile {name}" for name in names)]
    body = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(body + b"checksum %08x\n" % zlib.crc32(body))


def remove(path: pathlib.Path) -> None:
    """Remove a file, or a folder."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
