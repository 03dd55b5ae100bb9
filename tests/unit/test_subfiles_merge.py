"""Merges against a plain model: bytes, sizes, holes, names, refusals; what is asked for is there or nothing.

Files are made by `support.made_subfiles`, byte by byte. The model of a logical file is its runs of bytes and its size.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpiio_ext.subfiles.index import Striping
from mpiio_ext.subfiles.stored import close_all, find, open_all, read_range
from support import fuzz, marks, strangers
from support.expected import Expected
from support.made_subfiles import IDENT, child, command, content, index_text, make
from support.marks import slow

K = 1 << 10
#: How bytes are copied depends on the file system.
WAYS = {r"\((reflink|copy_file_range|read and write)[^)]*\)": "(WAY)", r"[\d.]+ [µm]?s\b": "TIME"}
#: Of `small_disk`.
DISK_KIB = 300
UNITS = st.one_of(st.integers(1, 40), st.sampled_from([255, 256, 4 * K, 64 * K, 100_000, 1 << 20]))


@st.composite
def files(draw: st.DrawFn) -> tuple[dict[int, bytes], int, int, int]:
    """Draw runs of bytes, a size, unit and count."""
    unit, count = draw(UNITS), draw(st.integers(1, 9))
    size = draw(st.integers(0, min(7 * unit * count, 3 << 20)))
    runs = {}
    for _ in range(draw(st.integers(0, 4)) if size else 0):
        begin = draw(st.integers(0, size - 1))
        length = draw(st.integers(1, size - begin))
        runs[begin] = bytes([draw(st.integers(1, 255))]) * min(length, 2 * unit + 5) + b"end"
        runs[begin] = runs[begin][: size - begin]
    return runs, size, unit, count


def _cannot(*_arguments: int) -> int:
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@given(files(), st.data(), st.booleans())
@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_merge_against_a_plain_file(
    tmp_path: pathlib.Path, drawn: tuple[dict[int, bytes], int, int, int], data: st.DataObject, within: bool
) -> None:
    """Bytes, size and index are right; also where the system cannot copy between the files (`within` is false)."""
    runs, size, unit, count = drawn
    folder = tmp_path / "one"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    make(folder / "f", runs, size, unit, count)
    whole = content(runs, size)
    with pytest.MonkeyPatch.context() as patch:
        if not within:
            patch.setattr(os, "copy_file_range", _cannot)
        done = command("merge", folder / "f", "-o", folder / "plain")
    assert done.exit_code == 0 and (folder / "plain").read_bytes() == whole, done.output
    assert within or not any(runs.values()) or "(read and write)" in done.output
    stored = find(folder / "f")
    assert (stored.striping, stored.size) == (Striping(unit=unit, count=count), size)
    assert command("check", folder / "f").exit_code == 0
    opened = open_all(stored.subfiles)
    for _ in range(3):
        begin = data.draw(st.integers(0, size))
        length = data.draw(st.integers(0, size - begin))
        assert read_range(opened, stored.striping, begin, length) == whole[begin : begin + length]
    close_all(opened)
    assert command("rm", folder / "f").exit_code == 0
    assert {one.name for one in folder.iterdir()} == {"plain"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No machine loses its power here: no need to wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.mark.parametrize(
    ("unit", "count"),
    [(1, 1), *slow((1, 4096)), (1 << 30, 1), (1 << 30, 4096), *marks.slow((4 * K, 4096), (64 * K, 4096))],
)
def test_the_extremes(unit: int, count: int, tmp_path: pathlib.Path) -> None:
    size = (3 << 20) + 1
    data = fuzz.data(min(1 << 20, 3000 * unit))
    make(tmp_path / "f", {size - len(data): data, 5: b"begin"}, size, unit, count)
    whole = content({size - len(data): data, 5: b"begin"}, size)
    assert command("merge", tmp_path / "f", "-o", tmp_path / "g").exit_code == 0
    assert (tmp_path / "g").read_bytes() == whole
    (tmp_path / "g").unlink()
    assert command("merge", tmp_path / "f", "--in-place").exit_code == 0 and (tmp_path / "f").read_bytes() == whole
    assert [one.name for one in tmp_path.iterdir()] == ["f"]


@pytest.mark.parametrize(("unit", "count"), [(1 << 20, 3), (4 * K, 3)])
def test_a_sparse_file_stays_sparse(unit: int, count: int, tmp_path: pathlib.Path) -> None:
    """Of 4 TiB there are a few blocks; to read it all would take an hour."""
    size = (4 << 40) + 12345
    runs = {0: b"first", (1 << 40) + 7: b"x" * 9000, size - 3: b"end"}
    make(tmp_path / "f", runs, size, unit, count)
    assert command("merge", tmp_path / "f", "-o", tmp_path / "g").exit_code == 0
    assert (tmp_path / "g").stat().st_blocks * 512 < 1 << 20
    with (tmp_path / "g").open("rb") as stream:
        assert os.fstat(stream.fileno()).st_size == size
        assert all(os.pread(stream.fileno(), len(data), begin) == data for begin, data in runs.items())
        assert os.pread(stream.fileno(), 5, (1 << 40) + 2) == bytes(5)


@pytest.mark.parametrize(
    "name", ["a b", "50%", "%41", "line\nbreak", "tab\t\x01", "\udcff\udcfe", "-o", "é", "n" * 240], ids=ascii
)
def test_names_with_special_bytes(name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, data = pathlib.Path(name), b"0123456789" * 1000
    make(path, {0: data}, len(data), 64, 3)
    assert command("check", "--", path).exit_code == 0
    assert command("merge", "-o", "again", "--", path).exit_code == 0
    assert command("merge", "--in-place", "--", path).exit_code == 0
    assert path.read_bytes() == pathlib.Path("again").read_bytes() == data
    assert {one.name for one in tmp_path.iterdir()} == {"again", name}


def printed(*words: object) -> str:
    """Return the status of a command, and the lines that it prints, by stream."""
    done = command(*words)
    error = done.stderr.rpartition("Error: ")[2]
    return f"{done.exit_code}\n{done.stdout}{f'standard error: {error}' if error else ''}"


def test_what_is_done_where_nothing_is_said(tmp_path: pathlib.Path, expected: Expected) -> None:
    make(tmp_path / "f", {0: b"abcdefg"}, 7, 1 << 20, 2)
    (tmp_path / "f").chmod(0o640)
    said = [printed("merge", tmp_path / "f"), printed("merge", tmp_path / "f", "-o", "x", "--in-place")]
    assert (tmp_path / "f.merged").stat().st_mode & 0o777 == 0o640
    expected(said, hide=WAYS)


def damage(tmp_path: pathlib.Path, what: str) -> pathlib.Path:
    """Do something to a subfile of a good file, and return that."""
    one = tmp_path / "f.subfiles" / f"{IDENT}.1"
    match what:
        case "missing":
            one.unlink()
        case "short":
            os.truncate(one, 9)
        case "too long":
            os.truncate(one, 500)
        case "link":
            one.rename(tmp_path / "elsewhere")
            one.symlink_to(tmp_path / "elsewhere")
        case "folder":
            one.unlink()
            one.mkdir()
        case "pipe":
            one.unlink()
            os.mkfifo(one)
        case "same":
            one.unlink()
            one.hardlink_to(one.with_name(f"{IDENT}.0"))
        case "foreign":
            paths = [f"f.subfiles/{IDENT}.0", f"f.subfiles/{15 * '0'}1.1", f"f.subfiles/{IDENT}.2"]
            one = one.rename(one.with_name(f"{15 * '0'}1.1"))
            (tmp_path / "f").write_bytes(index_text("f", 64, 3, 600, subfiles=paths))
        case "swapped":
            paths = [f"f.subfiles/{IDENT}.{number}" for number in (1, 0, 2)]
            (tmp_path / "f").write_bytes(index_text("f", 64, 3, 600, subfiles=paths))
    return one


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("missing", "missing", "is missing"),
        ("short", "short", "is too short: 9 B; its share of 600 B is 192 B"),
        ("too long", "too long", "is too long: 500 B; its share of 600 B is 192 B"),
        ("link", "foreign", "is a link, a folder or a device"),
        ("folder", "foreign", "is a link, a folder or a device"),
        ("pipe", "foreign", "is a link, a folder or a device"),
        ("same", "foreign", "is the same file as"),
        ("foreign", "foreign", "is a subfile of another file"),
        ("swapped", "foreign", f"subfile 0 is called {IDENT}.0"),
    ],
)
def test_what_is_wrong_with_a_subfile_is_said(what: str, kind: str, words: str, tmp_path: pathlib.Path) -> None:
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    one = damage(tmp_path, what)
    before = sorted(path.name for path in tmp_path.iterdir())
    for target in (["-o", tmp_path / "g"], ["--in-place"]):
        done = command("merge", tmp_path / "f", *target)
        assert done.exit_code == 2 and f"mpiio-ext: {one}: " in done.stderr and words in done.stderr, done.output
    done = command("check", tmp_path / "f", "--json")
    assert done.exit_code == 1 and kind in [found["kind"] for found in json.loads(done.stdout)[0]["problems"]]
    assert words in command("check", tmp_path / "f").stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("count", [1, 100, 4096])
def test_many_wrong_ones_are_few_lines(count: int, tmp_path: pathlib.Path) -> None:
    """A folder that is not there is one line; of others a merge names ten."""
    folder = tmp_path / "f.subfiles"
    (tmp_path / "f").write_bytes(index_text("f", 64, count, 64 * count))
    words = f"{tmp_path}/f: the folder {folder} that this index names is missing: was one of the two moved"
    for verb, status in (("merge", 2), ("check", 1)):
        done = command(verb, tmp_path / "f")
        assert done.exit_code == status and done.output.count(words) == 1 and len(done.output.splitlines()) == 1
    folder.mkdir()
    done = command("merge", tmp_path / "f")
    assert done.exit_code == 2 and len(done.stderr.splitlines()) == min(count, 11)
    assert f"{IDENT}.0: is missing" in done.stderr
    more = f"{tmp_path}/f: and {count - 10} more; `mpiio-ext subfiles check` names them all"
    assert count == 1 or more in done.stderr
    assert len(command("check", tmp_path / "f").stdout.splitlines()) == count


def test_names_with_a_trial(tmp_path: pathlib.Path) -> None:
    """The library may have chosen a subfile's server by the end of its name."""
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    names = [f"{IDENT}.0", f"{IDENT}.1.7", f"{IDENT}.2.99"]
    for number, name in enumerate(names):
        (tmp_path / "f.subfiles" / f"{IDENT}.{number}").rename(tmp_path / "f.subfiles" / name)
    for wrong in (f"{IDENT}.1.0", f"{IDENT}.1.100", f"{IDENT}.17", f"{IDENT}.1."):
        paths = [f"f.subfiles/{name}" for name in (names[0], wrong, names[2])]
        (tmp_path / "f").write_bytes(index_text("f", 64, 3, 600, subfiles=paths))
        assert "is a subfile of another file" in command("check", tmp_path / "f").stdout
    (tmp_path / "f").write_bytes(index_text("f", 64, 3, 600, subfiles=[f"f.subfiles/{name}" for name in names]))
    assert command("merge", tmp_path / "f").exit_code == 0 and command("check", tmp_path / "f").exit_code == 0
    assert command("rm", tmp_path / "f").exit_code == 0 and [one.name for one in tmp_path.iterdir()] == ["f.merged"]


