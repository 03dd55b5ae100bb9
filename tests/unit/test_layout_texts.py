"""What file systems and /proc write of layouts, read by the library's parsers: real texts, damaged ones, fuzzing."""

from __future__ import annotations

import ctypes
import pathlib

import pytest

from support import cbuild

CORRUPT, ARGUMENT = -6, -2
MIB = 2**20


class Ceph(ctypes.Structure):
    """struct mpiox_layout_ceph."""

    _fields_ = (
        ("unit", ctypes.c_int64),
        ("count", ctypes.c_int64),
        ("object", ctypes.c_int64),
        ("pool", ctypes.c_char * 128),
        ("space", ctypes.c_char * 128),
    )


class Pathinfo(ctypes.Structure):
    """struct mpiox_layout_pathinfo."""

    _fields_ = (("bricks", ctypes.c_int32), ("stripe_size", ctypes.c_int64), ("kind", ctypes.c_char * 16))


class Volume(ctypes.Structure):
    """struct mpiox_layout_volume."""

    _fields_ = (
        ("bricks", ctypes.c_int32),
        ("subvolumes", ctypes.c_int32),
        ("shard_size", ctypes.c_int64),
        ("disperse", ctypes.c_int32),
        ("redundancy", ctypes.c_int32),
        ("replicas", ctypes.c_int32),
        ("stripes", ctypes.c_int32),
        ("stripe_size", ctypes.c_int64),
    )


class Mount(ctypes.Structure):
    """struct mpiox_layout_mount."""

    _fields_ = (
        ("type", ctypes.c_char * 64),
        ("point", ctypes.c_char * 1024),
        ("source", ctypes.c_char * 512),
        ("options", ctypes.c_char * 512),
    )


class Nfs(ctypes.Structure):
    """struct mpiox_layout_nfs."""

    _fields_ = (
        ("version", ctypes.c_char * 16),
        ("read", ctypes.c_int64),
        ("write", ctypes.c_int64),
        ("pnfs", ctypes.c_char * 64),
        ("layouts", ctypes.c_int64),
        ("devices", ctypes.c_int64),
    )


VISIT = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)


@pytest.fixture(scope="module")
def lib() -> ctypes.CDLL:
    lib = ctypes.CDLL(str(cbuild.shared("layout")))
    lib.mpiox_layout_parse_gluster_size.restype = ctypes.c_int64
    lib.mpiox_layout_parse_fdinfo.restype = ctypes.c_int64
    return lib


def size(text: bytes) -> ctypes.c_int64:
    return ctypes.c_int64(len(text))


# ---- CephFS: docs.ceph.com, "File layouts"; linux-fsdevel 2020-02 ----

CEPH = {
    b"stripe_unit=4194304 stripe_count=1 object_size=4194304 pool=cephfs_data": (
        4 * MIB,
        1,
        4 * MIB,
        "cephfs_data",
        "",
    ),
    b"stripe_unit=1048576 stripe_count=8 object_size=10485760 pool=.data.pool0 pool_namespace=team\0": (
        MIB,
        8,
        10 * MIB,
        ".data.pool0",
        "team",
    ),
    b"pool=a object_size=65536 stripe_count=2147483647 stripe_unit=65536": (65536, 2**31 - 1, 65536, "a", ""),
    b"stripe_unit=65536 stripe_count=2 object_size=65536 pool=" + b"n" * 500: (65536, 2, 65536, "n" * 127, ""),
}
NOT_CEPH = (
    b"",
    b"stripe_unit=4194304",
    b"stripe_unit=0 stripe_count=1 object_size=4194304",
    b"stripe_unit=4194304 stripe_count=0 object_size=4194304",
    b"stripe_unit=4194304 stripe_count=1 object_size=4194305",
    b"stripe_unit=4194304 stripe_count=1 object_size=1048576",
    b"stripe_unit=-1 stripe_count=1 object_size=1",
    b"stripe_unit=4194304 stripe_count=2147483648 object_size=4194304",
    b"stripe_unit= stripe_count=1 object_size=1",
    b"stripe_unit=99999999999999999999 stripe_count=1 object_size=1",
    b"stripe_unit=4M stripe_count=1 object_size=4M",
)


@pytest.mark.parametrize("text", CEPH)
def test_ceph(lib: ctypes.CDLL, text: bytes) -> None:
    found = Ceph()
    assert lib.mpiox_layout_parse_ceph(text, size(text), ctypes.byref(found)) == 0
    assert (found.unit, found.count, found.object, found.pool.decode(), found.space.decode()) == CEPH[text]


