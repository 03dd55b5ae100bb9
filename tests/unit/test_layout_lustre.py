"""What the library reads from Lustre's extended attribute: components, targets, lengths, and every damage refused."""

from __future__ import annotations

import ctypes
import pathlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import cbuild
from support.expected import Expected, in_words

CORRUPT = -6
V1, V3, COMPOSITE, FOREIGN = 0x0BD10BD0, 0x0BD30BD0, 0x0BD60BD0, 0x0BD70BD0
RAID0, MDT, OVERSTRIPED, RELEASED = 0x001, 0x100, 0x200, 0x80000000
INIT, STALE, EXTENSION, PARITY = 0x10, 0x01, 0x40, 0x80
EOF = 2**64 - 1
MIB = 2**20


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    return ctypes.CDLL(str(cbuild.shared("layout")))


def plain(stripe_size: int, count: int, *, magic: int = V1, pattern: int = RAID0, objects: int | None = None) -> bytes:
    """Return a plain layout; `objects` object records (default: as many as the count says)."""
    head = struct.pack("<II16sIHH", magic, pattern, b"\xaa" * 16, stripe_size, count, 0)
    if magic == V3:
        head += b"pool".ljust(16, b"\0")
    return head + b"\x55" * 24 * (count if objects is None else objects)


def composite(*entries: tuple[int, int, int, bytes], size: int | None = None, count: int | None = None) -> bytes:
    """Return a composite layout of (flags, extent start, extent end, plain layout)."""
    at = 32 + 48 * len(entries)
    table, blobs = b"", b""
    for number, (flags, start, end, blob) in enumerate(entries, start=1):
        table += struct.pack("<IIQQIIIQI", number, flags, start, end, at + len(blobs), len(blob), 0, 0, 0)
        blobs += blob
    total = at + len(blobs) if size is None else size
    head = struct.pack("<IIIHHH6xQ", COMPOSITE, total, 1, 0, len(entries) if count is None else count, 0, 0)
    return head + table + blobs


def reserved(
    stripe_size: int, count: int, *, first: int = 0xFFFF, room: int | None = None, magic: int = V1, **more: int
) -> bytes:
    """Return a component that no write has reached, as the metadata server (lod) writes it.

    The head has the target to begin with; there is room for the objects, with zeros and the target 2^32 - 1.
    """
    value = bytearray(plain(stripe_size, count, magic=magic, objects=0, **more))
    struct.pack_into("<H", value, 30, first)
    return bytes(value) + struct.pack("<16sII", b"", 0, 2**32 - 1) * (count if room is None else room)


PFL = composite(
    (INIT, 0, MIB, plain(MIB, 1)),
    (INIT, MIB, 256 * MIB, plain(MIB, 4, magic=V3)),
    (0, 256 * MIB, EOF, plain(4 * MIB, 16, objects=0)),
)
#: The same as lod writes it.
LOD = composite(
    (INIT, 0, MIB, plain(MIB, 1)),
    (INIT, MIB, 256 * MIB, plain(MIB, 4, magic=V3)),
    (0, 256 * MIB, EOF, reserved(4 * MIB, 16, first=7)),
)
#: A file of Lustre 1.8 on target 6, as debugfs printed it (lustre-discuss, January 2013, "The meaning of LOV code").
REAL = bytes.fromhex(
    "d00bd10b01000000ccf53d00000000000000000000000000000010000100000005ec02000000000000000000000000000000000006000000"
)


def objects(*found: tuple[int, int, int, int]) -> bytes:
    """Return objects of (sequence, number, version, target)."""
    return b"".join(struct.pack("<QQII", number, sequence, 0, target) for sequence, number, _, target in found)