def test_a_size_that_no_file_can_have(tmp_path: pathlib.Path) -> None:
    make(tmp_path / "f", {}, 0, 1 << 62, 4, whole=False)
    (tmp_path / "f.subfiles" / f"{IDENT}.3").write_bytes(b"x")
    assert "more than a file can have" in command("merge", tmp_path / "f", "--unfinished").stderr


def test_a_file_that_is_not_whole(tmp_path: pathlib.Path, expected: Expected) -> None:
    runs, file = {0: b"abc", 200: b"x" * 30}, tmp_path / "f"
    make(file, runs, 600, 64, 3, whole=False)
    said = [
        printed(*words)
        for words in (
            ("merge", file),
            ("check", file),
            ("merge", file, "--unfinished", "--in-place"),
            ("merge", file, "--unfinished"),
            ("check", file, "--json"),
        )
    ]
    assert (tmp_path / "f.merged").read_bytes() == content(runs, 230)
    expected(said, hide=WAYS)


def test_a_file_that_is_being_written(tmp_path: pathlib.Path) -> None:
    """A writer holds a lock of the first subfile; it is another process."""
    make(tmp_path / "f", {0: b"abc"}, 600, 64, 3, whole=False)
    code = (
        "import fcntl, os, struct, sys\nend = os.open(sys.argv[1], os.O_RDWR)\n"
        "fcntl.fcntl(end, 37, struct.pack('@hhqqi4x', fcntl.F_RDLCK, 0, 2**62 + 1, 1, 0))\nprint(1, flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        ["python3", "-c", code, tmp_path / "f.subfiles" / f"{IDENT}.0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == b"1\n"
        for words in (["merge"], ["merge", "--unfinished"], ["rm"]):
            done = command(*words, tmp_path / "f")
            assert done.exit_code == 2 and "is being written: a program has it open" in done.stderr, done.output
        assert "is being written" in command("check", tmp_path / "f").stdout
        writer.communicate(b"")
    assert command("rm", tmp_path / "f").exit_code == 0 and not list(tmp_path.iterdir())


def test_rm_refuses_and_leaves_what_is_not_its_own(tmp_path: pathlib.Path, expected: Expected) -> None:
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    keep = tmp_path / "f.subfiles" / "notes"
    keep.write_text("mine", encoding="utf-8")
    victim = tmp_path / "victim.0"
    victim.write_bytes(b"")
    (tmp_path / "g").write_bytes(index_text("g", 64, 1, 0, subfiles=[str(victim)]))
    file, other = tmp_path / "f", tmp_path / "g"
    commands = (("check", file), ("check", file, "--json"), ("rm", file, other), ("rm", victim))
    said = [printed(*words) for words in commands]
    assert keep.exists() and victim.exists() and not (tmp_path / "f").exists() and not (tmp_path / "g").exists()
    assert [one.name for one in keep.parent.iterdir()] == ["notes"]
    expected(said, hide=WAYS)


def test_rm_goes_on(tmp_path: pathlib.Path, expected: Expected) -> None:
    """One that cannot be removed keeps no other from that; the status says whether all, some or none were."""
    for name in ("a", "c"):
        make(tmp_path / name, {0: b"x" * 600}, 600, 64, 3)
    (tmp_path / "b").write_bytes(b"plain")
    said = [printed("rm", *(tmp_path / name for name in names)) for names in (("a", "b", "none", "c"), ("b", "none"))]
    assert [one.name for one in tmp_path.iterdir()] == ["b"]
    expected(said, hide=WAYS)


def test_rm_on_a_disk_without_room_for_another_index(small_disk: pathlib.Path) -> None:
    make(small_disk / "f", {0: b"x" * 600}, 600, 64, 3)
    with contextlib.suppress(OSError), (small_disk / "full").open("wb", buffering=0) as stream:
        while stream.write(bytes(4096)):
            pass
    assert command("rm", small_disk / "f").exit_code == 0
    assert [one.name for one in small_disk.iterdir()] == ["full"]


def test_targets_that_are_refused(tmp_path: pathlib.Path, expected: Expected) -> None:
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    make(tmp_path / "g", {}, 600, 64, 3)
    first = tmp_path / "f.subfiles" / f"{IDENT}.0"
    targets = (tmp_path / "f", first, tmp_path / "g", tmp_path, tmp_path / "no" / "x")
    expected([printed("merge", tmp_path / "f", "-o", target) for target in targets], hide=WAYS)
    assert command("check", tmp_path / "f", tmp_path / "g").exit_code == 0


def test_a_name_that_can_be_guessed(tmp_path: pathlib.Path) -> None:
    """What is there already, as of another merge or of a killed one, is neither followed nor removed."""
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    victim, part = tmp_path / "victim", tmp_path / ".h.merging"
    victim.write_text("keep", encoding="utf-8")
    for link in (part.symlink_to, part.hardlink_to):
        link(victim)
        done = command("merge", tmp_path / "f", "-o", tmp_path / "h")
        assert done.exit_code == 2 and f"{part}: is in the way: another merge is at work on it" in done.stderr
        assert victim.read_text("utf-8") == "keep" and part.exists() and not (tmp_path / "h").exists()
        part.unlink()


def test_a_full_disk(tmp_path: pathlib.Path, small_disk: pathlib.Path) -> None:
    """Nothing is left of the merge, by a limit of the size of files, and on a disk that is full."""
    size = 6 << 20
    make(tmp_path / "f", {0: fuzz.data(size)}, size, 1 << 20, 3)
    before = {one.name for one in tmp_path.iterdir()}
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({1 << 20}, {1 << 20}))"
    for words in (["merge", tmp_path / "f", "-o", tmp_path / "g"], ["merge", tmp_path / "f", "--in-place"]):
        with child(*words, before=limit) as process:
            err = process.communicate(timeout=60)[1].decode()
        assert process.returncode == 2 and "cannot be written: File too large" in err, err
        assert {one.name for one in tmp_path.iterdir()} == before and command("check", tmp_path / "f").exit_code == 0
    for unit in (K, 64 * K, 1 << 20):
        make(small_disk / "f", {0: b"x" * 130_000}, 130_000, unit, 3)
        (small_disk / "other").write_bytes(bytes(70_000))
        for target in (["--in-place"], ["-o", small_disk / "g"]):
            done = command("merge", small_disk / "f", *target)
            assert done.exit_code == 2 and "cannot be written: No space left on device" in done.stderr, done.output
            assert {one.name for one in small_disk.iterdir()} == {"f", "f.subfiles", "other"}
        (small_disk / "other").unlink()
        assert command("merge", small_disk / "f", "--in-place").exit_code == 0
        assert (small_disk / "f").read_bytes() == b"x" * 130_000
        (small_disk / "f").unlink()