@pytest.mark.parametrize("text", NOT_CEPH)
def test_not_ceph(lib: ctypes.CDLL, text: bytes) -> None:
    found = Ceph(unit=-7)
    assert lib.mpiox_layout_parse_ceph(text, size(text), ctypes.byref(found)) == CORRUPT
    assert found.unit == -7


# ---- GlusterFS ----
# From doc/debugging/gfid-to-path.md of GlusterFS, from tests and notes of projects that read the attribute; the last
# but one as release 10.3 answers.

PATHINFO = {
    b"(<DISTRIBUTE:test-dht> <POSIX(/mnt/brick-test/b):vm1:/mnt/brick-test/b/dir//file3>)": (
        "DISTRIBUTE",
        0,
        ["vm1:/mnt/brick-test/b"],
    ),
    b"(<REPLICATE:gluster03-replicate-0> <POSIX(/home/brick1):node1:/home/brick1/b97923a3.qcow2> "
    b"<POSIX(/home/brick2):node2:/home/brick2/b97923a3.qcow2>)": (
        "REPLICATE",
        0,
        ["node1:/home/brick1", "node2:/home/brick2"],
    ),
    b"(<DISTRIBUTE:HadoopVol-dht> (<REPLICATE:HadoopVol-replicate-0> "
    b"<POSIX(/mnt/brick1/HadoopVol):vm-2:/mnt/brick1/HadoopVol/tmp/a> "
    b"<POSIX(/mnt/brick1/HadoopVol):vm-1:/mnt/brick1/HadoopVol/tmp/a>))": (
        "REPLICATE",
        0,
        ["vm-2:/mnt/brick1/HadoopVol", "vm-1:/mnt/brick1/HadoopVol"],
    ),
    b"(<DISTRIBUTE:test-dht> <POSIX:g33b2.example.com:/glusterfs/t/file>)": (
        "DISTRIBUTE",
        0,
        ["g33b2.example.com:/glusterfs/t/file"],
    ),
    b"(<REPLICATE:d-replicate-0> <POSIX(/g2/b2):vm:/g2/b2/h> "
    b"<POSIX(/g2/b0):vm:/g2/b0/h> <POSIX(/g2/b1):vm:/g2/b1/h>)": (
        "REPLICATE",
        0,
        ["vm:/g2/b2", "vm:/g2/b0", "vm:/g2/b1"],
    ),
    b"(<STRIPE:vol-stripe-0:[131072]> <POSIX(/b0):n0:/b0/f> <POSIX(/b1):n1:/b1/f>)": (
        "STRIPE",
        131072,
        ["n0:/b0", "n1:/b1"],
    ),
}


@pytest.mark.parametrize("text", PATHINFO)
def test_pathinfo(lib: ctypes.CDLL, text: bytes) -> None:
    bricks: list[str] = []
    found = Pathinfo()
    visit = VISIT(lambda host, brick, _: bricks.append(f"{host.decode()}:{brick.decode()}"))
    assert lib.mpiox_layout_parse_pathinfo(text, size(text), visit, None, ctypes.byref(found)) == 0
    assert (found.kind.decode(), found.stripe_size, bricks) == PATHINFO[text]
    assert found.bricks == len(bricks)


@pytest.mark.parametrize("text", [b"", b"(<DISTRIBUTE:a> )", b"POSIX(/a):b:/c", b"<POSIX(/a):b", b"\0" * 40])
def test_not_pathinfo(lib: ctypes.CDLL, text: bytes) -> None:
    found = Pathinfo(bricks=-7)
    assert lib.mpiox_layout_parse_pathinfo(text, size(text), VISIT(), None, ctypes.byref(found)) == CORRUPT
    assert found.bricks == -7


VOLUME = b"""volume d-client-0
    type protocol/client
    option remote-subvolume /bricks/0
    option remote-host node0
end-volume

volume d-client-1
    type protocol/client
end-volume
volume d-client-2
    type protocol/client
end-volume
volume d-disperse-0
    type cluster/disperse
    option redundancy 1
    subvolumes d-client-0 d-client-1 d-client-2
end-volume
volume d-dht
    type cluster/distribute
    subvolumes d-disperse-0
end-volume
volume d-shard
    type features/shard
    option shard-block-size 4MB
    subvolumes d-dht
end-volume
"""