#: The two components of a file, number by number as `lfs getstripe -v` printed them for the one that is the example in
#: liblustreapi's source (comment at lov_dump_comp_v1, Lustre 2.10): 264 bytes, components at 128 and 184.
LFS = (
    struct.pack("<IIIHHH14x", COMPOSITE, 264, 2, 0, 2, 0)
    + struct.pack("<IIQQII16x", 1, INIT, 0, MIB, 128, 56)
    + struct.pack("<IIQQII16x", 2, INIT, MIB, EOF, 184, 80)
    + struct.pack("<IIQQIHH", V1, RAID0, 1, 0x200000401, MIB, 1, 0)
    + objects((0x100000000, 2, 0, 0))
    + struct.pack("<IIQQIHH", V1, RAID0, 1, 0x200000401, MIB, 2, 0)
    + objects((0x100010000, 2, 0, 1), (0x100000000, 3, 0, 0))
)
GOOD = {
    "of a real file": (REAL, (MIB, 1)),
    "v1": (plain(MIB, 4), (MIB, 4)),
    "v3": (plain(65536, 3, magic=V3), (65536, 3)),
    "one byte too much": (plain(MIB, 4) + b"\0", (MIB, 4)),
    "released: no objects": (plain(MIB, 8, pattern=RAID0 | RELEASED, objects=0), (MIB, 8)),
    "template: no objects": (plain(MIB, 8, objects=0), (MIB, 8)),
    "overstriped": (plain(MIB, 32, pattern=RAID0 | OVERSTRIPED), (MIB, 32)),
    "largest stripe": (plain(2**32 - 65536, 1), (2**32 - 65536, 1)),
    "progressive": (PFL, (4 * MIB, 16)),
    "progressive, with room for objects": (LOD, (4 * MIB, 16)),
    "progressive, room for all servers": (composite((0, 0, EOF, reserved(MIB, 0xFFFF, room=12))), (MIB, 12)),
    "progressive, room for the default": (composite((0, 0, EOF, reserved(MIB, 0, room=2, magic=V3))), (MIB, 2)),
    "like lfs getstripe's": (LFS, (MIB, 2)),
    "one component": (composite((INIT, 0, EOF, plain(2 * MIB, 2))), (2 * MIB, 2)),
    "data on the metadata server first": (
        composite((INIT, 0, MIB, plain(MIB, 0, pattern=MDT)), (INIT, MIB, EOF, plain(MIB, 5))),
        (MIB, 5),
    ),
    "stale mirror passed over": (
        composite((STALE | INIT, 0, EOF, plain(MIB, 9)), (INIT, 0, EOF, plain(2 * MIB, 3))),
        (2 * MIB, 3),
    ),
    "first of two mirrors": (composite((INIT, 0, EOF, plain(MIB, 9)), (INIT, 0, EOF, plain(2 * MIB, 3))), (MIB, 9)),
    "foreign mirror": (
        composite((INIT, 0, EOF, struct.pack("<I", FOREIGN) * 12), (INIT, 0, EOF, plain(MIB, 2))),
        (MIB, 2),
    ),
    "extension reserve": (
        composite((INIT, 0, MIB, plain(MIB, 2)), (EXTENSION, MIB, EOF, plain(64 * MIB, 2, objects=0))),
        (MIB, 2),
    ),
    "parity": (composite((INIT, 0, EOF, plain(MIB, 8)), (INIT | PARITY, 0, EOF, plain(MIB, 2))), (MIB, 8)),
    "template without numbers": (
        composite((INIT, 0, MIB, plain(MIB, 2)), (0, MIB, EOF, plain(MIB, 0xFFFF, objects=0))),
        (MIB, 2),
    ),
}
BAD = {
    "empty": b"",
    "three bytes": b"\xd0\x0b\xd1",
    "another magic": plain(MIB, 4, magic=0x0BD10BD1),
    "foreign": plain(MIB, 4, magic=FOREIGN),
    "v1 cut in its head": plain(MIB, 4)[:31],
    "v3 cut in its pool": plain(MIB, 0, magic=V3)[:47],
    "objects cut": plain(MIB, 4)[:-1],
    "objects missing but one byte": plain(MIB, 4, objects=0) + b"\0",
    "no stripe size": plain(0, 4),
    "no stripes": plain(MIB, 0),
    "all servers": plain(MIB, 0xFFFF, objects=0),
    "on the metadata server": plain(MIB, 1, pattern=MDT),
    "unknown pattern": plain(MIB, 1, pattern=RAID0 | 0x4),
    "big-endian": struct.pack(">II16sIHH", V1, RAID0, b"", MIB, 1, 0) + bytes(24),
    "composite cut": PFL[:31],
    "composite table cut": PFL[: 32 + 48],
    "composite size too large": composite((INIT, 0, EOF, plain(MIB, 2)), size=10**6),
    "composite size too small": composite((INIT, 0, EOF, plain(MIB, 2)), size=31),
    "composite without entries": composite(),
    "composite with too many entries": composite((INIT, 0, EOF, plain(MIB, 2)), count=9),
    # The second entry would be the first one's layout, read as an entry that is passed over.
    "composite whose table runs into its layouts": composite((INIT, 0, EOF, plain(16, 2, objects=0)), count=2),
    "component that ends before it starts": composite((INIT, 5, 4, plain(MIB, 2))),
    "only a stale component": composite((STALE, 0, EOF, plain(MIB, 2))),
    "component outside": PFL[: 32 + 24] + struct.pack("<I", len(PFL) + 1) + PFL[32 + 28 :],
    "component size wraps": PFL[: 32 + 28] + struct.pack("<I", 2**32 - 1) + PFL[32 + 32 :],
    "component points at the table itself": composite((INIT, 0, EOF, PFL[:32])),
}


