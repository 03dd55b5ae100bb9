"""mpiio-ext layout and mpiio_ext.layout: this machine's file systems, and those that a preloaded library plays."""

from __future__ import annotations

import errno
import json
import os
import pathlib
import struct
import subprocess
import sys
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mpiio_ext.cli import main
from mpiio_ext.errors import ArgumentError, FileSystemError
from mpiio_ext.layout import inspect, registry
from support import cbuild
from support.expected import Expected
from support.shares import write_mountinfo

MIB = 2**20
V1, COMPOSITE = 0x0BD10BD0, 0x0BD60BD0


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["layout", *arguments], env={"COLUMNS": "160"})


# ---- this machine's file systems ----


def test_folder_and_file(tmp_path: pathlib.Path) -> None:
    """What stat(1) says of the file system, and no stripes that nobody has told."""
    path = tmp_path / "file"
    path.write_bytes(b"x")
    found = inspect(path)
    kind = subprocess.run(["stat", "-f", "-c", "%T", str(path)], capture_output=True, text=True, check=True).stdout
    assert str(found.value("file_system"))[:3] == kind.strip().replace("overlayfs", "overlay")[:3]
    assert found.value("block_size") == path.stat().st_blksize
    assert pathlib.Path(str(found.value("mount_point"))) in [path, *path.parents]
    assert (found.is_folder, inspect(tmp_path).is_folder) == (False, True)
    assert [item.spec for item in found.facts] == [item for item in registry() if found.fact(item.name)]


def test_proc_and_tmpfs() -> None:
    assert inspect("/proc/self/status").value("file_system") == "proc"
    if os.path.ismount("/dev/shm"):
        found = inspect("/dev/shm")
        assert (found.value("file_system"), found.value("coherent")) == ("tmpfs", True)
        assert (found.value("stripe_size"), found.source("stripe_size")) == (MIB, "default")
        assert found.fact("pool") is None


def test_hints_override(tmp_path: pathlib.Path) -> None:
    found = inspect(tmp_path, striping_unit_bytes=65536, striping_factor=7, start_iodevice=0)
    facts = {item.spec.name: (item.value, item.source) for item in found.facts}
    assert facts["stripe_size"] == (65536, "hint striping_unit")
    assert facts["stripe_count"] == facts["servers"] == (7, "hint striping_factor")
    assert facts["start_device"] == (0, "hint start_iodevice")


@pytest.mark.parametrize("hint", ["striping_unit_bytes", "striping_factor", "start_iodevice"])
def test_hints_out_of_range(hint: str) -> None:
    with pytest.raises(ArgumentError, match=hint):
        inspect("/", **{hint: -2})  # type: ignore[arg-type]


def test_unknown_fact() -> None:
    with pytest.raises(ArgumentError, match="no fact 'speed'"):
        inspect("/").value("speed")


def test_what_cannot_be_asked(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileSystemError) as missing:
        inspect(tmp_path / "none")
    assert missing.value.filename == str(tmp_path / "none")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    result = run(str(pipe), "/dev/null", str(tmp_path / "none"), str(tmp_path))
    assert result.exit_code == 2
    assert f"{pipe}: neither a file nor a folder" in result.output
    assert "none: No such file or directory; of a new file, give its folder" in result.output
    assert f"{tmp_path} (folder" in result.output