@pytest.mark.parametrize(("kept", "mode"), [(True, 0o754), (False, 0o704)])
def test_owner_group_and_permissions_in_place(
    kept: bool, mode: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the group cannot be given, another one does not get its permissions."""

    def fchown(_descriptor: int, _user: int, _group: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    (tmp_path / "f").chmod(0o754)
    if not kept:
        strangers.need()
        os.chown(tmp_path / "f", -1, strangers.NOBODY)
    monkeypatch.setattr(os, "fchown", fchown)
    assert command("merge", tmp_path / "f", "--in-place").exit_code == 0
    assert (tmp_path / "f").stat().st_mode & 0o777 == mode


def test_another_user_may_not(tmp_path: pathlib.Path) -> None:
    strangers.need()
    make(tmp_path / "f", {0: b"x" * 600}, 600, 64, 3)
    (tmp_path / "open").mkdir()
    (tmp_path / "f.subfiles" / f"{IDENT}.1").chmod(0o600)
    for one in (tmp_path, *tmp_path.parents):
        if one.stat().st_uid == os.geteuid() and len(one.parts) > 2:
            one.chmod(one.stat().st_mode | 0o011)
    os.chown(tmp_path / "open", strangers.NOBODY, strangers.NOBODY)
    change = "import difflib, os; import mpiio_ext.subfiles.merge, mpiio_ext.subfiles.cli, mpiio_ext.cli; "
    change += f"os.setuid({strangers.NOBODY})"
    for target, words in (
        (tmp_path / "open" / "g", f"{IDENT}.1: cannot be read: Permission denied"),
        (tmp_path / "g", "g: cannot be written: the folder"),
    ):
        with child("merge", tmp_path / "f", "-o", target, before=change) as process:
            err = process.communicate(timeout=60)[1].decode()
        assert process.returncode == 2 and words in err, err
    assert not list((tmp_path / "open").iterdir()) and not (tmp_path / "g").exists()