class LovComponent(ctypes.Structure):
    """struct mpiox_lustre_component."""

    _fields_ = (
        ("id", ctypes.c_uint32),
        ("mirror", ctypes.c_int32),
        ("flags", ctypes.c_uint32),
        ("pattern", ctypes.c_uint32),
        ("start", ctypes.c_int64),
        ("end", ctypes.c_int64),
        ("stripe_size", ctypes.c_int64),
        ("stripe_count", ctypes.c_int32),
        ("first", ctypes.c_int32),
        ("pool", ctypes.c_char * 17),
        ("objects", ctypes.c_void_p),
        ("object_count", ctypes.c_int32),
    )


def chosen(lib: ctypes.CDLL, value: bytes) -> LovComponent | int:
    """Return the component that counts for an empty file, or the error."""
    found = LovComponent()
    rc = lib.mpiox_lustre_choose(value, ctypes.c_int64(len(value)), ctypes.c_int64(0), ctypes.byref(found))
    return found if rc == 0 else int(rc)


def parse(lib: ctypes.CDLL, value: bytes) -> tuple[int, int] | int:
    found = chosen(lib, value)
    return found if isinstance(found, int) else (found.stripe_size, found.stripe_count)


@pytest.mark.parametrize("name", GOOD)
def test_lov_values(lib: ctypes.CDLL, name: str) -> None:
    value, expected = GOOD[name]
    assert parse(lib, value) == expected


def on(stripe_size: int, targets: list[int], **more: int) -> bytes:
    """Return a plain layout whose objects are on these targets."""
    head = plain(stripe_size, len(targets), objects=0, **more)
    return head + b"".join(struct.pack("<16sII", b"\x77" * 16, 3, target) for target in targets)


def targets_of(lib: ctypes.CDLL, value: bytes, most: int = 100) -> list[int]:
    component = chosen(lib, value)
    if isinstance(component, int):
        return []
    found = (ctypes.c_int32 * 100)()
    count = lib.mpiox_lustre_targets(ctypes.byref(component), ctypes.c_int32(most), found)
    return found[:count]


def test_lov_targets(lib: ctypes.CDLL) -> None:
    """The targets of the stripes in turn; of a composite layout those of the component that counts."""
    some = [17, 3, 0, 65535]
    assert targets_of(lib, on(MIB, some)) == some
    assert targets_of(lib, on(MIB, some, magic=V3) + b"more") == some
    assert targets_of(lib, on(MIB, some), most=4) == some
    value = composite((INIT, 0, MIB, on(MIB, [8])), (INIT, MIB, EOF, on(MIB, some)), (STALE, 0, EOF, on(MIB, [5])))
    assert targets_of(lib, value) == some


def test_lov_of_a_real_file(lib: ctypes.CDLL) -> None:
    assert targets_of(lib, REAL) == [6]
    assert len(LFS) == 264
    assert targets_of(lib, LFS) == [1, 0]


def components(lib: ctypes.CDLL, value: bytes) -> list[LovComponent]:
    length = ctypes.c_int64(len(value))
    found = [LovComponent() for _ in range(lib.mpiox_lustre_count(value, length))]
    for index, each in enumerate(found):
        assert lib.mpiox_lustre_get(value, length, index, ctypes.byref(each)) == 0
    return found