def test_no_permission(tmp_path: pathlib.Path) -> None:
    """The file may not be read, nor, by another user, the folder above it be searched."""
    kind = inspect(tmp_path).value("file_system")
    path = tmp_path / "closed"
    path.write_bytes(b"x")
    path.chmod(0)
    program = (
        "import os, sys\nfrom mpiio_ext.layout import inspect\nif os.geteuid() == 0: os.seteuid(65534)\n"
        "try: found = inspect(sys.argv[1])\nexcept OSError as error: print(error.errno)\n"
        "else: print(found.value('file_system'), found.source('stripe_size'))"
    )

    def asked(*folders: pathlib.Path) -> str:
        for folder in folders:
            folder.chmod(0o711)
        command = [sys.executable, "-c", program, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        return done.stdout.strip() or done.stderr

    above = [up for up in path.parents if up.stat().st_uid == os.geteuid() and not up.stat().st_mode & 1]
    assert asked(*above) == f"{kind} default (the file may not be read)"
    tmp_path.chmod(0)
    if os.geteuid() == 0:
        assert asked() == str(errno.EACCES)
    tmp_path.chmod(0o700)


def test_json_and_table(tmp_path: pathlib.Path) -> None:
    result = run("--json", str(tmp_path))
    assert result.exit_code == 0
    (entry,) = json.loads(result.output)
    assert entry["path"] == str(tmp_path)
    assert entry["facts"]["lock_protocol"] == {
        "value": inspect(tmp_path).value("lock_protocol"),
        "unit": "text",
        "source": "statfs f_type",
    }
    table = run("--striping-unit", "64k", "--striping-factor", "3", str(tmp_path)).output
    assert "64 KiB" in table
    assert "hint striping_factor" in table
    assert "unknown" not in table
    rows = [line.split("│")[1:3] for line in run(str(tmp_path)).output.splitlines() if "unknown" in line]
    assert [name.strip() for name, _ in rows] == ["stripe count", "servers"]
    assert run("--striping-unit", "64KiB", "--striping-factor", "3", str(tmp_path)).output == table
    for wrong in ("much", "0", "64x", "-1", "8p8", "5000p"):
        assert run("--striping-unit", wrong, "/").exit_code == 2


# ---- played ones ----


def played(folder: pathlib.Path, kind: str, *paths: pathlib.Path, **environment: str) -> list[dict[str, Any]]:
    """Run the command on a folder that a preloaded library makes look like another file system."""
    source = cbuild.ROOT / "tests" / "programs" / "fake_file_system.c"
    library = cbuild.compile_c([cbuild.compiler(), *cbuild.FLAGS, "-fPIC", "-shared", str(source)], "libfake_fs.so")
    env = os.environ | {"LD_PRELOAD": str(library), "FAKE_FS": kind, "FAKE_FS_ROOT": str(folder)} | environment
    command = [sys.executable, "-m", "mpiio_ext", "layout", "--json", *map(str, paths)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder whose files can keep attributes."""
    try:
        os.setxattr(tmp_path, "user.fake_probe", b"1")
    except OSError as error:
        pytest.skip(f"no user attributes here: {error}")
    return tmp_path


def plain(stripe_size: int, targets: list[int]) -> bytes:
    head = struct.pack("<II16sIHH", V1, 1, b"", stripe_size, len(targets), 0)
    return head + b"".join(struct.pack("<16sII", b"", 0, target) for target in targets)


def composite(*parts: tuple[int, int, int, bytes]) -> bytes:
    at, table, blobs = 32 + 48 * len(parts), b"", b""
    for number, (flags, start, end, blob) in enumerate(parts, start=1):
        table += struct.pack("<IIQQIIIQI", number, flags, start, end, at + len(blobs), len(blob), 0, 0, 0)
        blobs += blob
    return struct.pack("<IIIHHH6xQ", COMPOSITE, at + len(blobs), 1, 0, len(parts), 0, 0) + table + blobs


ROOM = struct.pack("<II16sIHH", V1, 1, b"", 4 * MIB, 3, 6) + struct.pack("<16sII", b"", 0, 2**32 - 1) * 3
ON_METADATA_SERVER = struct.pack("<II16sIHH", V1, 0x100, b"", MIB, 1, 0)
PARTS = composite(
    (0x10, 0, MIB, ON_METADATA_SERVER), (0x10, MIB, 256 * MIB, plain(2 * MIB, [9, 2])), (0, 256 * MIB, 2**64 - 1, ROOM)
)
#: Layouts of Lustre's attribute, and the size of the file.
LAYOUTS = {
    # every component is shown; the one that covers most of the file counts
    "progressive": (
        composite((0x10, 0, MIB, plain(MIB, [5])), (0x10, MIB, 2**64 - 1, plain(4 * MIB, [9, 2, 9, 2]))),
        0,
    ),
    # the component that has most of the bytes counts; those that no write has reached have no targets
    "progressive, 100 MB": (PARTS, 100 * MIB),
    "progressive, empty": (PARTS, 0),
    # data on the metadata server have no first target
    "on the metadata server": (ON_METADATA_SERVER, 0),
    "cut off": (b"\xd0\x0b\xd1", 0),
    "nothing": (b"", 0),
    "an end before the start": (composite((0, 9, 3, plain(MIB, [1]))), 0),
}
#: What does not depend on this machine.
STRIPES = ("file_system", "pattern", "stripe_size", "stripe_count", "servers", "start_device")


def striped(entry: dict[str, Any]) -> dict[str, Any]:
    facts = {name: entry["facts"][name] for name in STRIPES if name in entry["facts"]}
    told = {name: f"{item['value']} {item['unit']}, {item['source']}" for name, item in facts.items()}
    return {**told, "components": entry["components"]}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_lustre(folder: pathlib.Path, name: str, expected: Expected) -> None:
    value, size = LAYOUTS[name]
    path = folder / "file"
    with path.open("wb") as file:
        file.truncate(size)
    os.setxattr(path, "user.fake_layout", value)
    (entry,) = played(folder, "lustre", path)
    assert entry["facts"]["lock_granularity"]["value"] == os.sysconf("SC_PAGESIZE")
    expected(striped(entry))


def test_components_at_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """No word is cut: each component has lines of its own, and so have its targets."""
    from mpiio_ext.cli import layout as command
    from mpiio_ext.layout import Component, Layout

    part = Component(
        start_bytes=MIB,
        end_bytes=None,
        stripe_size_bytes=4 * MIB,
        stripe_count=70,
        servers=70,
        mirror=1,
        pattern="raid0,overstriped",
        flags="stale,prefer-read,init",
        pool="fast",
        targets=tuple(str(number) for number in range(100, 170)),
    )
    found = Layout(path="x", is_folder=False, facts=(), components=(part,))
    monkeypatch.setenv("COLUMNS", "80")
    command._show(found)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert "  1 MiB – end" in lines
    assert "    stripe 4 MiB, count 70, servers 70, mirror 1" in lines
    assert "    pattern raid0,overstriped, flags stale,prefer-read,init, pool fast" in lines
    targets = " ".join(line.strip() for line in lines[lines.index("  1 MiB – end") + 3 :])
    assert targets == "targets " + " ".join(part.targets[:64]) + " … and 6 more"


def vendor(folder: pathlib.Path, name: str) -> str:
    """Make a library of that name; return its folder."""
    source = cbuild.ROOT / "tests" / "programs" / "fake_file_system.c"
    subprocess.run(
        [cbuild.compiler(), *cbuild.FLAGS, "-fPIC", "-shared", "-DFAKE_LIBRARY", str(source), "-o", str(folder / name)],
        check=True,
        timeout=60,
    )
    return str(folder)


#: What liblustreapi is asked for, if it is there: where the attribute cannot be read, and of a template, in whose
#: block nothing behind it is a target.
ASKED = {
    "file": (plain(2 * MIB, [3, 8]), "file"),
    "template of a file": (struct.pack("<II16sIHH", V1, 1, b"", 2 * MIB, 4, 5), "n" * 53),
    "template of a folder": (struct.pack("<II16sIHH", V1, 1, b"", 2 * MIB, 4, 5), "n" * 53),
}


@pytest.mark.parametrize("name", ASKED)
def test_library_of_lustre(
    folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory, name: str, expected: Expected
) -> None:
    value, called = ASKED[name]
    path = folder / called
    path.mkdir() if name.endswith("folder") else path.write_bytes(b"")
    os.setxattr(path, "user.fake_layout", value)
    libraries = vendor(tmp_path_factory.mktemp("lib"), "liblustreapi.so.1")
    (without,) = played(folder, "lustre", path, FAKE_FS_HIDE="1")
    (entry,) = played(folder, "lustre", path, FAKE_FS_HIDE="1", LD_LIBRARY_PATH=libraries)
    expected({"without": striped(without), "with": striped(entry)})


def test_gpfs(folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The block size is stat's; pool and replicas come from libgpfs, if it is there."""
    (without,) = played(folder, "gpfs", folder)
    facts = without["facts"]
    block_bytes = folder.stat().st_blksize
    assert facts["stripe_size"]["value"] == block_bytes
    assert facts["lock_granularity"]["value"] == block_bytes
    assert facts["lock_protocol"]["value"] == "token"
    assert "pool" not in facts
    (entry,) = played(folder, "gpfs", folder, LD_LIBRARY_PATH=vendor(tmp_path_factory.mktemp("lib"), "libgpfs.so"))
    assert entry["facts"]["pool"]["value"] == "fastpool"
    assert entry["facts"]["redundancy"]["value"] == "replicate 2"


def played_mount(folder: pathlib.Path, proc: pathlib.Path, kind: str, mount_type: str, options: str) -> dict[str, str]:
    """Return facts and sources of a folder whose mount the kernel is said to call by that type, and that source."""
    write_mountinfo(proc, folder, mount_type, options)
    (entry,) = played(folder, kind, folder, FAKE_PROC=str(proc))
    facts = entry["facts"]
    assert isinstance(facts, dict)
    return {name: f"{item['value']} by {item['source']}" for name, item in facts.items()}


#: What mountstats says is stronger than the mount's options.
STATISTICS = (
    "device server:/x mounted on {folder} with fstype nfs4 statvers=1.1\n\topts:\trw,vers=4.2,rsize=1048576\n"
    "\tnfsv4:\tbm0=0x1,sessions,pnfs=LAYOUT_NFSV4_1_FILES\n\t LAYOUTGET: 12 12 0\n"
)
SIZES = "rw,rsize=4096,wsize=8192"
#: File systems of the kernel, types of mounts, their options, and the text of mountstats.
MOUNTS = {
    "NFS by its options": ("nfs", "nfs4", SIZES, ""),
    "NFS by its statistics": ("nfs", "nfs4", SIZES, STATISTICS),
    "NFS with devices": ("nfs", "nfs4", "rw", STATISTICS + "\tGETDEVICEINFO: 3 3 0\n"),
    **{
        kind: ("fuse", kind, "rw", "")
        for kind in (
            "fuse.mfs",
            "fuse.sshfs",
            "fuse.juicefs",
            "fuse",
            "fuse mfs\\04310.0.0.1:9421",
            "fuse mfsx:/",
            "fuse.daos",
        )
    },
}
#: Facts of a mount that do not depend on this machine.
OF_MOUNTS = ("file_system", "mount_source", "stripe_size", "read_size", "write_size", "pnfs", "pool")


@pytest.mark.parametrize("name", MOUNTS)
def test_mounts(name: str, folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory, expected: Expected) -> None:
    kind, mount_type, options, statistics = MOUNTS[name]
    proc = tmp_path_factory.mktemp("proc")
    if statistics:
        (proc / "mountstats").write_text(statistics.format(folder=folder), encoding="utf-8")
    facts = played_mount(folder, proc, kind, mount_type, options)
    expected({fact: facts[fact] for fact in OF_MOUNTS if fact in facts})


@pytest.mark.parametrize(
    ("high", "pattern", "count", "redundancy"),
    [
        ("0000000100040001", None, None, None),
        ("0001000400000001", "S4", 4, None),
        ("0d01ffff00000002", "SX", -1, None),
        ("0d08000100000000", "RP_2G1", 1, "replicate 2"),
        ("0d23000800000000", "EC_4P2G8", 8, "erasure code 4+2"),
        ("0dff000800000000", None, None, None),
    ],
)
def test_daos_file(
    folder: pathlib.Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    high: str,
    pattern: str | None,
    count: int | None,
    redundancy: str | None,
) -> None:
    """The class of a file's object is in its id; the chunk size in the form that other processes import."""
    path = folder / "file"
    path.write_bytes(b"")
    for bytes_of_global, size in (("344", MIB), ("360", MIB), ("352", None)):
        monkeypatch.setenv("FAKE_DAOS_CLASS", high)
        monkeypatch.setenv("FAKE_DAOS_BYTES", bytes_of_global)
        found = played_mount(path, tmp_path_factory.mktemp("proc"), "fuse", "fuse.daos", "rw")
        of_id = "object id (ioctl DFUSE_IOCTL_IL)"
        assert found.get("pattern") == (pattern and f"{pattern}, chunks placed by hash by {of_id}")
        assert found.get("stripe_count") == (count and f"{count} by {of_id}")
        assert found.get("redundancy") == (redundancy and f"{redundancy} by {of_id}")
        chunk = "ioctl DFUSE_IOCTL_REPLY_DOOH (chunk size)"
        assert found["stripe_size"] == (f"{size} by {chunk}" if size else f"{MIB} by default")


def test_ceph_and_beegfs(folder: pathlib.Path) -> None:
    path = folder / "file"
    path.write_bytes(b"")
    (ceph,) = played(folder, "ceph", path)
    assert ceph["facts"]["pool"] == {"value": "cephfs_data", "unit": "text", "source": "xattr ceph.file.layout"}
    (beegfs,) = played(folder, "beegfs", path)
    assert beegfs["facts"]["stripe_size"]["value"] == 524288
    assert beegfs["components"][0]["targets"] == ["101@storage01"]
    (below,) = played(folder, "ceph", folder)
    assert below["is_folder"] is True
    assert below["facts"]["file_system"]["value"] == "ceph"
