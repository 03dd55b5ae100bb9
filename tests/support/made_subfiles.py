"""Files that are stored as several, made as the format says and by none of the product's code; commands."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence

from click.testing import CliRunner, Result

from mpiio_ext.cli import main
from support.launch import base_environment

IDENT = "0123456789abcdef"


def escape(name: str) -> bytes:
    """Return a name as an index has it."""
    return b"".join(b"%%%02X" % one if one < 32 or one in (37, 127) else bytes([one]) for one in os.fsencode(name))


def index_text(
    name: str, unit: int, count: int, size: int | None, *, ident: str = IDENT, subfiles: Sequence[str] | None = None
) -> bytes:
    """Return the text of an index."""
    paths = [f"{name}.subfiles/{ident}.{one}" for one in range(count)] if subfiles is None else subfiles
    lines = [
        b"mpiio_ext subfiles 1",
        b"This is the index of a file that is stored as several. One plain file is made "
        b"by: mpiio-ext subfiles merge " + escape(name),
        b"state " + (b"writing" if size is None else b"whole"),
        b"unit %d" % unit,
        b"count %d" % count,
        *([] if size is None else [b"size %d" % size]),
        b"id " + ident.encode(),
        *(b"subfile " + escape(path) for path in paths),
    ]
    text = b"\n".join(lines) + b"\n"
    return text + b"checksum %08x\n" % zlib.crc32(text)


def make(
    path: pathlib.Path, runs: Mapping[int, bytes], size: int, unit: int, count: int, *, whole: bool = True
) -> None:
    """Write an index and its subfiles; `runs` has the bytes by their places, the rest are holes."""
    folder = path.with_name(path.name + ".subfiles")
    folder.mkdir()
    lengths = [0] * count
    for number in range(count):
        (folder / f"{IDENT}.{number}").write_bytes(b"")
    for begin, data in runs.items():
        at = 0
        while at < len(data):
            one = (begin + at) // unit
            inside = (begin + at) % unit
            some = data[at : at + unit - inside]
            with (folder / f"{IDENT}.{one % count}").open("r+b") as stream:
                stream.seek(one // count * unit + inside)
                stream.write(some)
            lengths[one % count] = max(lengths[one % count], one // count * unit + inside + len(some))
            at += len(some)
    if whole:
        full, rest = divmod(size, unit)
        for number in range(count):
            share = (full // count + (number < full % count)) * unit + (rest if number == full % count else 0)
            os.truncate(folder / f"{IDENT}.{number}", share)
    path.write_bytes(index_text(path.name, unit, count, size if whole else None))


def command(*words: object) -> Result:
    """Return what a command prints, and its status."""
    return CliRunner().invoke(main, ["subfiles", *map(str, words)])


def child(*words: object, before: str = "") -> subprocess.Popen[bytes]:
    """Start a command in a process of its own; `before` runs there first."""
    code = f"import sys; sys.argv = {['mpiio-ext', 'subfiles', *map(str, words)]!r}\n{before}\n"
    code += "from mpiio_ext.cli import main; main(prog_name='mpiio-ext')"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=base_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def content(runs: Mapping[int, bytes], size: int) -> bytes:
    """Return the bytes of a small file."""
    found = bytearray(size)
    for begin, data in runs.items():
        found[begin : begin + len(data)] = data
    return bytes(found)