def told(found: list[LovComponent]) -> list[str]:
    """Return components as an expected text."""
    names = [name for name, _ in LovComponent._fields_ if name != "objects"]
    return [in_words({name: getattr(each, name) for name in names}) for each in found]


def test_lov_components(lib: ctypes.CDLL, expected: Expected) -> None:
    """Extents, pools, flags and what only a template says; a part that is none of Lustre's does not hide the others."""
    value = composite(
        (INIT, 0, MIB, plain(MIB, 1, pattern=MDT)),
        (INIT, MIB, 256 * MIB, on(MIB, [3, 1, 3, 1], magic=V3, pattern=RAID0 | OVERSTRIPED)),
        (0, 256 * MIB, EOF, plain(4 * MIB, 0xFFFF, objects=0)),
        (STALE | INIT, 0, EOF, struct.pack("<I", FOREIGN) * 12),
        (INIT, 0, EOF, b"nothing known"),
    )
    found = components(lib, value)
    expected(told(found))
    assert lib.mpiox_lustre_distinct(ctypes.byref(found[1])) == 2


def test_lov_data_on_the_metadata_server_begins_nowhere(lib: ctypes.CDLL, expected: Expected) -> None:
    """The field that names a template's first target counts changes once there are objects, or none will come."""
    value = composite(
        (INIT, 0, MIB, plain(MIB, 1, pattern=MDT, objects=0)),
        (INIT, MIB, 2 * MIB, plain(MIB, 4, objects=0)),
        (0, 2 * MIB, EOF, plain(MIB, 4, objects=0)),
    )
    expected(told(components(lib, value)))
    assert components(lib, plain(MIB, 1, pattern=MDT, objects=0))[0].first == -1


def test_lov_components_that_no_write_has_reached(lib: ctypes.CDLL, expected: Expected) -> None:
    """Their objects are only room, the head says where they will begin; targets that a user has chosen are told."""
    value = composite(
        (INIT, 0, MIB, on(MIB, [3])),
        (0, MIB, 2 * MIB, reserved(MIB, 4, first=7)),
        (0, 2 * MIB, 3 * MIB, reserved(MIB, 4, magic=V3)),
        (0, 3 * MIB, 4 * MIB, on(MIB, [5, 9])),
        (0, 4 * MIB, EOF, reserved(MIB, 0xFFFF, first=2, room=12)),
    )
    expected(told(components(lib, value)))
    assert targets_of(lib, LOD) == []


@pytest.mark.parametrize(
    ("file_bytes", "expected"),
    [
        (0, (4 * MIB, 16)),
        (1, (MIB, 1)),
        (MIB, (MIB, 1)),
        (MIB + 1, (MIB, 1)),
        (100 * MIB, (MIB, 4)),
        (511 * MIB, (MIB, 4)),
        (512 * MIB, (4 * MIB, 16)),
        (2**62, (4 * MIB, 16)),
    ],
)
def test_lov_component_that_holds_most_of_the_file(
    lib: ctypes.CDLL, file_bytes: int, expected: tuple[int, int]
) -> None:
    """Of an empty file it is the largest; 512 MiB have 255 MiB in the second and 256 MiB in the third."""
    found = LovComponent()
    size = ctypes.c_int64(file_bytes)
    assert lib.mpiox_lustre_choose(LOD, ctypes.c_int64(len(LOD)), size, ctypes.byref(found)) == 0
    assert (found.stripe_size, found.stripe_count) == expected


def test_lov_small_file_on_the_metadata_server(lib: ctypes.CDLL) -> None:
    """Where all of it has no stripes, those of what would follow count."""
    value = composite((INIT, 0, MIB, plain(MIB, 0, pattern=MDT)), (0, MIB, EOF, reserved(2 * MIB, 5)))
    found = LovComponent()
    assert lib.mpiox_lustre_choose(value, ctypes.c_int64(len(value)), ctypes.c_int64(1000), ctypes.byref(found)) == 0
    assert (found.stripe_size, found.stripe_count) == (2 * MIB, 5)