def volume(lib: ctypes.CDLL, text: bytes) -> dict[str, int] | int:
    found = Volume()
    code = lib.mpiox_layout_parse_volume(text, size(text), ctypes.byref(found))
    return int(code) if code else {name: getattr(found, name) for name, *_ in Volume._fields_}


def test_volume_file(lib: ctypes.CDLL) -> None:
    expected = {
        "bricks": 3,
        "subvolumes": 1,
        "shard_size": 4 * MIB,
        "disperse": 3,
        "redundancy": 1,
        "replicas": 0,
        "stripes": 0,
        "stripe_size": 0,
    }
    assert volume(lib, VOLUME) == expected
    assert volume(lib, VOLUME.replace(b"    option shard-block-size 4MB\n", b"")) == expected | {"shard_size": 64 * MIB}
    replicated = VOLUME.replace(b"cluster/disperse", b"cluster/replicate")
    assert volume(lib, replicated) == expected | {"disperse": 0, "redundancy": 0, "replicas": 3}
    striped = VOLUME.replace(b"cluster/disperse", b"cluster/stripe").replace(b"redundancy 1", b"block-size 256KB")
    assert volume(lib, striped) == expected | {"disperse": 0, "redundancy": 0, "stripes": 3, "stripe_size": 262144}


@pytest.mark.parametrize("redundancy", [b"3", b"-1", b"99999999999999999999", b"x"])
def test_volume_file_with_a_bad_redundancy(lib: ctypes.CDLL, redundancy: bytes) -> None:
    found = volume(lib, VOLUME.replace(b"redundancy 1", b"redundancy " + redundancy))
    assert isinstance(found, dict)
    assert found["disperse"] == 0


@pytest.mark.parametrize(
    "text",
    [b"", b"volume a\n type cluster/distribute\nend-volume\n", VOLUME[: VOLUME.index(b"end-volume")]],
    ids=["empty", "no bricks", "cut"],
)
def test_not_a_volume_file(lib: ctypes.CDLL, text: bytes) -> None:
    assert volume(lib, text) == CORRUPT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"4MB", 4 * MIB),
        (b"64KB\n", 65536),
        (b"131072", 131072),
        (b"1GB", 2**30),
        (b"1TB", 2**40),
        (b"7B", 7),
        (b"1.5GB", -1),
        (b"", -1),
        (b"MB", -1),
        (b"9999999999TB", -1),
        (b"4 MB", -1),
    ],
)
def test_gluster_sizes(lib: ctypes.CDLL, text: bytes, expected: int) -> None:
    assert lib.mpiox_layout_parse_gluster_size(text, size(text)) == expected


# ---- /proc ----

MOUNTINFO = rb"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard,stripe=64
126 27 0:54 / /tmp/a\040b\134c rw,relatime shared:7 master:3 - fuse.glusterfs glusterfs:(null) rw,max_read=131072
127 27 0:55 / /cut rw,relatime shared:1
"""


def mount(lib: ctypes.CDLL, number: int, text: bytes) -> tuple[bytes, bytes, bytes, bytes] | int:
    found = Mount()
    code = lib.mpiox_layout_parse_mountinfo(text, size(text), ctypes.c_int64(number), ctypes.byref(found))
    return int(code) if code else (found.type, found.point, found.source, found.options)


@pytest.mark.parametrize(
    ("number", "text", "found"),
    [
        (27, MOUNTINFO, (b"ext4", b"/", b"/dev/vda", b"rw,discard,stripe=64")),
        (126, MOUNTINFO, (b"fuse.glusterfs", b"/tmp/a b\\c", b"glusterfs:(null)", b"rw,max_read=131072")),
        *((number, MOUNTINFO, ARGUMENT) for number in (127, 12, 1)),
        (27, b"27 1 254:0 / / rw - ext4", (b"ext4", b"/", b"", b"")),
        (
            27,
            b"27 1 254:0 / /" + b"n" * 5000 + b" rw - " + b"t" * 100 + b" s o",
            (b"t" * 63, b"/" + b"n" * 1022, b"s", b"o"),
        ),
    ],
)
def test_mountinfo(lib: ctypes.CDLL, number: int, text: bytes, found: tuple[bytes, ...] | int) -> None:
    assert mount(lib, number, text) == found


def test_fdinfo(lib: ctypes.CDLL) -> None:
    text = b"pos:\t0\nflags:\t0100000\nmnt_id:\t27\nino:\t2\n"
    assert lib.mpiox_layout_parse_fdinfo(text, size(text)) == 27
    for bad in (b"", b"mnt_id:\t-1\n", b"mnt_id:", b"xmnt_id:\t3\n"):
        assert lib.mpiox_layout_parse_fdinfo(bad, size(bad)) == -1


# Mounts of RHEL 7 (pNFS SCSI), of a client without pNFS, and of NFSv3, as public reports have them.
MOUNTSTATS = b"""device rootfs mounted on / with fstype rootfs
device 192.168.122.73:/exports/scsi_lun_0 mounted on /mnt/rhel7/scsi_lun_0 with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1,rsize=262144,wsize=524288,namlen=255,hard,proto=tcp,sec=sys,local_lock=none
\tage:\t19
\tcaps:\tcaps=0x3ffd7,wtmult=512,dtsize=32768,bsize=0,namlen=255
\tnfsv4:\tbm0=0xfdffbfff,bm1=0x40f9be3e,bm2=0x803,acl=0x3,sessions,pnfs=LAYOUT_SCSI
\tper-op statistics
\t        READ: 0 0 0 0 0 0 0 0
\t   LAYOUTGET: 49 49 0 11172 9604 2 19448 19454
\tLAYOUTCOMMIT: 28 28 0 7776 4808 0 24719 24722

