"""The index of a file that is stored as several: what is written is read; what is damaged is refused, in words.

Written against indexes of `support.made_subfiles`. Damaged ones are random: bytes of an index changed, cut, doubled,
and texts of its lines in any order. Whatever it is, the parser either refuses it, or has read what stands there.
"""

from __future__ import annotations

import os
import pathlib
import zlib
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpiio_ext.subfiles import index
from mpiio_ext.subfiles.index import NoIndexError, Striping, SubfilesError
from support.made_subfiles import IDENT, command, index_text

NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=["Cs"]), min_size=1, max_size=40).filter(
    lambda name: name not in (".", "..")
)
GOOD = index_text("f", 64, 3, 1000)


def sealed(text: bytes) -> bytes:
    return text + b"checksum %08x\n" % zlib.crc32(text)


def writers(count: bytes) -> bytes:
    """Return the index of a file that so many programs write."""
    return sealed(index_text("f", 64, 3, None).replace(b"id", b"writers %s\nid" % count, 1).rpartition(b"checksum")[0])


def test_an_index_of_several_writers() -> None:
    assert index.parse(writers(b"12")).state == "writing"


@given(NAMES, st.integers(1, 2**62), st.integers(1, 9), st.one_of(st.none(), st.integers(0, 2**63 - 1)))
def test_what_is_written_is_read(name: str, unit: int, count: int, size: int | None) -> None:
    found = index.parse(index_text(name, unit, count, size))
    assert (found.state, found.size) == ("writing" if size is None else "whole", size)
    assert (found.striping, found.ident) == (Striping(unit=unit, count=count), IDENT)
    assert found.subfiles == tuple(pathlib.Path(f"{name}.subfiles/{IDENT}.{one}") for one in range(count))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "is no index of subfiles"),
        (b"\x89HDF\r\n\x1a\n", "is no index of subfiles"),
        (GOOD.replace(b"subfiles 1\n", b"subfiles 2\n", 1), "is an index of version 2; this release knows 1 alone"),
        (GOOD[:-1], "a line is missing, unknown or not in its place"),
        (GOOD + b"\n", "a line is missing, unknown or not in its place"),
        (GOOD.replace(b"size 1000", b"size 1001"), "its checksum is"),
        (GOOD.replace(b"\n", b"\r\n"), "a damaged index"),
        (sealed(GOOD.replace(b"unit 64", b"unit 064").rpartition(b"checksum")[0]), "a line is missing, unknown or"),
        (index_text("f", 0, 3, 5), "its unit is 0"),
        (index_text("f", 2**62 + 1, 3, 5), "its unit is"),
        (index_text("f", 64, 3, 2**63), "its size is"),
        (index_text("f", 64, 0, 5), "it counts 0 subfiles"),
        (index_text("f", 64, 4097, 5), "it counts 4097 subfiles"),
        (index_text("f", 64, 2, 5, subfiles=["a.0"]), "it counts 2 subfiles and names 1"),
        (index_text("f", 64, 2, 5, subfiles=["a.0", "a.0"]), "two subfiles have one name"),
        (index_text("f", 64, 1, 5, subfiles=["a\0b"]), "a name has a byte 0"),
        (writers(b"1"), "a line is missing, unknown or not in its place"),
        (sealed(GOOD.replace(b"size 1000", b"writers 2").rpartition(b"checksum")[0]), "has a size if"),
        (sealed(index_text("f", 1, 1, 5).replace(b"whole", b"writing").rpartition(b"checksum")[0]), "has a size if"),
    ],
    ids=lambda one: one[:30] if isinstance(one, str) else "text",
)
def test_what_is_wrong_is_said(text: bytes, words: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(text)
    for verb in (["merge"], ["check"], ["rm"]):
        done = command(*verb, path)
        assert done.exit_code == 2 and f"mpiio-ext: {path}: " in done.stderr and words in done.stderr, done.output
    assert [one.name for one in tmp_path.iterdir()] == ["f"] and path.read_bytes() == text


@given(st.data())
@settings(max_examples=1000)
def test_damaged_ones_are_refused(data: st.DataObject) -> None:
    text = bytearray(index_text("a%b\n", data.draw(st.integers(1, 99)), data.draw(st.integers(1, 4)), 77))
    for _ in range(data.draw(st.integers(1, 3))):
        at, end = sorted((data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))))
        match data.draw(st.sampled_from(["byte", "cut", "double", "put"])):
            case "byte" if at < len(text):
                text[at] = data.draw(st.integers(0, 255))
            case "cut":
                del text[at:end]
            case "double":
                text[at:at] = text[at:end]
            case "put":
                text[at:at] = data.draw(st.binary(max_size=8))
    seal = data.draw(st.booleans())
    damaged = sealed(bytes(text).rpartition(b"checksum")[0]) if seal else bytes(text)
    try:
        found = index.parse(damaged)
    except NoIndexError:
        assert not damaged.startswith(b"mpiio_ext subfiles ")
    except SubfilesError as error:
        assert str(error).startswith("index: is ")
    else:
        again = index_text(
            "x",
            found.striping.unit,
            found.striping.count,
            found.size,
            ident=found.ident,
            subfiles=list(map(str, found.subfiles)),
        )
        ours, kept = (text.split(b"\n")[2:-2] for text in (again, damaged))
        assert list(map(plain, ours)) == [plain(line) for line in kept if not line.startswith(b"writers ")]


def plain(line: bytes) -> bytes:
    """Return a line with its escapes resolved, and a path in it without what it does not need."""
    line = unquote_to_bytes(line)
    return os.fsencode(pathlib.Path(os.fsdecode(line))) if line.startswith(b"subfile ") else line


def test_a_file_of_another_kind_is_not_read(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not any(index.is_index(one) for one in (tmp_path, tmp_path / "pipe", tmp_path / "no"))
    (tmp_path / "large").write_bytes(b"mpiio_ext subfiles 1\n")
    os.truncate(tmp_path / "large", 9 << 20)
    assert "is larger than" in command("check", tmp_path / "large").stderr
    assert "cannot be read: No such file or directory" in command("merge", tmp_path / "no").stderr