@pytest.mark.parametrize(
    ("value", "folder", "expected"),
    [
        (plain(MIB, 4), False, 32 + 96),
        (plain(MIB, 4, magic=V3), False, 48 + 96),
        (plain(MIB, 4), True, 32),
        (plain(MIB, 4, objects=0), False, 32),
        (plain(MIB, 4, magic=V3, objects=0), True, 48),
        (plain(MIB, 0xFFFF, objects=0), False, 32),
        (LOD, False, len(LOD)),
        (LOD, True, len(LOD)),
        (b"nothing", False, CORRUPT),
    ],
)
@pytest.mark.parametrize("name", ["a", "n" * 40, "n" * 53, "n" * 255])
def test_lov_length_in_a_longer_block(lib: ctypes.CDLL, value: bytes, folder: bool, expected: int, name: str) -> None:
    """llapi_file_get_stripe gives no length, and what the value leaves of the block is the file's name and zeros."""
    block = bytearray(65536)
    block[: len(name)] = name.encode()
    block[: len(value)] = value
    lib.mpiox_lustre_length.restype = ctypes.c_int64
    length = lib.mpiox_lustre_length(bytes(block), ctypes.c_int64(len(block)), name.encode(), folder)
    assert length == expected


def test_lov_template(lib: ctypes.CDLL) -> None:
    """What asks for a striping reads back as it was meant, brought into range."""
    for wish, expected in (
        ((2 * MIB, 3, 5), (2 * MIB, 3, 5)),
        ((0, 0, -1), (0, 0, -1)),
        ((1, -1, 65535), (65536, -1, -1)),
        ((2**40, 10**6, 0), (2**32 - 65536, 2000, 0)),
    ):
        value = (ctypes.c_ubyte * 32)()
        assert lib.mpiox_lustre_template(ctypes.c_int64(wish[0]), wish[1], wish[2], value) == 32
        (found,) = components(lib, bytes(value))
        assert (found.stripe_size, found.stripe_count, found.first) == expected


def test_lov_targets_not_known(lib: ctypes.CDLL) -> None:
    """Templates, released files, more than there is room for, an index that is none, and what is no layout."""
    for value in (
        plain(MIB, 4, objects=0),
        plain(MIB, 4, pattern=RAID0 | RELEASED),
        PFL,
        on(MIB, [1, 65536]),
        on(MIB, [1, 2**32 - 1]),
        *BAD.values(),
    ):
        assert targets_of(lib, value) == []
    assert targets_of(lib, on(MIB, [1, 2, 3]), most=2) == []


@pytest.mark.parametrize("name", BAD)
def test_lov_refuses(lib: ctypes.CDLL, name: str) -> None:
    assert parse(lib, BAD[name]) == CORRUPT


def test_lov_every_truncation_is_answered(lib: ctypes.CDLL) -> None:
    """Of the composite layout nothing may be missing; a plain one may end after its head."""
    assert {parse(lib, PFL[:n]) for n in range(len(PFL))} == {CORRUPT}
    value = plain(MIB, 4)
    assert [n for n in range(len(value)) if parse(lib, value[:n]) != CORRUPT] == [32]


@settings(max_examples=500, deadline=None)
@given(st.sampled_from([v for v, _ in GOOD.values()]), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255))))
def test_lov_damaged_values_never_yield_nonsense(value: bytes, damage: list[tuple[int, int]]) -> None:
    damaged = bytearray(value)
    for place, byte in damage:
        damaged[place % len(damaged)] = byte
    result = parse(ctypes.CDLL(str(cbuild.shared("layout"))), bytes(damaged))
    assert result == CORRUPT or (isinstance(result, tuple) and 1 <= result[0] < 2**32 and 1 <= result[1] < 0xFFFF)


def test_lov_fuzzed(tmp_path: pathlib.Path) -> None:
    """libFuzzer with address and undefined-behaviour sanitizers, from every value above, a fixed number of runs."""
    cbuild.fuzz(
        "layout/fuzz_layout_lustre.c",
        folder=tmp_path,
        runs=200_000,
        most=4096,
        files=[cbuild.folder("layout") / "mpiox_layout_lustre.c"],
        corpus=[value for value, _ in GOOD.values()] + list(BAD.values()),
    )