device xx:/ mounted on /mnt with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,local_lock=none
\tnfsv4:\tbm0=0xfcff8fff,bm1=0x40f9be3e,bm2=0x802,acl=0x0,sessions,pnfs=not configured
\tper-op statistics
\t   LAYOUTGET: 0 0 0 0 0 0 0 0
device server:/old mounted on /old\\040one with fstype nfs statvers=1.1
\topts:\trw,vers=3,rsize=32768,wsize=32768
device /dev/sda mounted on /plain with fstype xfs
"""


def nfs(lib: ctypes.CDLL, point: bytes) -> tuple[bytes, int, int, bytes, int] | int:
    found = Nfs()
    code = lib.mpiox_layout_parse_mountstats(MOUNTSTATS, size(MOUNTSTATS), point, ctypes.byref(found))
    return int(code) if code else (found.version, found.read, found.write, found.pnfs, found.layouts)


def test_mountstats_last_of_a_name(lib: ctypes.CDLL) -> None:
    """What was mounted later hides what is below; counts of the one are not those of the other."""
    text = (
        b"device a:/ mounted on /m with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.1,rsize=1\n"
        b"\tLAYOUTGET: 5 5\n\tGETDEVICEINFO: 2 2\n"
        b"device b:/ mounted on /m with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,rsize=2\n\tLAYOUTGET: 7 7\n"
    )
    found = Nfs()
    assert lib.mpiox_layout_parse_mountstats(text, size(text), b"/m", ctypes.byref(found)) == 0
    assert (found.version, found.read, found.layouts, found.devices) == (b"4.2", 2, 7, -1)
    first = text[: text.index(b"device b")]
    assert lib.mpiox_layout_parse_mountstats(first, size(first), b"/m", ctypes.byref(found)) == 0
    assert (found.version, found.read, found.layouts, found.devices) == (b"4.1", 1, 5, 2)


@pytest.mark.parametrize(
    ("point", "found"),
    [
        (b"/mnt/rhel7/scsi_lun_0", (b"4.1", 262144, 524288, b"LAYOUT_SCSI", 49)),
        (b"/mnt", (b"4.1", MIB, MIB, b"", 0)),
        (b"/old one", (b"3", 32768, 32768, b"", -1)),
        *((other, ARGUMENT) for other in (b"/plain", b"/", b"/nothing")),
    ],
)
def test_mountstats(lib: ctypes.CDLL, point: bytes, found: tuple[bytes, int, int, bytes, int] | int) -> None:
    assert nfs(lib, point) == found


def test_fuzzed(tmp_path: pathlib.Path) -> None:
    """libFuzzer with address and undefined-behaviour sanitizers, from the texts above, a fixed number of runs."""
    names = ("ceph", "gluster", "mounts", "span")
    cbuild.fuzz(
        "layout/fuzz_layout_texts.c",
        folder=tmp_path,
        runs=100_000,
        most=4096,
        files=[cbuild.folder("layout") / f"mpiox_layout_{name}.c" for name in names],
        corpus=[*CEPH, *NOT_CEPH, *PATHINFO, VOLUME, MOUNTINFO, MOUNTSTATS, b"mnt_id:\t27\n"],
    )
